import { createSecureServer } from 'node:http2';
import type { Http2SecureServer, Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { PeerCertificate } from 'node:tls';
import { TestAuthority } from './certificates.test-support.ts';
import type { Pem } from './certificates.test-support.ts';
import type { KubeObject } from './types.ts';

/** Test support: an API server of one collection, over TLS, HTTP/1.1 and HTTP/2, that fails on demand. */

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
  readonly accept: string | undefined;
  readonly traceparent: string | undefined;
  readonly httpVersion: string;
  /** Common name of the client certificate. */
  readonly client: string | undefined;
  readonly body: string;
}

export interface TestObject extends KubeObject {
  data?: Record<string, string>;
}

type Responder = (response: Http2ServerResponse, request: SeenRequest) => void;

interface Event {
  readonly version: number;
  readonly type: string;
  readonly object: TestObject;
}

/** An open watch, as the server sees it. */
export class ServerWatch {
  readonly request: SeenRequest;
  readonly #response: Http2ServerResponse;
  /** A muted watch gets nothing and is not closed: half-open, as far as its reader can tell. */
  muted = false;
  open = true;

  constructor(request: SeenRequest, response: Http2ServerResponse) {
    this.request = request;
    this.#response = response;
    response.on('close', () => {
      this.open = false;
    });
  }

  send(type: string, object: unknown): void {
    this.write(`${JSON.stringify({ type, object })}\n`);
  }

  write(bytes: string | Uint8Array): void {
    if (!this.muted) this.#response.write(bytes);
  }

  bookmark(resourceVersion: number, annotations?: Record<string, string>): void {
    this.send('BOOKMARK', { kind: 'ConfigMap', metadata: { resourceVersion: String(resourceVersion), annotations } });
  }

  /** As a server ends a watch at timeoutSeconds. */
  end(): void {
    this.#response.end();
  }
}

export class TestApiServer {
  readonly authority: TestAuthority;
  readonly seen: SeenRequest[] = [];
  readonly watches: ServerWatch[] = [];
  readonly sockets = new Set<Socket>();
  readonly objects = new Map<string, TestObject>();
  /** Tokens that are let in; undefined: everyone. */
  tokens: Set<string> | undefined;
  streaming = false;
  connections = 0;
  readonly #server: Http2SecureServer;
  readonly #history: Event[] = [];
  readonly #faults: { readonly matches: (request: SeenRequest) => boolean; readonly respond: Responder }[] = [];
  #version = 100;
  #oldest = 0;
  #uids = 0;

