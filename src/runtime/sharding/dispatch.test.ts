import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { clusterName, LOCAL_CLUSTER } from '../cluster-name.ts';
import { Controller } from '../controller.ts';
import { ShardLostError } from '../errors.ts';
import { metricValues, testTelemetry } from '../fakes.test-support.ts';
import type { ReconcileContext, Request, Result } from '../types.ts';
import { CurrentPermit } from './current-permit.ts';
import type { ShardedWork } from './dispatch.ts';
import { FakeShards } from './fake-shards.test-support.ts';

const [a, b] = [clusterName('ns/a'), clusterName('ns/b')];
const request = (name: string, cluster = a): Request => ({ cluster, namespace: 'ns', name });
const tick = async (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

let shards: FakeShards;
let current: CurrentPermit;
let end: AbortController;

beforeEach(() => {
  vi.useFakeTimers();
  shards = new FakeShards();
  current = new CurrentPermit();
  end = new AbortController();
});

afterEach(() => {
  vi.useRealTimers();
});

type Handler = (work: Request, context: ReconcileContext) => Promise<Result>;

function setup(handler: Handler = async () => Promise.resolve({}), work: Partial<ShardedWork> = {}) {
  const { telemetry, log } = testTelemetry();
  const ran: string[] = [];
  const controller = new Controller({
    name: 'test',
    telemetry,
    random: () => 0.5,
    sharding: { shards, current, ...work },
    reconciler: {
      reconcile: async (asked, context) => {
        ran.push(asked.name);
        return handler(asked, context);
      },
    },
  });
  return { controller, ran, log, telemetry, done: controller.run(end.signal) };
}

async function untilAborted({ signal }: ReconcileContext): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

describe('a controller among several replicas', () => {
  it('keeps what another replica holds, and does it as soon as it holds the cluster itself', async () => {
    shards.take(b);
    const { controller, ran } = setup();
    controller.enqueue(request('one'));
    controller.enqueue(request('one'));
    controller.enqueue(request('two', b));
    await tick();
    expect(ran).toEqual(['two']);
    shards.take(a);
    await tick();
    expect(ran).toEqual(['two', 'one']);
  });

  it('keeps what was queued while the cluster went away', async () => {
    shards.take(a);
    const { controller, ran } = setup();
    controller.enqueue(request('later'), { afterMs: 1_000 });
    await tick();
    shards.lose(a);
    await tick(2_000);
    expect(ran).toEqual([]);
    shards.take(a);
    await tick();
    expect(ran).toEqual(['later']);
  });

  it('lets what runs end during a hand-over, and begins nothing new', async () => {
    shards.take(a);
    let finish: () => void = () => undefined;
    const { controller, ran, telemetry } = setup(async () => {
      await new Promise<void>((resolve) => (finish = resolve));
      return {};
    });
    controller.enqueue(request('one'));
    await tick();
    shards.leave(a);
    controller.enqueue(request('two'));
    await tick();
    expect(ran).toEqual(['one']);
    expect(shards.permits.size).toBe(1);
    finish();
    await tick();
    expect(shards.permits.size).toBe(0);
    expect(await metricValues(telemetry, 'controller_runtime_reconcile_total')).toEqual({
      '{"controller":"test","result":"success","cluster":"ns/a"}': 1,
    });
  });

  it('aborts what runs when the fence is lost, and blames nobody for it', async () => {
    shards.take(a);
    const reasons: unknown[] = [];
    const { controller, ran, log, telemetry } = setup(async (_work, context) => {
      if (ran.length > 1) return {};
      return untilAborted(context).catch((error: unknown) => {
        reasons.push(error);
        throw error;
      });
    });
    controller.enqueue(request('one'));
    await tick();
    shards.lose(a);
    await tick(60_000);
    expect(reasons).toEqual([expect.any(ShardLostError)]);
    expect(ran).toEqual(['one']);
    expect([...log.of('warn '), ...log.of('error ')]).toEqual([]);
    expect(await metricValues(telemetry, 'controller_runtime_reconcile_errors_total')).toEqual({});
    shards.take(a);
    await tick();
    expect(ran).toEqual(['one', 'one']);
  });

  it('counts no success that came when the fence was lost by the clock: it is looked at again', async () => {
    shards.take(a);
    const { controller, ran } = setup(async () => {
      shards.fence = ran.length > 1;
      return Promise.resolve({});
    });
    controller.enqueue(request('one'));
    await tick();
    expect(ran).toEqual(['one']);
    shards.fence = true;
    shards.tell();
    await tick();
    expect(ran).toEqual(['one', 'one']);
  });

  it('does fleet-wide work under one name, whatever cluster a request is for', async () => {
    shards.take(a);
    const { controller, ran } = setup(undefined, { shardOf: () => LOCAL_CLUSTER });
    controller.enqueue(request('one'));
    await tick();
    expect(ran).toEqual([]);
    shards.take(LOCAL_CLUSTER);
    await tick();
    expect(ran).toEqual(['one']);
  });

  it('tells the work, and what it begins, its permit', async () => {
    shards.take(a);
    const seen: unknown[] = [];
    const { controller } = setup(async () => {
      await Promise.resolve();
      seen.push(current.get()?.cluster);
      return {};
    });
    controller.enqueue(request('one'));
    await tick();
    expect(seen).toEqual([a]);
    expect(current.get()).toBeUndefined();
  });

  it('keeps nothing of what is gone for good', async () => {
    const gone = new Set<string>();
    const { controller, ran } = setup(undefined, { isMoot: ({ name }) => gone.has(name) });
    for (let i = 0; i < 999; i += 1) {
      controller.enqueue(request(`old-${i}`));
      gone.add(`old-${i}`);
    }
    controller.enqueue(request('new'));
    shards.take(a);
    await tick();
    expect(ran).toEqual(['new']);
  });

  it('listens no longer than it runs', async () => {
    const { done } = setup();
    expect(shards.listeners).toBe(1);
    end.abort();
    await tick();
    await done;
    expect(shards.listeners).toBe(0);
  });
});
