import { describe, expect, it } from 'vitest';
import { step } from './cluster-state.ts';
import type { ClusterEvent } from './cluster-state.ts';
import { clusterName } from './cluster-name.ts';
import { EngagedCluster } from './engaged-cluster.ts';
import { FakeFactory, specOf } from './fakes.test-support.ts';
import type { ClusterState } from './types.ts';

const name = clusterName('ns/a');
const factory = new FakeFactory();
const cluster = new EngagedCluster(name, factory.open(name, specOf('a')));
const other = new EngagedCluster(name, factory.open(name, specOf('a')));
const reason = { code: 'X', message: 'x' };
const another = { code: 'Y', message: 'y' };

const discovered: ClusterState = { phase: 'discovered', reason };
const connecting: ClusterState = { phase: 'connecting', attempt: 3, lastError: reason };
const engaged: ClusterState = { phase: 'engaged', cluster };
const warned: ClusterState = { phase: 'engaged', cluster, warning: 'w' };
const degraded: ClusterState = { phase: 'degraded', cluster, reason };
const gone: ClusterState = { phase: 'disengaged', reason: 'r' };

const events: Record<ClusterEvent['type'], ClusterEvent> = {
  declared: { type: 'declared', reason: another },
  specified: { type: 'specified' },
  connectFailed: { type: 'connectFailed', reason: another },
  connected: { type: 'connected', cluster: other },
  lost: { type: 'lost', reason: another },
  recovered: { type: 'recovered' },
  warned: { type: 'warned', warning: 'new' },
  cleared: { type: 'cleared' },
  removed: { type: 'removed', reason: 'gone' },
};

type Row = Partial<Record<ClusterEvent['type'], ClusterState>>;
const connected: ClusterState = { phase: 'engaged', cluster: other };
const first: ClusterState = { phase: 'connecting', attempt: 1 };
const removed: ClusterState = { phase: 'disengaged', reason: 'gone' };

/** What is not in a row leaves the state as it is, the same object. */
const table: [string, ClusterState, Row][] = [
  ['discovered', discovered, { declared: { phase: 'discovered', reason: another }, specified: first, removed }],
  [
    'connecting',
    connecting,
    {
      declared: { phase: 'discovered', reason: another },
      specified: first,
      connectFailed: { phase: 'connecting', attempt: 4, lastError: another },
      connected,
      removed,
    },
  ],
  [
    'engaged',
    engaged,
    {
      connected,
      lost: { phase: 'degraded', cluster, reason: another },
      warned: { phase: 'engaged', cluster, warning: 'new' },
      removed,
    },
  ],
  [
    'engaged with a warning',
    warned,
    {
      connected,
      lost: { phase: 'degraded', cluster, reason: another },
      warned: { phase: 'engaged', cluster, warning: 'new' },
      cleared: engaged,
      removed,
    },
  ],
  [
    'degraded',
    degraded,
    { connected, recovered: engaged, lost: { phase: 'degraded', cluster, reason: another }, removed },
  ],
  ['disengaged', gone, {}],
];

describe('step', () => {
  for (const [from, state, row] of table)
    it.each(Object.values(events))(`${from} on $type`, (event) => {
      const next = step(state, event);
      const expected = row[event.type];
      if (expected === undefined) expect(next).toBe(state);
      else expect(next).toEqual(expected);
    });

  it('begins with what is declared first', () => {
    expect(step(undefined, events.declared)).toEqual({ phase: 'discovered', reason: another });
    expect(step(undefined, events.specified)).toEqual(first);
    expect(step(undefined, events.removed)).toEqual(removed);
  });

  it('returns the same object for the same again, so that nobody is told twice', () => {
    expect(step(discovered, { type: 'declared', reason: { ...reason } })).toBe(discovered);
    expect(step(degraded, { type: 'lost', reason: { ...reason } })).toBe(degraded);
    expect(step(warned, { type: 'warned', warning: 'w' })).toBe(warned);
  });
});
