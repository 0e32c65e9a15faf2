import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CurrentPermit, LOCAL_CLUSTER } from '../../runtime/index.ts';
import { FakeShards } from '../../runtime/sharding/fake-shards.test-support.ts';
import { World } from './world.test-support.ts';

let w: World;
let shards: FakeShards;

beforeEach(() => {
  vi.useFakeTimers();
  shards = new FakeShards();
  w = new World();
  w.sharding = { shards, current: new CurrentPermit() };
});

afterEach(async () => {
  await w.stop();
  vi.useRealTimers();
});

const placed = (): number => w.proxies().length;

describe('one of several replicas', () => {
  it('places nothing while another has the management cluster, and everything as soon as it has it itself', async () => {
    await w.startTwo();
    await w.resync();
    expect(w.server.writes).toEqual([]);
    shards.take(LOCAL_CLUSTER);
    await w.settle();
    expect(placed()).toBe(2);
    expect(w.chartProxy()?.status?.conditions).toBeDefined();
  });

  it('writes nothing more once another has it, and begins anew when it comes back', async () => {
    shards.take(LOCAL_CLUSTER);
    await w.startTwo({ valuesTemplate: 'name: {{.Cluster.metadata.name}}' });
    expect(placed()).toBe(2);
    shards.lose(LOCAL_CLUSTER);
    await w.settle();
    const before = w.server.writes.length;
    await w.editChartProxy((object) => {
      object.spec.version = '2.0.0';
    });
    await w.resync();
    expect(w.server.writes).toHaveLength(before);
    shards.take(LOCAL_CLUSTER);
    await w.settle();
    expect(w.proxies().map(({ spec }) => spec.version)).toEqual(['2.0.0', '2.0.0']);
  });

  it('works under the permit of the management cluster, whatever cluster a placement is for', async () => {
    shards.take(LOCAL_CLUSTER);
    const permits: (string | undefined)[] = [];
    w.server.fail = (verb) => {
      if (verb === 'create') permits.push(w.sharding?.current.get()?.cluster);
    };
    await w.startTwo();
    expect(permits).toEqual([LOCAL_CLUSTER, LOCAL_CLUSTER]);
  });
});
