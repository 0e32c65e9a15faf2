import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect as connectTcp } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { getEventListeners } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createTelemetry, inSpan } from '../telemetry/index.ts';
import { RecordedSpans } from '../telemetry/spans.test-support.ts';
import { TestApiServer, sendJson, sendStatus } from './api-server.test-support.ts';
import { TestAuthority } from './certificates.test-support.ts';
import { Connection } from './connection.ts';
import type { ConnectionOptions } from './connection-options.ts';
import { TcpProxy } from './tcp-proxy.test-support.ts';

const authority = await TestAuthority.create();
const GET = { method: 'GET', path: '/version' } as const;

describe.each([
  { name: 'HTTP/2', http2: true },
  { name: 'HTTP/1.1', http2: false },
])('a connection over $name', ({ http2 }) => {
  let server: TestApiServer;
  const stop: (() => Promise<unknown>)[] = [];

  beforeEach(async () => {
    server = await TestApiServer.start(authority);
    stop.push(async () => server.stop());
  });

  afterEach(async () => {
    for (const end of stop.splice(0).reverse()) await end();
  });

  function connect(user: Record<string, unknown>, options: Partial<ConnectionOptions> = {}, port?: number): Connection {
    const made = Connection.fromKubeconfig(server.kubeconfig(user, port), { clusterName: 'test', http2, ...options });
    stop.push(async () => made.close());
    return made;
  }

  function pemUser({ cert, key }: { cert: string; key: string }): Record<string, string> {
    return { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) };
  }

  it('speaks the protocol that it was told, on one socket for calls one after another', async () => {
    const connection = connect({ token: 'first' });
    for (let i = 0; i < 20; i += 1) await connection.json(GET);
    expect(server.seen.map(({ httpVersion }) => httpVersion)).toEqual(Array(20).fill(http2 ? '2.0' : '1.1'));
    // Over HTTP/1.1 a call may come before undici has put the last one's socket back.
    expect(server.connections).toBeLessThanOrEqual(http2 ? 1 : 2);
  });

  if (http2) {
    it('runs many calls at a time on one socket', async () => {
      const connection = connect({ token: 'first' });
      await connection.json(GET);
      await Promise.all(Array.from({ length: 60 }, async () => connection.json(GET)));
      expect(server.connections).toBe(1);
    });
  }

  it.each([
    [{ token: 'abc' }, 'Bearer abc'],
    [{ username: 'u', password: 'p' }, `Basic ${base64('u:p')}`],
    [{}, undefined],
  ])('authenticates as %o', async (user, header) => {
    await connect(user).json(GET);
    expect(server.seen[0]?.authorization).toBe(header);
  });

  it('authenticates by client certificate; a swap of certificates moves new requests to a new socket', async () => {
    const connection = connect(pemUser(await authority.issue('first')));
    await connection.json(GET);
    const stream = await connection.open({ ...GET, path: '/api/v1/configmaps', query: { watch: 1 }, idleLimitMs: 0 });
    const chunks = stream[Symbol.asyncIterator]();
    expect(connection.swap(server.kubeconfig(pemUser(await authority.issue('second'))))).toBe('swapped');
    await connection.json(GET);
    expect(server.seen.map(({ client }) => client)).toEqual(['first', 'first', 'second']);
    server.put('one');
    let text = '';
    while (!text.includes('one')) text += Buffer.from((await chunks.next()).value ?? 'ended').toString();
    stream.close();
    await vi.waitFor(() => expect(server.sockets.size).toBe(1), 5_000);
  });

  it('tells another server or CA from other credentials, and changes nothing for a bad kubeconfig', async () => {
    const connection = connect({ token: 'first' });
    const before = connection.identity;
    expect(connection.swap(server.kubeconfig({ token: 'first' }))).toBe('unchanged');
    expect(connection.swap(server.kubeconfig({ token: 'second' }, server.port + 1))).toBe('different');
    const other = await TestAuthority.create();
    const foreign = server.kubeconfig({ token: 'second' }).replaceAll(base64(authority.ca), base64(other.ca));
    expect(connection.swap(foreign)).toBe('different');
    expect(() => connection.swap('{}')).toThrow('current-context');
    await connection.json(GET);
    expect(server.seen[0]?.authorization).toBe('Bearer first');
    expect(connection.identity).toBe(before);
  });

  it('reads a token file again after a 401', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'capstan-kube-'));
    stop.push(async () => rm(directory, { recursive: true }));
    await writeFile(join(directory, 'token'), 'first\n');
    const connection = connect({ tokenFile: 'token' }, { allowFiles: true, baseDir: directory });
    await connection.json(GET);
    server.tokens = new Set(['second']);
    await writeFile(join(directory, 'token'), 'second\n');
    await connection.json(GET);
    expect(server.seen.map(({ authorization }) => authorization)).toEqual([
      'Bearer first',
      'Bearer first',
      'Bearer second',
    ]);
    expect(JSON.parse(connection.kubeconfig())).toMatchObject({ users: [{ user: { token: 'second' } }] });
  });

  it('asks its hook once for all who are refused together, and tries each once more', async () => {
    server.tokens = new Set(['second']);
    const connection = connect({ token: 'first' });
    const hook = vi.fn(async () => connection.swap(server.kubeconfig({ token: 'second' })) === 'swapped');
    connection.setUnauthorizedHook(hook);
    await Promise.all([
      connection.json(GET),
      connection.json(GET),
      connection.json({ ...GET, method: 'POST', body: '{}' }),
    ]);
    expect(hook).toHaveBeenCalledTimes(1);
    expect(server.seen).toHaveLength(6);
  });

  it('tells a 401 when there is nothing newer', async () => {
    server.tokens = new Set();
    const connection = connect({ token: 'first' });
    connection.setUnauthorizedHook(async () => {
      throw new Error('no idea');
    });
    await expect(connection.json(GET)).rejects.toMatchObject({ code: 'Unauthorized', handling: 'reauthenticate' });
    expect(server.seen).toHaveLength(1);
  });

  it('waits for a 429 on reads within the limit, and tells it on writes and beyond', async () => {
    const busy = { code: 429, reason: 'TooManyRequests', message: 'later' };
    const connection = connect({ token: 'first' });
    server.fail('other', (response) => sendStatus(response, busy, { 'retry-after': '0' }), 2);
    await connection.json(GET);
    expect(server.seen).toHaveLength(3);
    server.fail('other', (response) => sendStatus(response, busy, { 'retry-after': '1' }), 2);
    await expect(connection.json({ ...GET, method: 'POST', body: '{}' })).rejects.toMatchObject({
      code: 'TooManyRequests',
      retryAfterMs: 1_000,
    });
    await expect(connection.json({ ...GET, timeoutMs: 500 })).rejects.toMatchObject({ code: 'TooManyRequests' });
    expect(server.seen).toHaveLength(5);
  });

  it('tries a read once more when a kept connection breaks', async () => {
    const connection = connect({ token: 'first' });
    await connection.json(GET);
    server.fail('other', () => server.cutAll());
    await connection.json(GET);
    expect(server.seen).toHaveLength(3);
  });

  it('ends a call at its limit and at its signal, and leaves nothing running', async () => {
    const connection = connect({ token: 'first' });
    server.fail('other', () => undefined, 2);
    await expect(connection.json({ ...GET, timeoutMs: 50 })).rejects.toMatchObject({ code: 'TimedOut' });
    const controller = new AbortController();
    const call = connection.json({ ...GET, signal: controller.signal });
    await vi.waitFor(() => expect(server.seen).toHaveLength(2), 5_000);
    controller.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
  });

  it('ends at its limit also where nobody answers at all', async () => {
    const proxy = await TcpProxy.start(server.port);
    stop.push(async () => proxy.stop());
    proxy.freeze();
    const connection = connect({ token: 'first' }, {}, proxy.port);
    await expect(connection.json({ ...GET, timeoutMs: 100 })).rejects.toMatchObject({ code: 'TimedOut' });
    await expect(connection.open({ ...GET, timeoutMs: 100, idleLimitMs: 0 })).rejects.toMatchObject({
      code: 'TimedOut',
    });
  });

  it('fails running calls when it is reset, and works afterwards on a new socket', async () => {
    const connection = connect({ token: 'first' });
    server.fail('other', () => undefined);
    const call = connection.json(GET);
    await vi.waitFor(() => expect(server.seen).toHaveLength(1), 5_000);
    connection.reset('a probe failed');
    await expect(call).rejects.toThrow(/^GET \/version: .*a probe failed/);
    await connection.json(GET);
    expect(server.connections).toBe(2);
  });

  it('fails everything after it was closed', async () => {
    const connection = connect({ token: 'first' });
    server.fail('other', () => undefined);
    const call = connection.json(GET);
    await vi.waitFor(() => expect(server.seen).toHaveLength(1), 5_000);
    await Promise.all([connection.close(), expect(call).rejects.toMatchObject({ code: 'ConnectionClosed' })]);
    await expect(connection.json(GET)).rejects.toMatchObject({ code: 'ConnectionClosed' });
    await vi.waitFor(() => expect(server.sockets.size).toBe(0), 5_000);
    await connection.close();
  });

  it('refuses a certificate of another CA, and takes it when told to skip verification', async () => {
    const other = await TestAuthority.create();
    const foreign = server.kubeconfig({ token: 'x' }).replaceAll(base64(authority.ca), base64(other.ca));
    const strict = Connection.fromKubeconfig(foreign, { clusterName: 'test', http2 });
    stop.push(async () => strict.close());
    await expect(strict.json(GET)).rejects.toMatchObject({ code: 'Network' });
    const insecure = foreign.replace(/"certificate-authority-data":"[^"]*"/, '"insecure-skip-tls-verify":true');
    const lax = Connection.fromKubeconfig(insecure, { clusterName: 'test', http2 });
    stop.push(async () => lax.close());
    await lax.json(GET);
  });

  it('checks the certificate against tls-server-name', async () => {
    const named = (name: string): string =>
      server.kubeconfig({ token: 'x' }).replace('"certificate', `"tls-server-name":"${name}","certificate`);
    const right = Connection.fromKubeconfig(named('kubernetes.test'), { clusterName: 'test', http2 });
    const wrong = Connection.fromKubeconfig(named('elsewhere.test'), { clusterName: 'test', http2 });
    stop.push(
      async () => right.close(),
      async () => wrong.close(),
    );
    await right.json(GET);
    await expect(wrong.json(GET)).rejects.toMatchObject({ code: 'Network' });
  });

  it('counts requests by cluster, verb and code', async () => {
    const telemetry = createTelemetry();
    const connection = connect({ token: 'first' }, { telemetry });
    await connection.json(GET);
    server.fail('other', (response) => sendStatus(response, { code: 409, reason: 'AlreadyExists' }));
    await expect(connection.json({ ...GET, method: 'POST', verb: 'create', body: '{}' })).rejects.toMatchObject({
      code: 'AlreadyExists',
    });
    await connection.close();
    const { values } = (await telemetry.metrics.getSingleMetric('capstan_kube_requests_total')?.get()) ?? {
      values: [],
    };
    expect(values.map(({ labels, value }) => ({ ...labels, value }))).toEqual([
      { cluster: 'test', verb: 'get', code: '200', value: 1 },
      { cluster: 'test', verb: 'create', code: '409', value: 1 },
    ]);
  });

  it('goes through the proxy that the kubeconfig names', async () => {
    const tunnels: string[] = [];
    const proxy = createServer();
    proxy.on('connect', (request: IncomingMessage, client: Socket) => {
      tunnels.push(request.url ?? '');
      const upstream = connectTcp(server.port, '127.0.0.1', () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        client.pipe(upstream).pipe(client);
      });
      for (const socket of [client, upstream]) socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    stop.push(async () => new Promise((resolve) => proxy.close(resolve)));
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const text = server.kubeconfig({ token: 'x' }).replace('"certificate', `"proxy-url":"${address}","certificate`);
    const connection = Connection.fromKubeconfig(text, { clusterName: 'test', http2 });
    stop.push(async () => connection.close());
    await connection.json(GET);
    await connection.json(GET);
    expect(server.seen.map(({ httpVersion }) => httpVersion)).toEqual(Array(2).fill(http2 ? '2.0' : '1.1'));
    expect(new Set(tunnels)).toEqual(new Set([`127.0.0.1:${server.port}`]));
  });

  it('runs each call of a trace in a span that names no object, and hands the trace on', async () => {
    const spans = new RecordedSpans();
    stop.push(async () => spans.stop());
    const connection = connect({ token: 'x' }, { telemetry: createTelemetry({ tracer: spans.tracer }) });
    const path = '/api/v1/namespaces/a/pods/b';
    await connection.json({ method: 'GET', path, query: { x: 1 } });
    expect(spans.all).toEqual([]);
    server.fail('other', (response) => sendStatus(response, { code: 404, reason: 'NotFound', message: 'no "b"' }));
    await inSpan(spans.tracer, 'work', {}, async () => {
      await connection.json({ method: 'GET', path });
    }).catch(() => undefined);
    const span = spans.named('GET /api/v1/namespaces/{namespace}/pods/{name}');
    expect(span.attributes).toEqual({
      'http.request.method': 'GET',
      'http.response.status_code': 404,
      'error.type': 'NotFound',
      'url.template': '/api/v1/namespaces/{namespace}/pods/{name}',
      'server.address': '127.0.0.1',
      'server.port': server.port,
      'k8s.cluster.name': 'test',
    });
    expect(server.seen.map(({ traceparent }) => traceparent)).toEqual([
      undefined,
      `00-${span.spanContext().traceId}-${span.spanContext().spanId}-01`,
    ]);
  });

  it('says what was asked and what the server said, and never what was sent', async () => {
    const connection = connect({ token: 'top secret' });
    server.fail('other', (response) =>
      sendStatus(response, { code: 422, reason: 'Invalid', message: 'spec.x is wrong' }),
    );
    const path = '/api/v1/namespaces/a/secrets';
    const refused = connection.json({ method: 'POST', path, query: { fieldManager: 'me' }, body: '{"data":"hidden"}' });
    await expect(refused).rejects.toThrow(/^POST \/api\/v1\/namespaces\/a\/secrets: spec.x is wrong \(Invalid 422\)$/);
    server.fail('other', (response) => sendJson(response, 200, undefined));
    await expect(connection.json(GET)).rejects.toMatchObject({ code: 'Server' });
  });
});

