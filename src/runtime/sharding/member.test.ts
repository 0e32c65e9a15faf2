import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ShardLostError } from '../errors.ts';
import { metricValues, testTelemetry } from '../fakes.test-support.ts';
import { clusterName } from '../cluster-name.ts';
import type { ClusterName } from '../types.ts';
import { LeaseServer, Line } from './lease-server.test-support.ts';
import { ShardMember } from './member.ts';
import type { ShardMemberOptions } from './member.ts';
import { Ranking } from './rendezvous.ts';
import { GROUP_LABEL, VIEW_ANNOTATION, WEIGHT_ANNOTATION } from './shard-lease.ts';
import type { ShardLease } from './shard-lease.ts';
import type { Permit } from './types.ts';

const NAMES: readonly ClusterName[] = Array.from({ length: 60 }, (_, i) => clusterName(`fleet/c${i}`));
const after = async (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
/** All renewals and looks that a change takes, far below the expiry of a Lease. */
const SOON_MS = 3_500;

interface Replica {
  readonly member: ShardMember;
  readonly line: Line;
  readonly test: ReturnType<typeof testTelemetry>;
  readonly end: AbortController;
  readonly ended: Promise<void>;
}

let server: LeaseServer;
let replicas: Replica[];

function start(identity: string, options: Partial<ShardMemberOptions> = {}): Replica {
  const line = new Line();
  const test = testTelemetry();
  const end = new AbortController();
  const member = new ShardMember({
    client: server.client(line),
    telemetry: test.telemetry,
    group: 'g',
    namespace: 'ns',
    identity,
    ...options,
  });
  const replica = { member, line, test, end, ended: member.run(end.signal) };
  replicas.push(replica);
  return replica;
}

function held(replica: Replica): ClusterName[] {
  return NAMES.filter((name) => replica.member.holds(name));
}

/** All names are held, each by one. */
function expectShared(...among: Replica[]): void {
  const all = among.flatMap((replica) => held(replica));
  expect(all.toSorted()).toEqual(NAMES.toSorted());
}

function enter(replica: Replica, name: ClusterName): Permit {
  const permit = replica.member.enter(name);
  if (permit === undefined) throw new Error(`${replica.member.identity} does not hold ${name}`);
  return permit;
}

/** A name that `from` holds now and would not once the members are `then`. */
function moving(from: Replica, ...then: string[]): ClusterName {
  const ranking = new Ranking(then.map((identity) => [identity, 1]));
  const found = held(from).find((name) => ranking.owner(name) !== from.member.identity);
  if (found === undefined) throw new Error('nothing moves');
  return found;
}

beforeEach(() => {
  vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05Z') });
  server = new LeaseServer();
  replicas = [];
});
afterEach(async () => {
  for (const { line, end } of replicas) {
    line.go();
    end.abort();
  }
  await after(30_000);
  await Promise.all(replicas.map(async ({ ended }) => ended));
  vi.useRealTimers();
});

describe('members', () => {
  it('one alone holds everything within a moment', async () => {
    const a = start('a');
    expect([a.member.joined, held(a)]).toEqual([false, []]);
    await after(50);
    expect(a.member.joined).toBe(true);
    expectShared(a);
  });

  it('three share everything, and nothing is held twice', async () => {
    const three = [start('a'), start('b'), start('c')];
    await after(SOON_MS);
    expectShared(...three);
    for (const replica of three) {
      expect(held(replica).length).toBeGreaterThan(8);
      expect(await metricValues(replica.test.telemetry, 'capstan_shard_members')).toEqual({ '{}': 3 });
    }
  });

  it('one with weight 0 takes nothing', async () => {
    const [a, b] = [start('a'), start('b', { weight: 0 })];
    await after(SOON_MS);
    expectShared(a);
    expect([held(b), b.member.joined]).toEqual([[], true]);
  });

  it('a newcomer takes its share from the others only', async () => {
    const [a, b] = [start('a'), start('b')];
    await after(SOON_MS);
    const before = [held(a), held(b)];
    const c = start('c');
    await after(SOON_MS);
    expectShared(a, b, c);
    for (const [i, replica] of [a, b].entries()) for (const name of held(replica)) expect(before[i]).toContain(name);
  });

  it('are told of each change, and a listener that throws stops nobody', async () => {
    const a = start('a');
    const counts: number[] = [];
    a.member.onChange(() => {
      throw new Error('a listener of the test');
    });
    const remove = a.member.onChange(() => counts.push(held(a).length));
    await after(50);
    start('b');
    await after(SOON_MS);
    expect(counts.at(-1)).toBe(held(a).length);
    expect(counts).toContain(NAMES.length);
    remove();
    const told = counts.length;
    start('c');
    await after(SOON_MS);
    expect(counts).toHaveLength(told);
  });

  it('at rest write one Lease and list once per period', async () => {
    start('a');
    start('b');
    await after(SOON_MS);
    server.calls.length = 0;
    await after(15_000);
    expect(server.calls.filter((verb) => verb === 'replace').length).toBeLessThanOrEqual(20);
    expect(server.calls.filter((verb) => verb === 'list').length).toBeLessThanOrEqual(20);
  });
});

describe('a hand-over', () => {
  it('waits for what runs: the newcomer begins when it has ended, and not before', async () => {
    const a = start('a');
    await after(50);
    const name = moving(a, 'a', 'b');
    const permit = enter(a, name);
    const b = start('b');
    await after(5_000);
    expect([a.member.holds(name), a.member.serves(name), b.member.holds(name), permit.valid]).toEqual([
      false,
      true,
      false,
      true,
    ]);
    expect(a.member.enter(name)).toBeUndefined();
    permit[Symbol.dispose]();
    await after(1_000);
    expect([a.member.serves(name), b.member.holds(name), permit.signal.aborted]).toEqual([false, true, false]);
  });

  it('ends what does not end by itself, and refuses what it would still do', async () => {
    const a = start('a');
    await after(50);
    const permit = enter(a, moving(a, 'a', 'b'));
    const b = start('b');
    await after(11_800);
    expect([permit.signal.aborted, permit.valid]).toEqual([true, false]);
    expect(permit.signal.reason).toBeInstanceOf(ShardLostError);
    await after(4_000);
    expect(b.member.holds(permit.cluster)).toBe(true);
    expectShared(a, b);
  });

  it('leaves alone what stays', async () => {
    const a = start('a');
    await after(50);
    const ranking = new Ranking(['a', 'b'].map((identity) => [identity, 1]));
    const stays = held(a).find((name) => ranking.owner(name) === 'a') ?? NAMES[0];
    const permit = enter(a, stays as ClusterName);
    start('b');
    await after(20_000);
    expect([permit.valid, a.member.holds(permit.cluster)]).toEqual([true, true]);
    permit[Symbol.dispose]();
  });

  it('comes to nothing when the newcomer goes before it took over', async () => {
    const a = start('a');
    await after(50);
    const permit = enter(a, moving(a, 'a', 'b'));
    const b = start('b');
    await after(3_000);
    b.end.abort();
    await after(SOON_MS);
    expect([a.member.holds(permit.cluster), permit.valid]).toEqual([true, true]);
    permit[Symbol.dispose]();
    expectShared(a);
  });
});

describe('a replica that stops', () => {
  it('in order: the others take over without waiting for its Lease to run out, and sweep it', async () => {
    const [a, b] = [start('a'), start('b')];
    await after(SOON_MS);
    b.end.abort();
    await after(SOON_MS);
    expectShared(a);
    await b.ended;
    await after(12_000);
    expect(server.leases.size).toBe(1);
  });

  it('in order, while something runs: nobody takes that over before it has ended', async () => {
    const [a, b] = [start('a'), start('b')];
    await after(SOON_MS);
    const permit = enter(b, held(b)[0] as ClusterName);
    b.end.abort();
    await after(5_000);
    expect([a.member.holds(permit.cluster), permit.valid, b.member.enter(permit.cluster)]).toEqual([
      false,
      true,
      undefined,
    ]);
    permit[Symbol.dispose]();
    await after(SOON_MS);
    expectShared(a);
  });

  it('by SIGKILL: its clusters are taken over once its Lease has run out, and not before', async () => {
    const [a, b] = [start('a'), start('b')];
    await after(SOON_MS);
    const [before, of] = [held(a), held(b)];
    b.line.stop();
    await after(6_000);
    expect(held(a)).toEqual(before);
    await after(5_000);
    expect(of.every((name) => a.member.holds(name))).toBe(true);
    await after(100_000);
    expect([...server.leases.values()].map((lease: ShardLease) => lease.spec?.holderIdentity)).toEqual(['a']);
  });

  it('by SIGSTOP: finds its fence lapsed when it goes on, before it does anything, and joins again', async () => {
    const [a, b] = [start('a'), start('b')];
    await after(SOON_MS);
    const permit = enter(b, held(b)[0] as ClusterName);
    b.line.stop();
    await after(20_000);
    expectShared(a);
    b.line.go();
    expect([permit.valid, held(b)]).toEqual([false, []]);
    await after(SOON_MS);
    expect(permit.signal.reason).toBeInstanceOf(ShardLostError);
    expectShared(a, b);
    expect(held(b).length).toBeGreaterThan(0);
    expect(await metricValues(b.test.telemetry, 'capstan_shard_lapses_total')).toEqual({ '{}': 1 });
  });

  it('for a moment only keeps what it has', async () => {
    const [a, b] = [start('a'), start('b')];
    await after(SOON_MS);
    const permit = enter(b, held(b)[0] as ClusterName);
    b.line.stop();
    await after(2_500);
    b.line.go();
    await after(SOON_MS);
    expect(permit.valid).toBe(true);
    permit[Symbol.dispose]();
    expectShared(a, b);
  });
});

describe('an API server that does not answer', () => {
  it('stops the work before others may begin, and the replica joins again when it answers', async () => {
    const a = start('a');
    await after(50);
    const permit = enter(a, NAMES[0] as ClusterName);
    a.line.fate = () => ({ lost: 'request' });
    await after(5_000);
    expect([permit.valid, permit.signal.aborted, held(a)]).toEqual([false, true, []]);
    a.line.fate = () => ({});
    await after(SOON_MS);
    expectShared(a);
    expect(permit.valid).toBe(false);
  });

  it('loses one answer: nothing happens', async () => {
    const a = start('a');
    await after(50);
    let losses = 1;
    a.line.fate = (verb) => (verb === 'replace' && losses-- > 0 ? { lost: 'answer' } : {});
    const permit = enter(a, NAMES[0] as ClusterName);
    await after(20_000);
    expect(permit.valid).toBe(true);
    permit[Symbol.dispose]();
    expectShared(a);
  });

  it('answers later than the fence lasts: what was stored is not believed', async () => {
    const [a, b] = [start('a'), start('b')];
    await after(SOON_MS);
    const permit = enter(b, held(b)[0] as ClusterName);
    b.line.fate = (verb) => (verb === 'replace' ? { answerMs: 1_900, requestMs: 1_900 } : {});
    await after(20_000);
    expect(permit.valid).toBe(false);
    for (const name of NAMES) expect([a.member.holds(name), b.member.holds(name)]).not.toEqual([true, true]);
  });
});

describe('what is claimed', () => {
  it('is held only after the others have been looked at: they may have claimed it first', async () => {
    const a = start('a');
    let lists = 0;
    a.line.fate = (verb) => (verb === 'list' && ++lists === 2 ? { lost: 'request' } : {});
    await after(1_500);
    expect([[...server.leases.values()][0]?.metadata.annotations?.[VIEW_ANNOTATION], held(a)]).toEqual(['{"a":1}', []]);
    await after(SOON_MS);
    expectShared(a);
  });

  it('may be of another one when the answer to a renewal is read late, timers or not', async () => {
    let aheadMs = 0;
    const a = start('a', {
      clock: () => ({ mono: performance.now() + aheadMs, wall: Date.now() }),
    });
    await after(50);
    const permit = enter(a, NAMES[0] as ClusterName);
    a.line.fate = (verb) => (verb === 'replace' ? { answerMs: 500 } : {});
    await after(1_700);
    aheadMs = 3_600;
    expect(permit.valid).toBe(false);
    await after(500);
    expect(permit.signal.aborted).toBe(true);
    aheadMs = 0;
    expect(permit.valid).toBe(false);
  });
});

describe('the Lease of a member', () => {
  const stored = (): [string, { metadata: { uid?: string } }] =>
    [...server.leases][0] as [string, { metadata: { uid?: string } }];

  it('is deleted by hand: its owner stops, and joins again', async () => {
    const a = start('a');
    await after(50);
    const permit = enter(a, NAMES[0] as ClusterName);
    server.leases.delete(stored()[0]);
    await after(2 * SOON_MS);
    expect([permit.valid, permit.signal.reason instanceof ShardLostError]).toEqual([false, true]);
    expectShared(a);
  });

  it('of another is deleted by hand: its clusters are not taken before it has had time to notice', async () => {
    const [a, b] = [start('a'), start('b')];
    await after(SOON_MS);
    const of = held(b);
    b.line.stop();
    for (const [name, { spec }] of server.leases as Map<string, { spec?: { holderIdentity?: string } }>)
      if (spec?.holderIdentity === 'b') server.leases.delete(name);
    await after(5_000);
    expect(of.some((name) => a.member.holds(name))).toBe(false);
    await after(6_000);
    expectShared(a);
  });

  it('is labelled by hand: nothing happens', async () => {
    const a = start('a');
    await after(50);
    const permit = enter(a, NAMES[0] as ClusterName);
    const [, lease] = stored();
    server.put({ ...lease, metadata: { ...lease.metadata, name: stored()[0] } }, lease.metadata.uid ?? '');
    await after(10_000);
    expect(permit.valid).toBe(true);
    permit[Symbol.dispose]();
  });

  it('tells who it is, its weight, and by which members it acts', async () => {
    start('host_1', { weight: 2 });
    await after(50);
    expect([...server.leases.values()][0]).toMatchObject({
      metadata: {
        name: expect.stringMatching(/^g-[0-9a-f]{12}$/) as string,
        namespace: 'ns',
        labels: { [GROUP_LABEL]: 'g' },
        annotations: { [VIEW_ANNOTATION]: '{"host_1":2}', [WEIGHT_ANNOTATION]: '2' },
      },
      spec: { holderIdentity: 'host_1', leaseDurationSeconds: 8 },
    });
  });

  it('with our label but of nobody: is told once and taken for no member', async () => {
    server.put({ metadata: { name: 'by-hand', namespace: 'ns', labels: { [GROUP_LABEL]: 'g' } } }, 'uid');
    const a = start('a');
    await after(20_000);
    expectShared(a);
    expect(a.test.log.lines.filter((line) => line.includes('none of a member'))).toHaveLength(1);
    expect(server.leases.has('by-hand')).toBe(true);
  });
});

it.each([
  [{ weight: -1 }, /weight/],
  [{ weight: Number.NaN }, /weight/],
  [{ leaseDurationMs: 6_000 }, /lease duration/],
  [{ periodMs: 3_000 }, /periods/],
])('refuses %j', (options, message) => {
  const build = (): ShardMember =>
    new ShardMember({
      client: server.client(new Line()),
      telemetry: testTelemetry().telemetry,
      group: 'g',
      namespace: 'ns',
      identity: 'a',
      ...options,
    });
  expect(build).toThrow(RangeError);
  expect(build).toThrow(message);
});
