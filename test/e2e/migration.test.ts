import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, Fleet, simpleChart } from '../support/index.ts';
import type { KubeObject, Proxy } from '../support/index.ts';
import { CaaphState } from './caaph-state.ts';
import { HELM_VERSIONS } from './helm-versions.ts';
import { newestRecord } from './release-secrets.ts';

const GENERATED = { 1: 'app3-1796076040', 2: 'app3-1796076043' } as const;
const ORPHAN = 'app3-1796076041';
const ONCE = 'app2-1796076039';

/** Capstan starts on a fleet that CAAPH served until now. */
describe.each(HELM_VERSIONS)('a platform engineer who comes from CAAPH, on $name', ({ binary }) => {
  let fleet: Fleet;
  /** As CAAPH left them, by HelmChartProxy. */
  let proxiesBefore: Map<string, Proxy[]>;
  let objectsBefore: string[][];

  beforeAll(async () => {
    fleet = await Fleet.start({
      clusters: 2,
      manager: false,
      declare: (index) => ({ controlPlane: { spec: { version: `v1.3${index}.0` } } }),
    });
    const charts = ['app1', 'app2', 'app3', 'sentinel'].map((name) => simpleChart({ name, objects: 2 }));
    const [app1, app2, app3] = charts;
    if (!app1 || !app2 || !app3) throw new Error('no charts');
    fleet.charts.publish(...charts);
    await leaveBehind(await CaaphState.prepare(fleet), { app1, app2, app3 });
    proxiesBefore = await proxies();
    objectsBefore = await objectsOfReleases();
    await fleet.startManager({ helm: binary(fleet.environment) });
    await adopted();
    await sentinel('sentinel');
  });

  afterAll(async () => {
    await fleet.stop();
  });

  async function leaveBehind(
    caaph: CaaphState,
    charts: Record<'app1' | 'app2' | 'app3', ReturnType<typeof simpleChart>>,
  ): Promise<void> {
    const continuous = [1, 2].map((cluster) => ({
      cluster,
      releaseName: 'continuous',
      revisions: [`message: "hello c${cluster}"\n`, `message: "hola c${cluster}"\nreplicas: 2\n`],
    }));
    const generated = ([1, 2] as const).map((cluster) => ({
      cluster,
      releaseName: GENERATED[cluster],
      generated: true,
      revisions: [`message: "c${cluster} v1.3${cluster}.0"\n`],
    }));
    const once = [1, 2].map((cluster) => ({
      cluster,
      releaseName: ONCE,
      generated: true,
      revisions: [`message: "once on c${cluster}"\n`],
    }));
    for (const placement of continuous) await caaph.release(charts.app1, 'addons', placement);
    for (const placement of generated) await caaph.release(charts.app3, 'gen', placement);
    // Somebody has upgraded these since: they are no business of a controller's any more.
    for (const placement of once)
      await caaph.release(charts.app2, 'once', {
        ...placement,
        revisions: [...placement.revisions, 'message: by hand\n'],
      });
    await caaph.release(charts.app3, 'gen', { cluster: 2, releaseName: ORPHAN, revisions: ['message: lost\n'] });

    await caaph.chartProxy({
      name: 'continuous',
      chart: 'app1',
      namespace: 'addons',
      spec: {
        namespace: 'addons',
        releaseName: 'continuous',
        version: '1.0.0',
        valuesTemplate: 'message: "hola {{ .Cluster.metadata.name }}"\nreplicas: 2\n',
      },
      placements: continuous,
    });
    await caaph.chartProxy({
      name: 'generated',
      chart: 'app3',
      namespace: 'gen',
      spec: {
        namespace: 'gen',
        valuesTemplate: 'message: "{{ .Cluster.metadata.name }} {{ .ControlPlane.spec.version }}"\n',
      },
      placements: generated,
    });
    await caaph.chartProxy({
      name: 'once',
      chart: 'app2',
      namespace: 'once',
      spec: {
        namespace: 'once',
        reconcileStrategy: 'InstallOnce',
        valuesTemplate: 'message: "once on {{ .Cluster.metadata.name }}"\n',
      },
      placements: once,
    });
    await caaph.chartProxy({
      name: 'broken',
      chart: 'nosuch',
      // As CAAPH without its webhook's defaults.
      namespace: '',
      spec: { releaseName: 'broken', clusterSelector: { matchLabels: { idx: '1' } } },
      placements: [{ cluster: 1, releaseName: 'broken', revisions: [], failure: 'chart "nosuch" not found' }],
    });
  }

  /** Waits until Capstan has looked at every release on its cluster: it then notes which cluster that was. */
  async function adopted(): Promise<void> {
    await eventually(
      async () => {
        for (const name of ['continuous', 'generated', 'broken'])
          for (const proxy of await fleet.releaseProxies(name))
            expect(proxy.status, proxy.metadata.name).toHaveProperty('clusterUID');
      },
      { timeoutMs: 60_000, what: 'every release has been looked at' },
    );
  }

  async function proxies(): Promise<Map<string, Proxy[]>> {
    const names = ['continuous', 'generated', 'once', 'broken'];
    return new Map(await Promise.all(names.map(async (name) => [name, await fleet.releaseProxies(name)] as const)));
  }

  /** Every object of the releases, and every record of Helm's, by what the API server says of it. */
  async function objectsOfReleases(): Promise<string[][]> {
    return Promise.all(
      [1, 2].map(async (index) => {
        const { api } = fleet.cluster(index);
        const kinds = ['configmaps', 'secrets'];
        const paths = ['addons', 'gen', 'once'].flatMap((ns) =>
          kinds.map((kind) => `/api/v1/namespaces/${ns}/${kind}`),
        );
        const lists: KubeObject[][] = await Promise.all(paths.map(async (path) => api.list(path)));
        return lists.flat().map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`);
      }),
    );
  }

  /** A release that is asked for after everything that stood there, on both clusters. */
  async function sentinel(name: string): Promise<void> {
    await fleet.createChartProxy(name, { chartName: 'sentinel', releaseName: name, namespace: name });
    for (const index of [1, 2]) await fleet.deployed(name, index);
  }

  it('sees no Helm operation and no write on any cluster: revisions and objects are as they were', async () => {
    for (const name of ['continuous', 'generated'])
      for (const index of [1, 2]) await fleet.deployed(name, index, { revision: name === 'continuous' ? 2 : 1 });
    const operations = await fleet.manager.metrics();
    const counted = operations.filter(({ name }) => name === 'capstan_helm_operations_total');
    const ran = counted.filter(({ labels }) => !['version', 'render', 'template'].includes(labels['operation'] ?? ''));
    // The sentinel's two installs.
    expect(ran.map(({ labels, value }) => `${labels['operation']} ${value}`)).toEqual(
      ran.map(() => expect.stringMatching(/^install [12]$/) as unknown),
    );
    expect(await fleet.manager.metric('capstan_helm_operations_total', { operation: 'install' })).toBe(2);
    expect(await objectsOfReleases()).toEqual(objectsBefore);
  });

  it('finds every release with the HelmReleaseProxy that it had, and no other', async () => {
    const after = await proxies();
    for (const [name, before] of proxiesBefore) {
      const identity = ({ metadata, spec }: Proxy): unknown[] => [
        metadata.name,
        metadata.uid,
        spec.releaseName,
        spec.values,
        metadata.annotations?.['helmreleaseproxy.addons.cluster.x-k8s.io/is-release-name-generated'],
      ];
      expect(after.get(name)?.map(identity), name).toEqual(before.map(identity));
    }
  });

  it('reads the same of the releases as before: what was well is, and what was broken is still told', async () => {
    for (const name of ['continuous', 'generated', 'once']) {
      await fleet.conditionOf({ chartProxy: name }, { type: 'Ready', status: 'True', reason: 'InfoReported' });
      for (const index of [1, 2])
        await fleet.conditionOf(
          { chartProxy: name, index },
          { type: 'HelmReleaseReady', status: 'True', reason: 'Ready' },
        );
      expect((await fleet.chartProxy(name)).status?.matchingClusters?.map((cluster) => cluster.name)).toEqual([
        'c1',
        'c2',
      ]);
    }
    const told = await fleet.conditionOf(
      { chartProxy: 'broken', index: 1 },
      { type: 'HelmReleaseReady', status: 'False', reason: 'HelmInstallOrUpgradeFailed' },
    );
    expect(told.message).toContain('nosuch');
    await fleet.conditionOf({ chartProxy: 'broken' }, { type: 'Ready', status: 'False', reason: 'IssuesReported' });
  });

  it('has InstallOnce releases left alone, also when their HelmChartProxy changes', async () => {
    await fleet.patchChartProxy('once', { spec: { valuesTemplate: 'message: changed\n' } });
    await sentinel('after-once');
    for (const index of [1, 2]) {
      const record = await newestRecord(fleet.cluster(index), 'once', ONCE);
      expect([record.version, record.config]).toEqual([2, { message: 'by hand' }]);
    }
    await fleet.conditionOf({ chartProxy: 'once' }, { type: 'Ready', status: 'True' });
  });

  it('goes on from there: the next change is an upgrade of the same release, and an orphan stays', async () => {
    await fleet.patchChartProxy('continuous', { spec: { valuesTemplate: 'message: next\n' } });
    await fleet.patchChartProxy('generated', { spec: { valuesTemplate: 'message: next\n' } });
    for (const index of [1, 2] as const) {
      await fleet.deployed('continuous', index, { revision: 3 });
      expect((await fleet.deployed('generated', index, { revision: 2 })).spec.releaseName).toBe(GENERATED[index]);
    }
    expect((await newestRecord(fleet.cluster(2), 'gen', ORPHAN)).version).toBe(1);
  });

  it('takes the releases away with their HelmChartProxies, InstallOnce ones and orphans apart', async () => {
    for (const name of ['continuous', 'generated', 'once', 'broken']) await fleet.removeChartProxy(name);
    for (const index of [1, 2]) {
      await eventually(async () => {
        const left = (await fleet.releases(index)).map((release) => release.name).sort();
        const orphans = index === 2 ? [ORPHAN] : [];
        expect(left).toEqual([ONCE, ...orphans, 'after-once', 'sentinel'].sort());
      });
    }
  });
});
