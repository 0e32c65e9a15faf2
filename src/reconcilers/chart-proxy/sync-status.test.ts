import { describe, expect, it } from 'vitest';
import type { Condition, HelmReleaseProxy } from '../../api/index.ts';
import { getCondition } from '../conditions.ts';
import { chartProxy, cluster, releaseProxy } from './objects.test-support.ts';
import { chartProxyStatus, deletionStatus } from './status.ts';
import { inSyncCondition } from './sync-status.ts';

const NOW = new Date('2026-02-01T00:00:00Z');

/** One on a cluster, whose release is this much in sync; undefined: drift detection is off for it. */
function on(name: string, inSync?: [Condition['status'], string]): HelmReleaseProxy {
  const made = releaseProxy(chartProxy(), cluster(name), { name: `p-${name}` });
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  const ready: Condition = { type: 'Ready', status: 'True', reason: 'R', message: '', lastTransitionTime };
  if (inSync === undefined) return { ...made, status: { observedGeneration: 1, conditions: [ready] } };
  const [status, reason] = inSync;
  const sync: Condition = { type: 'ReleaseInSync', status, reason, message: 'Deployment web', lastTransitionTime };
  return { ...made, status: { observedGeneration: 1, conditions: [ready, sync] } };
}

function many(count: number): HelmReleaseProxy[] {
  return Array.from({ length: count }, (_, index) => on(`w${index + 1}`, ['False', 'DriftDetected']));
}

describe('ReleaseInSync of a HelmChartProxy', () => {
  it.each<[string, HelmReleaseProxy[], unknown]>([
    ['is not there without HelmReleaseProxies', [], undefined],
    ['is not there while drift detection is off', [on('w1'), on('w2')], undefined],
    [
      'is True when all that are looked at are in sync; the others do not count',
      [on('w1', ['True', 'InSync']), on('w2', ['True', 'InSync']), on('w3')],
      ['True', 'InSync', '2 of 2 clusters are in sync'],
    ],
    [
      'tells how many drift, and which, by name',
      [on('w2', ['False', 'DriftDetected']), on('w3', ['True', 'InSync']), on('w1', ['False', 'DriftDetected'])],
      ['False', 'DriftDetected', '2 of 3 clusters drift: w1, w2'],
    ],
    [
      'takes the worse reason: a failed correction',
      [on('w1', ['False', 'DriftDetected']), on('w2', ['False', 'DriftCorrectionFailed'])],
      ['False', 'DriftCorrectionFailed', '2 of 2 clusters drift: w1, w2'],
    ],
    [
      'takes the worst reason: one that was given up',
      [on('w1', ['False', 'DriftCorrectionFailed']), on('w2', ['False', 'DriftNotConverging'])],
      ['False', 'DriftNotConverging', '2 of 2 clusters drift: w1, w2'],
    ],
    [
      'calls a reason that it does not know drift',
      [on('w1', ['False', 'SomethingNew'])],
      ['False', 'DriftDetected', '1 of 1 clusters drift: w1'],
    ],
    [
      'is Unknown while one is not verified and none drifts',
      [on('w1', ['True', 'InSync']), on('w2', ['Unknown', 'DriftUnverified'])],
      ['Unknown', 'DriftUnverified', '1 of 2 clusters not verified yet: w2'],
    ],
    [
      'is False all the same when one drifts',
      [on('w1', ['False', 'DriftDetected']), on('w2', ['Unknown', 'DriftUnverified'])],
      ['False', 'DriftDetected', '1 of 2 clusters drift: w1'],
    ],
    ['names five', many(5), ['False', 'DriftDetected', '5 of 5 clusters drift: w1, w2, w3, w4, w5']],
    [
      'and counts the rest',
      many(9),
      ['False', 'DriftDetected', '9 of 9 clusters drift: w1, w2, w3, w4, w5 and 4 more'],
    ],
  ])('%s', (_name, proxies, expected) => {
    const said = inSyncCondition(proxies);
    expect(said && [said.status, said.reason, said.message]).toEqual(expected);
  });

  const input = (
    releaseProxies: HelmReleaseProxy[],
    object = chartProxy(),
  ): Parameters<typeof chartProxyStatus>[0] => ({
    chartProxy: object,
    selected: ['w1'],
    clusterApiVersion: 'cluster.x-k8s.io/v1beta2',
    releaseProxies,
    outcomes: new Map([['w1', { generation: 1, outcome: { state: 'done' } }]]),
    unobserved: new Set(),
  });

  it('is no part of Ready, and goes with the last HelmReleaseProxy that has one', () => {
    const drifting = chartProxyStatus(input([on('w1', ['False', 'DriftDetected'])]), NOW);
    expect(getCondition(drifting.conditions, 'Ready')?.status).toBe('True');
    expect(getCondition(drifting.conditions, 'Ready')?.message).not.toContain('ReleaseInSync');
    expect(getCondition(drifting.conditions, 'ReleaseInSync')?.status).toBe('False');
    const off = chartProxyStatus(input([on('w1')], { ...chartProxy(), status: drifting }), NOW);
    expect(off.conditions?.map(({ type }) => type)).not.toContain('ReleaseInSync');
  });

  it('is told of those that remain during a deletion, and of none when none has it', () => {
    const status = chartProxyStatus(input([on('w1', ['True', 'InSync'])]), NOW);
    const going = deletionStatus({ ...chartProxy(), status }, [on('w1', ['False', 'DriftDetected'])], NOW);
    expect(getCondition(going.conditions, 'ReleaseInSync')?.status).toBe('False');
    const gone = deletionStatus({ ...chartProxy(), status }, [on('w1')], NOW);
    expect(getCondition(gone.conditions, 'ReleaseInSync')).toBeUndefined();
  });
});
