import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import PQueue from 'p-queue';
import type { Condition } from '../support/index.ts';
import { condition, eventually, Fleet } from '../support/index.ts';

/** CAAPH's message names every source: with names as long as these it passes the CRD's limit. */
const CLUSTERS = 430;
/** What the CRD takes in one message (caaph §1.2). */
const LIMIT = 32_768;

describe('a platform engineer with hundreds of clusters', () => {
  let fleet: Fleet;

  beforeAll(async () => {
    // Clusters that are yet to come up cost nothing: no control plane, no kubeconfig.
    fleet = await Fleet.start({ clusters: 0 });
    const creating = new PQueue({ concurrency: 16 });
    const path = `/apis/cluster.x-k8s.io/v1beta2/namespaces/${fleet.namespace}/clusters`;
    await creating.addAll(
      Array.from({ length: CLUSTERS }, (_, index) => async () => {
        const metadata = {
          name: `customer-${String(index).padStart(4, '0')}-production-of-the-northern-region`,
          labels: { fleet: 'yes' },
        };
        await fleet.api.create(path, { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', metadata, spec: {} });
      }),
    );
  });

  afterAll(async () => {
    await fleet.stop();
  });

  /** Waits until the status speaks of all Clusters and of the spec as it is; resolves with the conditions. */
  async function told(): Promise<Condition[]> {
    return eventually(
      async () => {
        const { metadata, status } = await fleet.chartProxy('wide');
        expect(status?.observedGeneration).toBe(metadata.generation);
        expect(status?.matchingClusters).toHaveLength(CLUSTERS);
        const specs = condition({ metadata, spec: {}, status }, 'HelmReleaseProxySpecsUpToDate');
        expect([specs?.status, specs?.message]).toEqual(['True', '']);
        expect(specs).toMatchObject({ observedGeneration: metadata.generation });
        return status?.conditions ?? [];
      },
      { timeoutMs: 110_000, intervalMs: 500, what: `the status of ${CLUSTERS} clusters` },
    );
  }

  it(`W5: still reads a status that moves on, with ${CLUSTERS} clusters`, async () => {
    await fleet.createChartProxy('wide', { chartName: 'app', releaseName: 'wide', valuesTemplate: 'one: 1\n' });
    const conditions = await told();
    expect(conditions.map(({ type }) => type)).toEqual([
      'Ready',
      'HelmReleaseProxiesReady',
      'HelmReleaseProxySpecsUpToDate',
    ]);
    const sources = (await fleet.releaseProxies('wide')).map(
      (proxy) => `HelmReleaseProxy/${proxy.metadata.name ?? ''}`,
    );
    expect(sources.join(', ').length).toBeGreaterThan(LIMIT);
    for (const { message } of conditions) expect(message.length).toBeLessThan(LIMIT / 8);
    const ready = conditions.find(({ type }) => type === 'HelmReleaseProxiesReady');
    expect(ready).toMatchObject({ status: 'False', reason: 'IssuesReported' });
    expect(ready?.message).toContain(`... (${CLUSTERS - 3} more)`);
  });

  it('W5: and follows a change of the spec to every one of them', async () => {
    await fleet.patchChartProxy('wide', { spec: { valuesTemplate: 'two: 2\n' } });
    await told();
    const values = (await fleet.releaseProxies('wide')).map((proxy) => proxy.spec.values);
    expect(values).toHaveLength(CLUSTERS);
    expect(new Set(values)).toEqual(new Set(['two: 2\n']));
  });
});
