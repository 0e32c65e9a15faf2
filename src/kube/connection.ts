import type { Span } from '@opentelemetry/api';
import { CLUSTER_ATTRIBUTE, createTelemetry, inClientSpan } from '../telemetry/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import type { Dispatcher } from 'undici';
import { asError, linkAbort, raceAbort, sleep, withTimeout } from './abort.ts';
import { nameOf } from './api-request.ts';
import type { ApiAnswer, ApiRequest, StreamRequest } from './api-request.ts';
import { ResponseStream } from './api-stream.ts';
import type { ApiStream } from './api-stream.ts';
import {
  DEFAULT_CONNECT_TIMEOUT_MS,
  DEFAULT_PING_INTERVAL_MS,
  DEFAULT_REQUEST_TIMEOUT_MS,
  inClusterKubeconfig,
} from './connection-options.ts';
import type { ConnectionOptions, InClusterOptions, SwapOutcome, UnauthorizedHook } from './connection-options.ts';
import { Credentials } from './credentials.ts';
import { ConnectionClosedError, ServerError, TimedOutError, isKubeError } from './errors.ts';
import { Exchange } from './exchange.ts';
import type { Identity } from './exchange.ts';
import type { ForwardedAnswer, ForwardRequest } from './forward.ts';
import { identityOf, readKubeconfig, writeKubeconfig } from './kubeconfig.ts';
import type { ClusterAccess, KubeconfigOptions } from './kubeconfig.ts';
import { Patience } from './patience.ts';
import { pathTemplate } from './paths.ts';
import { Sockets } from './sockets.ts';

/** How long a 401 waits for newer credentials before it is told. */
const UNAUTHORIZED_HOOK_LIMIT_MS = 10_000;
const STATUS_ATTRIBUTE = 'http.response.status_code';

/**
 * One API server: sockets, credentials, limits, and what is told about calls. Everything that talks to a cluster goes
 * through its one Connection; `close()` leaves neither socket nor timer.
 */
export class Connection {
  readonly clusterName: string;
  readonly telemetry: Telemetry;
  readonly requestTimeoutMs: number;
  /** What was found out about the server while watching; shared by all watches. */
  readonly features: { streamingLists: 'unknown' | 'yes' | 'no' } = { streamingLists: 'unknown' };
  readonly #options: ConnectionOptions;
  readonly #sockets: Sockets;
  readonly #exchange: Exchange;
  readonly #closing = new AbortController();
  readonly #swapListeners = new Set<() => void>();
  #source: { readonly kubeconfig: string; readonly context: string | undefined };
  #current: Identity;
  /** Grows with every change of credentials, so that a 401 knows whether it was answered to older ones. */
  #version = 0;
  #renewing: Promise<boolean> | undefined;
  #hook: UnauthorizedHook | undefined;

  /** Reads the kubeconfig; connects with the first request. Throws KubeconfigInvalid, ExecPluginRefused, FileReferenceRefused. */
  static fromKubeconfig(kubeconfig: string, options: ConnectionOptions): Connection {
    return new Connection(kubeconfig, options);
  }

  /** The cluster that this process runs in, as its service account. Throws KubeconfigInvalid when it runs in none. */
  static inCluster(options: InClusterOptions): Connection {
    const { env, root = '/var/run/secrets/kubernetes.io/serviceaccount', ...rest } = options;
    return new Connection(inClusterKubeconfig(env, root), { ...rest, allowFiles: true });
  }

