import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FakeConnection } from './fake-connection.test-support.ts';
import { WatchInformer } from './informer.ts';
import type { InformerHandler, KubeObject, WatchTarget } from './types.ts';

const TARGET: WatchTarget = {
  resource: { group: 'example.com', version: 'v1', plural: 'things', namespaced: true },
  form: 'full',
};

let connection: FakeConnection;
let informer: WatchInformer<KubeObject>;
let failures: unknown[];
let controller: AbortController;
let running: Promise<void> | undefined;

beforeEach(() => {
  connection = new FakeConnection();
  failures = [];
  controller = new AbortController();
  running = undefined;
  informer = new WatchInformer(connection, TARGET, { onHandlerError: (error) => failures.push(error) });
});

afterEach(async () => {
  controller.abort();
  await running;
});

function thing(name: string, version = '1', uid = name): KubeObject {
  return { metadata: { name, namespace: 'a', uid, resourceVersion: version } };
}

async function start(): Promise<void> {
  running = informer.run(controller.signal);
  await informer.synced(controller.signal, 5_000);
  await vi.waitFor(() => connection.stream);
}

function recorder(told: string[]): InformerHandler<KubeObject> {
  return {
    add: ({ metadata }, initial) => told.push(`add ${metadata.name}${initial ? ' initial' : ''}`),
    update: (previous, { metadata }) => {
      told.push(`update ${metadata.name} ${previous.metadata.resourceVersion ?? ''}→${metadata.resourceVersion ?? ''}`);
    },
    delete: ({ metadata }) => told.push(`delete ${metadata.name}`),
  };
}

it('is synced with its first list, and stays so', async () => {
  expect(informer.hasSynced).toBe(false);
  await expect(informer.synced(AbortSignal.abort(new Error('no')), 1)).rejects.toThrow('no');
  await expect(informer.synced(controller.signal, 1)).rejects.toMatchObject({
    code: 'TimedOut',
    message: 'first list of things.example.com: not done within 1 ms',
  });
  await start();
  expect(informer.hasSynced).toBe(true);
  await informer.synced(controller.signal, 1);
});

it('stops waiting for those whose signal aborts', async () => {
  const own = new AbortController();
  const synced = informer.synced(own.signal, 5_000);
  own.abort(new Error('enough'));
  await expect(synced).rejects.toThrow('enough');
});

it('tells late handlers what is there, and those that were removed nothing', async () => {
  connection.items = [thing('one')];
  await start();
  const told: string[] = [];
  const gone: string[] = [];
  const remove = informer.addHandler(recorder(gone));
  informer.addHandler(recorder(told));
  remove();
  remove();
  connection.stream.send('ADDED', thing('two', '11'));
  connection.stream.send('MODIFIED', thing('one', '12'));
  connection.stream.send('DELETED', thing('one', '13'));
  await vi.waitFor(() => expect(told).toEqual(['add one initial', 'add two', 'update one 1→12', 'delete one']));
  expect(gone).toEqual(['add one initial']);
  expect(informer.size).toBe(1);
});

it('tells the same handler twice when it was added twice, and removes only the one', async () => {
  await start();
  const told: string[] = [];
  const handler = recorder(told);
  informer.addHandler(handler);
  informer.addHandler(handler)();
  connection.stream.send('ADDED', thing('one', '11'));
  await vi.waitFor(() => expect(told).toEqual(['add one']));
});

it('tells each object once to a handler that is added by another', async () => {
  const told: string[] = [];
  let added = false;
  informer.addHandler({
    add: () => {
      if (!added) informer.addHandler(recorder(told));
      added = true;
    },
  });
  connection.items = [thing('one'), thing('two')];
  await start();
  expect(told).toEqual(['add one initial', 'add two initial']);
});

it('goes on when handlers and index functions throw', async () => {
  const told: string[] = [];
  const fail = (): never => {
    throw new Error('no');
  };
  informer.addHandler({ add: fail, update: fail, delete: fail });
  informer.addHandler(recorder(told));
  informer.addIndex('broken', fail);
  informer.addIndex('name', ({ metadata }) => [metadata.name]);
  connection.items = [thing('one')];
  await start();
  connection.stream.send('MODIFIED', thing('one', '11'));
  connection.stream.send('DELETED', thing('one', '12'));
  await vi.waitFor(() => expect(told).toHaveLength(3));
  expect(failures).toHaveLength(5);
  expect(informer.byIndex('broken', 'one')).toEqual([]);
});

it('serves what it had while it lists again, and then tells the differences', async () => {
  connection.items = [thing('same'), thing('gone')];
  await start();
  const told: string[] = [];
  informer.addHandler(recorder(told));
  told.length = 0;
  const same = informer.get('a', 'same');
  connection.items = [thing('same'), thing('new')];
  connection.stream.send('ERROR', { kind: 'Status', code: 410 });
  await vi.waitFor(() => expect(told).toEqual(['delete gone', 'add new initial']));
  expect(informer.get('a', 'same')).toBe(same);
  expect(informer.list('a')).toHaveLength(2);
});