it('leaves neither sockets nor handles behind after 100 connections', async () => {
  const server = await TestApiServer.start(authority);
  const { signal } = new AbortController();
  const rounds = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 1) {
      const connection = Connection.fromKubeconfig(server.kubeconfig({ token: 'x' }), {
        clusterName: 'test',
        http2: i % 2 === 0,
      });
      const watch = await connection.open({
        signal,
        ...GET,
        path: '/api/v1/configmaps',
        query: { watch: 1 },
        idleLimitMs: 60_000,
      });
      await connection.json({ ...GET, signal });
      watch.close();
      await connection.close();
    }
  };
  await rounds(2);
  await vi.waitFor(() => expect(server.sockets.size).toBe(0), 5_000);
  const before = activeHandles();
  await rounds(100);
  await vi.waitFor(() => expect(server.sockets.size).toBe(0), 5_000);
  // Handles are given back some turns of the event loop after their sockets' end.
  for (let i = 0; i < 100 && added(before, activeHandles()).length > 0; i += 1) await setTimeout(20);
  // Only what has come: a timer of the test runner's own may have gone meanwhile.
  expect(added(before, activeHandles())).toEqual([]);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
  await server.stop();
});

/** Handles of `after` beyond those of `before`, by kind. */
function added(before: readonly string[], after: readonly string[]): string[] {
  const left = [...before];
  return after.filter((kind) => {
    const at = left.indexOf(kind);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

function activeHandles(): string[] {
  return process
    .getActiveResourcesInfo()
    .filter((name) => /TCP|TLS|Timeout/.test(name))
    .sort();
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
