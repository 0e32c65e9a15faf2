import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LeadershipLostError, RunnableEndedError, StartupTimeoutError } from './errors.ts';
import { clusterName } from './cluster-name.ts';
import { FakeFactory, FakeStore, specOf, testTelemetry } from './fakes.test-support.ts';
import { SupervisedFleet } from './fleet.ts';
import { LeaderElector } from './leader.ts';
import { Manager } from './manager.ts';
import type { ManagerOptions } from './manager.ts';
import type { Provider, Runnable } from './types.ts';

const after = async (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

let story: string[];
let end: AbortController;

/** Starts and stops, and says so; may end by itself or be slow. */
function part(name: string, own: (signal: AbortSignal) => Promise<void> = aborts): Runnable {
  return {
    name,
    run: async (signal) => {
      story.push(`+${name}`);
      try {
        await own(signal);
      } finally {
        story.push(`-${name}`);
      }
    },
  };
}

function provider(name: string): Provider {
  const inner = part(name);
  return { name, run: async (_sink, signal) => inner.run(signal) };
}

async function aborts(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

interface Setup {
  readonly manager: Manager;
  readonly fleet: SupervisedFleet;
  readonly log: ReturnType<typeof testTelemetry>['log'];
  readonly run: Promise<unknown>;
}

function start(options: Partial<ManagerOptions> = {}): Setup {
  const { telemetry, log } = testTelemetry();
  const fleet = new SupervisedFleet({ factory: new FakeFactory(), telemetry });
  fleet.register({ disengaged: () => story.push('disengaged') });
  const manager = new Manager({
    telemetry,
    fleet,
    servers: [part('server')],
    background: [part('events')],
    providers: [provider('provider')],
    controllers: [part('controller')],
    ...options,
  });
  // What run rejects with, or undefined.
  const run = manager.run(end.signal).then(
    () => undefined,
    (error: unknown) => error,
  );
  return { manager, fleet, log, run };
}

beforeEach(() => {
  vi.useFakeTimers();
  story = [];
  end = new AbortController();
});
afterEach(async () => {
  end.abort();
  await after(60_000);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe('order', () => {
  it('joins the others before it does anything, and leaves them when nothing of it acts any more', async () => {
    const { run } = start({ shards: part('member') });
    await after(0);
    expect(story).toEqual(['+server', '+events', '+member', '+provider', '+controller']);
    end.abort();
    await after(10_000);
    await run;
    expect(story.slice(5)).toEqual(['-controller', '-provider', '-member', '-events', '-server']);
  });

  it('of start, and its reverse of stop', async () => {
    const engages: Provider = {
      name: 'provider',
      run: async (sink, signal) => {
        story.push('+provider');
        sink.engage(clusterName('a'), specOf('a'));
        await aborts(signal);
        story.push('-provider');
      },
    };
    const cache = { name: 'cache', synced: async () => void story.push('cache') };
    const { manager, run } = start({ caches: [cache], providers: [engages] });
    await after(0);
    expect(manager.phase).toBe('running');
    end.abort();
    expect(await run).toBeUndefined();
    expect(story).toEqual([
      '+server',
      '+events',
      'cache',
      '+provider',
      '+controller',
      '-controller',
      '-provider',
      'disengaged',
      '-events',
      '-server',
    ]);
  });

  it('waits for leadership with warm caches, and gives it back when nothing acts any more', async () => {
    const store = new FakeStore();
    const { telemetry } = testTelemetry();
    const leader = (identity: string): LeaderElector =>
      new LeaderElector({ client: store.client, telemetry, namespace: 'ns', leaseName: 'l', identity });
    const other = leader('other');
    const otherEnd = new AbortController();
    await other.acquire(otherEnd.signal);
    const otherDone = other.hold(otherEnd.signal);
    const { manager, run } = start({ leader: leader('me') });
    await after(60_000);
    expect(manager.phase).toBe('standby');
    expect(story).toEqual(['+server', '+events']);
    otherEnd.abort();
    await otherDone;
    await after(3_000);
    expect(manager.phase).toBe('running');
    end.abort();
    await run;
    expect(store.objects.get('leases ns/l')).toMatchObject({ spec: { holderIdentity: '' } });
  });

  it('ends in the middle of the start when it is stopped there', async () => {
    const { run } = start({ caches: [{ name: 'cache', synced: async (signal) => aborts(signal) }] });
    await after(1_000);
    end.abort();
    expect(await run).toBeUndefined();
    expect(story).toEqual(['+server', '+events', '-events', '-server']);
  });
});

describe('failures', () => {
  it('of a part stop all, and are what run rejects with', async () => {
    const { run } = start({
      controllers: [
        part('controller'),
        part('broken', async () => {
          await Promise.resolve();
          throw new Error('boom');
        }),
      ],
    });
    const error = await run;
    expect(error).toBeInstanceOf(RunnableEndedError);
    expect(error).toMatchObject({ message: 'broken ended', cause: new Error('boom') });
    expect(story.slice(-4)).toEqual(['-controller', '-provider', '-events', '-server']);
  });

  it('to go on running are failures too', async () => {
    const { run } = start({ servers: [part('server', async () => Promise.resolve())] });
    expect(await run).toMatchObject({ message: 'server ended' });
  });

  it('of caches to fill name the caches', async () => {
    const { run } = start({
      caches: [
        { name: 'quick', synced: async () => Promise.resolve() },
        { name: 'slow', synced: async () => new Promise(() => undefined) },
      ],
      cacheTimeoutMs: 1_000,
    });
    await after(1_000);
    expect(await run).toBeInstanceOf(StartupTimeoutError);
    expect(await run).toMatchObject({ message: 'caches did not fill: slow' });
  });

  it('of the lease end everything at once and by their own name', async () => {
    const store = new FakeStore();
    const { telemetry } = testTelemetry();
    const leader = new LeaderElector({
      client: store.client,
      telemetry,
      namespace: 'ns',
      leaseName: 'l',
      identity: 'me',
    });
    const reasons: unknown[] = [];
    const { run } = start({
      leader,
      controllers: [
        part('controller', async (signal) => {
          await aborts(signal);
          reasons.push(signal.reason);
        }),
      ],
    });
    await after(5_000);
    store.before = () => {
      throw new Error('no answer');
    };
    await after(20_000);
    expect(await run).toBeInstanceOf(LeadershipLostError);
    expect(reasons).toEqual([expect.any(LeadershipLostError)]);
  });

  it('to stop in time hold nobody up', async () => {
    const { log, run } = start({
      controllers: [part('deaf', async () => new Promise(() => undefined))],
      drainMs: 10_000,
    });
    await after(0);
    end.abort();
    await after(10_000);
    expect(await run).toBeUndefined();
    expect(log.of('left behind')).toEqual([expect.stringContaining('left=deaf')]);
  });

  it('of a provider start it again, with back-off, and leave its clusters engaged', async () => {
    let runs = 0;
    const flaky: Provider = {
      name: 'flaky',
      run: async (sink) => {
        runs += 1;
        sink.engage(clusterName('a'), specOf('a'));
        await Promise.resolve();
        throw new Error('boom');
      },
    };
    const { fleet, log } = start({ providers: [flaky] });
    await after(120_000);
    expect(runs).toBeGreaterThan(4);
    expect(runs).toBeLessThan(100);
    expect(fleet.get(clusterName('a')).signal.aborted).toBe(false);
    expect(log.of('started again')[0]).toContain('err=boom');
  });
});