  private constructor(authority: TestAuthority, pem: Pem) {
    this.authority = authority;
    this.#server = createSecureServer(
      { ...pem, ca: authority.ca, allowHTTP1: true, requestCert: true, rejectUnauthorized: false },
      (request, response) => {
        this.#receive(request, response).catch((error: unknown) => {
          sendStatus(response, { code: 500, message: `test server: ${String(error)}` });
        });
      },
    );
    this.#server.on('connection', (socket: Socket) => {
      this.connections += 1;
      this.sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.sockets.delete(socket));
    });
    this.#server.on('sessionError', () => undefined).on('tlsClientError', () => undefined);
  }

  static async start(authority?: TestAuthority): Promise<TestApiServer> {
    const ca = authority ?? (await TestAuthority.create());
    const server = new TestApiServer(ca, await ca.issue('api server'));
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get version(): number {
    return this.#version;
  }

  /** The last watch that is open. */
  get watch(): ServerWatch {
    const open = this.watches.filter((watch) => watch.open).at(-1);
    if (open === undefined) throw new Error('no watch is open');
    return open;
  }

  kubeconfig(user: Record<string, unknown> = {}, port = this.port): string {
    return JSON.stringify({
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      clusters: [
        {
          name: 'test',
          cluster: {
            server: `https://127.0.0.1:${port}`,
            'certificate-authority-data': Buffer.from(this.authority.ca).toString('base64'),
          },
        },
      ],
      users: [{ name: 'test', user }],
    });
  }

  /** Requests of one kind so far. */
  count(kind: 'list' | 'watch' | 'other'): number {
    return this.seen.filter((request) => kindOf(request) === kind).length;
  }

  put(name: string, data: Record<string, string> = {}, uid?: string): TestObject {
    const before = this.objects.get(name);
    const object = this.#stamp(name, data, uid ?? before?.metadata.uid ?? `uid-${(this.#uids += 1)}`);
    this.objects.set(name, object);
    this.#tell(before === undefined ? 'ADDED' : 'MODIFIED', object);
    return object;
  }

  remove(name: string): void {
    const before = this.objects.get(name);
    if (before === undefined) return;
    this.objects.delete(name);
    this.#tell('DELETED', this.#stamp(name, before.data ?? {}, before.metadata.uid ?? ''));
  }

  /** Forgets history: watches from before get 410. */
  compact(): void {
    this.#oldest = this.#version;
  }

  /** Answers the next matching requests so, `times` times. */
  fail(matches: 'list' | 'watch' | 'other' | 'any', respond: Responder, times = 1): void {
    for (let i = 0; i < times; i += 1) {
      this.#faults.push({ matches: (request) => matches === 'any' || kindOf(request) === matches, respond });
    }
  }

  /** Ends every socket, keeps listening. */
  cutAll(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
    this.cutAll();
    await closed;
  }

  #stamp(name: string, data: Record<string, string>, uid: string): TestObject {
    this.#version += 1;
    return {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name,
        namespace: 'default',
        uid,
        resourceVersion: String(this.#version),
        managedFields: [{ manager: 'test', operation: 'Update', fieldsV1: { 'f:data': {} } }],
      },
      data,
    };
  }

  #tell(type: string, object: TestObject): void {
    this.#history.push({ version: this.#version, type, object });
    for (const watch of this.watches) if (watch.open) watch.send(type, object);
  }

  async #receive(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    const seen = await read(request);
    this.seen.push(seen);
    response.on('error', () => undefined);
    const at = this.#faults.findIndex((fault) => fault.matches(seen));
    if (at >= 0) this.#faults.splice(at, 1)[0]?.respond(response, seen);
    else if (!this.#knows(seen)) sendStatus(response, { code: 401, reason: 'Unauthorized', message: 'Unauthorized' });
    else this.#serve(seen, response);
  }

  #knows({ authorization }: SeenRequest): boolean {
    return this.tokens === undefined || this.tokens.has((authorization ?? '').replace('Bearer ', ''));
  }

  #serve(request: SeenRequest, response: Http2ServerResponse): void {
    const kind = kindOf(request);
    if (kind === 'list') this.#list(request, response);
    else if (kind === 'watch') this.#watch(request, response);
    else sendJson(response, 200, { echo: request.method, path: request.path });
  }

  #list({ query }: SeenRequest, response: Http2ServerResponse): void {
    const limit = Number(query.get('limit') ?? '0');
    const from = Number(query.get('continue') ?? '0');
    const all = [...this.objects.values()];
    const until = limit === 0 ? all.length : Math.min(from + limit, all.length);
    // As real servers do, items of a typed list go without kind.
    const items = all.slice(from, until).map(({ metadata, data }) => ({ metadata, data }));
    const metadata = {
      resourceVersion: String(this.#version),
      ...(until < all.length ? { continue: String(until) } : {}),
    };
    sendJson(response, 200, { kind: 'ConfigMapList', apiVersion: 'v1', metadata, items });
  }

  #watch(request: SeenRequest, response: Http2ServerResponse): void {
    const initial = request.query.get('sendInitialEvents') === 'true';
    if (initial && !this.streaming) {
      sendStatus(response, { code: 422, reason: 'Invalid', message: 'sendInitialEvents is forbidden' });
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    // HTTP/1.1 keeps the head back until something is written; the compatibility type knows no flushHeaders.
    if (request.httpVersion !== '2.0') response.write('\n');
    const watch = new ServerWatch(request, response);
    if (initial) this.#initial(watch);
    else if (!this.#replay(watch, Number(request.query.get('resourceVersion') ?? '0'))) return;
    this.watches.push(watch);
  }

  #initial(watch: ServerWatch): void {
    for (const object of this.objects.values()) watch.send('ADDED', object);
    watch.bookmark(this.#version, { 'k8s.io/initial-events-end': 'true' });
  }

  #replay(watch: ServerWatch, from: number): boolean {
    if (from < this.#oldest) {
      watch.send('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' });
      watch.end();
      return false;
    }
    for (const event of this.#history) if (event.version > from) watch.send(event.type, event.object);
    return true;
  }
}

export function sendJson(response: Http2ServerResponse, code: number, body: unknown, headers = {}): void {
  response.writeHead(code, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

export function sendStatus(
  response: Http2ServerResponse,
  status: { code: number; reason?: string; message?: string },
  headers = {},
): void {
  sendJson(response, status.code, { kind: 'Status', status: 'Failure', ...status }, headers);
}

function kindOf(request: SeenRequest): 'list' | 'watch' | 'other' {
  if (request.method !== 'GET' || !request.path.endsWith('/configmaps')) return 'other';
  return request.query.has('watch') ? 'watch' : 'list';
}

async function read(request: Http2ServerRequest): Promise<SeenRequest> {
  const url = new URL(request.url, 'https://test');
  let body = '';
  for await (const chunk of request) body += String(chunk);
  return {
    method: request.method,
    path: url.pathname,
    query: url.searchParams,
    authorization: request.headers.authorization,
    traceparent: request.headers.traceparent?.toString(),
    accept: request.headers.accept,
    httpVersion: request.httpVersion,
    client: clientOf(request),
    body,
  };
}

function clientOf(request: Http2ServerRequest): string | undefined {
  const socket = request.httpVersion === '2.0' ? request.stream.session?.socket : request.socket;
  // Without a client certificate it is an empty object, whatever its type says.
  const peer: Partial<PeerCertificate> = socket instanceof TLSSocket ? socket.getPeerCertificate() : {};
  const name = peer.subject?.CN;
  return Array.isArray(name) ? name[0] : name;
}
