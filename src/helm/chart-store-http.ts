import { setTimeout as delay } from 'node:timers/promises';
import { createHash } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { Agent, EnvHttpProxyAgent } from 'undici';
import type { Dispatcher } from 'undici';
import { HelmError } from './errors.ts';
import type { ProxyOptions } from './options.ts';

/** How chart repositories and registries are talked to. */
export interface RepositoryHttpOptions {
  /** Never taken from Capstan's own environment by this room. */
  readonly proxy: ProxyOptions;
  readonly userAgent: string;
  /** Milliseconds to a TLS connection. */
  readonly connectTimeoutMs: number;
  /** Milliseconds from the request to the answer's headers, and between two pieces of its body. */
  readonly idleTimeoutMs: number;
  /** How often one request is made at most; only failures that may pass by themselves are repeated. */
  readonly attempts: number;
  /** Upper bound of the first wait between two attempts, milliseconds; doubled from one to the next, with full jitter. */
  readonly backoffMs: number;
}

export const DEFAULT_HTTP_OPTIONS: RepositoryHttpOptions = {
  proxy: {},
  userAgent: 'capstan',
  connectTimeoutMs: 10_000,
  idleTimeoutMs: 30_000,
  attempts: 4,
  backoffMs: 250,
};

/** How a server is trusted. `home` is the host (without port) that `ca` is meant for. */
export interface Trust {
  readonly home: string;
  readonly ca?: string;
  readonly insecureSkipTLSVerify?: boolean;
}

export interface RepositoryRequest {
  readonly url: URL;
  readonly method?: 'GET' | 'HEAD' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly trust: Trust;
  /** The Authorization header for an address, asked for on every hop: a redirect to another host gets what that host is to get. */
  readonly authorize?: (url: URL) => string | undefined;
}

export type RepositoryAnswer = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'> & { readonly url: URL };

/** As many as browsers follow of a download. */
const MAX_REDIRECTS = 10;
/** Repositories under different CAs whose connections are kept at a time. */
const MAX_AGENTS = 32;
/** The longest that a server's Retry-After is heeded, milliseconds. */
const MAX_RETRY_AFTER_MS = 10_000;
/** Bytes of an error's body that are read, so that the connection can be used again. */
const MAX_DRAIN_BYTES = 64 * 1024;

/**
 * HTTP for chart repositories and registries, on undici: redirects by hand, so that credentials go only where they
 * belong; bounded retries with jitter on lost connections, 429 and 5xx. Answers below 500 other than 429 are the caller's.
 */
export class RepositoryHttp {
  readonly #options: RepositoryHttpOptions;
  readonly #agents: LRUCache<string, Dispatcher>;
  readonly #closing = new Set<Promise<void>>();

