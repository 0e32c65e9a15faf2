import { describe, expect, it } from 'vitest';
import type { HelmReleaseProxy } from '../../api/index.ts';
import { getCondition } from '../conditions.ts';
import type { PlacementOutcome } from './outcomes.ts';
import { chartProxy, cluster, releaseProxy } from './objects.test-support.ts';
import { PROXIES_READY, SPECS_UP_TO_DATE, chartProxyStatus, deletionStatus } from './status.ts';
import type { StatusInput } from './status.ts';

const NOW = new Date('2026-02-01T00:00:00Z');
const DONE: PlacementOutcome = { generation: 1, outcome: { state: 'done' } };

/** One that its controller has looked at, with this Ready. */
function reported(name: string, status: 'True' | 'False' = 'True', message = ''): HelmReleaseProxy {
  const made = releaseProxy(chartProxy(), cluster(name), { name: `p-${name}` });
  const ready = { type: 'Ready', status, reason: 'R', message, lastTransitionTime: '2026-01-01T00:00:00Z' };
  return { ...made, status: { observedGeneration: 1, conditions: [ready] } };
}

function input(changes: Partial<StatusInput> = {}): StatusInput {
  return {
    chartProxy: chartProxy(),
    selected: ['w1', 'w2'],
    clusterApiVersion: 'cluster.x-k8s.io/v1beta2',
    releaseProxies: [reported('w1'), reported('w2')],
    outcomes: new Map([
      ['w1', DONE],
      ['w2', DONE],
    ]),
    unobserved: new Set(),
    ...changes,
  };
}

function failed(message: string, reason = 'ValueParsingFailed'): PlacementOutcome {
  return { generation: 1, outcome: { state: 'failed', reason, message } };
}

function conditionsOf(given: StatusInput): { specs: unknown; proxies: unknown; ready: unknown } {
  const { conditions } = chartProxyStatus(given, NOW);
  const of = (type: string): unknown => {
    const { status, reason, message } = getCondition(conditions, type) ?? {};
    return [status, reason, message];
  };
  return { specs: of(SPECS_UP_TO_DATE), proxies: of(PROXIES_READY), ready: of('Ready') };
}

