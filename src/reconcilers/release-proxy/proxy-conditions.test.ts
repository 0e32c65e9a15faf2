import { describe, expect, it } from 'vitest';
import type { HelmReleaseProxy } from '../../api/index.ts';
import type { ReleaseStatus, ReleaseSummary } from '../../helm/index.ts';
import { clusterAvailable, preparing, releaseCondition, withFindings } from './proxy-conditions.ts';

const NOW = new Date('2026-12-01T00:00:00.900Z');

function release(status: ReleaseStatus): ReleaseSummary {
  return {
    namespace: 'ns',
    name: 'app',
    revision: 1,
    status,
    chartName: 'c',
    chartVersion: '1',
    valuesDigest: '',
    lastDeployed: '',
    description: '',
    recordUid: '',
    recordVersion: '',
  };
}

function proxy(status?: HelmReleaseProxy['status']): HelmReleaseProxy {
  return {
    apiVersion: '',
    kind: '',
    metadata: { name: 'p', generation: 3 },
    spec: { chartName: 'c', repoURL: 'r', clusterRef: {} },
    status,
  };
}

describe('releaseCondition', () => {
  it.each([
    ['deployed', 'True', 'Ready', ''],
    ['pending-install', 'False', 'HelmReleasePending', 'Helm release is in a pending state: pending-install'],
    ['pending-upgrade', 'False', 'HelmReleasePending', 'Helm release is in a pending state: pending-upgrade'],
    ['failed', 'False', 'HelmInstallOrUpgradeFailed', 'Helm release is in a failed state: failed'],
    ['uninstalled', 'False', 'HelmReleaseNotDeployed', 'Helm release is in state: uninstalled'],
    ['superseded', 'False', 'HelmReleaseNotDeployed', 'Helm release is in state: superseded'],
  ] as const)('%s', (status, conditionStatus, reason, message) => {
    expect(releaseCondition(release(status))).toEqual({
      type: 'HelmReleaseReady',
      status: conditionStatus,
      reason,
      message,
    });
  });
});

describe('withFindings', () => {
  it('an object that was never told of is being prepared; Ready sums up', () => {
    const { status } = withFindings(proxy(), { conditions: [clusterAvailable] }, NOW);
    expect(status?.conditions?.map((c) => [c.type, c.status, c.reason, c.observedGeneration])).toEqual([
      ['Ready', 'False', 'IssuesReported', 3],
      ['ClusterAvailable', 'True', 'Available', 3],
      ['HelmReleaseReady', 'False', preparing.reason, 3],
    ]);
    expect(status?.conditions?.[0]?.lastTransitionTime).toBe('2026-12-01T00:00:00Z');
  });

  it('healthy: Ready is True with the reason InfoReported', () => {
    const conditions = [clusterAvailable, releaseCondition(release('deployed'))];
    const { status } = withFindings(proxy(), { conditions }, NOW);
    expect(status?.conditions?.[0]).toMatchObject({
      type: 'Ready',
      status: 'True',
      reason: 'InfoReported',
      message: '',
    });
  });

  it('what is not found out stays', () => {
    const before = { status: 'deployed', revision: 2, chartVersion: '1', operation: { type: 'upgrade' } };
    expect(withFindings(proxy(before), {}, NOW).status).toEqual({ ...before, conditions: undefined });
  });

  it('from what another revision was made is forgotten', () => {
    const before = { status: 'deployed', revision: 1, chartVersion: '0', chartDigest: 'd', valuesDigest: 'v' };
    expect(withFindings(proxy(before), { release: release('failed') }, NOW).status).toMatchObject({
      chartVersion: '1',
      chartDigest: 'd',
      valuesDigest: 'v',
    });
    const other = withFindings(proxy({ ...before, revision: 7 }), { release: release('failed') }, NOW).status;
    expect(JSON.parse(JSON.stringify(other))).toEqual({ status: 'failed', revision: 1, chartVersion: '1' });
  });

  it('an operation that is over, and a release that is gone, are taken away', () => {
    const before = { status: 'deployed', revision: 2, chartVersion: '1', operation: { type: 'upgrade' } };
    const { status } = withFindings(proxy(before), { operation: null, release: null }, NOW);
    expect(JSON.parse(JSON.stringify(status))).toEqual({});
  });
});