  constructor(options: Partial<RepositoryHttpOptions> = {}) {
    this.#options = { ...DEFAULT_HTTP_OPTIONS, ...options };
    this.#agents = new LRUCache<string, Dispatcher>({
      max: MAX_AGENTS,
      dispose: (agent) => this.#retire(agent.close()),
    });
  }

  /**
   * Makes the request and gives the answer to `consume`, which must read its body to the end or drop it. Both are
   * repeated together: a download that breaks off begins again. Rejects with HelmError RepositoryUnreachable or
   * RepositoryUntrusted, with the signal's reason, or with what `consume` threw.
   */
  async exchange<T>(
    request: RepositoryRequest,
    consume: (answer: RepositoryAnswer) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const failure = new Retry();
      try {
        return await this.#once(request, consume, { signal, failure });
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof HelmError) throw error;
        const problem = transportError(request.url, error);
        if (problem.code !== 'RepositoryUnreachable' || attempt >= this.#options.attempts) throw problem;
      }
      await delay(this.#wait(attempt, failure.afterMs), undefined, { signal });
    }
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    for (const agent of this.#agents.values()) this.#retire(agent.destroy());
    this.#agents.clear();
    await Promise.all(this.#closing);
  }

  async #once<T>(
    request: RepositoryRequest,
    consume: (answer: RepositoryAnswer) => Promise<T>,
    run: { readonly signal: AbortSignal; readonly failure: Retry },
  ): Promise<T> {
    const answer = await this.#follow(request, run.signal);
    if (answer.statusCode >= 500 || answer.statusCode === 429) {
      run.failure.afterMs = retryAfterMs(answer.headers['retry-after']);
      await drain(answer);
      throw new Error(`HTTP status ${answer.statusCode}`);
    }
    return consume(answer);
  }

  async #follow(request: RepositoryRequest, signal: AbortSignal): Promise<RepositoryAnswer> {
    let { url } = request;
    for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
      const answer = await this.#send(request, url, signal);
      const { location } = answer.headers;
      if (!isRedirect(answer.statusCode) || typeof location !== 'string') return answer;
      await drain(answer);
      url = redirectTarget(location, url);
    }
    throw new HelmError('RepositoryInvalid', `${describeUrl(request.url)} redirects more than ${MAX_REDIRECTS} times`);
  }

  async #send(request: RepositoryRequest, url: URL, signal: AbortSignal): Promise<RepositoryAnswer> {
    const authorization = request.authorize?.(url);
    const answer = await this.#agent(request.trust, url).request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: request.method ?? 'GET',
      headers: {
        'user-agent': this.#options.userAgent,
        ...request.headers,
        ...(authorization === undefined ? {} : { authorization }),
      },
      body: request.body ?? null,
      headersTimeout: this.#options.idleTimeoutMs,
      bodyTimeout: this.#options.idleTimeoutMs,
      signal,
    });
    return { ...pick(answer), url };
  }

  #agent(trust: Trust, url: URL): Dispatcher {
    // A private CA vouches for its own host alone; what that host redirects to may be a public blob store.
    const atHome = url.hostname === trust.home;
    const insecure = trust.insecureSkipTLSVerify === true;
    const ca = trust.ca === undefined || insecure ? undefined : atHome ? [trust.ca] : [trust.ca, ...rootCertificates];
    const fingerprint =
      ca === undefined
        ? ''
        : createHash('sha256')
            .update(trust.ca ?? '')
            .digest('hex');
    const key = `${url.protocol} ${insecure} ${atHome} ${fingerprint}`;
    const known = this.#agents.get(key);
    if (known !== undefined) return known;
    const tls = { ...(ca === undefined ? {} : { ca }), rejectUnauthorized: !insecure };
    const agent = this.#makeAgent(url.protocol, tls);
    this.#agents.set(key, agent);
    return agent;
  }

  /** As Go has it: the HTTPS proxy is for https alone, the HTTP proxy for http alone. */
  #makeAgent(protocol: string, tls: { ca?: string[]; rejectUnauthorized: boolean }): Dispatcher {
    const { proxy, connectTimeoutMs } = this.#options;
    const connect = { ...tls, timeout: connectTimeoutMs };
    const through = protocol === 'https:' ? proxy.httpsProxy : proxy.httpProxy;
    if (through === undefined || through === '') return new Agent({ connect });
    return new EnvHttpProxyAgent({
      connect,
      requestTls: connect,
      httpProxy: through,
      httpsProxy: through,
      // Never undefined, or undici would look into this process's environment.
      noProxy: proxy.noProxy ?? '',
    });
  }

  /** An agent that is out of use; `close` hears of it. */
  #retire(done: Promise<void>): void {
    const settled: Promise<void> = done
      .catch(() => undefined)
      .then(() => {
        this.#closing.delete(settled);
      });
    this.#closing.add(settled);
  }

  #wait(attempt: number, afterMs: number | undefined): number {
    if (afterMs !== undefined) return Math.min(afterMs, MAX_RETRY_AFTER_MS);
    return Math.random() * this.#options.backoffMs * 2 ** (attempt - 1);
  }
}

/** What one attempt learned for the next. */
class Retry {
  afterMs: number | undefined;
}

function pick({ statusCode, headers, body }: Dispatcher.ResponseData): Omit<RepositoryAnswer, 'url'> {
  return { statusCode, headers, body };
}

/** Reads away a body that nobody wants. */
export async function drain(answer: RepositoryAnswer): Promise<void> {
  await answer.body.dump({ limit: MAX_DRAIN_BYTES });
}

/** A body as text, of at most `limit` bytes. Rejects with HelmError RepositoryInvalid when it is longer. */
export async function readBody(answer: RepositoryAnswer, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) {
      throw new HelmError('RepositoryInvalid', `${describeUrl(answer.url)} is longer than ${limit} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** An address for messages: user, password and query may be secrets. */
export function describeUrl(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`;
}

/** A header that may come once or not at all. */
export function header(answer: RepositoryAnswer, name: string): string | undefined {
  const value = answer.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

function redirectTarget(location: string, from: URL): URL {
  const target = URL.parse(location, from.href);
  if (target === null || (target.protocol !== 'https:' && target.protocol !== 'http:')) {
    throw new HelmError('RepositoryInvalid', `${describeUrl(from)} redirects to something that is no HTTP address`);
  }
  return target;
}

function retryAfterMs(value: string | string[] | undefined): number | undefined {
  if (typeof value !== 'string') return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Of OpenSSL and node:tls: the server was reached, and is not trusted. */
const UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_SIGNATURE_FAILURE',
  'INVALID_CA',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

/** What Node adds to some of these for whoever starts it; the reader of a condition does not, and has tlsConfig. */
const NODE_ADVICE = /; if the root CA is installed locally, try running Node\.js with .*$/;

function transportError(url: URL, error: unknown): HelmError {
  const code = codeOf(error);
  const text = error instanceof Error ? error.message : String(error);
  const what = `${describeUrl(url)}: ${text === '' ? (code ?? 'no answer') : text.replace(NODE_ADVICE, '')}`;
  if (code !== undefined && UNTRUSTED.has(code)) return new HelmError('RepositoryUntrusted', what, { cause: error });
  return new HelmError('RepositoryUnreachable', what, { cause: error });
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
