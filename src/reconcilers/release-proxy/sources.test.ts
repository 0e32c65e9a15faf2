import { describe, expect, it } from 'vitest';
import {
  FORCE_DELETE_ANNOTATION,
  INSTALLED_ANNOTATION,
  PAUSED_ANNOTATION,
  TRACEPARENT_ANNOTATION,
  WATCH_FILTER_LABEL,
} from '../../api/index.ts';
import type { Condition, HelmReleaseProxy } from '../../api/index.ts';
import { HelmError } from '../../helm/index.ts';
import { clusterName } from '../../runtime/index.ts';
import type { ClusterState, Enqueuer } from '../../runtime/index.ts';
import { ReleaseProxySources } from './sources.ts';
import { World } from './world.test-support.ts';

const KEY = { namespace: 'apps', name: 'app' };
const C1 = clusterName('fleet/c1');

interface Listening {
  readonly w: World;
  readonly asked: string[];
  readonly sources: ReleaseProxySources;
  readonly deaf: () => void;
}

/** Sources that listen; what was asked for at the start is forgotten. */
function listening(w: World): Listening {
  const asked: string[] = [];
  const queue: Enqueuer = {
    enqueue: (request, options) => asked.push(`${request.cluster} ${request.name} ${options?.priority ?? ''}`),
  };
  const sources = new ReleaseProxySources(w.parts, queue);
  const deaf = sources.listen();
  asked.length = 0;
  return { w, asked, sources, deaf };
}

function world(): World {
  const w = new World();
  w.addCluster('c1');
  w.addProxy('p');
  return w;
}

function annotated(annotations: Record<string, string>): (proxy: HelmReleaseProxy) => HelmReleaseProxy {
  return (proxy) => ({ ...proxy, metadata: { ...proxy.metadata, annotations } });
}

describe('an operation that runs', () => {
  it('is told when its cluster goes out of service and when it is back, and nothing once it has ended', () => {
    const { w, sources } = listening(world());
    const told: (string | undefined)[] = [];
    const memory = w.parts.memories.of('uid of p');
    const cluster = w.fleet.get(C1);
    const reason = { code: 'Unreachable', message: 'no answer' };
    memory.begin((news) => told.push(news?.code));
    sources.changed(C1, { phase: 'degraded', cluster, reason });
    sources.changed(C1, { phase: 'engaged', cluster });
    memory.end();
    sources.changed(C1, { phase: 'degraded', cluster, reason });
    expect(told).toEqual(['Unreachable', undefined]);
  });
});

