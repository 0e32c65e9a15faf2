import { createHash } from 'node:crypto';
import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { Header } from 'tar';
import { TestAuthority } from '../kube/certificates.test-support.ts';

/** Test support: an HTTPS server in this process that chart repositories and registries are made of. */

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface Answer {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  /** Ends the connection after half of the body. */
  readonly cut?: boolean;
  /** Never answers. */
  readonly hang?: boolean;
}

export type Responder = (request: SeenRequest) => Answer | Promise<Answer>;

export class ChartServer {
  readonly requests: SeenRequest[] = [];
  readonly ca: string;
  readonly #server: ReturnType<typeof createServer>;
  responder: Responder = () => ({ status: 404 });

  private constructor(server: ReturnType<typeof createServer>, ca: string) {
    this.#server = server;
    this.ca = ca;
  }

  static async start(authority?: TestAuthority): Promise<ChartServer> {
    const root = authority ?? (await TestAuthority.create());
    const { cert, key } = await root.issue('charts');
    const made: { server?: ChartServer } = {};
    const server = createServer({ cert, key }, (request, response) => {
      made.server?.take(request, response).catch(() => response.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    made.server = new ChartServer(server, root.ca);
    return made.server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  paths(): string[] {
    return this.requests.map(({ path }) => path);
  }

  count(path: string | RegExp): number {
    return this.paths().filter((seen) => (typeof path === 'string' ? seen === path : path.test(seen))).length;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? '/', this.url);
    const seen: SeenRequest = {
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
    };
    this.requests.push(seen);
    const answer = await this.responder(seen);
    if (answer.hang !== true) give(answer, response);
  }
}

function give({ status = 200, headers = {}, body = '', cut = false }: Answer, response: ServerResponse): void {
  const content = Buffer.from(body);
  response.writeHead(status, { 'content-length': content.length, ...headers });
  if (cut) response.write(content.subarray(0, content.length / 2), () => response.destroy());
  else response.end(content);
}

export function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

export function sha256(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex');
}

/** A chart's archive. `files` come before Chart.yaml, by their path in the chart. */
export function archive(name: string, version: string, files: Record<string, string> = {}): Buffer {
  const chart = `apiVersion: v2\nname: ${name}\nversion: ${version}\nappVersion: "1.10"\n`;
  const entries = Object.entries({ ...files, 'Chart.yaml': chart });
  const blocks = entries.flatMap(([path, text]) => tarEntry(`${name}/${path}`, Buffer.from(text)));
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}

/** One file of a tar. */
export function tarEntry(path: string, content: Buffer): Buffer[] {
  const header = new Header({
    path,
    mode: 0o644,
    size: content.length,
    type: 'File',
    mtime: new Date(0),
    uid: 0,
    gid: 0,
  });
  const block = Buffer.alloc(512);
  header.encode(block);
  return [block, content, Buffer.alloc((512 - (content.length % 512)) % 512)];
}

export interface PublishedChart {
  readonly name: string;
  readonly version: string;
  readonly body: Buffer;
  /** Instead of charts/<name>-<version>.tgz. */
  readonly url?: string;
  /** '' for an index without digests. */
  readonly digest?: string;
}

/** An index.yaml as Go writes it. */
export function indexYaml(charts: readonly PublishedChart[]): string {
  const lines = ['apiVersion: v1', 'entries:'];
  for (const [name, versions] of Map.groupBy(charts, (chart) => chart.name)) {
    lines.push(`  ${name}:`);
    for (const { version, body, url, digest = sha256(body) } of versions) {
      lines.push('  - apiVersion: v2', `    appVersion: "1.10"`);
      if (digest !== '') lines.push(`    digest: ${digest}`);
      lines.push(`    name: ${name}`, '    urls:', `    - ${url ?? pathOf(name, version)}`, `    version: ${version}`);
    }
  }
  return `${lines.join('\n')}\ngenerated: "2026-01-01T00:00:00Z"\n`;
}

function pathOf(name: string, version: string): string {
  return `charts/${name}-${version}.tgz`;
}

/** Answers as a chart repository under `base` does, with entity tags. */
export function repository(charts: () => readonly PublishedChart[], base = ''): Responder {
  return ({ path, headers }) => {
    if (path === `${base}/index.yaml`) {
      const body = indexYaml(charts());
      const etag = `"${sha256(body).slice(0, 16)}"`;
      return headers['if-none-match'] === etag ? { status: 304, headers: { etag } } : { body, headers: { etag } };
    }
    const chart = charts().find(({ name, version }) => path === `${base}/${pathOf(name, version)}`);
    return chart === undefined ? { status: 404 } : { body: chart.body };
  };
}
