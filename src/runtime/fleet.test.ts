import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { clusterName, LOCAL_CLUSTER } from './cluster-name.ts';
import { ClusterGoneError, ClusterNotConnectedError, ClusterNotFoundError } from './errors.ts';
import { BROKEN_SPEC, FakeFactory, metricValues, specOf, testTelemetry } from './fakes.test-support.ts';
import { SupervisedFleet } from './fleet.ts';
import type { Aware, Cluster, ClusterSink, ClusterState, Provider } from './types.ts';

const a = clusterName('ns/a');

interface Setup {
  readonly fleet: SupervisedFleet;
  readonly factory: FakeFactory;
  readonly sink: ClusterSink;
  readonly provider: Provider & { refreshed: string[]; onRefresh: () => void };
  readonly told: string[];
  readonly log: ReturnType<typeof testTelemetry>['log'];
  readonly telemetry: ReturnType<typeof testTelemetry>['telemetry'];
  /** What the fleet runs until. */
  readonly signal: AbortSignal;
  readonly stop: () => Promise<void>;
}

function setup(): Setup {
  const { telemetry, log } = testTelemetry();
  const factory = new FakeFactory();
  // random = 0.5: no jitter on periods, half of each back-off's ceiling.
  const fleet = new SupervisedFleet({ factory, telemetry, random: () => 0.5 });
  const refreshed: string[] = [];
  const provider = {
    name: 'test',
    run: async () => undefined,
    refresh: (name: string) => {
      refreshed.push(name);
      provider.onRefresh();
    },
    refreshed,
    onRefresh: () => undefined,
  };
  const told: string[] = [];
  fleet.register(scribe(told));
  const end = new AbortController();
  const run = fleet.run(end.signal);
  const stop = async (): Promise<void> => {
    end.abort();
    await vi.advanceTimersByTimeAsync(0);
    await run;
  };
  return { fleet, factory, sink: fleet.sink(provider), provider, told, log, telemetry, signal: end.signal, stop };
}

function scribe(told: string[]): Aware {
  return {
    engaged: ({ name }) => told.push(`engaged ${name}`),
    degraded: ({ name }) => told.push(`degraded ${name}`),
    disengaged: ({ name, signal }) => told.push(`disengaged ${name}${signal.aborted ? '' : ' but not aborted'}`),
  };
}

