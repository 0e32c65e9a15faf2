import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { CertificateAuthority } from './certs.ts';
import type { Chart } from './charts.ts';

/** Name and password, as basic authentication takes them. */
export interface BasicAuth {
  username: string;
  password: string;
}

/** How to serve. */
export interface ChartRepositoryOptions {
  /** Default true: HTTPS under a certificate authority of its own. */
  tls?: boolean;
  /** Asked for on every path. Default: nobody is asked. */
  auth?: BasicAuth;
}

/** What goes wrong with a request instead of, or (slow) before, its answer. */
export type Failure =
  /** Answers with this status. */
  | { kind: 'status'; status: number }
  /** Answers properly, after this time (ms). */
  | { kind: 'slow'; delayMs: number }
  /** Closes the connection after half of the body. */
  | { kind: 'drop' }
  /** Never answers. */
  | { kind: 'hang' };

/** One request that was answered (status 0: it was dropped or left hanging). */
export interface RequestRecord {
  method: string;
  path: string;
  status: number;
  /** Whether it came with credentials. */
  authorized: boolean;
}

interface Injection {
  match: RegExp;
  failure: Failure;
  remaining: number;
}

/** A Helm chart repository: index.yaml and archives, from memory, with entity tags. */
export class ChartRepository {
  /** What a HelmChartProxy's repoURL says. */
  readonly url: string;
  /** Certificate authority (PEM) that clients must trust; empty without TLS. */
  readonly ca: string;
  /** Every request since the start, or since resetRequests. */
  readonly requests: RequestRecord[] = [];
  readonly #server: ReturnType<typeof createHttpServer>;
  readonly #charts = new Map<string, Chart>();
  readonly #closing = new AbortController();
  #auth: BasicAuth | undefined;
  #injections: Injection[] = [];

  private constructor(parts: { server: ReturnType<typeof createHttpServer>; url: string; ca: string }) {
    this.#server = parts.server;
    this.url = parts.url;
    this.ca = parts.ca;
  }

  static async start(options: ChartRepositoryOptions = {}): Promise<ChartRepository> {
    const tls = options.tls ?? true;
    const authority = await CertificateAuthority.create('chart repository');
    const pair = await authority.issue({ commonName: 'chart repository', usage: 'server' });
    const listener: { current?: RequestListener } = {};
    const onRequest: RequestListener = (request, response) => listener.current?.(request, response);
    const server = tls
      ? createHttpsServer({ cert: pair.certificate, key: pair.key }, onRequest)
      : createHttpServer(onRequest);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the chart repository has no port');
    const url = `${tls ? 'https' : 'http'}://127.0.0.1:${address.port}`;
    const repository = new ChartRepository({ server, url, ca: tls ? authority.certificate : '' });
    repository.#auth = options.auth;
    listener.current = (request, response) => {
      repository.#handle(request, response).catch(() => response.destroy());
    };
    return repository;
  }

  /** Adds a chart; one of the same name and version is replaced, as after a careless release. */
  publish(...charts: Chart[]): void {
    for (const chart of charts) this.#charts.set(archivePath(chart), chart);
  }

  unpublish(chart: Pick<Chart, 'name' | 'version'>): void {
    this.#charts.delete(archivePath(chart));
  }

  /** Asks for other credentials from now on; for none where it is undefined. */
  setAuth(auth: BasicAuth | undefined): void {
    this.#auth = auth;
  }

  /** Requests whose path matches. */
  count(match: RegExp): number {
    return this.requests.filter(({ path }) => match.test(path)).length;
  }

  /** Requests for the archive of a chart; all versions where none is named. */
  downloads(name: string, version?: string): number {
    const archives = this.requests.filter(({ path }) => path.startsWith(`/charts/${name}-`));
    return archives.filter(({ path }) => version === undefined || path === archivePath({ name, version })).length;
  }

  /** Requests for the index; those answered 304 are counted too. */
  indexRequests(): number {
    return this.count(/^\/index\.yaml$/);
  }

  resetRequests(): void {
    this.requests.length = 0;
  }

  /** Lets requests whose path matches go wrong, `times` times (default: until clearFailures). */
  fail(match: RegExp, failure: Failure, times = Number.POSITIVE_INFINITY): void {
    this.#injections.push({ match, failure, remaining: times });
  }

  clearFailures(): void {
    this.#injections = [];
  }

  /** Closes every connection and the server. */
  async stop(): Promise<void> {
    this.#closing.abort();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? '/', this.url).pathname;
    const authorized = request.headers.authorization !== undefined;
    const record: RequestRecord = { method: request.method ?? 'GET', path, status: 0, authorized };
    this.requests.push(record);
    const failure = this.#takeFailure(path);
    if (failure?.kind === 'hang') return;
    if (failure?.kind === 'slow') await sleep(failure.delayMs, undefined, { signal: this.#closing.signal });
    const content = this.#contentOf(path);
    if (failure?.kind === 'drop') {
      const half = content?.body.subarray(0, content.body.length / 2) ?? Buffer.alloc(1);
      response.writeHead(200, { 'content-length': half.length * 2 + 1 });
      response.write(half, () => response.destroy());
      return;
    }
    record.status = failure?.kind === 'status' ? failure.status : this.#statusOf(request, content);
    this.#answer(response, record.status, content);
  }

  #takeFailure(path: string): Failure | undefined {
    const injection = this.#injections.find(({ match, remaining }) => remaining > 0 && match.test(path));
    if (injection) injection.remaining -= 1;
    return injection?.failure;
  }

  #statusOf(request: IncomingMessage, content: Content | undefined): number {
    if (this.#auth && request.headers.authorization !== basicAuthorization(this.#auth)) return 401;
    if (!content) return 404;
    return request.headers['if-none-match'] === content.etag ? 304 : 200;
  }

  #answer(response: ServerResponse, status: number, content: Content | undefined): void {
    if (status === 401) response.setHeader('www-authenticate', 'Basic realm="charts"');
    if (content && (status === 200 || status === 304)) {
      response.setHeader('etag', content.etag);
      response.setHeader('content-type', content.type);
    }
    response.writeHead(status);
    response.end(status === 200 ? content?.body : undefined);
  }

  #contentOf(path: string): Content | undefined {
    if (path === '/index.yaml') return contentOf(Buffer.from(this.#index()), 'text/yaml');
    const chart = this.#charts.get(path);
    return chart && contentOf(chart.archive, 'application/gzip');
  }

  #index(): string {
    const entries: Record<string, unknown[]> = {};
    for (const [path, chart] of this.#charts) {
      const entry = {
        apiVersion: 'v2',
        ...chart.metadata,
        digest: chart.digest,
        urls: [path.slice(1)],
        created: CREATED,
      };
      (entries[chart.name] ??= []).unshift(entry);
    }
    return stringify({ apiVersion: 'v1', generated: CREATED, entries });
  }
}

interface Content {
  body: Buffer;
  type: string;
  etag: string;
}

/** Constant, so that an index changes only when its charts do. */
const CREATED = '2026-01-01T00:00:00Z';

/** The Authorization header of these credentials. */
export function basicAuthorization(auth: BasicAuth): string {
  return `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`;
}

function contentOf(body: Buffer, type: string): Content {
  return { body, type, etag: `"${createHash('sha256').update(body).digest('hex').slice(0, 32)}"` };
}

function archivePath(chart: Pick<Chart, 'name' | 'version'>): string {
  return `/charts/${chart.name}-${chart.version}.tgz`;
}