describe('chartProxyStatus', () => {
  it('reads as CAAPH’s when all is well', () => {
    expect(conditionsOf(input())).toEqual({
      specs: ['True', 'UpToDate', ''],
      proxies: ['True', 'InfoReported', ' (sources: HelmReleaseProxy/p-w1, HelmReleaseProxy/p-w2)'],
      ready: [
        'True',
        'InfoReported',
        '* HelmReleaseProxiesReady:  (sources: HelmReleaseProxy/p-w1, HelmReleaseProxy/p-w2)',
      ],
    });
  });

  it('sorts matchingClusters, and gives the same status for any order of anything (W4)', () => {
    const first = chartProxyStatus(input(), NOW);
    const second = chartProxyStatus(
      input({ selected: ['w2', 'w1'], releaseProxies: [reported('w2'), reported('w1')] }),
      NOW,
    );
    expect(first.matchingClusters?.map(({ name }) => name)).toEqual(['w1', 'w2']);
    expect(second).toEqual(first);
  });

  it('keeps its parts when nothing changed', () => {
    const given = input();
    const status = chartProxyStatus(given, NOW);
    const again = chartProxyStatus(input({ chartProxy: { ...given.chartProxy, status } }), new Date());
    expect(again.conditions).toBe(status.conditions);
    expect(again).toEqual(status);
  });

  it('has no matchingClusters and is ready when nothing is selected', () => {
    const nothing = input({ selected: [], releaseProxies: [], outcomes: new Map() });
    expect(chartProxyStatus(nothing, NOW).matchingClusters).toBeUndefined();
    expect(conditionsOf(nothing)).toMatchObject({
      proxies: ['True', 'Ready', ''],
      ready: ['True', 'InfoReported', ''],
    });
  });

  it('tells one failed placement in its own words, and ProxiesReady all the same (W8)', () => {
    const { specs, proxies } = conditionsOf(
      input({
        outcomes: new Map([
          ['w1', DONE],
          ['w2', failed('failed to parse values on cluster w2: x')],
        ]),
      }),
    );
    expect(specs).toEqual(['False', 'ValueParsingFailed', 'failed to parse values on cluster w2: x']);
    expect(proxies).toMatchObject(['True', 'InfoReported', expect.any(String)]);
  });

  it('names a few of 1,000 failed placements, bounded and in order (W5)', () => {
    const names = Array.from({ length: 1000 }, (_, index) => `w${String(index).padStart(4, '0')}`);
    const entries = names.map((name): [string, PlacementOutcome] => [name, failed(`on ${name}: ${'y'.repeat(9000)}`)]);
    const first = conditionsOf(input({ selected: names, releaseProxies: [], outcomes: new Map(entries) }));
    const second = conditionsOf(input({ selected: names, releaseProxies: [], outcomes: new Map(entries.reverse()) }));
    expect(second).toEqual(first);
    const [, , message] = first.specs as [string, string, string];
    expect(message.length).toBeLessThan(8000);
    expect(message).toMatch(/^\* on w0000/);
    expect(message).toContain('And 997 more clusters');
  });

  it('says that a release is being reinstalled (W11)', () => {
    const outcome: PlacementOutcome = { generation: 1, outcome: { state: 'reinstalling', message: 'again on w2' } };
    expect(
      conditionsOf(
        input({
          outcomes: new Map([
            ['w1', DONE],
            ['w2', outcome],
          ]),
        }),
      ).specs,
    ).toEqual(['False', 'HelmReleaseProxyReinstalling', 'again on w2']);
  });

  it('says which HelmReleaseProxies are not updated yet, and goes on aggregating the others (W31)', () => {
    const behind = {
      ...reported('w2', 'False', 'old trouble'),
      metadata: { ...reported('w2').metadata, generation: 2 },
    };
    expect(conditionsOf(input({ releaseProxies: [reported('w1'), behind] }))).toMatchObject({
      specs: ['False', 'HelmReleaseProxySpecsUpdating', "Helm release proxy 'p-w2' is not updated yet"],
      proxies: ['False', 'IssuesReported', expect.stringContaining('old trouble')],
    });
    expect(conditionsOf(input({ releaseProxies: [behind], unobserved: new Set([behind]) })).specs).toEqual([
      'True',
      'UpToDate',
      '',
    ]);
  });

  it('waits for placements after a change of the spec', () => {
    expect(conditionsOf(input({ chartProxy: chartProxy({}, { generation: 2 }) })).specs).toEqual([
      'False',
      'HelmReleaseProxySpecsUpdating',
      '2 of 2 clusters to be updated: w1, w2',
    ]);
  });

  it('does not call nothing ready before the first placement', () => {
    expect(conditionsOf(input({ releaseProxies: [], outcomes: new Map() })).proxies).toEqual([
      'Unknown',
      'NotYetReported',
      'No HelmReleaseProxy was made yet',
    ]);
  });

  it('believes what it told for this generation until placements have been looked at: after a restart nothing flaps', () => {
    const given = input({
      outcomes: new Map([
        ['w1', DONE],
        ['w2', failed('boom')],
      ]),
    });
    const status = { ...chartProxyStatus(given, NOW), observedGeneration: 1 };
    const restarted = input({ chartProxy: { ...given.chartProxy, status }, outcomes: new Map() });
    expect(chartProxyStatus(restarted, new Date()).conditions).toBe(status.conditions);
  });

  it('tells what is wrong with the selector and keeps the selection as it stands (W9)', () => {
    const before = chartProxyStatus(input(), NOW);
    const after = chartProxyStatus(
      input({
        chartProxy: { ...chartProxy(), status: before },
        selected: [],
        selectorProblem: 'spec.clusterSelector: no',
      }),
      NOW,
    );
    expect(getCondition(after.conditions, SPECS_UP_TO_DATE)).toMatchObject({
      status: 'False',
      reason: 'ClusterSelectionFailed',
      message: 'spec.clusterSelector: no',
    });
    expect(after.matchingClusters).toEqual(before.matchingClusters);
  });
});

describe('deletionStatus', () => {
  it('names what it waits for, and why', () => {
    const remaining = [reported('w2', 'False', '* HelmReleaseReady: unable to remove helm release'), reported('w1')];
    const { conditions } = deletionStatus(chartProxy(), remaining, NOW);
    const message = getCondition(conditions, PROXIES_READY)?.message ?? '';
    expect(message).toContain('waiting for 2 HelmReleaseProxies to be deleted: p-w1 (cluster w1), p-w2 (cluster w2)');
    const ready = getCondition(conditions, 'Ready');
    expect(ready?.status).toBe('False');
    expect(ready?.message).toContain('unable to remove helm release');
  });

  it('stays bounded for 1,000', () => {
    const remaining = Array.from({ length: 1000 }, (_, index) =>
      reported(`w${index}`, 'False', 'z'.repeat(9000) + String(index)),
    );
    const { conditions } = deletionStatus(chartProxy(), remaining, NOW);
    for (const condition of conditions ?? []) expect(condition.message.length).toBeLessThan(16_385);
  });
});
