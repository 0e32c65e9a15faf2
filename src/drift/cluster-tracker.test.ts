import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ForbiddenError, NetworkError, NotFoundError } from '../kube/index.ts';
import { createTelemetry } from '../telemetry/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { ClusterTracker } from './cluster-tracker.ts';
import { configMap, FakeDiscovery, FakeFollows, inventory, live } from './tracked-fakes.test-support.ts';
import type { InventoryObject } from './types.ts';

const NARROW = { wide: false, keep: false };
const KEEP = { wide: false, keep: true };

let watches: FakeFollows;
let discovery: FakeDiscovery;
let telemetry: Telemetry;
let told: string[];
let tracker: ClusterTracker;

beforeEach(() => {
  vi.useFakeTimers();
  watches = new FakeFollows();
  discovery = new FakeDiscovery();
  telemetry = createTelemetry();
  told = [];
  tracker = new ClusterTracker({
    cluster: 'c1',
    watches,
    discovery,
    telemetry,
    helmManagers: new Set(['helm']),
    onStir: (release) => {
      told.push(release);
    },
    options: { random: () => 0.5 },
  });
});

afterEach(() => {
  tracker.close();
  expect(watches.size).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

/** What is stirred, as `name kind`. */
function stirred(release = 'app'): string[] {
  return tracker.take(release).map(({ id, kind }) => `${id.name} ${kind}`);
}

const A = configMap('a');
const B = configMap('b');
const SEEN_A = live('a', 10);

/** `a` and `b` are tracked, listed, verified. */
function settled(options = NARROW): void {
  tracker.track('app', inventory(A, B), options);
  watches.list('configmaps', SEEN_A, live('b', 11));
  tracker.take('app');
  tracker.settle('app', A.id, { live: SEEN_A, watch: [] });
  tracker.settle('app', B.id, { live: live('b', 11), watch: [] });
  expect(stirred()).toEqual([]);
}

async function quiet(): Promise<string[]> {
  await vi.advanceTimersByTimeAsync(1_000);
  return told;
}

describe('what is stirred', () => {
  it('is everything that was never verified, in the inventory’s order, and nobody is told of that', async () => {
    tracker.track('app', inventory(B, A), NARROW);
    watches.list('configmaps', SEEN_A);
    expect(tracker.take('app')).toEqual([
      { index: 0, id: B.id, kind: 'unverified' },
      { index: 1, id: A.id, kind: 'unverified' },
    ]);
    expect(await quiet()).toEqual([]);
  });

  it('stays so until it is settled', async () => {
    settled();
    watches.apply('configmaps', live('a', 12, { write: 2 }));
    expect(await quiet()).toEqual(['app']);
    expect([stirred(), stirred()]).toEqual([['a changed'], ['a changed']]);
    tracker.settle('app', A.id, { live: live('a', 12, { write: 2 }), watch: [] });
    expect(stirred()).toEqual([]);
  });

  it('is nothing by events that leave Helm’s entries as they are, nor by objects that nobody tracks', async () => {
    settled();
    watches.apply('configmaps', live('a', 12, { others: ['kubectl-annotate 5'] }));
    watches.apply('configmaps', live('stranger', 13));
    watches.delete('configmaps', live('stranger', 14));
    expect([await quiet(), stirred()]).toEqual([[], []]);
  });

  it('is an object that is deleted, that comes back as another one, and that somebody put back as it was', async () => {
    settled();
    watches.delete('configmaps', live('a', 12));
    expect(stirred()).toEqual(['a gone']);
    watches.apply('configmaps', live('a', 13, { uid: 'another' }));
    expect(stirred()).toEqual(['a changed']);
    expect(await quiet()).toEqual(['app']);
    watches.apply('configmaps', live('a', 14, { uid: 'yet another' }));
    watches.apply('configmaps', live('a', 15));
    expect([stirred(), await quiet()]).toEqual([[], ['app']]);
  });

  it('is what a manager changes that owns wanted fields, and all edits of an object that is left drifting', () => {
    settled();
    const scaled = live('a', 12, { others: ['hpa 1', 'stranger 1'] });
    tracker.settle('app', A.id, { live: scaled, watch: ['hpa', 'helm'] });
    expect(stirred()).toEqual([]);
    watches.apply('configmaps', live('a', 13, { others: ['hpa 1', 'stranger 2'] }));
    expect(stirred()).toEqual([]);
    const again = live('a', 14, { others: ['hpa 2', 'stranger 2'] });
    watches.apply('configmaps', again);
    expect(stirred()).toEqual(['a changed']);
    tracker.settle('app', A.id, { live: again, watch: ['hpa'], wide: true });
    expect(stirred()).toEqual([]);
    watches.apply('configmaps', live('a', 15, { others: ['hpa 2', 'stranger 3'] }));
    expect(stirred()).toEqual(['a changed']);
  });

  it('is any edit where extra fields count, or where the manifest says null', () => {
    const nulled = { ...B, nulls: [['data', 'x']] };
    tracker.track('app', inventory(A, nulled), NARROW);
    watches.list('configmaps', SEEN_A, live('b', 11));
    tracker.settle('app', A.id, { live: SEEN_A, watch: [] });
    tracker.settle('app', B.id, { live: live('b', 11), watch: [] });
    watches.apply('configmaps', live('a', 12, { others: ['kubectl-edit 1'] }));
    watches.apply('configmaps', live('b', 13, { others: ['kubectl-edit 1'] }));
    expect(stirred()).toEqual(['b changed']);
    tracker.track('app', inventory(A, nulled), { wide: true, keep: true });
    expect(stirred()).toEqual(['a unverified', 'b changed']);
    tracker.settle('app', A.id, { live: live('a', 12, { others: ['kubectl-edit 1'] }), watch: [] });
    watches.apply('configmaps', live('a', 14, { others: ['kubectl-edit 2'] }));
    expect(stirred()).toEqual(['a changed', 'b changed']);
  });

  it('is an object that somebody wrote without a trace: in the same second, or through the scale subresource', () => {
    settled();
    // Helm's own manager, another value, the second of its last write.
    watches.apply('configmaps', live('a', 12));
    expect(stirred()).toEqual(['a changed']);
    // What it looked like before that write does not settle it.
    tracker.settle('app', A.id, { live: SEEN_A, watch: [] });
    expect(stirred()).toEqual(['a changed']);
    tracker.settle('app', A.id, { live: live('a', 12), watch: [] });
    expect(stirred()).toEqual([]);
    // Somebody else's write of the same second is accounted for, and a later one, too.
    watches.apply('configmaps', live('a', 13, { others: ['kubectl-annotate 1'] }));
    watches.apply('configmaps', live('a', 14, { others: ['kubectl-annotate 2'] }));
    watches.apply('configmaps', live('a', 15, { others: ['kubectl-annotate 2'] }));
    expect(stirred()).toEqual([]);
  });

  it('is no object whose generation shows that only metadata or status were written', () => {
    settled();
    const b = (version: number, generation: number) => live('b', version, { generation });
    tracker.settle('app', B.id, { live: b(12, 1), watch: [] });
    watches.apply('configmaps', b(13, 1));
    expect(stirred()).toEqual([]);
    watches.apply('configmaps', b(14, 2));
    expect(stirred()).toEqual(['b changed']);
  });

  it('is what `unsettle` names', async () => {
    settled();
    tracker.unsettle('app', A.id);
    expect([stirred(), await quiet()]).toEqual([['a unverified'], []]);
    tracker.unsettle('app', { ...A.id, name: 'stranger' });
    tracker.unsettle('stranger', A.id);
    tracker.settle('stranger', A.id, { watch: [] });
  });
});

describe('settling', () => {
  it('passes over events up to the version that was read or written: our own write stirs nothing', async () => {
    settled();
    watches.delete('configmaps', live('a', 12));
    tracker.take('app');
    const written = live('a', 14, { write: 2, uid: 'new' });
    tracker.settle('app', A.id, { live: written, watch: [] });
    told.length = 0;
    watches.apply('configmaps', live('a', 13, { uid: 'between' }));
    watches.apply('configmaps', written);
    expect([stirred(), await quiet()]).toEqual([[], []]);
    watches.apply('configmaps', live('a', 15, { write: 3, uid: 'new' }));
    expect([stirred(), await quiet()]).toEqual([['a changed'], ['app']]);
  });

  it('leaves stirred what the watch knows to be newer than what was read, and tells of it', async () => {
    settled();
    watches.apply('configmaps', live('a', 12, { write: 2 }));
    tracker.take('app');
    watches.apply('configmaps', live('a', 13, { write: 3 }));
    await quiet();
    told.length = 0;
    tracker.settle('app', A.id, { live: live('a', 12, { write: 2 }), watch: [] });
    expect([stirred(), await quiet()]).toEqual([['a changed'], ['app']]);
  });

  it('does not compare what was seen for other managers', () => {
    settled();
    watches.apply('configmaps', live('a', 13, { others: ['hpa 2'] }));
    tracker.settle('app', A.id, { live: live('a', 12, { others: ['hpa 1'] }), watch: ['hpa'] });
    expect(stirred()).toEqual(['a unverified']);
    tracker.settle('app', A.id, { live: live('a', 13, { others: ['hpa 2'] }), watch: ['hpa'] });
    expect(stirred()).toEqual([]);
  });

  it('believes a verification that finds nothing, unless the watch told something after `take`', () => {
    settled();
    watches.apply('configmaps', live('a', 12, { write: 2 }));
    tracker.take('app');
    tracker.settle('app', A.id, { watch: [] });
    expect(stirred()).toEqual([]);
    watches.delete('configmaps', live('a', 13));
    expect(stirred()).toEqual([]);

    watches.apply('configmaps', live('b', 14, { write: 2 }));
    tracker.take('app');
    watches.apply('configmaps', live('b', 15, { uid: 'created' }));
    tracker.settle('app', B.id, { watch: [] });
    expect(stirred()).toEqual(['b changed']);
  });

  it('settles an object that exists without the label, and hears when it gets it back', () => {
    settled();
    watches.delete('configmaps', live('a', 12));
    tracker.take('app');
    tracker.settle('app', A.id, { live: live('a', 12), watch: [], wide: true });
    expect(stirred()).toEqual([]);
    watches.apply('configmaps', live('a', 13, { others: ['kubectl-label 1'] }));
    expect(stirred()).toEqual(['a changed']);
  });

  it('works where versions are no numbers', () => {
    tracker.track('app', inventory(A), NARROW);
    const opaque = (write: number, version: string) => {
      const object = live('a', 0, { write });
      return { metadata: { ...object.metadata, resourceVersion: version } };
    };
    watches.list('configmaps', opaque(1, 'x'));
    tracker.take('app');
    tracker.settle('app', A.id, { live: opaque(1, 'x'), watch: [] });
    expect(stirred()).toEqual([]);
    watches.apply('configmaps', opaque(2, 'y'));
    expect(stirred()).toEqual(['a changed']);
    watches.apply('configmaps', opaque(3, 'z'));
    tracker.settle('app', A.id, { live: opaque(2, 'y'), watch: [] });
    expect(stirred()).toEqual(['a changed']);
  });
});

describe('a list after the first', () => {
  it('stirs what has changed or gone meanwhile and nothing else', async () => {
    settled();
    watches.list('configmaps', SEEN_A);
    expect([await quiet(), stirred()]).toEqual([['app'], ['b gone']]);
    tracker.settle('app', B.id, { watch: [] });
    told.length = 0;
    watches.list('configmaps', SEEN_A);
    expect([await quiet(), stirred()]).toEqual([[], []]);
    watches.list('configmaps', live('a', 20, { write: 9 }));
    expect(stirred()).toEqual(['a changed']);
  });

  it('holds, though older than what is known, as after a restore of etcd', () => {
    settled();
    watches.list('configmaps', live('a', 3, { write: 0 }), live('b', 11));
    expect(stirred()).toEqual(['a changed']);
    tracker.settle('app', A.id, { live: live('a', 3, { write: 0 }), watch: [] });
    watches.apply('configmaps', live('a', 4, { write: 1 }));
    expect(stirred()).toEqual(['a changed']);
  });

  it('knows an object as gone that was deleted while the list came', () => {
    settled();
    const follower = watches.of('configmaps');
    follower.notice({ type: 'init' });
    follower.notice({ type: 'initApply', object: SEEN_A });
    follower.notice({ type: 'initApply', object: live('b', 11) });
    follower.notice({ type: 'delete', object: live('b', 12) });
    follower.notice({ type: 'initDone', resourceVersion: '13' });
    expect(stirred()).toEqual(['b gone']);
    // It exists, without the label, in a version older than the list.
    tracker.settle('app', B.id, { live: live('b', 11), watch: [] });
    expect(stirred()).toEqual([]);
  });
});

describe('tracking', () => {
  const secret: InventoryObject = {
    ...configMap('s'),
    id: { group: '', version: 'v1', kind: 'Secret', namespace: 'ns', name: 's' },
    resource: { group: '', version: 'v1', plural: 'secrets', namespaced: true },
  };
  const role: InventoryObject = {
    ...configMap('r'),
    id: { group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'ClusterRole', name: 'r' },
    resource: { group: 'rbac.authorization.k8s.io', version: 'v1', plural: 'clusterroles', namespaced: false },
  };

  it('starts and stops only the watches that make the difference, and counts objects', async () => {
    tracker.track('one', inventory(A, secret), NARROW);
    tracker.track('two', inventory(B, role), NARROW);
    expect(watches.history).toEqual(['+configmaps', '+secrets', '+clusterroles']);
    expect(watches.followed.get('configmaps')?.target).toEqual({
      resource: A.resource,
      form: 'metadata',
      keepManagedFields: true,
      labelSelector: 'app.kubernetes.io/managed-by=Helm',
    });
    const count = async () =>
      (await telemetry.metrics.getSingleMetric('capstan_drift_tracked_objects')?.get())?.values[0]?.value;
    expect(await count()).toBe(4);
    tracker.track('one', inventory(A), NARROW);
    tracker.forget('two');
    tracker.forget('two');
    expect(watches.history.slice(3)).toEqual(['-secrets', '-clusterroles']);
    expect(await count()).toBe(1);
    tracker.forget('one');
    expect([watches.size, await count()]).toEqual([0, 0]);
  });

  it('keeps what was verified when asked to, and else verifies again', () => {
    settled();
    tracker.track('app', inventory(secret, A, B), KEEP);
    expect(tracker.take('app')).toEqual([{ index: 0, id: secret.id, kind: 'unverified' }]);
    watches.apply('configmaps', live('b', 12, { write: 2 }));
    expect(tracker.take('app').map(({ index }) => index)).toEqual([0, 2]);
    tracker.track('app', inventory(A), NARROW);
    expect(stirred()).toEqual(['a unverified']);
    expect(watches.history).toEqual(['+configmaps', '+secrets', '-secrets']);
  });

  it('has each release know for itself what it verified of an object that several have', async () => {
    settled();
    tracker.track('other', inventory(A), NARROW);
    tracker.track('third', inventory(A), NARROW);
    expect(stirred('other')).toEqual(['a unverified']);
    tracker.settle('other', A.id, { live: SEEN_A, watch: ['hpa'] });
    tracker.settle('third', A.id, { live: SEEN_A, watch: [] });
    watches.apply('configmaps', live('a', 12, { others: ['hpa 1'] }));
    expect([stirred(), stirred('other'), stirred('third')]).toEqual([[], ['a changed'], []]);
    expect(await quiet()).toEqual(['other']);
    tracker.forget('other');
    watches.apply('configmaps', live('a', 13, { write: 2 }));
    expect([stirred(), stirred('other'), stirred('third')]).toEqual([['a changed'], [], ['a changed']]);
  });

  it('watches what comes from crds/ without a selector', () => {
    const crd: InventoryObject = {
      ...configMap('widgets.example.com'),
      id: {
        group: 'apiextensions.k8s.io',
        version: 'v1',
        kind: 'CustomResourceDefinition',
        name: 'widgets.example.com',
      },
      resource: {
        group: 'apiextensions.k8s.io',
        version: 'v1',
        plural: 'customresourcedefinitions',
        namespaced: false,
      },
      fromCrds: true,
    };
    tracker.track('app', inventory(crd), NARROW);
    expect(watches.history).toEqual(['+customresourcedefinitions *']);
    tracker.settle('app', crd.id, { live: { metadata: { name: 'widgets.example.com' } }, watch: [] });
    expect(stirred()).toEqual([]);
  });

  it('does nothing after `close`', async () => {
    tracker.close();
    tracker.track('app', inventory(A), NARROW);
    expect([watches.size, stirred()]).toEqual([0, []]);
    await expect(tracker.synced('app', AbortSignal.timeout(1_000), 1_000)).rejects.toMatchObject({
      code: 'ConnectionClosed',
    });
  });
});

describe('telling', () => {
  it('waits for quiet, and not for ever', async () => {
    settled();
    watches.apply('configmaps', live('a', 100, { write: 100 }));
    await vi.advanceTimersByTimeAsync(39);
    expect(told).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(told).toEqual(['app']);
    for (let version = 101; version < 200; version += 1) {
      watches.apply('configmaps', live('a', version, { write: version }));
      await vi.advanceTimersByTimeAsync(30);
      if (told.length > 1) break;
    }
    expect(told).toEqual(['app', 'app']);
  });

  it('is over with the release', async () => {
    settled();
    watches.delete('configmaps', live('a', 12));
    tracker.forget('app');
    expect(await quiet()).toEqual([]);
  });
});

describe('the first lists', () => {
  const signal = new AbortController().signal;

  it('are waited for, each once', async () => {
    tracker.track('app', inventory(A), NARROW);
    const done = vi.fn();
    const waiting = tracker.synced('app', signal, 10_000).then(done);
    watches.of('configmaps').problem?.(new NetworkError('refused'), 1);
    await vi.advanceTimersByTimeAsync(100);
    expect(done).not.toHaveBeenCalled();
    watches.list('configmaps');
    await waiting;
    await tracker.synced('app', signal, 10_000);
    await tracker.synced('unknown', signal, 10_000);
  });

  it('are not waited for where the server forbids them: that is a problem, until it does not any more', async () => {
    tracker.track('app', inventory(A), NARROW);
    const waiting = tracker.synced('app', signal, 10_000);
    watches.of('configmaps').problem?.(new ForbiddenError('no rights'), 1);
    await waiting;
    expect(tracker.problems('app')).toEqual(['ConfigMap cannot be watched: no rights']);
    watches.list('configmaps');
    expect(tracker.problems('app')).toEqual([]);
  });

  it('are one thing and the watches after them another: what forbids one is told, and that it is over without a list, too', async () => {
    tracker.track('app', inventory(A), NARROW);
    watches.list('configmaps');
    watches.of('configmaps').problem?.(new ForbiddenError('the server has just begun'), 3);
    expect(tracker.problems('app')).toHaveLength(1);
    expect(await quiet()).toEqual(['app']);
    watches.of('configmaps').resumed?.();
    expect(tracker.problems('app')).toEqual([]);
    expect(await quiet()).toEqual(['app', 'app']);
    watches.of('configmaps').resumed?.();
    expect(await quiet()).toHaveLength(2);
  });

  it('have a limit, and end with the release, the tracker and the caller', async () => {
    tracker.track('app', inventory(A), NARROW);
    const late = expect(tracker.synced('app', signal, 1_000)).rejects.toMatchObject({ code: 'TimedOut' });
    const controller = new AbortController();
    const left = expect(tracker.synced('app', controller.signal, 10_000)).rejects.toThrow('gone away');
    controller.abort(new Error('gone away'));
    await vi.advanceTimersByTimeAsync(1_000);
    await Promise.all([late, left]);
    const forgotten = tracker.synced('app', signal, 10_000);
    tracker.forget('app');
    await forgotten;
    tracker.track('app', inventory(A), NARROW);
    const closed = expect(tracker.synced('app', signal, 10_000)).rejects.toMatchObject({ code: 'ConnectionClosed' });
    tracker.close();
    await closed;
  });
});

describe('a kind that is not served', () => {
  const widget: InventoryObject = {
    ...configMap('w'),
    id: { group: 'example.com', version: 'v1', kind: 'Widget', namespace: 'ns', name: 'w' },
    resource: undefined,
  };
  const WIDGETS = { group: 'example.com', version: 'v1', plural: 'widgets', namespaced: true };
  const CRD = { metadata: { name: 'widgets.example.com' } };
  const OTHER_CRD = { metadata: { name: 'gears.example.org' } };

  it('is waited for by its CRD: then the release is told that its inventory is out of date', async () => {
    tracker.track('app', inventory(A, widget), NARROW);
    watches.list('configmaps', SEEN_A);
    await tracker.synced('app', new AbortController().signal, 1_000);
    expect(tracker.unserved('app')).toEqual([widget.id]);
    tracker.settle('app', widget.id, { watch: [] });
    tracker.settle('app', A.id, { live: SEEN_A, watch: [] });
    expect(stirred()).toEqual([]);

    watches.list('customresourcedefinitions *', OTHER_CRD);
    watches.apply('customresourcedefinitions *', OTHER_CRD);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(discovery.invalidations).toBe(0);
    watches.apply('customresourcedefinitions *', CRD);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([discovery.invalidations, told]).toEqual([1, []]);
    discovery.served.set('Widget', WIDGETS);
    await vi.advanceTimersByTimeAsync(1_500);
    expect([told, stirred(), tracker.isOutdated('app')]).toEqual([['app'], ['w unverified'], true]);
    expect(watches.history).toEqual([
      '+configmaps',
      '+customresourcedefinitions *',
      '-customresourcedefinitions *',
      '+widgets',
    ]);
    tracker.track('app', inventory(A, { ...widget, resource: WIDGETS }), KEEP);
    expect([tracker.isOutdated('app'), stirred(), tracker.unserved('app')]).toEqual([false, ['w unverified'], []]);
  });

  it('is waited for by asking now and then, too, as kinds of aggregated servers have no CRD', async () => {
    tracker.track('app', inventory(widget), NARROW);
    discovery.failure = new NetworkError('refused');
    await vi.advanceTimersByTimeAsync(60_000);
    expect([discovery.invalidations, told]).toEqual([1, []]);
    discovery.failure = undefined;
    discovery.served.set('Widget', WIDGETS);
    await vi.advanceTimersByTimeAsync(61_000);
    expect([discovery.invalidations, told]).toEqual([2, ['app']]);
    await vi.advanceTimersByTimeAsync(200_000);
    expect(discovery.invalidations).toBe(2);
  });

  it('asks after the first list when that has its CRD', async () => {
    tracker.track('app', inventory(widget), NARROW);
    discovery.served.set('Widget', WIDGETS);
    watches.list('customresourcedefinitions *', CRD);
    await vi.advanceTimersByTimeAsync(600);
    expect([discovery.invalidations, told]).toEqual([1, ['app']]);
  });

  it('may come and go: its objects are gone, and verified anew when it is back', async () => {
    const served = { ...widget, resource: WIDGETS };
    const w = live('w', 5);
    tracker.track('app', inventory(served), NARROW);
    watches.list('widgets', w);
    tracker.take('app');
    tracker.settle('app', widget.id, { live: w, watch: [] });
    watches.of('widgets').problem?.(new NotFoundError('no such resource', { notServed: true }), 1);
    expect([await quiet(), stirred(), tracker.unserved('app')]).toEqual([['app'], ['w gone'], [widget.id]]);
    tracker.settle('app', widget.id, { watch: [] });
    expect(stirred()).toEqual([]);
    discovery.served.set('Widget', WIDGETS);
    watches.list('customresourcedefinitions *', CRD);
    await vi.advanceTimersByTimeAsync(600);
    expect([told, stirred(), tracker.isOutdated('app')]).toEqual([['app', 'app'], ['w unverified'], true]);
  });

  it('may come and go behind the watch’s back: who was told by the server says so', async () => {
    const served = { ...widget, resource: WIDGETS };
    const other = { ...served, id: { ...widget.id, name: 'other' } };
    const lives = [live('w', 5), live('other', 6)];
    tracker.track('app', inventory(served, other), NARROW);
    watches.list('widgets', ...lives);
    for (const [index, { id }] of [served, other].entries())
      tracker.settle('app', id, { live: lives[index], watch: [] });
    watches.of('widgets').notice({ type: 'delete', object: lives[0]! });
    tracker.settle('app', widget.id, { watch: [], notServed: true });
    expect([stirred(), tracker.unserved('app')]).toEqual([['other gone'], [widget.id, other.id]]);
    tracker.settle('app', other.id, { watch: [], notServed: true });
    expect(watches.history.slice(1)).toEqual(['-widgets', '+customresourcedefinitions *']);
    discovery.served.set('Widget', WIDGETS);
    watches.list('customresourcedefinitions *', CRD);
    await vi.advanceTimersByTimeAsync(600);
    expect([stirred(), tracker.isOutdated('app')]).toEqual([['w unverified', 'other unverified'], true]);
  });

  it('is not waited for when nobody has it any more', async () => {
    tracker.track('app', inventory(widget), NARROW);
    tracker.forget('app');
    await vi.advanceTimersByTimeAsync(200_000);
    expect([watches.size, discovery.invalidations]).toEqual([0, 0]);
  });

  it('is served for all when one release’s inventory says so', async () => {
    tracker.track('old', inventory(widget), NARROW);
    tracker.track('new', inventory({ ...widget, resource: WIDGETS }), NARROW);
    expect([tracker.isOutdated('old'), tracker.isOutdated('new'), await quiet()]).toEqual([true, false, ['old']]);
    watches.list('widgets');
    told.length = 0;
    // Made of what discovery said before: told once more to be made anew, and then left alone.
    tracker.forget('old');
    tracker.track('old', inventory(widget), NARROW);
    expect([discovery.invalidations, await quiet()]).toEqual([1, ['old']]);
    tracker.track('old', inventory(widget), KEEP);
    expect([discovery.invalidations, await quiet()]).toEqual([1, ['old']]);
  });
});
