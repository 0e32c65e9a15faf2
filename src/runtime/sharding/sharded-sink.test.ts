import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { clusterName } from '../cluster-name.ts';
import { ClusterNotConnectedError, ClusterNotFoundError } from '../errors.ts';
import { FakeFactory, metricValues, specOf, testTelemetry } from '../fakes.test-support.ts';
import { SupervisedFleet } from '../fleet.ts';
import type { ClusterName, ClusterSink, Provider } from '../types.ts';
import { FakeShards } from './fake-shards.test-support.ts';

const [a, b] = [clusterName('ns/a'), clusterName('ns/b')];
const tick = async (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

let shards: FakeShards;
let fleet: SupervisedFleet;
let factory: FakeFactory;
let sink: ClusterSink;
let told: string[];
let telemetry: ReturnType<typeof testTelemetry>['telemetry'];
let end: AbortController;
let done: Promise<void>;
const provider: Provider & { refreshed: string[] } = {
  name: 'test',
  run: async () => Promise.resolve(),
  refreshed: [],
  refresh: (name) => void provider.refreshed.push(name),
};

beforeEach(() => {
  vi.useFakeTimers();
  shards = new FakeShards(a);
  ({ telemetry } = testTelemetry());
  factory = new FakeFactory();
  fleet = new SupervisedFleet({ factory, telemetry, shards, random: () => 0.5 });
  told = [];
  fleet.register({
    engaged: ({ name }) => told.push(`engaged ${name}`),
    disengaged: ({ name, signal }, reason) => told.push(`disengaged ${name} ${String(signal.aborted)}: ${reason}`),
  });
  end = new AbortController();
  done = fleet.run(end.signal);
  sink = fleet.sink(provider);
});

afterEach(async () => {
  end.abort();
  await tick(10_000);
  await done;
  vi.useRealTimers();
});

function errorOf(name: ClusterName): unknown {
  try {
    fleet.get(name);
    return undefined;
  } catch (error) {
    return error;
  }
}

describe('a fleet whose clusters are shared among replicas', () => {
  it('engages what it serves, and knows of all', async () => {
    sink.engage(a, specOf('one'), { labels: { env: 'prod' } });
    sink.engage(b, specOf('two'), { labels: { env: 'test' } });
    await tick();
    expect(told).toEqual([`engaged ${a}`]);
    expect(fleet.get(a).name).toBe(a);
    expect(errorOf(b)).toBeInstanceOf(ClusterNotConnectedError);
    expect(errorOf(b)).toMatchObject({ reason: { code: 'NotMyShard' } });
    expect(fleet.records.list().map(({ name, labels }) => [name, labels.env])).toEqual([
      [a, 'prod'],
      [b, 'test'],
    ]);
    expect(await metricValues(telemetry, 'capstan_shard_clusters')).toEqual({ '{}': 1 });
  });

  it('takes over what was declared long ago, as it was declared last', async () => {
    sink.engage(b, specOf('old'));
    sink.engage(b, specOf('new'));
    sink.discover(clusterName('ns/c'), { code: 'ControlPlaneNotReady', message: 'not yet' });
    await tick();
    shards.take(b, clusterName('ns/c'));
    await tick();
    expect(told).toEqual([`engaged ${b}`]);
    expect(factory.open_.map(({ identity }) => identity)).toEqual([expect.stringContaining('new')]);
    expect(errorOf(clusterName('ns/c'))).toMatchObject({ reason: { code: 'ControlPlaneNotReady' } });
  });

  it('lets go of what another replica serves, and takes it back', async () => {
    sink.engage(a, specOf('one'));
    await tick();
    shards.lose(a);
    await tick();
    expect(told).toEqual([`engaged ${a}`, `disengaged ${a} true: another replica serves it`]);
    expect(fleet.records.get(a)).toBeDefined();
    await tick(10_000);
    expect(factory.open_).toEqual([]);
    shards.take(a);
    await tick();
    expect(told.at(-1)).toBe(`engaged ${a}`);
    expect(await metricValues(telemetry, 'capstan_shard_handovers_total')).toEqual({
      '{"direction":"in"}': 2,
      '{"direction":"out"}': 1,
    });
  });

  it('keeps the connection while the cluster is handed over', async () => {
    sink.engage(a, specOf('one'));
    await tick();
    shards.leave(a);
    await tick();
    expect(fleet.get(a).signal.aborted).toBe(false);
    expect(told).toEqual([`engaged ${a}`]);
  });

  it('hands out no cluster once the fence is lost by the clock, before anybody is told', async () => {
    sink.engage(a, specOf('one'));
    await tick();
    shards.fence = false;
    expect(errorOf(a)).toMatchObject({ reason: { code: 'NotMyShard' } });
  });

  it('forgets a cluster that nobody declares any more, whoever serves it', async () => {
    sink.engage(b, specOf('two'));
    sink.disengage(b, 'deleted');
    expect(fleet.records.get(b)).toBeUndefined();
    shards.take(b);
    await tick();
    expect(told).toEqual([]);
    expect(errorOf(b)).toBeInstanceOf(ClusterNotFoundError);
  });

  it('does not take a cluster for gone that it serves and has not begun to connect to', () => {
    shards.fence = false;
    sink.engage(a, specOf('one'));
    shards.fence = true;
    expect(errorOf(a)).toMatchObject({ reason: { code: 'Connecting' } });
  });

  it('lets the first provider have a name, also one that another replica serves', async () => {
    const second = fleet.sink({ name: 'second', run: async () => Promise.resolve() });
    sink.engage(b, specOf('first'));
    second.engage(b, specOf('second'));
    second.disengage(b, 'not its own');
    shards.take(b);
    await tick();
    expect(fleet.records.get(b)?.provider).toBe('test');
    expect(factory.open_.map(({ identity }) => identity)).toEqual([expect.stringContaining('first')]);
  });

  it('asks a cluster that another replica serves who it is, on a connection that it closes', async () => {
    sink.engage(b, specOf('two'));
    await expect(fleet.identify(b, end.signal)).resolves.toBe(factory.server('two').uid);
    factory.server('two').mode = 'refuses';
    await expect(fleet.identify(b, end.signal)).rejects.toMatchObject({ reason: { code: 'Unreachable' } });
    expect(factory.open_).toEqual([]);
    expect(told).toEqual([]);
    await expect(fleet.identify(clusterName('ns/nobody'), end.signal)).rejects.toBeInstanceOf(ClusterNotConnectedError);
  });

  it('shares by the full names of clusters, and asks providers by their own', async () => {
    const full = clusterName('test#ns/x');
    const several = fleet.sink(provider, { prefix: true });
    shards.take(full);
    factory.server('one').tokens.clear();
    several.engage(clusterName('ns/x'), specOf('one'));
    await tick(100);
    expect(provider.refreshed).toContain('ns/x');
    factory.server('one').tokens.add('good');
    await tick(10_000);
    expect(told).toContain(`engaged ${full}`);
  });
});
