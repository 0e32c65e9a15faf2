import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Proxy } from '../support/index.ts';
import { clusterPath, condition, createCluster, eventually, Fleet, Mirror, setLabels } from '../support/index.ts';
import { simpleChart } from '../support/index.ts';
import { passes } from './looks.ts';

const INFRA_GROUP = 'infrastructure.cluster.x-k8s.io';

/** Defects W4, W8, W9 and W11 of CAAPH: one HelmChartProxy, many Clusters. */
describe('a platform engineer with several clusters', () => {
  let fleet: Fleet;

  beforeAll(async () => {
    // Cluster c1 refers to an infrastructure object that nobody has made; that of c2 is there.
    const reference = { apiGroup: INFRA_GROUP, kind: 'TestCluster', name: 'c1' };
    const broken = { spec: { infrastructureRef: reference } };
    fleet = await Fleet.start({
      clusters: 2,
      declare: (index) => (index === 1 ? broken : { infraCluster: { spec: { region: 'north' } } }),
    });
    fleet.charts.publish(simpleChart({ name: 'app', objects: 1 }));
  });

  afterAll(async () => {
    await fleet.stop();
  });

  async function label(cluster: string, labels: Record<string, string | null>): Promise<void> {
    await setLabels(fleet.api, { name: cluster, namespace: fleet.namespace }, labels);
  }

  async function create(name: string, spec: Record<string, unknown> = {}): Promise<void> {
    await fleet.createChartProxy(name, { chartName: 'app', releaseName: name, namespace: name, ...spec });
  }

  it('W4: reads matchingClusters and sources in one order, and an unchanged status is not written again', async () => {
    const names = ['w4-m', 'w4-z', 'w4-b', 'w4-q', 'w4-a', 'w4-k', 'w4-c', 'w4-x'];
    for (const name of names)
      await createCluster(fleet.api, { name, namespace: fleet.namespace, ready: false, labels: { ordered: 'yes' } });
    await create('ordered', { clusterSelector: { matchLabels: { ordered: 'yes' } } });
    const before = await eventually(
      async () => {
        const proxies = await fleet.releaseProxies('ordered');
        expect(proxies.map((proxy) => condition(proxy, 'ClusterAvailable')?.reason)).toEqual(
          names.map(() => 'NotAvailable'),
        );
        const told = await fleet.chartProxy('ordered');
        expect(told.status?.matchingClusters?.map(({ name }) => name)).toEqual([...names].sort());
        expect(condition(told, 'HelmReleaseProxySpecsUpToDate')?.status).toBe('True');
        const message = condition(told, 'HelmReleaseProxiesReady')?.message ?? '';
        const sources = proxies.map((proxy) => `HelmReleaseProxy/${proxy.metadata.name ?? ''}`).sort();
        expect(message).toContain(`(sources: ${sources.slice(0, 3).join(', ')}, ... (5 more))`);
        return told;
      },
      { timeoutMs: 60_000, what: 'all is told' },
    );
    const seen = await passes(fleet, 'helmchartproxy-placement');
    for (const name of [...names].reverse()) await label(name, { touched: 'yes' });
    await placementsLookedAt(seen + names.length);
    await fleet.manager.stop();
    await fleet.startManager();
    await placementsLookedAt(names.length);
    await create('sentinel', { clusterSelector: { matchLabels: { idx: '2' } } });
    await fleet.conditionOf({ chartProxy: 'sentinel' }, { type: 'Ready', status: 'True' });
    const after = await fleet.chartProxy('ordered');
    expect([after.status, after.metadata.resourceVersion]).toEqual([before.status, before.metadata.resourceVersion]);
    for (const name of names) await fleet.api.delete(clusterPath({ name, namespace: fleet.namespace }));
    await fleet.removeChartProxy('ordered');
    await fleet.removeChartProxy('sentinel');
  });

  async function placementsLookedAt(count: number): Promise<void> {
    await eventually(
      async () => {
        expect(await passes(fleet, 'helmchartproxy-placement')).toBeGreaterThanOrEqual(count);
      },
      { what: 'the placements are looked at' },
    );
  }

  it('W8: a cluster that lacks what the template reads holds up no other, is named, and is served once it has it', async () => {
    await create('reading', { valuesTemplate: 'message: "{{ .InfraCluster.spec.region }}"\n' });
    const other = await fleet.deployed('reading', 2);
    expect(other.spec.values).toBe('message: "north"\n');
    const told = await fleet.conditionOf(
      { chartProxy: 'reading' },
      { type: 'HelmReleaseProxySpecsUpToDate', status: 'False', reason: 'ValueParsingFailed' },
    );
    expect(told.message).toContain('cluster c1');
    expect(told.message).toMatch(/TestCluster/);
    await fleet.patchChartProxy('reading', {
      spec: { valuesTemplate: 'message: "{{ .InfraCluster.spec.region }} again"\n' },
    });
    expect((await fleet.deployed('reading', 2, { revision: 2 })).spec.values).toBe('message: "north again"\n');
    await fleet.api.create(`/apis/${INFRA_GROUP}/v1beta2/namespaces/${fleet.namespace}/testclusters`, {
      apiVersion: `${INFRA_GROUP}/v1beta2`,
      kind: 'TestCluster',
      metadata: { name: 'c1' },
      spec: { region: 'south' },
    });
    expect((await fleet.deployed('reading', 1)).spec.values).toBe('message: "south again"\n');
    await fleet.conditionOf({ chartProxy: 'reading' }, { type: 'Ready', status: 'True' });
    await fleet.removeChartProxy('reading');
  });

  it('W8: what no template reads need not be there', async () => {
    const path = `/apis/${INFRA_GROUP}/v1beta2/namespaces/${fleet.namespace}/testclusters/c1`;
    if (await fleet.api.find(path)) await fleet.api.delete(path);
    await create('modest', { valuesTemplate: 'message: "{{ .Cluster.metadata.name }}"\n' });
    expect((await fleet.deployed('modest', 1)).spec.values).toBe('message: "c1"\n');
    await fleet.conditionOf({ chartProxy: 'modest' }, { type: 'Ready', status: 'True' });
    await fleet.removeChartProxy('modest');
  });

  it('W9: an unusable selector troubles its own HelmChartProxy alone, throws nobody out, and can be deleted', async () => {
    await label('c1', { spoilt: 'yes' });
    await create('spoilt', { clusterSelector: { matchLabels: { spoilt: 'yes' } } });
    await fleet.deployed('spoilt', 1);
    await fleet.patchChartProxy('spoilt', { spec: { clusterSelector: { matchLabels: { 'not a key': 'yes' } } } });
    const told = await fleet.conditionOf(
      { chartProxy: 'spoilt' },
      { type: 'HelmReleaseProxySpecsUpToDate', status: 'False', reason: 'ClusterSelectionFailed' },
    );
    expect(told.message).toContain('not a key');
    // Another HelmChartProxy of the namespace still follows the labels of Clusters.
    await create('sound', { clusterSelector: { matchLabels: { sound: 'yes' } } });
    await label('c2', { sound: 'yes' });
    await fleet.deployed('sound', 2);
    await label('c2', { sound: null });
    await eventually(async () => {
      expect(await fleet.releaseProxies('sound')).toEqual([]);
    });
    expect((await fleet.releases(1)).map(({ name }) => name)).toEqual(['spoilt']);
    await fleet.removeChartProxy('spoilt');
    expect(await fleet.releases(1)).toEqual([]);
    await fleet.removeChartProxy('sound');
  });

  it('W11: a reinstallation is told while it goes on, and is over when it is', async () => {
    await create('moving', { clusterSelector: { matchLabels: { idx: '1' } } });
    await fleet.deployed('moving', 1);
    await fleet.conditionOf({ chartProxy: 'moving' }, { type: 'Ready', status: 'True' });
    const told: string[] = [];
    const mirror = await Mirror.start<Proxy>(fleet.api, fleet.path('helmchartproxies'), ({ object }) => {
      if (object.metadata.name !== 'moving') return;
      const { status, reason, message } = condition(object, 'HelmReleaseProxySpecsUpToDate') ?? {};
      told.push(`${String(status)} ${String(reason)} ${String(message)}`);
    });
    try {
      await fleet.patchChartProxy('moving', { spec: { namespace: 'moved' } });
      await eventually(async () => {
        expect((await fleet.deployed('moving', 1)).spec['namespace']).toBe('moved');
      });
      await fleet.conditionOf({ chartProxy: 'moving' }, { type: 'HelmReleaseProxySpecsUpToDate', status: 'True' });
      const words = "HelmReleaseProxy on cluster 'c1' successfully deleted, preparing to reinstall";
      expect(told).toContain(`False HelmReleaseProxyReinstalling ${words}`);
    } finally {
      await mirror.stop();
    }
    expect((await fleet.releases(1)).map(({ name, namespace }) => `${namespace}/${name}`)).toEqual(['moved/moving']);
    await fleet.removeChartProxy('moving');
  });
});
