import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FakeConnection } from './fake-connection.test-support.ts';
import { SharedWatchSet } from './watch-set.ts';
import { watchKey } from './watch-key.ts';
import type { WatchTarget } from './types.ts';

let connection: FakeConnection;
let set: SharedWatchSet;

beforeEach(() => {
  connection = new FakeConnection();
  set = new SharedWatchSet(connection);
});

afterEach(async () => {
  await set.close();
  expect(connection.streams.filter((stream) => !stream.closed)).toEqual([]);
});

function target(plural: string, more: Partial<WatchTarget> = {}): WatchTarget {
  return { resource: { group: '', version: 'v1', plural, namespaced: true }, form: 'metadata', ...more };
}

async function metrics(): Promise<Record<string, number>> {
  const read = async (name: string): Promise<number> => {
    const { values } = (await connection.telemetry.metrics.getSingleMetric(name)?.get()) ?? { values: [] };
    return values.find(({ labels }) => labels.cluster === 'test')?.value ?? 0;
  };
  return {
    starts: await read('capstan_watch_starts_total'),
    stops: await read('capstan_watch_stops_total'),
    now: await read('capstan_watches'),
  };
}

it('shares a watch among owners, and ends it with the last of them', async () => {
  const [one, two] = [{}, {}];
  const informer = set.hold(one, target('pods'));
  expect(set.hold(two, target('pods'))).toBe(informer);
  expect(set.get(target('pods'))).toBe(informer);
  set.release(one);
  set.release(one);
  expect(set.get(target('pods'))).toBe(informer);
  set.release(two);
  expect(set.get(target('pods'))).toBeUndefined();
  expect(await metrics()).toEqual({ starts: 1, stops: 1, now: 0 });
});

it('starts and stops nothing when an owner names the same set again', async () => {
  const owner = {};
  set.set(owner, [target('pods'), target('services')]);
  await vi.waitFor(() => expect(connection.streams).toHaveLength(2));
  set.set(owner, [target('services'), target('pods'), target('pods')]);
  expect(connection.streams).toHaveLength(2);
  expect(await metrics()).toEqual({ starts: 2, stops: 0, now: 2 });
});

it('touches only the difference', async () => {
  const owner = {};
  set.set(owner, [target('pods'), target('services')]);
  const pods = set.get(target('pods'));
  set.set(owner, [target('pods'), target('secrets')]);
  expect(set.get(target('pods'))).toBe(pods);
  expect([set.get(target('services')), set.size]).toEqual([undefined, 2]);
  expect(await metrics()).toEqual({ starts: 3, stops: 1, now: 2 });
});

it('adds to what is held by `hold`, and makes it the whole by `set`', () => {
  const owner = {};
  set.hold(owner, target('pods'));
  set.hold(owner, target('services'));
  expect(set.size).toBe(2);
  set.set(owner, [target('services')]);
  expect(set.size).toBe(1);
});

it('knows owners by identity', () => {
  set.hold({ name: 'same' }, target('pods'));
  set.release({ name: 'same' });
  expect(set.size).toBe(1);
});

it('tells apart whatever selects or shapes objects', () => {
  const targets = [
    target('pods'),
    target('pods', { form: 'full' }),
    target('pods', { namespace: 'a' }),
    target('pods', { labelSelector: 'a=b' }),
    target('pods', { fieldSelector: 'a=b' }),
    target('pods', { keepManagedFields: true }),
    target('pods', { resource: { group: 'metrics.k8s.io', version: 'v1', plural: 'pods', namespaced: true } }),
  ];
  expect(new Set(targets.map(watchKey)).size).toBe(targets.length);
  expect(watchKey(target('pods', { keepManagedFields: false }))).toBe(watchKey(target('pods')));
});

it('stops everything when it closes, and starts nothing afterwards', async () => {
  const owner = {};
  set.set(owner, [target('pods'), target('services')]);
  await vi.waitFor(() => expect(connection.streams).toHaveLength(2));
  await set.close();
  expect(await metrics()).toEqual({ starts: 2, stops: 2, now: 0 });
  const late = set.hold(owner, target('pods'));
  await expect(late.synced(AbortSignal.timeout(5_000), 5_000)).rejects.toMatchObject({ code: 'ConnectionClosed' });
  expect(set.size).toBe(0);
  expect(connection.streams).toHaveLength(2);
});

it('closes when its signal aborts', async () => {
  const controller = new AbortController();
  const owned = new SharedWatchSet(connection, { signal: controller.signal });
  owned.set({}, [target('pods')]);
  await vi.waitFor(() => expect(connection.streams).toHaveLength(1));
  controller.abort();
  await owned.close();
  expect(owned.size).toBe(0);
});
