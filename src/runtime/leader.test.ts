import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { NetworkError } from '../kube/index.ts';
import type { KubeObject, Resource } from '../kube/index.ts';
import { LeadershipLostError } from './errors.ts';
import { FakeStore, metricValues, testTelemetry } from './fakes.test-support.ts';
import { LeaderElector } from './leader.ts';

const LEASES: Resource = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', namespaced: true };
const after = async (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

let store: FakeStore;
let ends: AbortController[];
let test: ReturnType<typeof testTelemetry>;

function elector(identity: string): LeaderElector {
  const { telemetry } = test;
  return new LeaderElector({
    client: store.client,
    telemetry,
    namespace: 'ns',
    leaseName: 'lease',
    identity,
    random: () => 0.5,
  });
}

function end(): AbortController {
  const controller = new AbortController();
  ends.push(controller);
  return controller;
}

function spec(): Record<string, unknown> {
  const lease = store.objects.get('leases ns/lease') as KubeObject & { spec: Record<string, unknown> };
  return lease.spec;
}

/** Another process writes the Lease. */
function write(holderIdentity: string, renewTime: string): void {
  store.put(LEASES, {
    metadata: { namespace: 'ns', name: 'lease' },
    spec: { holderIdentity, leaseDurationSeconds: 15, renewTime, leaseTransitions: 7 },
  } as KubeObject);
}

/** Resolves with the name of who leads. */
function leads(who: LeaderElector, signal: AbortSignal): { readonly led: () => boolean; promise: Promise<boolean> } {
  let led = false;
  const promise = who.acquire(signal).then((is) => (led = is));
  return { led: () => led, promise };
}

beforeEach(() => {
  vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05Z') });
  store = new FakeStore();
  ends = [];
  test = testTelemetry();
});
afterEach(async () => {
  for (const controller of ends) controller.abort();
  await after(10_000);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe('a candidate', () => {
  it('makes the Lease when there is none, in the form that client-go reads', async () => {
    await elector('me').acquire(end().signal);
    expect(spec()).toEqual({
      holderIdentity: 'me',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-02T03:04:05.000000Z',
      renewTime: '2026-01-02T03:04:05.000000Z',
      leaseTransitions: 0,
    });
  });

  it('waits while the holder renews, whatever clock the holder has', async () => {
    write('other', '1999-01-01T00:00:00.000000Z');
    const me = leads(elector('me'), end().signal);
    for (let i = 0; i < 20; i += 1) {
      await after(10_000);
      write('other', `1999-01-01T00:00:${10 + i}.000000Z`);
    }
    expect(me.led()).toBe(false);
  });

  it('takes the Lease when it has not changed for its duration', async () => {
    write('other', '2099-01-01T00:00:00.000000Z');
    const me = leads(elector('me'), end().signal);
    await after(14_000);
    expect(me.led()).toBe(false);
    await after(3_000);
    expect(me.led()).toBe(true);
    expect(spec()).toMatchObject({ holderIdentity: 'me', leaseTransitions: 8 });
  });

  it('takes a Lease that was given back at once', async () => {
    write('', '2026-01-01T00:00:00.000000Z');
    const me = leads(elector('me'), end().signal);
    await after(0);
    expect(me.led()).toBe(true);
  });

  it('of two that try at the same time, one leads', async () => {
    const one = leads(elector('one'), end().signal);
    const two = leads(elector('two'), end().signal);
    await after(5_000);
    expect([one.led(), two.led()].filter(Boolean)).toHaveLength(1);
  });

  it('goes on trying while the API server does not answer', async () => {
    store.before = () => {
      throw new NetworkError('refused');
    };
    const me = leads(elector('me'), end().signal);
    await after(60_000);
    expect(me.led()).toBe(false);
    store.before = () => undefined;
    await after(3_000);
    expect(me.led()).toBe(true);
  });

  it('that is stopped before leads never', async () => {
    write('other', '2026-01-01T00:00:00.000000Z');
    const stop = end();
    const me = leads(elector('me'), stop.signal);
    stop.abort();
    await expect(me.promise).resolves.toBe(false);
  });
});

describe('a leader', () => {
  it('renews, and keeps the time it began', async () => {
    const me = elector('me');
    const stop = end();
    await me.acquire(stop.signal);
    const holding = me.hold(stop.signal);
    await after(60_000);
    expect(spec()).toMatchObject({
      acquireTime: '2026-01-02T03:04:05.000000Z',
      renewTime: '2026-01-02T03:05:05.000000Z',
      leaseTransitions: 0,
    });
    expect(await metricValues(test.telemetry, 'leader_election_master_status')).toEqual({ '{"name":"lease"}': 1 });
    stop.abort();
    await holding;
  });

  it('gives the Lease back on stop, so that the next one need not wait', async () => {
    const me = elector('me');
    const stop = end();
    await me.acquire(stop.signal);
    const holding = me.hold(stop.signal);
    await after(5_000);
    stop.abort();
    await holding;
    expect(spec()).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
    expect(await metricValues(test.telemetry, 'leader_election_master_status')).toEqual({ '{"name":"lease"}': 0 });
    const next = leads(elector('next'), end().signal);
    await after(0);
    expect(next.led()).toBe(true);
  });

  it('outlives failures shorter than the deadline', async () => {
    const me = elector('me');
    const stop = end();
    await me.acquire(stop.signal);
    const holding = me.hold(stop.signal);
    store.before = () => {
      throw new NetworkError('refused');
    };
    await after(7_000);
    store.before = () => undefined;
    await after(60_000);
    stop.abort();
    await expect(holding).resolves.toBeUndefined();
  });

  it('is none any more when it cannot renew within the deadline, before others may begin', async () => {
    const me = elector('me');
    await me.acquire(end().signal);
    const startedAt = performance.now();
    const holding = me.hold(end().signal).catch((error: unknown) => error);
    store.before = () => {
      throw new NetworkError('refused');
    };
    await after(15_000);
    expect(await holding).toBeInstanceOf(LeadershipLostError);
    expect(performance.now() - startedAt).toBeLessThanOrEqual(15_000);
  });

  it('is none any more when another holds the Lease', async () => {
    const me = elector('me');
    await me.acquire(end().signal);
    const holding = me.hold(end().signal).catch((error: unknown) => error);
    write('other', '2026-01-02T03:04:06.000000Z');
    await after(2_000);
    expect(await holding).toMatchObject({ message: 'lost the lease ns/lease: another process holds it' });
    expect(spec()).toMatchObject({ holderIdentity: 'other' });
  });
});

describe('candidates that share a Lease', () => {
  function member(): LeaderElector {
    const { telemetry } = test;
    const base = { client: store.client, telemetry, namespace: 'ns', leaseName: 'lease', random: () => 0.5 };
    return new LeaderElector({ ...base, identity: 'group', shared: true });
  }

  it('lead together, and keep others away for as long as one of them lives', async () => {
    const [first, second] = [member(), member()];
    await first.acquire(end().signal);
    await second.acquire(end().signal);
    const [ends, lives] = [end(), end()];
    const holding = [first.hold(ends.signal), second.hold(lives.signal)];
    const outsider = leads(elector('outsider'), end().signal);
    await after(60_000);
    ends.abort();
    await holding[0];
    await after(60_000);
    expect(outsider.led()).toBe(false);
    expect(spec()).toMatchObject({ holderIdentity: 'group', leaseTransitions: 0 });
    lives.abort();
    await holding[1];
    await after(14_000);
    expect(outsider.led()).toBe(false);
    await after(10_000);
    expect(outsider.led()).toBe(true);
  });

  it('do not write what another has written just before', async () => {
    const members = [member(), member(), member()];
    for (const each of members) await each.acquire(end().signal);
    for (const each of members) each.hold(end().signal).catch(() => undefined);
    const before = store.calls.filter((call) => call.startsWith('replace')).length;
    await after(60_000);
    const writes = store.calls.filter((call) => call.startsWith('replace')).length - before;
    expect(writes).toBeGreaterThan(4);
    expect(writes).toBeLessThan(45);
  });

  it('go on after they could reach nobody for long, unless another took the Lease meanwhile', async () => {
    const me = member();
    await me.acquire(end().signal);
    const holding = me.hold(end().signal).catch((error: unknown) => error);
    store.before = () => {
      throw new NetworkError('refused');
    };
    await after(60_000);
    store.before = () => undefined;
    await after(5_000);
    expect(spec()).toMatchObject({ holderIdentity: 'group', renewTime: '2026-01-02T03:05:09.000000Z' });
    write('other', '2026-01-02T03:06:06.000000Z');
    await after(2_000);
    expect(await holding).toBeInstanceOf(LeadershipLostError);
  });
});

it('refuses times that do not fit together', () => {
  const { telemetry } = test;
  const base = { client: store.client, telemetry, namespace: 'ns', leaseName: 'lease', identity: 'me' };
  expect(() => new LeaderElector({ ...base, leaseDurationMs: 10_000, renewDeadlineMs: 10_000 })).toThrow(RangeError);
  expect(() => new LeaderElector({ ...base, renewDeadlineMs: 2_000, retryPeriodMs: 2_000 })).toThrow(RangeError);
});
