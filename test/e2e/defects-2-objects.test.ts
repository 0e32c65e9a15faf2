import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chartFromFiles, createCluster, eventually, Fleet, OciRegistry, simpleChart } from '../support/index.ts';
import type { Proxy } from '../support/index.ts';
import { createSecret } from './secrets.ts';

/** What is written into objects, by people who err and who like long names. */
describe('a user who writes HelmChartProxies', () => {
  let fleet: Fleet;
  let registry: OciRegistry;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 2 });
    registry = await OciRegistry.start(fleet.environment);
    await createSecret(fleet, 'registry-ca', { 'ca.crt': registry.ca });
    const dependencies = [{ name: 'app', version: '1.0.0', repository: fleet.charts.url }];
    fleet.charts.publish(
      simpleChart({ name: 'app' }),
      simpleChart({ name: 'other' }),
      chartFromFiles({ name: 'incomplete', version: '1.0.0', dependencies }, { 'values.yaml': '{}\n' }),
    );
  });

  afterAll(async () => {
    await fleet.stop();
  });

  /** Applies a HelmChartProxy for c1 unless told otherwise. */
  async function apply(name: string, spec: Record<string, unknown>): Promise<void> {
    const clusterSelector = { matchLabels: { idx: '1' } };
    await fleet.createChartProxy(name, {
      chartName: 'app',
      releaseName: name,
      namespace: name,
      clusterSelector,
      ...spec,
    });
  }

  /** HelmReleaseProxies that a HelmChartProxy owns, whatever its label can hold. */
  async function owned(chartProxy: string): Promise<Proxy[]> {
    const { uid } = (await fleet.chartProxy(chartProxy)).metadata;
    return (await fleet.releaseProxies()).filter((proxy) =>
      (proxy.metadata['ownerReferences'] as { uid: string }[] | undefined)?.some((owner) => owner.uid === uid),
    );
  }

  async function installed(index: number, release: string): Promise<void> {
    await eventually(
      async () => {
        const found = (await fleet.releases(index)).find(({ name }) => name === release);
        expect(found?.status).toBe('deployed');
      },
      { timeoutMs: 60_000, what: `release ${release} on c${index}` },
    );
  }

  it('W21: mends a misspelt chartName or repoURL under InstallOnce without deleting anything', async () => {
    const once = { reconcileStrategy: 'InstallOnce' };
    await apply('misspelt-chart', { ...once, chartName: 'ap' });
    await apply('misspelt-url', { ...once, repoURL: `${fleet.charts.url}/nowhere` });
    for (const chartProxy of ['misspelt-chart', 'misspelt-url']) {
      await fleet.conditionOf(
        { chartProxy, index: 1 },
        { type: 'HelmReleaseReady', reason: 'HelmInstallOrUpgradeFailed' },
      );
    }
    await fleet.patchChartProxy('misspelt-chart', { spec: { chartName: 'app' } });
    await fleet.patchChartProxy('misspelt-url', { spec: { repoURL: fleet.charts.url } });
    for (const name of ['misspelt-chart', 'misspelt-url']) {
      const proxy = await fleet.deployed(name, 1);
      expect(proxy.spec).toMatchObject({ chartName: 'app', repoURL: fleet.charts.url });
    }
    // Handed off by now: a further change is none.
    await fleet.patchChartProxy('misspelt-chart', { spec: { chartName: 'other' } });
    await fleet.conditionOf(
      { chartProxy: 'misspelt-chart' },
      { type: 'HelmReleaseProxySpecsUpToDate', status: 'True' },
    );
    expect((await fleet.releaseProxy('misspelt-chart', 1)).spec['chartName']).toBe('app');
  });

  it('W22: gives a HelmChartProxy and a Cluster names longer than a label may be', async () => {
    const name = `long-${'x'.repeat(70)}`;
    const cluster = `cluster-${'y'.repeat(70)}`;
    const { kubeconfig } = fleet.cluster(2);
    // CAPI's label cannot hold such a name: the Secret comes without it.
    await createSecret(fleet, `${cluster}-kubeconfig`, { value: kubeconfig });
    await createCluster(fleet.api, { name: cluster, namespace: fleet.namespace, labels: { idx: 'long' } });
    await apply(name, {
      releaseName: 'long',
      namespace: 'long',
      clusterSelector: { matchExpressions: [{ key: 'idx', operator: 'In', values: ['1', 'long'] }] },
    });
    for (const index of [1, 2]) await installed(index, 'long');
    const proxies = await owned(name);
    expect(proxies.map(({ spec }) => spec.clusterRef?.name).sort()).toEqual(['c1', cluster]);
    await fleet.patchChartProxy(name, { spec: { valuesTemplate: 'message: two\n' } });
    await eventually(async () => {
      expect((await fleet.releases(2)).find((release) => release.name === 'long')?.revision).toBe('2');
    });
    await fleet.removeChartProxy(name);
    for (const index of [1, 2]) {
      expect((await fleet.releases(index)).map((release) => release.name)).not.toContain('long');
    }
  });

  it('W22: names a chart that lies deeper in the registry, with a slash', async () => {
    await registry.push(simpleChart({ name: 'deep' }), 'charts/team/a');
    await apply('deep', {
      chartName: 'team/a/deep',
      releaseName: '',
      repoURL: registry.url,
      tlsConfig: { caSecret: { name: 'registry-ca' } },
    });
    const proxy = await fleet.deployed('deep', 1);
    // Helm's rule: the last part, and when.
    expect(proxy.spec.releaseName).toMatch(/^deep-\d+$/);
  });

  it('W23: is told which field is wrong, and what of it', async () => {
    await expect(apply('no-url', { repoURL: 'not a url' })).rejects.toThrow(/spec\.repoURL.*must be a URL/s);
    await expect(apply('no-url', { repoURL: 'not a url' })).rejects.not.toThrow(/ReleaseNamespace/i);
  });

  it('W23: is told that Helm 4 cannot recreate pods, and what a packed chart lacks', async () => {
    await apply('recreate', { options: { upgrade: { recreate: true } } });
    // It says nothing of an install, which recreates nothing.
    await fleet.deployed('recreate', 1);
    await fleet.patchChartProxy('recreate', { spec: { valuesTemplate: 'message: two\n' } });
    const refused = { type: 'HelmReleaseReady', status: 'False', reason: 'HelmOptionUnsupported' };
    const recreate = await fleet.conditionOf({ chartProxy: 'recreate', index: 1 }, refused);
    expect(recreate.message).toContain('options.upgrade.recreate');
    await fleet.patchChartProxy('recreate', { spec: { options: { upgrade: { recreate: false } } } });
    await fleet.deployed('recreate', 1, { revision: 2 });

    await apply('incomplete', { chartName: 'incomplete', options: { dependencyUpdate: true } });
    const update = await fleet.conditionOf({ chartProxy: 'incomplete', index: 1 }, refused);
    expect(update.message).toContain('dependencyUpdate');
    // What lacks nothing needs no update.
    await fleet.patchChartProxy('incomplete', { spec: { chartName: 'app' } });
    await fleet.deployed('incomplete', 1);
  });

  it('W24: cannot point a HelmReleaseProxy at another cluster', async () => {
    await apply('fixed', {});
    const proxy = await fleet.deployed('fixed', 1);
    const path = `${fleet.path('helmreleaseproxies')}/${proxy.metadata.name ?? ''}`;
    for (const change of [{ name: 'c2' }, { namespace: 'elsewhere' }]) {
      const clusterRef = { ...proxy.spec.clusterRef, ...change };
      await expect(fleet.api.patch(path, { spec: { clusterRef } })).rejects.toThrow(/clusterRef.*immutable/s);
    }
  });

  it('W24: is told when a release belongs to another HelmChartProxy, and gets it when that one lets go', async () => {
    const release = { releaseName: 'contested', namespace: 'contested' };
    await apply('contested-first', release);
    await fleet.deployed('contested-first', 1);
    await apply('contested-second', { ...release, chartName: 'other' });
    const { message } = await fleet.conditionOf(
      { chartProxy: 'contested-second', index: 1 },
      { type: 'HelmReleaseReady', status: 'False', reason: 'ReleaseNameCollision' },
    );
    expect(message).toContain((await fleet.releaseProxy('contested-first', 1)).metadata.name);
    const standing = (await fleet.releases(1)).find(({ name }) => name === 'contested');
    expect(standing).toMatchObject({ chart: 'app-1.0.0', revision: '1' });
    await fleet.removeChartProxy('contested-first');
    await fleet.deployed('contested-second', 1);
    const taken = (await fleet.releases(1)).find(({ name }) => name === 'contested');
    expect(taken).toMatchObject({ chart: 'other-1.0.0', revision: '1' });
  });
});
