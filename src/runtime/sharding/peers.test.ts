import { expect, it } from 'vitest';
import { Peers } from './peers.ts';
import { Ranking } from './rendezvous.ts';
import { leaseOf } from './shard-lease.ts';
import type { ShardLease } from './shard-lease.ts';

const DURATION_MS = 8_000;

function lease(version: string, more: { left?: boolean } = {}): ShardLease {
  const made = leaseOf(
    { identity: 'b', weight: 1, view: new Ranking([['b', 1]]), durationMs: DURATION_MS, left: more.left ?? false },
    { group: 'g', namespace: 'ns' },
  );
  return { ...made, metadata: { ...made.metadata, resourceVersion: version } };
}

function peers(): { peers: Peers; alive: () => string[] } {
  const made = new Peers(() => undefined);
  return { peers: made, alive: () => made.live.map(({ identity }) => identity) };
}

it('a member is dead when its Lease has not changed for its duration', () => {
  const { peers: seen, alive } = peers();
  seen.observe([lease('1')], 0, 10);
  seen.observe([lease('1')], 8_009, 8_010);
  expect([alive(), seen.claimed('x')]).toEqual([['b'], true]);
  seen.observe([lease('1')], 8_010, 8_020);
  expect([alive(), seen.claimed('x')]).toEqual([[], false]);
  seen.observe([lease('2')], 9_000, 9_010);
  expect(alive()).toEqual(['b']);
});

it('time in which this process was stopped makes no other one look dead', () => {
  const { peers: seen, alive } = peers();
  seen.observe([lease('1')], 0, 10);
  seen.observe([lease('1')], 1_000, 60_000);
  expect(alive()).toEqual(['b']);
});

it('a Lease that is missing counts until its member must have noticed', () => {
  const { peers: seen, alive } = peers();
  seen.observe([lease('1')], 0, 10);
  seen.observe([], 1_000, 1_010);
  expect(alive()).toEqual(['b']);
  seen.observe([], 8_010, 8_020);
  expect(alive()).toEqual([]);
});

it('a member that left is waited for by nobody', () => {
  const { peers: seen, alive } = peers();
  seen.observe([lease('1')], 0, 10);
  seen.observe([lease('2', { left: true })], 1_000, 1_010);
  expect([alive(), seen.claimed('x')]).toEqual([[], false]);
});

it('sweeps the Lease of one that left after its duration, and of one that died after ten', () => {
  const { peers: left } = peers();
  left.observe([lease('1', { left: true })], 0, 0);
  expect([left.swept(7_999).length, left.swept(8_000).length]).toEqual([0, 1]);
  const { peers: dead } = peers();
  dead.observe([lease('1')], 0, 0);
  expect([dead.swept(79_999).length, dead.swept(80_000).length]).toEqual([0, 1]);
});