describe('an object', () => {
  it('is looked at when it appears, is edited, annotated, labelled or deleted', () => {
    const { w, asked } = listening(world());
    w.addProxy('q', { releaseName: 'q' });
    w.edit('p', (proxy) => ({ ...proxy, spec: { ...proxy.spec, values: 'a: 1' } }));
    w.edit('p', annotated({ [PAUSED_ANNOTATION]: '' }));
    w.edit('p', (proxy) => ({ ...proxy, metadata: { ...proxy.metadata, labels: { a: 'b' } } }));
    w.delete('p');
    expect(asked).toEqual(['fleet/c1 q user', ...Array.from({ length: 4 }, () => 'fleet/c1 p user')]);
  });

  it('is not looked at for what a pass itself wrote: status, finalizer, annotations', async () => {
    const { w, asked } = listening(world());
    await w.reconcile('p');
    expect(asked).toEqual([]);
  });

  it('is not looked at for the trace that is noted on it', () => {
    const { w, asked } = listening(world());
    w.edit('p', annotated({ [TRACEPARENT_ANNOTATION]: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` }));
    expect(asked).toEqual([]);
  });

  it('is not looked at for what the drift controller tells in its status', () => {
    const { w, asked } = listening(world());
    const inSync: Condition = {
      type: 'ReleaseInSync',
      status: 'False',
      reason: 'DriftDetected',
      message: 'Deployment web',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    const status = { conditions: [inSync], drift: { objects: 2, drifted: 1 } };
    w.edit('p', (proxy) => ({ ...proxy, status }));
    expect(asked).toEqual([]);
  });

  it('is looked at when somebody takes its annotation away', async () => {
    const { w, asked } = listening(world());
    w.edit('p', annotated({ [INSTALLED_ANNOTATION]: 'true' }));
    w.edit('p', annotated({}));
    expect(asked).toEqual(['fleet/c1 p user']);
  });

  it('of another manager is not', () => {
    const w = new World({ watchFilter: 'mine' });
    const { asked } = listening(w);
    w.addProxy('p', {}, { metadata: { labels: { [WATCH_FILTER_LABEL]: 'theirs' } } });
    expect(asked).toEqual([]);
  });

  it('without a cluster is not', () => {
    const { w, asked } = listening(world());
    w.addProxy('q', { clusterRef: {} });
    expect(asked).toEqual([]);
  });

  it('that goes wakes who waits for its release, and closes the reader when it was the last', async () => {
    const { w, asked } = listening(world());
    await w.reconcile('p');
    w.addProxy('q');
    asked.length = 0;
    w.proxies.remove('fleet', 'p');
    expect(asked).toEqual(['fleet/c1 q user']);
    expect(w.storage(C1).readers).toBe(1);
    w.proxies.remove('fleet', 'q');
    expect(w.storage(C1).readers).toBe(0);
  });
});

describe('an operation that runs', () => {
  /** Runs until its signal aborts, as helm does. */
  async function waiting(w: World): Promise<{ ended: Promise<unknown>; signal: AbortSignal }> {
    const began = Promise.withResolvers<AbortSignal>();
    w.engine.during = async (_call, signal) => {
      began.resolve(signal);
      await new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new HelmError('Cancelled', 'cancelled')));
      });
    };
    const ended = w.reconcile('p').catch((error: unknown) => error);
    return { ended, signal: await began.promise };
  }

  it('is broken off when its object is deleted; what it left is then uninstalled', async () => {
    const { w, asked } = listening(world());
    const { ended, signal } = await waiting(w);
    w.storage(C1).put(KEY, { status: 'failed', revision: 1 });
    w.delete('p');
    expect(await ended).toBeUndefined();
    expect(signal.aborted).toBe(true);
    expect(asked).toEqual(['fleet/c1 p user']);
    w.engine.during = undefined;
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install', 'uninstall']);
    expect(w.find('p')).toBeUndefined();
  });

  it('goes on when its object is edited, and when its strategy leaves releases behind', async () => {
    const w = new World();
    w.addCluster('c1');
    w.addProxy('p', { reconcileStrategy: 'InstallOnce' });
    listening(w);
    const { ended, signal } = await waiting(w);
    w.edit('p', annotated({ a: 'b' }));
    w.delete('p');
    expect(signal.aborted).toBe(false);
    w.edit('p', annotated({ [FORCE_DELETE_ANNOTATION]: 'true' }));
    expect(signal.aborted).toBe(true);
    await ended;
  });
});

describe('a Cluster', () => {
  it('wakes its objects when it is unpaused, deleted or made anew, not otherwise', () => {
    const { w, asked } = listening(world());
    w.addCluster('c1', { paused: true });
    expect(asked).toEqual([]);
    w.addCluster('c1', { paused: false });
    w.addCluster('c1', { paused: false });
    expect(asked).toEqual(['fleet/c1 p user']);
    w.clusters.remove('fleet', 'c1');
    w.addCluster('c1');
    expect(asked).toHaveLength(3);
  });
});

describe('the fleet', () => {
  const failing = (attempt: number, code: string): ClusterState => ({
    phase: 'connecting',
    attempt,
    lastError: { code, message: `attempt ${attempt}` },
  });

  it('wakes the objects of a cluster that is engaged', () => {
    const { w, asked, sources } = listening(world());
    sources.engaged(w.fleet.get(C1));
    expect(asked).toEqual(['fleet/c1 p user']);
  });

  it('and, for their conditions, of one that is not, once per reason', () => {
    const { asked, sources } = listening(world());
    sources.changed(C1, { phase: 'connecting', attempt: 1 });
    expect(asked).toEqual([]);
    sources.changed(C1, failing(2, 'Unreachable'));
    sources.changed(C1, failing(3, 'Unreachable'));
    expect(asked).toHaveLength(1);
    sources.changed(C1, failing(4, 'Unauthorized'));
    expect(asked).toHaveLength(2);
    sources.changed(C1, { phase: 'disengaged', reason: 'gone' });
    expect(asked).toHaveLength(3);
  });

  it('closes the reader of an engagement that ended, and not its successor’s', async () => {
    const { w, sources } = listening(world());
    const first = w.fleet.get(C1);
    await w.reconcile('p');
    const second = w.addCluster('c1');
    await w.reconcile('p');
    expect(w.storage(C1).readers).toBe(1);
    sources.disengaged(first);
    expect(w.storage(C1).readers).toBe(1);
    sources.disengaged(second);
    expect(w.storage(C1).readers).toBe(0);
  });
});

describe('storage', () => {
  it('wakes the object whose release somebody else changed', async () => {
    const { w, asked } = listening(world());
    await w.reconcile('p');
    w.storage(C1).tell(KEY);
    expect(asked).toEqual([]);
    w.storage(C1).put(KEY, { status: 'deployed', revision: 2 });
    expect(asked).toEqual(['fleet/c1 p drift']);
  });

  it('is not what wakes an object for which an upgrade is wanted', () => {
    const { w, asked } = listening(world());
    w.parts.memories.wantUpgrade(w.proxy('p'), 'objects differ');
    expect(asked).toEqual(['fleet/c1 p drift']);
  });

  it('does not wake one that is handed off', async () => {
    const w = new World();
    w.addCluster('c1');
    w.addProxy(
      'p',
      { reconcileStrategy: 'InstallOnce' },
      { metadata: { annotations: { [INSTALLED_ANNOTATION]: '' } } },
    );
    const { asked, sources } = listening(w);
    const reader = w.storage(C1).reader();
    sources.storageChanged(w.fleet.get(C1), reader, KEY);
    expect(asked).toEqual([]);
  });
});

it('hears nothing any more once it was told to stop', () => {
  const { w, asked, deaf } = listening(world());
  deaf();
  w.addProxy('q');
  w.addCluster('c1', { paused: true });
  expect(asked).toEqual([]);
  expect(w.fleet.awares.size).toBe(0);
});