  private constructor(kubeconfig: string, options: ConnectionOptions) {
    this.clusterName = options.clusterName;
    this.telemetry = options.telemetry ?? createTelemetry();
    this.requestTimeoutMs = options.requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS;
    this.#options = options;
    this.#source = { kubeconfig, context: options.context };
    this.#current = identityFor(readKubeconfig(kubeconfig, this.#readOptions(options.context)));
    this.#sockets = new Sockets({
      http2: options.http2 ?? true,
      connectTimeoutMs: options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS,
      pingIntervalMs: options.pingIntervalMs ?? DEFAULT_PING_INTERVAL_MS,
    });
    this.#exchange = new Exchange(this.#sockets, {
      clusterName: options.clusterName,
      userAgent: options.userAgent ?? 'capstan',
      telemetry: this.telemetry,
      ...(options.guard === undefined ? {} : { guard: options.guard }),
    });
  }

  /** The server's address, for messages. */
  get server(): string {
    return this.#current.access.server;
  }

  /** Equal for kubeconfigs of the same server, CA, TLS name and verification; a hash. */
  get identity(): string {
    return identityOf(this.#current.access);
  }

  /** The namespace that the kubeconfig's context names. */
  get namespace(): string | undefined {
    return this.#current.access.namespace;
  }

  /** Aborts when this connection closes. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  /** Who is asked for newer credentials after a 401, within 10 s. The refused request is then tried once more. */
  setUnauthorizedHook(hook: UnauthorizedHook | undefined): void {
    this.#hook = hook;
  }

  /** Told after credentials changed. Returns the removal. */
  onSwap(listener: () => void): () => void {
    this.#swapListeners.add(listener);
    return () => {
      this.#swapListeners.delete(listener);
    };
  }

  /**
   * Puts newer credentials for the same server in place: the next request uses them, running ones (watches) go on. Client
   * certificates live in the TLS session, so with new ones new requests go to new sockets, and the old are closed when
   * their last request ends. Throws as `fromKubeconfig`; then nothing has changed.
   */
  swap(kubeconfig: string, context: string | undefined = this.#options.context): SwapOutcome {
    const access = readKubeconfig(kubeconfig, this.#readOptions(context));
    if (identityOf(access) !== this.identity) return 'different';
    this.#source = { kubeconfig, context };
    if (JSON.stringify(access) === JSON.stringify(this.#current.access)) return 'unchanged';
    this.#current = identityFor(access);
    this.#changed();
    return 'swapped';
  }

  /**
   * Drops all sockets: running requests fail with ConnectionClosed (a retry class), new ones go to new sockets. For a
   * failed probe: a dead HTTP/2 session would otherwise be used again (undici issue 5787).
   */
  reset(why: string): void {
    this.features.streamingLists = 'unknown';
    this.#sockets.reset(new ConnectionClosedError(`connections were dropped: ${why}`));
  }

  /** A kubeconfig that needs no files and, where the newest token or certificate is known, runs no program. A secret as a whole. */
  kubeconfig(): string {
    return writeKubeconfig(this.#current.credentials.inlined());
  }

  /** Ends all requests and sockets. Resolves when they are gone; later calls fail with ConnectionClosed. */
  async close(): Promise<void> {
    const why = new ConnectionClosedError(`the connection to cluster ${this.clusterName} was closed`);
    if (!this.#closing.signal.aborted) this.#closing.abort(why);
    this.#swapListeners.clear();
    this.#hook = undefined;
    await this.#sockets.close(why);
  }

  /** A call whose answer is JSON. */
  async json<T>(request: ApiRequest): Promise<T> {
    const answer = await this.call(request);
    try {
      return JSON.parse(answer.text) as T;
    } catch {
      // The parser's message quotes what it read, which may be a Secret.
      throw new ServerError(`${nameOf(request)}: the answer is no JSON (${answer.contentType})`);
    }
  }

  /**
   * A whole call: credentials, limit, span, metric, answer read. Answers of 400 and above reject with their KubeError. A
   * 401 is tried once more with newer credentials; a read is also tried again after a 429, within its limit, and once
   * after a connection that broke.
   */
  async call(request: ApiRequest): Promise<ApiAnswer> {
    const limit = request.timeoutMs ?? this.requestTimeoutMs;
    const patience = new Patience(request.method === 'GET', performance.now() + limit);
    return this.#observed(request, async (span) => {
      const answer = await withTimeout(
        request.signal,
        limit,
        async (signal) =>
          this.#persist(patience, signal, async () => this.#exchange.answer(request, this.#current, signal)),
        nameOf(request),
      );
      span.setAttribute(STATUS_ATTRIBUTE, answer.status);
      return answer;
    });
  }

  /**
   * A call whose answer goes on. `timeoutMs` limits the wait for its head, `idleLimitMs` any silence after that; `signal`
   * ends it at any time. Answers of 400 and above reject; a 401 is tried once more as in `call`, and nothing else.
   */
  async open(request: StreamRequest): Promise<ApiStream> {
    const limit = request.timeoutMs ?? this.requestTimeoutMs;
    const linked = linkAbort(request.signal);
    const { signal } = linked;
    const timer = setTimeout(() => {
      linked.abort(new TimedOutError(`${nameOf(request)}: no answer within ${limit} ms`));
    }, limit);
    const limits = { signal, idleLimitMs: request.idleLimitMs };
    try {
      return await this.#observed(request, async (span) => {
        const response = await raceAbort(
          this.#persist(new Patience(false, 0), signal, async () =>
            this.#exchange.head(request, this.#current, limits),
          ),
          signal,
        );
        span.setAttribute(STATUS_ATTRIBUTE, response.statusCode);
        return new ResponseStream(response.body, linked, request);
      });
    } catch (error) {
      linked.unlink();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Another program's request, with these credentials instead of its own. Resolves with any answer; a 401 is tried once
   * more with newer credentials. Rejects with a KubeError when there is none, and after `close`.
   */
  async forward(request: ForwardRequest): Promise<ForwardedAnswer> {
    const linked = linkAbort(request.signal);
    const onClose = (): void => linked.abort(asError(this.signal.reason));
    this.signal.addEventListener('abort', onClose, { once: true });
    const unlink = (): void => {
      linked.unlink();
      this.signal.removeEventListener('abort', onClose);
    };
    try {
      this.signal.throwIfAborted();
      return await this.#observed({ method: request.method, path: request.path }, async (span) => {
        const response = await this.#forwardOnce({ ...request, signal: linked.signal });
        span.setAttribute(STATUS_ATTRIBUTE, response.statusCode);
        response.body.once('close', unlink);
        return { status: response.statusCode, headers: response.headers, body: response.body };
      });
    } catch (error) {
      unlink();
      throw error;
    }
  }

  async #forwardOnce(request: ForwardRequest): Promise<Dispatcher.ResponseData> {
    const version = this.#version;
    const response = await this.#exchange.forward(request, this.#current);
    if (response.statusCode !== 401 || !(await this.#renew(version, request.signal))) return response;
    response.body.destroy();
    return this.#exchange.forward(request, this.#current);
  }

  /** Tries until it works, patience ends or the signal aborts. */
  async #persist<T>(patience: Patience, signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
    for (;;) {
      this.#closing.signal.throwIfAborted();
      const version = this.#version;
      try {
        return await attempt();
      } catch (error) {
        const renewed = patience.mayRenew(error) && (await this.#renew(version, signal));
        const wait = renewed ? 0 : patience.waitAfter(error);
        if (wait === undefined) throw error;
        await sleep(wait, signal);
      }
    }
  }

  async #observed<T>(
    request: { readonly method: string; readonly path: string },
    run: (span: Span) => Promise<T>,
  ): Promise<T> {
    const template = pathTemplate(request.path);
    // Semantic conventions for HTTP clients, but for url.full: the names of objects would be in it.
    const attributes = {
      'http.request.method': request.method,
      'url.template': template,
      ...addressOf(this.server),
      [CLUSTER_ATTRIBUTE]: this.clusterName,
    };
    return inClientSpan(this.telemetry.tracer, `${request.method} ${template}`, attributes, async (span) => {
      try {
        return await run(span);
      } catch (error) {
        if (isKubeError(error) && error.status !== undefined) span.setAttribute(STATUS_ATTRIBUTE, error.status);
        throw error;
      }
    });
  }

  /** True when the credentials are newer by now than those that were refused. Callers that come together share one attempt. */
  async #renew(refused: number, signal: AbortSignal): Promise<boolean> {
    if (this.#version !== refused) return true;
    this.#renewing ??= this.#renewOnce(refused).finally(() => {
      this.#renewing = undefined;
    });
    return raceAbort(this.#renewing, signal);
  }

  async #renewOnce(refused: number): Promise<boolean> {
    try {
      return await withTimeout(this.signal, UNAUTHORIZED_HOOK_LIMIT_MS, async (signal) => {
        if (await this.#renewFromSource(signal)) return true;
        return (await this.#hook?.(signal)) === true || this.#version !== refused;
      });
    } catch (error) {
      this.telemetry.log.warn('credentials were refused and newer ones could not be had', {
        cluster: this.clusterName,
        err: error,
      });
      return this.#version !== refused;
    }
  }

  /** Token files and plugins first, then certificate files: the same kubeconfig may name newer contents. */
  async #renewFromSource(signal: AbortSignal): Promise<boolean> {
    if (await this.#current.credentials.renew(signal)) {
      this.#changed();
      return true;
    }
    return this.swap(this.#source.kubeconfig, this.#source.context) === 'swapped';
  }

  #changed(): void {
    this.#version += 1;
    for (const listener of [...this.#swapListeners]) {
      try {
        listener();
      } catch (error) {
        this.telemetry.log.error('a listener of changed credentials threw', { cluster: this.clusterName, err: error });
      }
    }
  }

  #readOptions(context: string | undefined): KubeconfigOptions {
    const allowExec = this.#options.allowExec ?? false;
    return { context, allowExec, allowFiles: this.#options.allowFiles ?? allowExec, baseDir: this.#options.baseDir };
  }
}

function identityFor(access: ClusterAccess): Identity {
  return { access, credentials: new Credentials(access) };
}

function addressOf(server: string): { 'server.address': string; 'server.port': number } {
  const { protocol, hostname, port } = new URL(server);
  return { 'server.address': hostname, 'server.port': Number(port) || (protocol === 'http:' ? 80 : 443) };
}
