import { Agent, ProxyAgent } from 'undici';
import type { Dispatcher } from 'undici';
import { asError, reasonOf } from './abort.ts';
import { ConnectionClosedError, KubeError, NetworkError, TimedOutError } from './errors.ts';
import type { ClusterAccess } from './kubeconfig.ts';
import type { Asked } from './status.ts';

export interface TransportOptions {
  readonly http2: boolean;
  readonly connectTimeoutMs: number;
  /** undici drops a session whose last PING is unanswered when the next is due (undici issue 5787). */
  readonly pingIntervalMs: number;
}

/** What belongs to the TLS session and therefore to one set of sockets. */
export interface TransportAccess {
  readonly access: ClusterAccess;
  readonly cert?: string;
  readonly key?: string;
}

/** One request as it goes on the wire. */
export interface WireRequest {
  readonly method: Dispatcher.HttpMethod;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Uint8Array;
  readonly signal: AbortSignal;
  /** Longest silence within the body, milliseconds; 0: no limit. */
  readonly idleLimitMs: number;
  /** Called when a socket is there and the request is about to go on it; what it throws is what the request fails with. */
  readonly beforeSend?: () => void;
}

/**
 * Streams per HTTP/2 connection; the server's own limit (Go: 250) applies below it. Above, undici opens another
 * connection, so a low number costs sockets and nothing else.
 */
const MAX_STREAMS = 1000;

/** Cloud load balancers forget idle connections after a minute; client-go uses 30 s too. */
const TCP_KEEPALIVE_MS = 30_000;

/** How long a socket without requests is kept: longer than the probe interval, so that a quiet cluster keeps its one. */
const IDLE_SOCKET_MS = 60_000;

/** What of a cluster's access goes into a socket; credentials in headers do not. */
const TLS_FIELDS = ['server', 'ca', 'tlsServerName', 'insecure', 'proxyUrl'] as const;

/** The sockets to one server under one TLS identity: one undici dispatcher and what runs on it. */
export class Transport {
  #from: TransportAccess;
  readonly #dispatcher: Dispatcher;
  readonly #origin: string;
  readonly #basePath: string;
  #running = 0;
  #retired = false;
  #onIdle: (() => void) | undefined;

  constructor(from: TransportAccess, options: TransportOptions) {
    const url = new URL(from.access.server);
    this.#from = from;
    this.#origin = url.origin;
    this.#basePath = url.pathname === '/' ? '' : url.pathname;
    this.#dispatcher = makeDispatcher(from, options);
  }

  /** True when sockets made from `from` would be the same. */
  matches(from: TransportAccess): boolean {
    const { access, cert, key } = this.#from;
    if (cert !== from.cert || key !== from.key) return false;
    if (access === from.access) return true;
    const same = TLS_FIELDS.every((field) => access[field] === from.access[field]);
    // The next comparison is by reference: this one is made on every request.
    if (same) this.#from = from;
    return same;
  }

  /** Sends; resolves with the head of the answer. The caller reads or destroys the body, always. */
  async send(request: WireRequest): Promise<Dispatcher.ResponseData> {
    this.#running += 1;
    try {
      const { beforeSend } = request;
      const asking = beforeSend === undefined ? this.#dispatcher : this.#dispatcher.compose(askingLast(beforeSend));
      const response = await asking.request({
        origin: this.#origin,
        path: this.#basePath + request.path,
        method: request.method,
        headers: request.headers,
        body: request.body ?? null,
        signal: request.signal,
        // The caller's limit covers the wait for the head; undici's own would be a second opinion.
        headersTimeout: 0,
        bodyTimeout: request.idleLimitMs,
      });
      response.body.once('close', () => {
        this.#ended();
      });
      // A body destroyed before its end emits an error that nobody may be listening to any more.
      response.body.on('error', () => undefined);
      return response;
    } catch (error) {
      this.#ended();
      throw error;
    }
  }

  /** Lets running requests end, then closes; `onIdle` is called when that is so, at once when nothing runs. */
  retire(onIdle: () => void): void {
    this.#retired = true;
    this.#onIdle = onIdle;
    this.#check();
  }

  /** Ends everything now; running requests fail with `why`. */
  async destroy(why: Error): Promise<void> {
    await this.#dispatcher.destroy(why);
  }

  #ended(): void {
    this.#running -= 1;
    this.#check();
  }

  #check(): void {
    if (!this.#retired || this.#running > 0) return;
    const onIdle = this.#onIdle;
    this.#onIdle = undefined;
    onIdle?.();
  }
}

/**
 * undici keeps a request until a socket is there, which may take any time: what is to be asked at the last moment is asked
 * when it begins to send.
 */
function askingLast(ask: () => void): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) => {
    const start = handler.onRequestStart?.bind(handler);
    handler.onRequestStart = (controller, context) => {
      start?.(controller, context);
      try {
        ask();
      } catch (error) {
        controller.abort(asError(error));
      }
    };
    return dispatch(options, handler);
  };
}

function makeDispatcher({ access, cert, key }: TransportAccess, options: TransportOptions): Dispatcher {
  const tls = {
    ...(access.ca === undefined ? {} : { ca: access.ca }),
    ...(cert === undefined ? {} : { cert, key }),
    ...(access.tlsServerName === undefined ? {} : { servername: access.tlsServerName }),
    ...(access.insecure ? { rejectUnauthorized: false } : {}),
    // First in ALPN's list: servers that go by the client's order would else settle on HTTP/1.1.
    preferH2: options.http2,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEPALIVE_MS,
    timeout: options.connectTimeoutMs,
  };
  const shared = {
    allowH2: options.http2,
    h2Options: { maxConcurrentStreams: MAX_STREAMS, pingInterval: options.pingIntervalMs },
    keepAliveTimeout: IDLE_SOCKET_MS,
    connectTimeout: options.connectTimeoutMs,
    headersTimeout: 0,
  };
  return access.proxyUrl === undefined
    ? new Agent({ ...shared, connect: tls })
    : new ProxyAgent({ ...shared, uri: access.proxyUrl, requestTls: tls, proxyTunnel: true });
}

const TIMEOUT_CODES: ReadonlySet<string> = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);
const CLOSED_CODES: ReadonlySet<string> = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/** Anything that undici, a socket or a signal throws, as what callers act on. An aborted signal's reason passes unchanged. */
export function wireError(error: unknown, asked: Asked, signal: AbortSignal): Error {
  if (signal.aborted) return reasonOf(signal);
  const cause = asError(error);
  if (cause instanceof ConnectionClosedError) return new ConnectionClosedError(`${at(asked)}: ${cause.message}`);
  if (cause instanceof KubeError) return cause;
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
  if (CLOSED_CODES.has(code)) return new ConnectionClosedError(`${at(asked)}: the connection was closed`, { cause });
  if (TIMEOUT_CODES.has(code)) return new TimedOutError(`${at(asked)}: the server fell silent`, { cause });
  return new NetworkError(`${at(asked)}: ${cause.message === '' ? code : cause.message}`, { cause });
}

function at(asked: Asked): string {
  return `${asked.method} ${asked.path}`;
}
