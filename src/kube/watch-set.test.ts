import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FakeConnection } from './fake-connection.test-support.ts';
import { SharedWatchSet } from './watch-set.ts';
import { watchKey } from './watch-key.ts';
import { NotFoundError } from './errors.ts';
import type { KubeObject, WatchNotice, WatchTarget } from './types.ts';

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

/** What a follower is told, as `type name`. */
function listener(): { told: string[]; notice: (notice: WatchNotice<KubeObject>) => void } {
  const told: string[] = [];
  const notice = (notice: WatchNotice<KubeObject>): void => {
    told.push('object' in notice ? `${notice.type} ${notice.object.metadata.name}` : notice.type);
  };
  return { told, notice };
}

it('tells a follower list and events, and stores nothing', async () => {
  connection.items = [{ metadata: { name: 'one', resourceVersion: '5', managedFields: [{ manager: 'helm' }] } }];
  const managers: unknown[] = [];
  const follower = listener();
  set.follow({}, target('pods', { keepManagedFields: true }), {
    notice: (notice) => {
      follower.notice(notice);
      if ('object' in notice) managers.push(notice.object.metadata.managedFields?.[0]?.manager);
    },
  });
  await vi.waitFor(() => expect(connection.streams).toHaveLength(1));
  connection.stream.send('MODIFIED', { metadata: { name: 'one', resourceVersion: '11' } });
  connection.stream.send('DELETED', { metadata: { name: 'one', resourceVersion: '12' } });
  await vi.waitFor(() =>
    expect(follower.told).toEqual(['init', 'initApply one', 'initDone', 'apply one', 'delete one']),
  );
  expect(managers).toEqual(['helm', undefined, undefined]);
  expect([set.size, set.get(target('pods', { keepManagedFields: true }))]).toEqual([1, undefined]);
  expect(await metrics()).toEqual({ starts: 1, stops: 0, now: 1 });
});

it('replaces the follower of an owner without a restart, and gives each owner a watch of its own', async () => {
  const [one, two] = [{}, {}];
  const [before, after, other] = [listener(), listener(), listener()];
  set.follow(one, target('pods'), before);
  await vi.waitFor(() => expect(connection.streams).toHaveLength(1));
  set.follow(one, target('pods'), after);
  set.follow(two, target('pods'), other);
  await vi.waitFor(() => expect(connection.streams).toHaveLength(2));
  connection.streams[0]?.send('ADDED', { metadata: { name: 'new', resourceVersion: '11' } });
  await vi.waitFor(() => expect(after.told).toEqual(['apply new']));
  expect([before.told, other.told]).toEqual([
    ['init', 'initDone'],
    ['init', 'initDone'],
  ]);
  expect(await metrics()).toEqual({ starts: 2, stops: 0, now: 2 });
});

it.each([
  ['unfollow', (owner: object) => set.unfollow(owner, target('pods'))],
  ['release', (owner: object) => set.release(owner)],
  ['set', (owner: object) => set.set(owner, [])],
])('ends a followed watch by `%s`, and tells nothing that was on its way', async (_, stop) => {
  const owner = {};
  const follower = listener();
  set.follow(owner, target('pods'), follower);
  await vi.waitFor(() => expect(connection.streams).toHaveLength(1));
  connection.stream.send('ADDED', { metadata: { name: 'late', resourceVersion: '11' } });
  stop(owner);
  await vi.waitFor(() => expect(connection.stream.closed).toBe(true));
  expect(follower.told).toEqual(['init', 'initDone']);
  expect([set.size, await metrics()]).toEqual([0, { starts: 1, stops: 1, now: 0 }]);
});

it('counts what is followed as held when `set` names it', async () => {
  const owner = {};
  set.follow(owner, target('pods'), listener());
  set.set(owner, [target('pods'), target('services')]);
  await vi.waitFor(() => expect(connection.streams).toHaveLength(2));
  expect([set.size, await metrics()]).toEqual([2, { starts: 2, stops: 0, now: 2 }]);
});

it('survives a follower that throws, and tells it what fails and that it goes on', async () => {
  const resumed = vi.fn();
  const problems: unknown[] = [];
  const follower = listener();
  connection.listRefusals.push(new NotFoundError('no such resource', { notServed: true }));
  const quick = new SharedWatchSet(connection, { notServedRetryMs: 1 });
  quick.follow({}, target('pods'), {
    notice: (notice) => {
      follower.notice(notice);
      throw new Error('a defect');
    },
    problem: (error, failures) => problems.push([error.code, failures]),
    resumed,
  });
  await vi.waitFor(() => expect(follower.told).toEqual(['init', 'init', 'initDone']));
  await vi.waitFor(() => expect(resumed).toHaveBeenCalled());
  expect(problems).toEqual([['NotFound', 1]]);
  await quick.close();
  quick.follow({}, target('pods'), follower);
  expect(quick.size).toBe(0);
});
