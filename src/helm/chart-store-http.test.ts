import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ChartServer } from './chart-server.test-support.ts';
import { RepositoryHttp, readBody } from './chart-store-http.ts';
import type { RepositoryHttpOptions } from './chart-store-http.ts';

const signal = new AbortController().signal;

let server: ChartServer;
const opened: RepositoryHttp[] = [];

beforeAll(async () => {
  server = await ChartServer.start();
});

afterAll(async () => {
  await server.stop();
});

beforeEach(() => {
  server.requests.length = 0;
  server.responder = () => ({ body: 'hello' });
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(opened.splice(0).map(async (http) => http.close()));
});

function open(options: Partial<RepositoryHttpOptions> = {}): RepositoryHttp {
  const http = new RepositoryHttp({ backoffMs: 1, ...options });
  opened.push(http);
  return http;
}

async function fetchText(http: RepositoryHttp, url = server.url, authorization?: string): Promise<string> {
  return http.exchange(
    {
      url: new URL(url),
      trust: { home: '127.0.0.1', ca: server.ca },
      authorize: ({ origin }) => (origin === server.url ? authorization : undefined),
    },
    async (answer) => (await readBody(answer, 1000)).toString(),
    signal,
  );
}

/** A proxy that only knows CONNECT. */
async function startProxy(): Promise<{ url: string; targets: string[]; stop(): Promise<void> }> {
  const targets: string[] = [];
  const sockets = new Set<Socket>();
  const proxy = createServer((_, response) => response.writeHead(405).end());
  proxy.on('connect', (request, socket: Socket) => {
    const target = request.url ?? '';
    targets.push(target);
    const upstream = connect(Number(target.split(':')[1]), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      upstream.pipe(socket).pipe(upstream);
    });
    for (const each of [socket, upstream]) {
      sockets.add(each);
      each.on('error', () => each.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    targets,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}

describe('proxies', () => {
  it('are used when given as options, and passed by where noProxy says so', async () => {
    const proxy = await startProxy();
    try {
      expect(await fetchText(open({ proxy: { httpsProxy: proxy.url } }))).toBe('hello');
      expect(proxy.targets).toEqual([server.host]);
      expect(await fetchText(open({ proxy: { httpsProxy: proxy.url, noProxy: '127.0.0.1' } }))).toBe('hello');
      expect(proxy.targets).toHaveLength(1);
    } finally {
      await proxy.stop();
    }
  });

  it('are never taken from the environment', async () => {
    for (const name of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'])
      vi.stubEnv(name, 'http://127.0.0.1:1');
    expect(await fetchText(open())).toBe('hello');
    expect(await fetchText(open({ proxy: { httpProxy: 'http://127.0.0.1:1', httpsProxy: '' } }))).toBe('hello');
  });
});

describe('redirects', () => {
  it('are followed, and credentials with them on the same host', async () => {
    server.responder = ({ path }) =>
      path === '/' ? { status: 302, headers: { location: '/there' } } : { body: 'there' };
    expect(await fetchText(open(), server.url, 'Basic x')).toBe('there');
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(['Basic x', 'Basic x']);
  });

  it('end', async () => {
    server.responder = () => ({ status: 301, headers: { location: '/' } });
    await expect(fetchText(open())).rejects.toMatchObject({ code: 'RepositoryInvalid' });
    expect(server.requests.length).toBeLessThan(20);
    server.responder = () => ({ status: 301, headers: { location: 'file:///etc/passwd' } });
    await expect(fetchText(open())).rejects.toMatchObject({ code: 'RepositoryInvalid' });
  });
});

describe('what fails', () => {
  it('is tried a bounded number of times, and said without secrets', async () => {
    server.responder = () => ({ status: 502 });
    const asked = fetchText(open({ attempts: 3 }), `${server.url}/x?token=s3cret`);
    await expect(asked).rejects.toMatchObject({
      code: 'RepositoryUnreachable',
      message: `${server.url}/x: HTTP status 502`,
    });
    expect(server.requests).toHaveLength(3);
  });

  it('for good is not tried again: a body that is too long', async () => {
    server.responder = () => ({ body: 'x'.repeat(2000) });
    await expect(fetchText(open())).rejects.toMatchObject({ code: 'RepositoryInvalid' });
    expect(server.requests).toHaveLength(1);
  });

  it('because nobody listens is said to be so', async () => {
    const gone = await ChartServer.start();
    const { url } = gone;
    await gone.stop();
    const asked = fetchText(open({ attempts: 2 }), url);
    await expect(asked).rejects.toMatchObject({
      code: 'RepositoryUnreachable',
      message: expect.stringContaining('ECONNREFUSED') as string,
    });
  });

  it('because the server goes silent ends at the idle limit', async () => {
    server.responder = () => ({ hang: true });
    const asked = fetchText(open({ attempts: 1, idleTimeoutMs: 50 }));
    await expect(asked).rejects.toMatchObject({ code: 'RepositoryUnreachable' });
  });
});
