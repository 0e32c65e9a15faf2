import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  clusterPath,
  condition,
  deleteCluster,
  deleteKubeconfig,
  eventually,
  Fleet,
  setKubeconfig,
} from '../support/index.ts';
import { setLabels, setPaused, setReady, simpleChart } from '../support/index.ts';
import { lookAgain, operations, passes } from './looks.ts';

const PAUSED = 'cluster.x-k8s.io/paused';
const FORCE_DELETE = 'helmreleaseproxy.addons.cluster.x-k8s.io/force-delete';

/** Defects W2, W12, W13 and W18 of CAAPH: what a Cluster goes through. */
describe('a platform engineer whose clusters come, pause and go', () => {
  let fleet: Fleet;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 2 });
    fleet.charts.publish(simpleChart({ name: 'app', objects: 1 }));
  });

  afterAll(async () => {
    await fleet.stop();
  });

  function key(name: string): { name: string; namespace: string } {
    return { name, namespace: fleet.namespace };
  }

  /** A HelmChartProxy for the Clusters that have its name as a label. */
  async function create(name: string, spec: Record<string, unknown> = {}): Promise<void> {
    const clusterSelector = { matchLabels: { [name]: 'yes' } };
    await fleet.createChartProxy(name, {
      chartName: 'app',
      releaseName: name,
      namespace: name,
      clusterSelector,
      ...spec,
    });
  }

  async function label(cluster: string, labels: Record<string, string | null>): Promise<void> {
    await setLabels(fleet.api, key(cluster), labels);
  }

  async function releaseNames(index: number): Promise<string[]> {
    return (await fleet.releases(index)).map(({ name }) => name).sort();
  }

  async function gone(chartProxy: string): Promise<void> {
    await eventually(
      async () => {
        expect((await fleet.releaseProxies(chartProxy)).map((proxy) => proxy.status)).toEqual([]);
      },
      { timeoutMs: 60_000, what: `the HelmReleaseProxies of ${chartProxy} are gone` },
    );
  }

  /** As Cluster API creates it: no status at all, though its API server may answer already. */
  async function newCluster(name: string, index: number): Promise<void> {
    await fleet.api.create(clusterPath({ ...key(name), name: '' }).replace(/\/$/, ''), {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind: 'Cluster',
      metadata: { name, labels: { [name]: 'yes' } },
      spec: {},
    });
    await setKubeconfig(fleet.api, key(name), fleet.cluster(index).kubeconfig);
  }

  it('W2: a control plane of which nothing is said yet is waited for, without an error or a request', async () => {
    const errors = async (): Promise<number> => fleet.manager.metric('controller_runtime_reconcile_errors_total');
    const before = await errors();
    await newCluster('early', 2);
    await create('early');
    const told = { type: 'ClusterAvailable', status: 'False', reason: 'NotAvailable' };
    await eventually(async () => {
      const [proxy] = await fleet.releaseProxies('early');
      expect(proxy?.status?.conditions).toContainEqual(expect.objectContaining(told));
    });
    await lookedAt('early');
    expect(await errors()).toBe(before);
    expect(await fleet.manager.metric('capstan_kube_requests_total', { cluster: `${fleet.namespace}/early` })).toBe(0);
    expect(await fleet.cluster(2).api.find('/api/v1/namespaces/early')).toBeUndefined();
    await setReady(fleet.api, key('early'), true);
    await eventually(async () => {
      expect(await releaseNames(2)).toEqual(['early']);
    });
    await fleet.removeChartProxy('early');
    await deleteCluster(fleet.api, key('early'));
  });

  async function lookedAt(chartProxy: string): Promise<void> {
    const before = await passes(fleet, 'helmchartproxy-placement');
    await fleet.patchChartProxy(chartProxy, { metadata: { annotations: { 'test.example/look': 'again' } } });
    await eventually(async () => {
      expect(await passes(fleet, 'helmchartproxy-placement')).toBeGreaterThan(before);
    });
  }

  it('W12: a handed-off release needs its cluster no more, and goes with it', async () => {
    await label('c1', { once: 'yes' });
    await create('once', { reconcileStrategy: 'InstallOnce', valuesTemplate: 'message: first\n' });
    await fleet.deployed('once', 1);
    await eventually(async () => {
      const annotations = (await fleet.releaseProxy('once', 1)).metadata.annotations ?? {};
      expect(Object.keys(annotations)).toContainEqual(expect.stringContaining('release-successfully-installed'));
    });
    await deleteKubeconfig(fleet.api, key('c1'));
    await eventually(async () => {
      expect(await fleet.manager.metric('capstan_watches', { cluster: `${fleet.namespace}/c1` })).toBe(0);
    });
    await fleet.patchChartProxy('once', { spec: { valuesTemplate: 'message: second\n', version: '9.9.9' } });
    await fleet.conditionOf({ chartProxy: 'once' }, { type: 'HelmReleaseProxySpecsUpToDate', status: 'True' });
    await lookAgain(fleet, 'once');
    const proxy = await fleet.releaseProxy('once', 1);
    expect(proxy.spec.values).toBe('message: first\n');
    await fleet.conditionOf({ chartProxy: 'once', index: 1 }, { type: 'Ready', status: 'True' });

    await deleteCluster(fleet.api, key('c1'), true);
    await gone('once');
    await fleet.conditionOf({ chartProxy: 'once' }, { type: 'Ready', status: 'True' });
    expect(await releaseNames(1)).toEqual(['once']);
  });

  it('W12: a cluster recreated under the name of a handed-off one is a new cluster', async () => {
    // The Cluster went in the test before; another machine now bears its name.
    await fleet.patchChartProxy('once', { spec: { version: null } });
    await fleet.declare(1, { kubeconfig: fleet.cluster(2).kubeconfig, labels: { once: 'yes', idx: '1' } });
    const proxy = await fleet.deployed('once', 1);
    expect(proxy.spec.values).toBe('message: second\n');
    expect(await releaseNames(2)).toEqual(['once']);
    await fleet.removeChartProxy('once');
    // InstallOnce leaves what it put there.
    expect(await releaseNames(2)).toEqual(['once']);
    await fleet.cluster(2).helm3(['uninstall', 'once', '-n', 'once']);
    await deleteCluster(fleet.api, key('c1'));
    await fleet.cluster(1).helm3(['uninstall', 'once', '-n', 'once']);
    await fleet.declare(1);
  });

  it('W13: a paused HelmChartProxy is left alone, orphans and status too, until it is not', async () => {
    await label('c1', { still: 'yes' });
    await label('c2', { still: 'yes' });
    await create('still');
    await fleet.deployed('still', 1);
    await fleet.deployed('still', 2);
    await fleet.conditionOf({ chartProxy: 'still' }, { type: 'Ready', status: 'True' });
    const paused = await fleet.patchChartProxy('still', { metadata: { annotations: { [PAUSED]: 'true' } } });
    await label('c1', { still: null });
    const [, second] = await fleet.releaseProxies('still');
    await fleet.api.patch(`${fleet.path('helmreleaseproxies')}/${second?.metadata.name ?? ''}/status`, {
      status: { conditions: [] },
    });
    await sentinel('c1');
    expect((await fleet.chartProxy('still')).metadata.resourceVersion).toBe(paused.metadata.resourceVersion);
    expect(await fleet.releaseProxies('still')).toHaveLength(2);
    expect(await releaseNames(1)).toContain('still');
    await fleet.patchChartProxy('still', { metadata: { annotations: { [PAUSED]: null } } });
    await eventually(async () => {
      expect((await fleet.releaseProxies('still')).map((proxy) => proxy.spec.clusterRef?.name)).toEqual(['c2']);
      expect(await releaseNames(1)).not.toContain('still');
    });
    await fleet.removeChartProxy('still');
  });

  it('W13: the releases of a paused Cluster are left alone, until it is not', async () => {
    await label('c2', { frozen: 'yes' });
    await create('frozen', { valuesTemplate: 'message: before\n' });
    await fleet.deployed('frozen', 2);
    await fleet.conditionOf({ chartProxy: 'frozen' }, { type: 'Ready', status: 'True' });
    await setPaused(fleet.api, key('c2'), true);
    const before = await fleet.releaseProxy('frozen', 2);
    await fleet.cluster(2).helm3(['uninstall', 'frozen', '-n', 'frozen']);
    await fleet.patchChartProxy('frozen', { spec: { valuesTemplate: 'message: after\n' } });
    const helm = await operations(fleet, 'install');
    await sentinel('c1');
    const after = await fleet.releaseProxy('frozen', 2);
    expect([after.spec, after.status]).toEqual([before.spec, before.status]);
    expect(await operations(fleet, 'install')).toBe(helm + 1);
    expect(await releaseNames(2)).not.toContain('frozen');
    await setPaused(fleet.api, key('c2'), false);
    await eventually(async () => {
      expect((await fleet.deployed('frozen', 2)).spec.values).toBe('message: after\n');
      expect(await releaseNames(2)).toContain('frozen');
    });
    await fleet.removeChartProxy('frozen');
  });

  /** Shows that the manager has come round since: another HelmChartProxy is installed and removed. */
  async function sentinel(cluster: string): Promise<void> {
    await label(cluster, { sentinel: 'yes' });
    await create('sentinel');
    await fleet.deployed('sentinel', Number(cluster.slice(1)));
    await fleet.removeChartProxy('sentinel');
    await label(cluster, { sentinel: null });
  }

  it('W18: a deletion that lacks a kubeconfig says so, and can be let go', async () => {
    await withoutKubeconfig('stuck');
    await fleet.deleteChartProxy('stuck');
    const told = await fleet.conditionOf(
      { chartProxy: 'stuck' },
      { type: 'HelmReleaseProxiesReady', status: 'False', reason: 'HelmReleaseProxiesDeleting' },
    );
    expect(told.message).toContain('waiting for 1 HelmReleaseProxy');
    expect(told.message).toContain('c2');
    const proxy = await eventually(async () => {
      const found = await fleet.releaseProxy('stuck', 2);
      expect(condition(found, 'ClusterAvailable')?.reason).toBe('GetKubeconfigFailed');
      expect(JSON.stringify(found.status?.conditions)).toContain(FORCE_DELETE);
      return found;
    });
    const path = `${fleet.path('helmreleaseproxies')}/${proxy.metadata.name ?? ''}`;
    await fleet.api.patch(path, { metadata: { annotations: { [FORCE_DELETE]: 'true' } } });
    await eventually(async () => {
      expect(await fleet.findChartProxy('stuck')).toBeUndefined();
    });
    expect(await releaseNames(2)).toEqual(['stuck']);
    await setKubeconfig(fleet.api, key('c2'), fleet.cluster(2).kubeconfig);
    await fleet.cluster(2).helm3(['uninstall', 'stuck', '-n', 'stuck']);
  });

  it('W18: one that lacks a kubeconfig for a while goes on by itself once that is back', async () => {
    await withoutKubeconfig('later');
    await fleet.deleteChartProxy('later');
    await eventually(async () => {
      expect(condition(await fleet.releaseProxy('later', 2), 'ClusterAvailable')?.reason).toBe('GetKubeconfigFailed');
    });
    await setKubeconfig(fleet.api, key('c2'), fleet.cluster(2).kubeconfig);
    await eventually(async () => {
      expect(await fleet.findChartProxy('later')).toBeUndefined();
    });
    expect(await releaseNames(2)).not.toContain('later');
  });

  /** Installs on c2, of whose kubeconfig a new manager then knows nothing; one that has a connection would go on using it. */
  async function withoutKubeconfig(name: string): Promise<void> {
    await label('c2', { [name]: 'yes' });
    await create(name);
    await fleet.deployed(name, 2);
    await fleet.manager.stop();
    await deleteKubeconfig(fleet.api, key('c2'));
    await fleet.startManager();
  }
});
