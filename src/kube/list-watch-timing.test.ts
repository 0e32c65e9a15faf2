import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import {
  ConnectionClosedError,
  GoneError,
  NetworkError,
  NotFoundError,
  TimedOutError,
  UnauthorizedError,
} from './errors.ts';
import { FakeConnection } from './fake-connection.test-support.ts';
import { listWatch } from './list-watch.ts';
import type { ListWatchOptions, WatchProblem } from './list-watch-options.ts';
import type { KubeObject, WatchNotice, WatchTarget } from './types.ts';

const TARGET: WatchTarget = {
  resource: { group: 'example.com', version: 'v1', plural: 'things', namespaced: true },
  form: 'full',
};

let connection: FakeConnection;
let notices: WatchNotice<KubeObject>[];
let problems: WatchProblem[];
let controller: AbortController;
let running: Promise<void>;

beforeEach(() => {
  vi.useFakeTimers();
  connection = new FakeConnection();
  notices = [];
  problems = [];
  controller = new AbortController();
});

afterEach(async () => {
  controller.abort(new Error('the test is over'));
  await running;
  expect(vi.getTimerCount()).toBe(0);
  expect(connection.swapListeners.size).toBe(0);
  expect(connection.streams.filter((stream) => !stream.closed)).toEqual([]);
  vi.useRealTimers();
});

async function start(options: ListWatchOptions = {}): Promise<void> {
  const feed = listWatch<KubeObject>(connection, TARGET, controller.signal, {
    random: () => 1,
    onProblem: (problem) => problems.push(problem),
    ...options,
  });
  running = (async () => {
    for await (const notice of feed) notices.push(notice);
  })();
  await pass(0);
}

async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

function waits(): number[] {
  return problems.map(({ retryInMs }) => retryInMs);
}

it('waits longer after each failure, up to 30 s', async () => {
  connection.refusals.push(...Array.from({ length: 8 }, () => new NetworkError('refused')));
  await start();
  await pass(300_000);
  expect(waits()).toEqual([800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
  expect(problems.map(({ failures }) => failures)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(connection.streams).toHaveLength(1);
});

it('does not take a watch that opened and broke for a recovery', async () => {
  await start();
  for (let i = 0; i < 4; i += 1) {
    await pass(30_000);
    connection.stream.fail(new NetworkError('broken'));
    await pass(0);
  }
  expect(waits()).toEqual([800, 1_600, 3_200, 6_400]);
});

it('begins its waits anew after a watch that lived for a minute', async () => {
  await start();
  connection.stream.fail(new NetworkError('broken'));
  await pass(800);
  connection.stream.fail(new NetworkError('broken'));
  await pass(1_600);
  await pass(60_000);
  connection.stream.fail(new NetworkError('broken'));
  await pass(0);
  expect(waits()).toEqual([800, 1_600, 800]);
  expect(problems.at(-1)?.failures).toBe(1);
});

it('lists again at once after the first 410, and in its own time after more of them', async () => {
  connection.refusals.push(new GoneError('too old'), new GoneError('too old'), new GoneError('too old'));
  await start();
  await pass(10_000);
  expect(waits()).toEqual([0, 1_600, 3_200]);
  expect(connection.lists).toBe(4);
});

it('asks every 30 s for a resource that is not served, and tells nothing of deletes meanwhile', async () => {
  connection.items = [{ metadata: { name: 'one' } }];
  await start();
  connection.stream.fail(new NotFoundError('gone', { notServed: true }));
  connection.listRefusals.push(new NotFoundError('gone'), new NotFoundError('gone'));
  await pass(60_000);
  expect(waits()).toEqual([0, 30_000, 30_000]);
  expect(notices.filter(({ type }) => type === 'initDone')).toHaveLength(2);
});

it('waits at least as long as the server asks', async () => {
  connection.refusals.push(new TimedOutError('busy', { retryAfterMs: 120_000 }));
  await start();
  await pass(119_999);
  expect(connection.streams).toHaveLength(0);
  await pass(1);
  expect(connection.streams).toHaveLength(1);
});

it('lists again when its resourceVersion stays ahead of the server, as after a restore of etcd', async () => {
  const ahead = (): TimedOutError => new TimedOutError('too large', { causes: ['ResourceVersionTooLarge'] });
  connection.refusals.push(ahead(), ahead(), ahead());
  await start();
  await pass(60_000);
  expect(connection.lists).toBe(2);
  expect(connection.streams).toHaveLength(1);
});

it('goes on as soon as credentials change after a 401, and not before its time otherwise', async () => {
  connection.refusals.push(new UnauthorizedError('who?'), new UnauthorizedError('who?'));
  await start({ backoff: { baseMs: 10_000, capMs: 10_000, random: () => 1 } });
  await pass(5_000);
  expect(problems).toHaveLength(1);
  for (const listener of connection.swapListeners) listener();
  await pass(0);
  expect(problems).toHaveLength(2);
  await pass(10_000);
  expect(connection.streams).toHaveLength(1);
});

it('asks for a watch of about 290 s, and takes silence a little beyond for the end', async () => {
  await start({ random: () => 0 });
  const { query, idleLimitMs } = connection.stream.request;
  expect([query?.['timeoutSeconds'], idleLimitMs]).toEqual([290, 295_000]);
  controller.abort(new Error('done'));
  await running;
  controller = new AbortController();
  await start({ random: () => 1 });
  expect(connection.stream.request.query?.['timeoutSeconds']).toBe(261);
});

it('ends while it waits', async () => {
  connection.listRefusals.push(new ConnectionClosedError('closed'));
  await start();
  await pass(10);
  controller.abort(new Error('done'));
  await running;
  expect(notices).toEqual([{ type: 'init' }]);
});

it('takes a defect of its own for one more failure', async () => {
  connection.refusals.push(new TypeError('undefined is no function'));
  await start();
  await pass(800);
  expect(problems.map(({ error }) => [error.code, error.message])).toEqual([['Server', 'undefined is no function']]);
  expect(connection.streams).toHaveLength(1);
});

it('begins a streaming list again when it is told of an error before its end', async () => {
  connection.features.streamingLists = 'yes';
  await start();
  connection.stream.send('ADDED', { metadata: { name: 'one', resourceVersion: '5' } });
  connection.stream.send('ERROR', { kind: 'Status', code: 500, message: 'etcd is tired' });
  await pass(800);
  connection.stream.send('ADDED', { metadata: { name: 'two', resourceVersion: '6' } });
  connection.stream.send('BOOKMARK', {
    metadata: { resourceVersion: '7', annotations: { 'k8s.io/initial-events-end': 'true' } },
  });
  connection.stream.send('DELETED', { metadata: { name: 'two', resourceVersion: '8' } });
  await pass(0);
  expect(notices.map(({ type }) => type)).toEqual(['init', 'initApply', 'init', 'initApply', 'initDone', 'delete']);
});
