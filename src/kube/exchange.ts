import { AsyncLocalStorage } from 'node:async_hooks';
import type { Counter } from 'prom-client';
import type { Dispatcher } from 'undici';
import { counter, injectTrace } from '../telemetry/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { nameOf } from './api-request.ts';
import type { ApiAnswer, ApiRequest } from './api-request.ts';
import type { WriteGuard } from './connection-options.ts';
import type { Credentials } from './credentials.ts';
import { WriteRefusedError, isKubeError } from './errors.ts';
import type { KubeError } from './errors.ts';
import type { ClusterAccess } from './kubeconfig.ts';
import { withQuery } from './paths.ts';
import type { Sockets } from './sockets.ts';
import { errorFromResponse } from './status.ts';
import type { Asked } from './status.ts';
import type { ForwardRequest } from './forward.ts';
import { wireError } from './transport.ts';
import type { WireRequest } from './transport.ts';

/** What a request is sent with; changes when credentials are swapped. */
export interface Identity {
  readonly access: ClusterAccess;
  readonly credentials: Credentials;
}

export interface ExchangeOptions {
  readonly clusterName: string;
  readonly userAgent: string;
  readonly telemetry: Telemetry;
  readonly guard?: WriteGuard;
}

/** Kubernetes API groups whose POSTs ask and change nothing: TokenReview, SubjectAccessReview. */
const REVIEWS = /^\/apis\/(authentication|authorization)\.k8s\.io\//;

/** One request and its answer on the wire: headers, errors and the metric; no second try. */
export class Exchange {
  readonly #sockets: Sockets;
  readonly #options: ExchangeOptions;
  readonly #requests: Counter<'cluster' | 'verb' | 'code'>;

  constructor(sockets: Sockets, options: ExchangeOptions) {
    this.#sockets = sockets;
    this.#options = options;
    this.#requests = counter(
      options.telemetry.metrics,
      'capstan_kube_requests_total',
      'Requests to API servers by HTTP status, or by error code where no answer came',
      ['cluster', 'verb', 'code'],
    );
  }

  /** Sends and reads the whole answer. Rejects with a KubeError for 400 and above. */
  async answer(request: ApiRequest, identity: Identity, signal: AbortSignal): Promise<ApiAnswer> {
    const response = await this.head(request, identity, { signal, idleLimitMs: 0 });
    try {
      return {
        status: response.statusCode,
        contentType: headerOf(response, 'content-type') ?? '',
        text: await response.body.text(),
      };
    } catch (error) {
      throw wireError(error, request, signal);
    }
  }

  /** Sends; resolves with the head of an answer below 400, whose body is then the caller's to read or destroy. */
  async head(
    request: ApiRequest,
    identity: Identity,
    limits: { readonly signal: AbortSignal; readonly idleLimitMs: number },
  ): Promise<Dispatcher.ResponseData> {
    let response: Dispatcher.ResponseData;
    try {
      response = await this.#send(request, identity, limits);
    } catch (error) {
      const told = wireError(error, request, limits.signal);
      this.#count(request, isKubeError(told) ? told.code : 'Aborted');
      throw told;
    }
    this.#count(request, String(response.statusCode));
    if (response.statusCode >= 400) throw await this.#refusal(request, response, limits.signal);
    return response;
  }

  /** Sends another program's request as it is; resolves with any answer, whose body is the caller's to read or destroy. */
  async forward(request: ForwardRequest, { access, credentials }: Identity): Promise<Dispatcher.ResponseData> {
    const asked = { ...request, path: request.path.split('?', 1)[0] ?? '', body: undefined };
    try {
      const auth = await credentials.current(request.signal);
      const response = await this.#sockets.for({ access, cert: auth.cert, key: auth.key }).send({
        ...request,
        headers: { ...request.headers, ...auth.headers },
        // What the program waits for is its own affair: it may be a watch of something that rests.
        idleLimitMs: 0,
        ...this.#lastWord(asked),
      });
      this.#count(asked, String(response.statusCode));
      return response;
    } catch (error) {
      const told = wireError(error, asked, request.signal);
      this.#count(asked, isKubeError(told) ? told.code : 'Aborted');
      throw told;
    }
  }

  async #send(
    request: ApiRequest,
    { access, credentials }: Identity,
    limits: { readonly signal: AbortSignal; readonly idleLimitMs: number },
  ): Promise<Dispatcher.ResponseData> {
    const auth = await credentials.current(limits.signal);
    return this.#sockets.for({ access, cert: auth.cert, key: auth.key }).send({
      method: request.method,
      path: withQuery(request.path, request.query),
      headers: { ...this.#headers(request), ...auth.headers },
      body: request.body,
      ...limits,
      ...this.#lastWord(request),
    });
  }

  /** The guard is asked after every wait, that for a socket included: a process may have been stopped in it for any time. */
  #lastWord(request: Asked): Pick<WireRequest, 'beforeSend'> {
    const { guard } = this.#options;
    if (guard === undefined || request.method === 'GET' || REVIEWS.test(request.path)) return {};
    const ask = (): void => {
      try {
        guard(request);
      } catch (cause) {
        const why = cause instanceof Error ? cause.message : String(cause);
        throw new WriteRefusedError(`${nameOf(request)}: not sent: ${why}`, { cause });
      }
    };
    // No socket is made for what must not be sent.
    ask();
    // A socket calls in the context of whoever used it last.
    return { beforeSend: AsyncLocalStorage.bind(ask) };
  }

  async #refusal(request: ApiRequest, response: Dispatcher.ResponseData, signal: AbortSignal): Promise<KubeError> {
    let body = '';
    try {
      body = await response.body.text();
    } catch (error) {
      // The status says enough where the text breaks off.
      if (signal.aborted) throw wireError(error, request, signal);
    }
    const retryAfter = headerOf(response, 'retry-after');
    return errorFromResponse(request, { status: response.statusCode, body, retryAfter });
  }

  #headers(request: ApiRequest): Record<string, string> {
    const headers: Record<string, string> = {
      accept: request.accept ?? 'application/json',
      'user-agent': this.#options.userAgent,
    };
    if (request.body !== undefined) headers['content-type'] = request.contentType ?? 'application/json';
    // API servers that trace go on with it (KEP-647).
    injectTrace(headers);
    return headers;
  }

  #count(request: Asked & { readonly verb?: string }, code: string): void {
    const verb = request.verb ?? request.method.toLowerCase();
    this.#requests.inc({ cluster: this.#options.clusterName, verb, code });
  }
}

function headerOf(response: Dispatcher.ResponseData, name: string): string | undefined {
  const value = response.headers[name];
  return Array.isArray(value) ? value[0] : value;
}
