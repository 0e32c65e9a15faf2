import type { Dispatcher } from 'undici';
import { Agent, request } from 'undici';

/** Any Kubernetes object, as far as tests look into it. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: {
    name?: string;
    generateName?: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    generation?: number;
    creationTimestamp?: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    finalizers?: string[];
    ownerReferences?: Record<string, unknown>[];
    managedFields?: Record<string, unknown>[];
  };
  [field: string]: unknown;
}

/** An answer of the API server that is not a success. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly reason: string;

  constructor(what: string, status: number, body: string) {
    const answer = parseStatus(body);
    super(`${what}: ${status} ${answer.message}`);
    this.status = status;
    this.reason = answer.reason;
  }
}

const CONTENT_TYPES = {
  json: 'application/json',
  merge: 'application/merge-patch+json',
  jsonPatch: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

/** One request; `timeoutMs` defaults to 30 s. */
export interface RestRequest {
  body?: unknown;
  contentType?: keyof typeof CONTENT_TYPES;
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** What a watch tells. BOOKMARK is left out: the tests' watches ask for none. */
export interface WatchEvent<T> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  object: T;
}

/** The server ends a watch after this long (s): before undici would call a quiet one dead (300 s without a byte). */
const WATCH_SECONDS = 240;

/** How a client reaches and is known to a server. */
export interface RestOptions {
  server: string;
  ca: string;
  token?: string;
  clientCertificate?: { certificate: string; key: string };
}

/** The tests' own, small view of an API server: paths in, objects out, no cache and no retry. */
export class RestClient {
  readonly #options: RestOptions;
  readonly #agent: Agent;

  constructor(options: RestOptions) {
    this.#options = options;
    const { ca, clientCertificate } = options;
    this.#agent = new Agent({
      connect: { ca, cert: clientCertificate?.certificate, key: clientCertificate?.key },
      allowH2: false,
      // A test's own idle sockets must not look like the ones of the program under test.
      keepAliveTimeout: 1_000,
    });
  }

  /** @throws ApiError on any status that is not 2xx. */
  async request<T = KubeObject>(method: Dispatcher.HttpMethod, path: string, options: RestRequest = {}): Promise<T> {
    const limit = AbortSignal.timeout(options.timeoutMs ?? 30_000);
    const response = await request(`${this.#options.server}${path}`, {
      dispatcher: this.#agent,
      method,
      signal: options.signal ? AbortSignal.any([options.signal, limit]) : limit,
      headers: this.#headers(options.contentType ?? 'json'),
      body: options.body === undefined ? null : JSON.stringify(options.body),
    });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new ApiError(`${method} ${path}`, response.statusCode, text);
    return (isJson(response.headers['content-type']) ? JSON.parse(text) : text) as T;
  }

  async get<T = KubeObject>(path: string): Promise<T> {
    return this.request<T>('GET', path);
  }

  /** As get; undefined where there is no such object. */
  async find<T = KubeObject>(path: string): Promise<T | undefined> {
    return this.#unlessMissing(this.get<T>(path));
  }

  /** The items of a list. */
  async list<T = KubeObject>(path: string): Promise<T[]> {
    const list = await this.get<{ items: T[] | null }>(path);
    return list.items ?? [];
  }

  async create<T = KubeObject>(path: string, body: object): Promise<T> {
    return this.request<T>('POST', path, { body });
  }

  async replace<T = KubeObject>(path: string, body: object): Promise<T> {
    return this.request<T>('PUT', path, { body });
  }

  /** JSON merge patch (RFC 7386): null removes. */
  async patch<T = KubeObject>(path: string, body: object): Promise<T> {
    return this.request<T>('PATCH', path, { body, contentType: 'merge' });
  }

  /** JSON patch (RFC 6902). */
  async jsonPatch<T = KubeObject>(path: string, operations: object[]): Promise<T> {
    return this.request<T>('PATCH', path, { body: operations, contentType: 'jsonPatch' });
  }

  /** Server-side apply, forced, as `fieldManager`. */
  async apply<T = KubeObject>(path: string, body: object, fieldManager = 'test'): Promise<T> {
    const query = `${path.includes('?') ? '&' : '?'}fieldManager=${fieldManager}&force=true`;
    return this.request<T>('PATCH', `${path}${query}`, { body, contentType: 'apply' });
  }

  /** Deletes; nothing where it is gone already. */
  async delete(path: string): Promise<void> {
    await this.#unlessMissing(this.request('DELETE', path));
  }

  /**
   * What happens after `resourceVersion`, until the server ends the watch (4 min) or `signal` aborts.
   * @throws ApiError, also for an ERROR event such as 410; the signal's reason.
   */
  async *watch<T = KubeObject>(
    path: string,
    options: { resourceVersion: string; signal: AbortSignal },
  ): AsyncGenerator<WatchEvent<T>> {
    const { resourceVersion, signal } = options;
    const query = `watch=1&resourceVersion=${resourceVersion}&timeoutSeconds=${WATCH_SECONDS}`;
    const { statusCode, body } = await request(`${this.#options.server}${path}?${query}`, {
      dispatcher: this.#agent,
      signal,
      headers: this.#headers('json'),
    });
    if (statusCode >= 300) throw new ApiError(`watch ${path}`, statusCode, await body.text());
    let rest = '';
    for await (const chunk of body.setEncoding('utf8') as AsyncIterable<string>) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) yield parseEvent<T>(path, line);
    }
  }

  /** Closes every connection, running requests included. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #headers(contentType: keyof typeof CONTENT_TYPES): Record<string, string> {
    const headers = { accept: 'application/json', 'content-type': CONTENT_TYPES[contentType] };
    const { token } = this.#options;
    return token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` };
  }

  async #unlessMissing<T>(outcome: Promise<T>): Promise<T | undefined> {
    try {
      return await outcome;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  }
}

function isJson(contentType: string | string[] | undefined): boolean {
  return typeof contentType === 'string' && contentType.startsWith('application/json');
}

function parseEvent<T>(path: string, line: string): WatchEvent<T> {
  const event = JSON.parse(line) as WatchEvent<T> | { type: 'ERROR'; object: { code?: number } };
  if (event.type === 'ERROR')
    throw new ApiError(`watch ${path}`, event.object.code ?? 500, JSON.stringify(event.object));
  return event;
}

function parseStatus(body: string): { message: string; reason: string } {
  try {
    const status = JSON.parse(body) as { message?: string; reason?: string };
    return { message: status.message ?? body, reason: status.reason ?? '' };
  } catch {
    return { message: body.slice(0, 500), reason: '' };
  }
}
