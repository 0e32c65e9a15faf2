import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HCP } from '../resources.ts';
import { chartProxy, cluster } from './objects.test-support.ts';
import { CLUSTERS, INSTALLED, World } from './world.test-support.ts';

let world: World;

beforeEach(() => {
  vi.useFakeTimers();
  world = new World();
});

afterEach(async () => {
  await world.stop();
  vi.useRealTimers();
});

describe('Clusters', () => {
  it('that come, and that a label selects, get a HelmReleaseProxy; one that loses its label loses it', async () => {
    await world.startTwo();
    await world.installed();
    world.server.put(CLUSTERS, cluster('w5'));
    await world.settle();
    expect(world.onClusters()).toEqual(['w1', 'w2', 'w5']);
    await world.editCluster('w3', (object) => {
      object.metadata.labels = { addon: 'yes' };
    });
    expect(world.onClusters()).toEqual(['w1', 'w2', 'w3', 'w5']);
    await world.editCluster('w1', (object) => {
      object.metadata.labels = {};
    });
    expect(world.proxyOn('w1')?.metadata.deletionTimestamp).toBeDefined();
    expect(world.chartProxy()?.status?.matchingClusters?.map(({ name }) => name)).toEqual(['w2', 'w3', 'w5']);
  });

  it.each([undefined, 'Continuous'])('no longer selected: strategy %s lets go', async (reconcileStrategy) => {
    await world.startTwo({ reconcileStrategy });
    await world.installed();
    await world.editChartProxy(({ spec }) => {
      spec.clusterSelector = { matchLabels: { none: 'such' } };
    });
    await world.uninstalled('w1');
    await world.uninstalled('w2');
    expect(world.proxies()).toEqual([]);
    expect(world.chartProxy()?.status?.matchingClusters).toBeUndefined();
    expect(world.condition('Ready')).toMatch(/^True/);
  });

  it('no longer selected: InstallOnce keeps its HelmReleaseProxies', async () => {
    await world.startTwo({ reconcileStrategy: 'InstallOnce' });
    await world.installed(INSTALLED);
    await world.editChartProxy(({ spec }) => {
      spec.clusterSelector = { matchLabels: { none: 'such' } };
    });
    expect(world.proxies()).toHaveLength(2);
    expect(world.condition('Ready')).toMatch(/^True/);
  });

  it('handed off: a new template changes nothing', async () => {
    await world.startTwo({ reconcileStrategy: 'InstallOnce' });
    await world.installed(INSTALLED);
    const before = world.proxies();
    await world.editChartProxy(({ spec }) => {
      spec.valuesTemplate = 'new: {{.Cluster.metadata.name}}';
    });
    expect(world.proxies()).toEqual(before);
    expect(world.condition('Ready')).toMatch(/^True/);
  });

  it('not yet handed off: InstallOnce follows the template', async () => {
    await world.startTwo({ reconcileStrategy: 'InstallOnce' });
    await world.editChartProxy(({ spec }) => {
      spec.valuesTemplate = 'new: {{.Cluster.metadata.name}}';
    });
    expect(world.proxyOn('w1')?.spec.values).toBe('new: w1');
  });

  it('gone: InstallOnce lets go too (W12)', async () => {
    await world.startTwo({ reconcileStrategy: 'InstallOnce' });
    await world.installed(INSTALLED);
    world.server.remove(CLUSTERS, 'fleet', 'w1');
    await world.settle();
    expect(world.proxyOn('w1')?.metadata.deletionTimestamp).toBeDefined();
    expect(world.proxyOn('w2')?.metadata.deletionTimestamp).toBeUndefined();
  });

  it('recreated under the same name while nobody looked: InstallOnce starts anew once the cluster says who it is (W12)', async () => {
    world.fleet.engage('fleet/w1', 'kube-system-1');
    await world.startTwo({ reconcileStrategy: 'InstallOnce' });
    const workload = { 'helmreleaseproxy.addons.cluster.x-k8s.io/workload-cluster-uid': 'kube-system-1' };
    await world.installed({ annotations: { ...INSTALLED.annotations, ...workload } });
    await world.stop();
    world.server.put(CLUSTERS, cluster('w1', { uid: 'w1-uid-2' }));
    world.fleet.engage('fleet/w1', 'kube-system-2');
    await world.start();
    expect(world.proxyOn('w1')?.metadata.deletionTimestamp).toBeDefined();
  });

  it('moved by clusterctl: the same workload cluster keeps its HelmReleaseProxy', async () => {
    await world.startTwo({ reconcileStrategy: 'InstallOnce' });
    const workload = { 'helmreleaseproxy.addons.cluster.x-k8s.io/workload-cluster-uid': 'kube-system-1' };
    await world.installed({ annotations: { ...INSTALLED.annotations, ...workload } });
    const before = world.proxyOn('w1');
    await world.stop();
    world.server.put(CLUSTERS, cluster('w1', { uid: 'w1-uid-2' }));
    await world.start();
    expect(world.proxyOn('w1')).toEqual(before);
    world.fleet.engage('fleet/w1', 'kube-system-1');
    await world.settle();
    expect(world.proxyOn('w1')?.spec.clusterRef.uid).toBe('w1-uid-2');
    expect(world.proxyOn('w1')?.metadata.uid).toBe(before?.metadata.uid);
  });

  it('paused: listed, but nothing is made until it is not', async () => {
    world.server.put(CLUSTERS, cluster('w0', {}, { paused: true }));
    await world.startTwo();
    await world.installed();
    expect(world.onClusters()).toEqual(['w1', 'w2']);
    expect(world.chartProxy()?.status?.matchingClusters).toHaveLength(3);
    expect(world.condition('Ready')).toMatch(/^True/);
    await world.editCluster('w0', (object) => {
      object.spec = { paused: false };
    });
    expect(world.onClusters()).toEqual(['w0', 'w1', 'w2']);
  });

  it('of a HelmChartProxy with an invalid selector do not trouble the others (W9)', async () => {
    const broken = { matchExpressions: [{ key: 'a', operator: 'Sometimes' as 'In', values: [] }] };
    world.server.put(HCP, chartProxy({ clusterSelector: broken }, { name: 'broken', uid: 'broken-uid' }));
    await world.startTwo();
    world.server.put(CLUSTERS, cluster('w5'));
    await world.settle();
    expect(world.onClusters()).toContain('w5');
    expect(world.condition('HelmReleaseProxySpecsUpToDate', 'broken')).toMatch(
      /^False\/ClusterSelectionFailed: .*Sometimes/,
    );
    await world.server.client.delete(HCP, { namespace: 'fleet', name: 'broken' });
    await world.settle();
    expect(world.chartProxy('broken')).toBeUndefined();
  });
});
