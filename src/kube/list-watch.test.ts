import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { TestApiServer, sendJson, sendStatus } from './api-server.test-support.ts';
import type { TestObject } from './api-server.test-support.ts';
import { TestAuthority } from './certificates.test-support.ts';
import { Connection } from './connection.ts';
import type { ConnectionOptions } from './connection-options.ts';
import { WatchInformer } from './informer.ts';
import type { InformerOptions } from './informer.ts';
import type { WatchProblem } from './list-watch-options.ts';
import { TcpProxy } from './tcp-proxy.test-support.ts';
import type { InformerHandler, WatchTarget } from './types.ts';

const TARGET: WatchTarget = {
  resource: { group: '', version: 'v1', plural: 'configmaps', namespaced: true },
  form: 'full',
};

/** Short enough for a test, long enough to tell apart. */
const FAST: InformerOptions = { backoff: { baseMs: 10, capMs: 40 }, watchJitter: 0, notServedRetryMs: 50 };

const authority = await TestAuthority.create();

interface Scene {
  readonly informer: WatchInformer<TestObject>;
  readonly told: string[];
  readonly problems: WatchProblem[];
}

describe.each([
  { name: 'HTTP/2', http2: true },
  { name: 'HTTP/1.1', http2: false },
])('an informer over $name', ({ http2 }) => {
  let server: TestApiServer;
  let connection: Connection;
  const stop: (() => Promise<unknown>)[] = [];

  beforeEach(async () => {
    server = await TestApiServer.start(authority);
    stop.push(async () => server.stop());
    connection = connect();
  });

  afterEach(async () => {
    for (const end of stop.splice(0).reverse()) await end();
  });

  function connect(port = server.port, options: Partial<ConnectionOptions> = {}): Connection {
    const kubeconfig = server.kubeconfig({ token: 'first' }, port);
    const made = Connection.fromKubeconfig(kubeconfig, { clusterName: 'test', http2, ...options });
    stop.push(async () => made.close());
    return made;
  }

  async function start(options: InformerOptions = {}, over = connection, target = TARGET): Promise<Scene> {
    const problems: WatchProblem[] = [];
    const told: string[] = [];
    const informer = new WatchInformer<TestObject>(over, target, {
      ...FAST,
      onProblem: (problem) => problems.push(problem),
      ...options,
    });
    informer.addHandler(recorder(told));
    const ended = new AbortController();
    const running = informer.run(ended.signal);
    stop.push(async () => {
      ended.abort();
      await running;
    });
    await informer.synced(AbortSignal.timeout(10_000), 10_000);
    return { informer, told, problems };
  }

  async function watching(count = 1): Promise<void> {
    await vi.waitFor(() => {
      expect(server.watches.filter((watch) => watch.open)).toHaveLength(count);
    }, 10_000);
  }

  async function until(assertion: () => void): Promise<void> {
    await vi.waitFor(assertion, 10_000);
  }

  it('lists, then follows changes', async () => {
    server.put('one', { a: '1' });
    const { informer, told } = await start();
    server.put('two');
    server.put('one', { a: 'zwölf 🎉' });
    server.remove('two');
    await until(() => expect(told).toEqual(['add one initial', 'add two', 'update one', 'delete two']));
    expect(informer.get('default', 'one')).toMatchObject({ kind: 'ConfigMap', data: { a: 'zwölf 🎉' } });
    expect(informer.get('default', 'one')?.metadata.managedFields).toBeUndefined();
    expect(server.seen.at(-1)?.httpVersion).toBe(http2 ? '2.0' : '1.1');
    expect(server.seen.at(-1)?.query.get('allowWatchBookmarks')).toBe('true');
  });

  it('reads a list in pages', async () => {
    for (let i = 0; i < 1_001; i += 1) server.put(`object-${i}`);
    const { informer } = await start();
    expect(informer.size).toBe(1_001);
    expect(server.count('list')).toBe(3);
  });

  it('begins a list again when its continue token has expired', async () => {
    for (let i = 0; i < 501; i += 1) server.put(`object-${i}`);
    server.fail('list', (response, request) => {
      server.fail('list', (second) => sendStatus(second, { code: 410, reason: 'Expired' }));
      expect(request.query.get('limit')).toBe('500');
      sendJson(response, 200, {
        kind: 'ConfigMapList',
        apiVersion: 'v1',
        metadata: { resourceVersion: '1', continue: '500' },
        items: [{ metadata: { name: 'gone-by-then', namespace: 'default' } }],
      });
    });
    const { informer } = await start();
    expect(informer.size).toBe(501);
  });

  it('streams its list where the server can', async () => {
    server.streaming = true;
    server.put('one');
    const { told } = await start();
    server.put('two');
    await until(() => expect(told).toEqual(['add one initial', 'add two']));
    expect(server.count('list')).toBe(0);
    expect(connection.features.streamingLists).toBe('yes');
  });

  it('falls back to pages for good when the server refuses to stream', async () => {
    await start();
    await start();
    expect(connection.features.streamingLists).toBe('no');
    expect(server.seen.filter(({ query }) => query.has('sendInitialEvents'))).toHaveLength(1);
  });

  it('falls back to pages when the server never ends its streaming list', async () => {
    server.fail('watch', (response) => response.write('\n'));
    server.put('one');
    const { told } = await start({ initialEventsIdleMs: 100 });
    expect(told).toEqual(['add one initial']);
    expect(connection.features.streamingLists).toBe('no');
  });

  it('begins again when a streaming list breaks off', async () => {
    server.streaming = true;
    server.put('one');
    server.fail('watch', (response) => {
      response.write(`${JSON.stringify({ type: 'ADDED', object: { metadata: { name: 'half' } } })}\n`);
      response.end();
    });
    const { informer, told } = await start();
    expect(told).toEqual(['add one initial']);
    expect(informer.size).toBe(1);
  });

  it('resumes from the last resourceVersion after a cut, and misses nothing', async () => {
    const { told } = await start();
    await watching();
    server.put('seen');
    const { version } = server;
    await until(() => expect(told).toEqual(['add seen']));
    server.cutAll();
    server.put('while away');
    await until(() => expect(told).toEqual(['add seen', 'add while away']));
    expect(server.count('list')).toBe(1);
    expect(server.watch.request.query.get('resourceVersion')).toBe(String(version));
  });

  it('resumes from a bookmark', async () => {
    const { told } = await start();
    await watching();
    server.watch.bookmark(4_711);
    server.watch.send('ADDED', { ...object('after the bookmark'), metadata: { name: 'after the bookmark' } });
    await until(() => expect(told).toHaveLength(1));
    server.cutAll();
    await until(() => expect(server.watches).toHaveLength(2));
    expect(server.watch.request.query.get('resourceVersion')).toBe('4711');
  });

  it('goes on at once when the server closes a watch in good order', async () => {
    const { problems, told } = await start({ backoff: { baseMs: 3_600_000, capMs: 3_600_000, random: () => 0.99 } });
    await watching();
    server.put('one');
    await until(() => expect(told).toHaveLength(1));
    server.watch.end();
    await until(() => expect(server.watches).toHaveLength(2));
    expect(problems).toEqual([]);
  });

  it('backs off from a server that closes every watch as soon as it is open', async () => {
    server.fail('watch', (response) => response.end(), 1_000);
    connection.features.streamingLists = 'no';
    const { problems } = await start({ backoff: { baseMs: 3_600_000, capMs: 3_600_000, random: () => 0.99 } });
    await until(() => expect(problems).toHaveLength(1));
    expect(server.count('watch')).toBe(2);
  });

  it('notices a connection that is half-open, and finds the server again', async () => {
    const proxy = await TcpProxy.start(server.port);
    stop.push(async () => proxy.stop());
    const over = connect(proxy.port);
    const { told, problems } = await start({ watchSeconds: 1, idleMarginMs: 100 }, over);
    await watching();
    proxy.freeze();
    server.put('while frozen');
    await until(() => expect(problems.map(({ error }) => error.code)).toContain('TimedOut'));
    // As the fleet does when its probe fails.
    over.reset('a probe failed');
    proxy.thaw();
    await until(() => expect(told).toEqual(['add while frozen']));
  });

  if (http2) {
    it('drops an HTTP/2 session that answers no ping, without being told', async () => {
      const proxy = await TcpProxy.start(server.port);
      stop.push(async () => proxy.stop());
      const { told, problems } = await start({}, connect(proxy.port, { pingIntervalMs: 50, connectTimeoutMs: 200 }));
      await watching();
      proxy.freeze();
      server.put('while frozen');
      await until(() => expect(problems).not.toHaveLength(0));
      proxy.thaw();
      await until(() => expect(told).toEqual(['add while frozen']));
    });
  }

  it('notices a server that stops writing', async () => {
    const { told, problems } = await start({ watchSeconds: 1, idleMarginMs: 100 });
    await watching();
    server.watch.muted = true;
    server.put('unheard');
    await until(() => expect(told).toEqual(['add unheard']));
    expect(problems[0]?.error.code).toBe('TimedOut');
  });

  it('lists again after a 410 in mid-stream, and tells the deletes of the time between', async () => {
    server.put('stays');
    server.put('goes');
    server.put('is recreated', {}, 'first life');
    const { informer, told, problems } = await start();
    await watching();
    told.length = 0;
    server.watch.muted = true;
    server.remove('goes');
    server.remove('is recreated');
    server.put('is recreated', {}, 'second life');
    server.put('is new');
    server.compact();
    server.watch.muted = false;
    server.watch.send('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' });
    await until(() => expect(told).toHaveLength(4));
    expect(told).toEqual(['delete goes', 'delete is recreated', 'add is recreated initial', 'add is new initial']);
    expect(informer.get('default', 'is recreated')?.metadata.uid).toBe('second life');
    expect(problems.map(({ error, retryInMs }) => [error.code, retryInMs])).toEqual([['Gone', 0]]);
  });

  it('lists again when the watch is refused with 410', async () => {
    const { told } = await start();
    await watching();
    server.fail('watch', (response) => sendStatus(response, { code: 410, reason: 'Expired' }));
    server.cutAll();
    server.put('one');
    await until(() => expect(told).toEqual(['add one initial']));
    expect(server.count('list')).toBe(2);
  });

  it('tells that it goes on after a failure, also when nothing else is to be told', async () => {
    const resumed = vi.fn();
    const { problems } = await start({ onResumed: resumed });
    await watching();
    const before = resumed.mock.calls.length;
    server.fail('watch', (response) => sendStatus(response, { code: 403, reason: 'Forbidden' }));
    server.cutAll();
    await until(() => expect(problems.map(({ error }) => error.code)).toContain('Forbidden'));
    await until(() => expect(resumed.mock.calls.length).toBeGreaterThan(before));
    expect(server.count('list')).toBe(1);
  });

  it('resumes after an ERROR event that is no 410', async () => {
    const { told, problems } = await start();
    await watching();
    server.watch.send('ERROR', { kind: 'Status', code: 500, reason: 'InternalError', message: 'etcd is tired' });
    await until(() => expect(server.watches).toHaveLength(2));
    server.put('one');
    await until(() => expect(told).toEqual(['add one']));
    expect(problems.map(({ error }) => [error.code, error.message])).toEqual([
      ['Server', expect.stringContaining('etcd is tired')],
    ]);
    expect(server.count('list')).toBe(1);
  });

  it('waits as long as a 429 asks', async () => {
    connection.features.streamingLists = 'no';
    server.fail('watch', (response) =>
      sendStatus(response, { code: 429, reason: 'TooManyRequests' }, { 'retry-after': '1' }),
    );
    const { problems } = await start();
    await watching();
    expect(problems.map(({ error }) => error.code)).toEqual(['TooManyRequests']);
    expect(problems[0]?.retryInMs).toBeGreaterThanOrEqual(1_000);
  });

  it('goes on with fresh credentials after a 401', async () => {
    server.tokens = new Set(['first']);
    connection.setUnauthorizedHook(async () => connection.swap(server.kubeconfig({ token: 'second' })) === 'swapped');
    const { told, problems } = await start();
    await watching();
    server.tokens = new Set(['second']);
    server.cutAll();
    await until(() => expect(server.watch.request.authorization).toBe('Bearer second'));
    server.put('one');
    await until(() => expect(told).toEqual(['add one']));
    expect(problems.filter(({ error }) => error.code === 'Unauthorized')).toEqual([]);
  });

  it('tries at once when credentials change while it waits after a 401', async () => {
    server.tokens = new Set(['first']);
    const { problems } = await start({ backoff: { baseMs: 3_600_000, capMs: 3_600_000, random: () => 0.99 } });
    await watching();
    server.tokens = new Set(['second']);
    server.watch.end();
    await until(() => expect(problems.at(-1)?.error.code).toBe('Unauthorized'));
    connection.swap(server.kubeconfig({ token: 'second' }));
    await watching();
  });

  it('keeps its stream when credentials are swapped', async () => {
    const { told } = await start();
    await watching();
    const { length } = server.watches;
    expect(connection.swap(server.kubeconfig({ token: 'second' }))).toBe('swapped');
    await connection.json({ method: 'GET', path: '/version' });
    expect(server.seen.at(-1)?.authorization).toBe('Bearer second');
    server.put('one');
    await until(() => expect(told).toEqual(['add one']));
    expect(server.watches).toHaveLength(length);
  });

  it('asks again for a resource that is not served, and says so', async () => {
    const notFound = (): void => server.fail('any', (response) => response.writeHead(404).end('404 page not found\n'));
    notFound();
    server.put('one');
    const { told, problems } = await start({ notServedRetryMs: 70 });
    expect(told).toEqual(['add one initial']);
    expect(problems.map(({ error, retryInMs }) => [error.code, retryInMs])).toEqual([['NotFound', 70]]);
  });

  it('survives lines that are no events, and characters cut in two', async () => {
    const { told, problems } = await start();
    await watching();
    server.watch.write('{"type":"ADDED","object":\n');
    await until(() => expect(problems).toHaveLength(1));
    await watching();
    const line = Buffer.from(
      `${JSON.stringify({ type: 'ADDED', object: server.objects.get('x') ?? object('ü€🎉') })}\n`,
    );
    for (const byte of line) {
      server.watch.write(Uint8Array.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until(() => expect(told).toEqual(['add ü€🎉']));
    expect(problems[0]?.error.message).toBe('a line of the watch is no JSON');
  });

  it('takes an object of several megabytes', async () => {
    const { informer } = await start();
    await watching();
    server.put('huge', { blob: 'x'.repeat(4_000_000) });
    await until(() => expect(informer.get('default', 'huge')?.data?.['blob']).toHaveLength(4_000_000));
  });

  it('goes on when a handler throws, and when one is slow', async () => {
    const failures: unknown[] = [];
    const { informer, told } = await start({ onHandlerError: (error) => failures.push(error) });
    await watching();
    informer.addHandler({
      add: () => {
        throw new Error('no');
      },
    });
    informer.addHandler({
      add: () => {
        const until = performance.now() + 20;
        while (performance.now() < until);
      },
    });
    for (let i = 0; i < 10; i += 1) server.put(`object-${i}`);
    await until(() => expect(told).toHaveLength(10));
    expect(failures).toHaveLength(10);
  });

  it('asks for metadata only, and keeps nothing else', async () => {
    server.put('one', { secret: 'x' });
    const { informer } = await start({}, connection, { ...TARGET, form: 'metadata', keepManagedFields: true });
    expect(
      server.seen.map(({ accept }) => accept).filter((accept) => !accept?.includes('as=PartialObjectMetadata')),
    ).toEqual([]);
    expect(Object.keys(informer.list()[0] ?? {})).toEqual(['apiVersion', 'kind', 'metadata']);
    expect(informer.list()[0]?.metadata.managedFields).toHaveLength(1);
  });

  it('stops at once, and tells those who still wait', async () => {
    server.fail('any', () => undefined, 2);
    const ended = new AbortController();
    const informer = new WatchInformer<TestObject>(connection, TARGET, FAST);
    const running = informer.run(ended.signal);
    const synced = informer.synced(AbortSignal.timeout(10_000), 10_000);
    ended.abort();
    await expect(synced).rejects.toMatchObject({ code: 'ConnectionClosed' });
    await running;
    await expect(informer.synced(AbortSignal.timeout(10_000), 10_000)).rejects.toMatchObject({
      code: 'ConnectionClosed',
    });
  });
});

function object(name: string): TestObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'default', uid: name, resourceVersion: '999' },
  };
}

function recorder(told: string[]): InformerHandler<TestObject> {
  return {
    add: (added, initial) => told.push(`add ${added.metadata.name}${initial ? ' initial' : ''}`),
    update: (_previous, next) => told.push(`update ${next.metadata.name}`),
    delete: (gone) => told.push(`delete ${gone.metadata.name}`),
  };
}