const after = async (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

function engagedCluster(state: ClusterState | undefined): Cluster {
  if (state?.phase !== 'engaged') throw new Error(`expected engaged, is ${state?.phase ?? 'unknown'}`);
  return state.cluster;
}

let t: Setup;
beforeEach(() => {
  vi.useFakeTimers();
  t = setup();
});
afterEach(async () => {
  await t.stop();
  expect(t.factory.open_).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe('a cluster engages', () => {
  it('as soon as it answers, and is handed out', async () => {
    t.sink.engage(a, specOf('a'));
    expect(t.fleet.state(a)).toEqual({ phase: 'connecting', attempt: 1 });
    expect(() => t.fleet.get(a)).toThrow(ClusterNotConnectedError);
    await after(0);
    expect(t.fleet.get(a)).toMatchObject({ name: a, degraded: false, uid: t.factory.server('a').uid });
    expect(t.told).toEqual(['engaged ns/a']);
  });

  it('after retries with back-off when it refuses at first, and says why meanwhile', async () => {
    t.factory.server('a').mode = 'refuses';
    t.sink.engage(a, specOf('a'));
    await after(0);
    expect(t.fleet.state(a)).toMatchObject({ phase: 'connecting', attempt: 2, lastError: { code: 'Unreachable' } });
    await after(120_000);
    // Half of 1, 2, 4, 8, 16, 30, 30 … s.
    expect(t.factory.server('a').probes).toBe(12);
    expect(t.log.of('cannot be connected to; it is tried again')).toHaveLength(1);
    t.factory.server('a').mode = 'ok';
    await after(15_000);
    expect(t.told).toEqual(['engaged ns/a']);
  });

  it('is unknown before any declaration and after the last', async () => {
    expect(() => t.fleet.get(a)).toThrow(ClusterNotFoundError);
    t.sink.engage(a, specOf('a'));
    await after(0);
    t.sink.disengage(a, 'deleted');
    expect(() => t.fleet.get(a)).toThrow(ClusterNotFoundError);
    expect(t.fleet.states().size).toBe(0);
  });

  it('only with a connection: discovered carries the reason, and a spec then connects at once', async () => {
    t.sink.discover(a, { code: 'KubeconfigUnavailable', message: 'Secret ns/a-kubeconfig is missing' });
    await after(60_000);
    expect(() => t.fleet.get(a)).toThrow('Secret ns/a-kubeconfig is missing');
    t.sink.engage(a, specOf('a'));
    await after(0);
    expect(t.told).toEqual(['engaged ns/a']);
  });

  it('not while its kubeconfig cannot be used; a mended one is taken at once', async () => {
    t.sink.engage(a, BROKEN_SPEC);
    await after(300_000);
    expect(t.fleet.state(a)).toMatchObject({ phase: 'connecting', lastError: { code: 'KubeconfigInvalid' } });
    t.sink.engage(a, specOf('a'));
    await after(0);
    expect(t.told).toEqual(['engaged ns/a']);
  });

  it('though another hangs: nine healthy ones beside one that never answers', async () => {
    t.factory.server('s0').mode = 'hangs';
    for (let i = 0; i < 10; i += 1) t.sink.engage(clusterName(`ns/c${i}`), specOf(`s${i}`));
    await after(0);
    expect(t.told).toHaveLength(9);
    expect(t.told).not.toContain('engaged ns/c0');
    await after(60_000);
    expect(t.fleet.state(clusterName('ns/c0'))).toMatchObject({
      phase: 'connecting',
      lastError: { code: 'Unreachable' },
    });
    expect(t.told).toHaveLength(9);
  });

  it('though hundreds hang before it in the row', async () => {
    for (let i = 0; i < 120; i += 1) {
      t.factory.server(`dead${i}`).mode = 'hangs';
      t.sink.engage(clusterName(`ns/dead${i}`), specOf(`dead${i}`));
    }
    await after(0);
    t.sink.engage(a, specOf('a'));
    // 50 at a time and 10 s each: its first attempt goes before their second ones.
    await after(30_000);
    expect(t.told).toEqual(['engaged ns/a']);
  });
});

describe('probes', () => {
  it('degrade a cluster after five failures in a row, and engage the same object again', async () => {
    t.sink.engage(a, specOf('a'));
    await after(0);
    const cluster = t.fleet.get(a);
    t.factory.server('a').mode = 'hangs';
    await after(4 * 15_000);
    expect(t.fleet.state(a)?.phase).toBe('engaged');
    await after(15_000);
    expect(t.fleet.state(a)).toMatchObject({ phase: 'degraded', reason: { code: 'Unreachable' } });
    expect(cluster.degraded).toBe(true);
    expect(cluster.signal.aborted).toBe(false);
    expect(() => t.fleet.get(a)).toThrow(ClusterNotConnectedError);
    t.factory.server('a').mode = 'ok';
    await after(15_000);
    expect(t.fleet.get(a)).toBe(cluster);
    expect(cluster.degraded).toBe(false);
    expect(t.told).toEqual(['engaged ns/a', 'degraded ns/a', 'engaged ns/a']);
  });

  it('that fail now and then degrade nothing', async () => {
    t.sink.engage(a, specOf('a'));
    await after(0);
    for (let i = 0; i < 10; i += 1) {
      t.factory.server('a').mode = 'refuses';
      await after(40_000);
      t.factory.server('a').mode = 'ok';
      await after(10_000);
    }
    expect(t.told).toEqual(['engaged ns/a']);
  });

  it('drop the sockets of a connection that does not answer', async () => {
    t.sink.engage(a, specOf('a'));
    await after(0);
    t.factory.server('a').mode = 'hangs';
    await after(2 * 15_000);
    expect(t.factory.open_.map((connection) => connection.resets)).toEqual([1]);
  });

  it('notice another cluster behind the same address: it is another engagement', async () => {
    t.sink.engage(a, specOf('a'));
    await after(0);
    const before = t.fleet.get(a);
    t.factory.server('a').uid = 'another';
    await after(10_000);
    const now = t.fleet.get(a);
    expect(now).not.toBe(before);
    expect(now.uid).toBe('another');
    expect(before.signal.reason).toBeInstanceOf(ClusterGoneError);
    expect(t.told).toEqual(['engaged ns/a', 'disengaged ns/a', 'engaged ns/a']);
  });

  it('do without the UID where it may not be read, and learn it later', async () => {
    const server = t.factory.server('a');
    const { uid } = server;
    server.uid = undefined;
    t.sink.engage(a, specOf('a'));
    await after(0);
    const cluster = t.fleet.get(a);
    expect(cluster.uid).toBeUndefined();
    server.uid = uid;
    await after(10_000);
    expect(t.fleet.get(a)).toBe(cluster);
    expect(cluster.uid).toBe(uid);
  });
});

describe('rotation', () => {
  beforeEach(async () => {
    t.sink.engage(a, specOf('a'));
    await after(0);
  });

  it('of credentials swaps in place: same object, nobody is told', async () => {
    const cluster = t.fleet.get(a);
    t.factory.server('a').tokens.add('next');
    t.sink.engage(a, specOf('a', 'next'));
    await after(0);
    expect(t.fleet.get(a)).toBe(cluster);
    expect(cluster.kubeconfig()).toBe('next');
    expect(t.told).toEqual(['engaged ns/a']);
    expect(t.factory.open_).toHaveLength(1);
  });

  it('to a bad kubeconfig leaves the old one in service and says so, until a good one comes', async () => {
    const cluster = t.fleet.get(a);
    t.sink.engage(a, specOf('a', 'bad'));
    await after(0);
    expect(engagedCluster(t.fleet.state(a))).toBe(cluster);
    expect(t.fleet.state(a)).toMatchObject({ warning: expect.stringContaining('Unauthorized') as string });
    expect(cluster.kubeconfig()).toBe('good');
    await after(60_000);
    expect(t.factory.open_).toHaveLength(1);
    t.factory.server('a').tokens.add('next');
    t.sink.engage(a, specOf('a', 'next'));
    await after(0);
    expect(t.fleet.state(a)).toEqual({ phase: 'engaged', cluster });
    expect(cluster.kubeconfig()).toBe('next');
    expect(t.told).toEqual(['engaged ns/a']);
  });

  it('to a kubeconfig that becomes good later is taken then', async () => {
    t.sink.engage(a, specOf('a', 'later'));
    await after(5_000);
    expect(t.fleet.get(a).kubeconfig()).toBe('good');
    t.factory.server('a').tokens.add('later');
    await after(30_000);
    expect(t.fleet.get(a).kubeconfig()).toBe('later');
  });

  it('to something that is no kubeconfig warns and changes nothing', async () => {
    t.sink.engage(a, BROKEN_SPEC);
    await after(60_000);
    expect(t.fleet.state(a)).toMatchObject({ phase: 'engaged', warning: expect.stringContaining('no YAML') as string });
    t.sink.engage(a, specOf('a'));
    await after(0);
    expect(engagedCluster(t.fleet.state(a)).kubeconfig()).toBe('good');
    expect(t.fleet.state(a)).not.toHaveProperty('warning');
  });

  it('to another server engages the new one first, then ends the old', async () => {
    const before = t.fleet.get(a);
    t.factory.server('b').mode = 'refuses';
    t.sink.engage(a, specOf('b'));
    await after(20_000);
    expect(engagedCluster(t.fleet.state(a))).toBe(before);
    expect(t.fleet.state(a)).toHaveProperty('warning');
    t.factory.server('b').mode = 'ok';
    await after(20_000);
    expect(t.fleet.get(a)).not.toBe(before);
    expect(before.signal.aborted).toBe(true);
    expect(t.told).toEqual(['engaged ns/a', 'disengaged ns/a', 'engaged ns/a']);
    await after(5_000);
    expect(t.factory.open_).toHaveLength(1);
  });

  it('to another CA is another connection too', async () => {
    t.sink.engage(a, specOf('a', 'good', 'new-ca'));
    await after(0);
    expect(t.told).toEqual(['engaged ns/a', 'disengaged ns/a', 'engaged ns/a']);
  });

  it('to the same spec is nothing', async () => {
    const { probes } = t.factory.server('a');
    t.sink.engage(a, specOf('a'));
    await after(0);
    expect(t.factory.server('a').probes).toBe(probes);
  });

  it('that the provider takes back for now leaves the cluster in service, with a warning', async () => {
    const cluster = t.fleet.get(a);
    t.sink.discover(a, { code: 'KubeconfigUnavailable', message: 'Secret is missing' });
    await after(60_000);
    expect(t.fleet.state(a)).toEqual({ phase: 'engaged', cluster, warning: 'Secret is missing' });
    t.sink.engage(a, specOf('a'));
    expect(t.fleet.state(a)).toEqual({ phase: 'engaged', cluster });
  });
});

describe('a 401', () => {
  beforeEach(async () => {
    t.sink.engage(a, specOf('a'));
    await after(0);
    t.factory.server('a').tokens.clear();
    t.factory.server('a').tokens.add('next');
  });

  it('on a probe has the credentials read again at once, and the fresh ones are swapped in', async () => {
    const cluster = t.fleet.get(a);
    await after(10_000);
    expect(t.provider.refreshed).toEqual(['ns/a']);
    t.sink.engage(a, specOf('a', 'next'));
    await after(0);
    expect(cluster.kubeconfig()).toBe('next');
    expect(t.told).toEqual(['engaged ns/a']);
  });

  it('on a call waits for the fresh credentials and is then worth another try', async () => {
    const waits = t.factory.open_[0]!.hooks!.onUnauthorized(new AbortController().signal);
    await after(0);
    expect(t.provider.refreshed).toEqual(['ns/a']);
    t.sink.engage(a, specOf('a', 'next'));
    await after(0);
    await expect(waits).resolves.toBe(true);
  });

  it('on a call is not tried again when the credentials read are the same', async () => {
    const waits = t.factory.open_[0]!.hooks!.onUnauthorized(new AbortController().signal);
    await after(0);
    t.sink.engage(a, specOf('a'));
    await expect(waits).resolves.toBe(false);
  });

  it('on many calls at once reads the credentials once', async () => {
    const { hooks } = t.factory.open_[0]!;
    const limit = new AbortController();
    const waits = Array.from({ length: 15 }, async () => hooks!.onUnauthorized(limit.signal));
    await after(100);
    expect(t.provider.refreshed).toEqual(['ns/a']);
    limit.abort();
    await expect(Promise.all(waits)).resolves.toEqual(Array<boolean>(15).fill(false));
  });

  it('that stays makes the cluster degraded within seconds, and fresh credentials bring it back', async () => {
    // The probe at 10 s, another 2 s later, and its wait for an answer that never comes.
    await after(10_000 + 2_000 + 2_500);
    expect(t.fleet.state(a)).toMatchObject({ phase: 'degraded', reason: { code: 'Unauthorized' } });
    t.sink.engage(a, specOf('a', 'next'));
    await after(0);
    expect(t.fleet.state(a)?.phase).toBe('engaged');
  });

  it('that stays makes it degraded the sooner when the credentials read again are the same', async () => {
    t.provider.onRefresh = () => t.sink.engage(a, specOf('a'));
    await after(10_000 + 2_000);
    expect(t.fleet.state(a)).toMatchObject({ phase: 'degraded', reason: { code: 'Unauthorized' } });
    expect(t.provider.refreshed).toHaveLength(2);
  });

  it('on the old credentials lets the new ones in although the server cannot be asked just now', async () => {
    t.sink.engage(a, specOf('a', 'bad'));
    await after(10_000);
    expect(t.fleet.get(a).kubeconfig()).toBe('bad');
  });
});

describe('disengaging', () => {
  it('aborts the signal at once and closes the sockets after a grace', async () => {
    t.sink.engage(a, specOf('a'));
    await after(0);
    const { signal } = t.fleet.get(a);
    t.sink.disengage(a, 'its Cluster was deleted');
    expect(signal.reason).toBeInstanceOf(ClusterGoneError);
    expect(t.told).toEqual(['engaged ns/a', 'disengaged ns/a']);
    await after(4_999);
    expect(t.factory.open_).toHaveLength(1);
    await after(1);
    expect(t.factory.open_).toHaveLength(0);
  });

  it('of a replaced cluster never removes its successor', async () => {
    t.sink.engage(a, specOf('a'));
    await after(0);
    const before = t.fleet.get(a);
    t.sink.disengage(a, 'deleted');
    t.sink.engage(a, specOf('b'));
    await after(0);
    const successor = t.fleet.get(a);
    expect(successor).not.toBe(before);
    await after(60_000);
    expect(t.fleet.get(a)).toBe(successor);
    expect(successor.signal.aborted).toBe(false);
    expect(t.factory.open_).toHaveLength(1);
  });

  it('while it connects ends the attempt', async () => {
    t.factory.server('a').mode = 'hangs';
    t.sink.engage(a, specOf('a'));
    await after(100);
    t.sink.disengage(a, 'deleted');
    await after(0);
    expect(t.factory.open_).toHaveLength(0);
    expect(t.told).toEqual([]);
  });

  it('and engaging a hundred times leaves nothing behind', async () => {
    for (let round = 0; round < 100; round += 1) {
      t.sink.engage(a, specOf('a'));
      await after(25_000);
      const { signal } = t.fleet.get(a);
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
      t.sink.disengage(a, 'deleted');
      await after(10_000);
    }
    expect(t.told).toHaveLength(200);
    expect(t.factory.open_).toHaveLength(0);
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(t.signal, 'abort')).toHaveLength(1);
    expect(t.fleet.states().size).toBe(0);
    expect(Object.keys(await metricValues(t.telemetry, 'capstan_cluster_transitions_total'))).toEqual([]);
  });
});

describe('parties', () => {
  it('that come late are told of what is in service', async () => {
    t.sink.engage(a, specOf('a'));
    t.sink.engage(clusterName('ns/b'), specOf('b'));
    await after(0);
    t.factory.server('b').mode = 'refuses';
    await after(60_000);
    const told: string[] = [];
    t.fleet.register(scribe(told));
    expect(told).toEqual(['engaged ns/a', 'engaged ns/b', 'degraded ns/b']);
  });

  it('that leave are told nothing more, and only they', async () => {
    const told: string[] = [];
    const party = scribe(told);
    const leave = t.fleet.register(party);
    t.fleet.register(party);
    leave();
    leave();
    t.sink.engage(a, specOf('a'));
    await after(0);
    expect(told).toEqual(['engaged ns/a']);
  });

  it('that throw are logged, and the others are told all the same', async () => {
    t.fleet.register({
      engaged: () => {
        throw new Error('boom');
      },
    });
    const told: string[] = [];
    t.fleet.register(scribe(told));
    t.sink.engage(a, specOf('a'));
    await after(0);
    expect(told).toEqual(['engaged ns/a']);
    expect(t.log.of('boom')).toHaveLength(1);
  });

  it('hear of every change, also of clusters that never engaged', async () => {
    const phases: string[] = [];
    t.fleet.register({ changed: (name, { phase }) => phases.push(`${name} ${phase}`) });
    t.sink.discover(a, { code: 'X', message: 'x' });
    t.sink.disengage(a, 'deleted');
    expect(phases).toEqual(['ns/a discovered', 'ns/a disengaged']);
  });

  it('find the cluster in the fleet when they are told that it is engaged', async () => {
    const found: boolean[] = [];
    t.fleet.register({ engaged: (cluster) => found.push(t.fleet.get(cluster.name) === cluster) });
    t.sink.engage(a, specOf('a'));
    await after(0);
    expect(found).toEqual([true]);
  });
});

describe('declarations', () => {
  it('of a name that another provider has are refused', async () => {
    const other = t.fleet.sink({ name: 'other', run: async () => undefined });
    t.sink.engage(a, specOf('a'));
    await after(0);
    other.engage(a, specOf('b'));
    other.disengage(a, 'mine?');
    await after(0);
    expect(t.fleet.get(a).signal.aborted).toBe(false);
    expect(t.log.of('the name is taken')).toHaveLength(1);
  });

  it('of the management cluster are refused', async () => {
    t.sink.engage(LOCAL_CLUSTER, specOf('a'));
    await after(0);
    expect(() => t.fleet.get(LOCAL_CLUSTER)).toThrow(ClusterNotFoundError);
  });

  it('of several providers are kept apart by a prefix, and a refresh names the cluster as its provider does', async () => {
    const refreshed: string[] = [];
    const other = { name: 'other', run: async () => undefined, refresh: (name: string) => void refreshed.push(name) };
    t.fleet.sink(other, { prefix: true }).engage(a, specOf('b', 'bad'));
    t.sink.engage(a, specOf('a'));
    await after(0);
    expect([...t.fleet.states().keys()]).toEqual(['other#ns/a', 'ns/a']);
    expect(refreshed).toEqual(['ns/a']);
  });

  it('are counted by phase', async () => {
    t.sink.engage(a, specOf('a'));
    t.sink.discover(clusterName('ns/b'), { code: 'X', message: 'x' });
    await after(0);
    expect(await metricValues(t.telemetry, 'capstan_clusters')).toEqual({
      '{"phase":"discovered"}': 1,
      '{"phase":"connecting"}': 0,
      '{"phase":"engaged"}': 1,
      '{"phase":"degraded"}': 0,
    });
  });
});
