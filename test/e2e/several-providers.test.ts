import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ChartRepository,
  condition,
  ensureNamespace,
  eventually,
  Fleet,
  installCrds,
  Manager,
  simpleChart,
  startEnvironment,
} from '../support/index.ts';
import type { Environment, KubeObject, Proxy, TestCluster } from '../support/index.ts';

const MCR = 'sigs.k8s.io/multicluster-runtime-kubeconfig';
const OURS = 'capstan.dev/kubeconfig';
const CRDS = join(import.meta.dirname, '../../src/api/crds');

/** One manager, and clusters of every provider at once: what selects them, and what becomes of their releases. */
describe('a platform engineer whose clusters come from several places', () => {
  let fleet: Fleet;
  let files: string;

  beforeAll(async () => {
    fleet = await Fleet.start({
      clusters: 3,
      declared: 1,
      manager: false,
      declare: () => ({ labels: { tier: 'gold' } }),
    });
    files = await mkdtemp(join(tmpdir(), 'capstan-files-'));
    fleet.charts.publish(simpleChart({ name: 'app', version: '1.0.0', objects: 1 }));
    await secret('two', { [OURS]: 'true', tier: 'gold' }, fleet.cluster(2));
    await writeFile(join(files, 'edge.yaml'), fleet.cluster(3).kubeconfig);
    await start();
  });
  afterAll(async () => {
    await fleet.stop();
    await rm(files, { recursive: true, force: true });
  });

  async function start(): Promise<void> {
    await fleet.startManager({
      flags: [
        '--kubeconfig-secrets',
        `--kubeconfig-files=${files}`,
        '--local-cluster',
        '--local-cluster-labels=tier=hub',
        `--cluster-namespace=${fleet.namespace}`,
      ],
    });
  }

  async function secret(
    name: string,
    labels: Record<string, string>,
    cluster: TestCluster,
    namespace = fleet.namespace,
  ): Promise<void> {
    await ensureNamespace(fleet.api, namespace);
    await fleet.api.create(`/api/v1/namespaces/${namespace}/secrets`, {
      metadata: { name, labels },
      data: { kubeconfig: Buffer.from(cluster.kubeconfig).toString('base64') },
    });
  }

  function secretPath(name: string, namespace = fleet.namespace): string {
    return `/api/v1/namespaces/${namespace}/secrets/${name}`;
  }

  /** Clusters on which the HelmChartProxy is deployed, by their names. */
  async function deployedOn(name: string, wanted: string[]): Promise<Proxy[]> {
    return eventually(
      async () => {
        const proxies = await fleet.releaseProxies(name);
        const ready = proxies.filter((proxy) => condition(proxy, 'Ready')?.status === 'True');
        expect(ready.map(({ spec }) => spec.clusterRef?.name ?? '').sort()).toEqual(wanted);
        expect(proxies).toHaveLength(wanted.length);
        return proxies;
      },
      { timeoutMs: 60_000, what: `${name} is deployed on ${wanted.join(', ')}` },
    );
  }

  async function create(name: string, matchLabels: Record<string, string>, more: object = {}): Promise<void> {
    await fleet.createChartProxy(name, {
      chartName: 'app',
      releaseName: name,
      namespace: name,
      clusterSelector: { matchLabels },
      ...more,
    });
  }

  async function installed(cluster: TestCluster, name: string): Promise<boolean> {
    return (await cluster.api.find(`/api/v1/namespaces/${name}/configmaps/${name}-0`)) !== undefined;
  }

  it('selects them by their labels, wherever they come from', async () => {
    await create('gold', { tier: 'gold' });
    await create('edge', { 'capstan.dev/file': 'edge' });
    await create('hub', { tier: 'hub' });
    const proxies = await deployedOn('gold', ['c1', 'kubeconfig#fleet/two']);
    const [file] = await deployedOn('edge', [`files#edge+${fleet.cluster(3).name}`]);
    await deployedOn('hub', ['local#in-cluster']);
    expect(await installed(fleet.cluster(1), 'gold')).toBe(true);
    expect(await installed(fleet.cluster(2), 'gold')).toBe(true);
    expect(await installed(fleet.cluster(3), 'edge')).toBe(true);
    expect(await installed(fleet.environment.management, 'hub')).toBe(true);
    // What stands for each: the Cluster, the Secret, and nothing for a file.
    expect(proxies.map(({ spec }) => (spec.clusterRef as { kind?: string }).kind)).toEqual(['Cluster', 'Secret']);
    expect(file?.spec.clusterRef).toMatchObject({
      apiVersion: 'capstan.dev/v1',
      kind: 'Cluster',
      namespace: fleet.namespace,
    });
    const chartProxy = await fleet.chartProxy('gold');
    expect(chartProxy.status?.matchingClusters?.map(({ name }) => name)).toEqual(['c1', 'kubeconfig#fleet/two']);
  });

  it('renders values from the cluster, also where no Cluster of Cluster API is behind it', async () => {
    await create(
      'named',
      { 'capstan.dev/file': 'edge' },
      { valuesTemplate: 'message: "{{ .Cluster.metadata.name }} in {{ .Cluster.metadata.namespace }}"\n' },
    );
    await deployedOn('named', [`files#edge+${fleet.cluster(3).name}`]);
    const { data } = (await fleet.cluster(3).api.get('/api/v1/namespaces/named/configmaps/named-0')) as unknown as {
      data: { message: string };
    };
    expect(data.message).toBe(`files#edge+${fleet.cluster(3).name} in fleet`);
    await fleet.removeChartProxy('named');
  });

  it("takes multicluster-runtime's label, and keeps to the Secret's own namespace", async () => {
    await secret('three', { [MCR]: 'true', tier: 'silver' }, fleet.cluster(3));
    await secret('elsewhere', { [MCR]: 'true', tier: 'silver' }, fleet.cluster(3), 'other');
    await create('silver', { tier: 'silver' });
    await deployedOn('silver', ['kubeconfig#fleet/three']);
  });

  it('puts drift back on a cluster that no Cluster stands for', async () => {
    await fleet.patchChartProxy('gold', { spec: { driftDetection: { mode: 'Correct' } } });
    const path = '/api/v1/namespaces/gold/configmaps/gold-0';
    await eventually(async () => {
      const [proxy] = (await fleet.releaseProxies('gold')).filter(({ spec }) =>
        spec.clusterRef?.name.startsWith('kubeconfig#'),
      );
      expect(proxy && condition(proxy, 'ReleaseInSync')?.status).toBe('True');
    });
    await fleet.cluster(2).api.patch(path, { data: { message: 'by hand' } });
    await eventually(async () => {
      const { data } = (await fleet.cluster(2).api.get(path)) as unknown as { data: { message: string } };
      expect(data.message).toBe('hello');
    });
  });

  it('uninstalls where a label no longer matches', async () => {
    await fleet.api.patch(secretPath('two'), { metadata: { labels: { tier: 'bronze' } } });
    await deployedOn('gold', ['c1']);
    await eventually(async () => expect(await installed(fleet.cluster(2), 'gold')).toBe(false));
    await fleet.api.patch(secretPath('two'), { metadata: { labels: { tier: 'gold' } } });
    await deployedOn('gold', ['c1', 'kubeconfig#fleet/two']);
  });

  it('keeps everything over a restart of the manager', async () => {
    const before = (await fleet.releaseProxies()).map(({ metadata }) => metadata.uid).sort();
    await fleet.manager.stop();
    await start();
    await eventually(async () => expect(await fleet.manager.metric('capstan_clusters', { phase: 'engaged' })).toBe(6));
    await sleep(2_000);
    expect((await fleet.releaseProxies()).map(({ metadata }) => metadata.uid).sort()).toEqual(before);
    for (const operation of ['install', 'upgrade', 'uninstall'])
      expect(await fleet.manager.metric('capstan_helm_operations_total', { operation })).toBe(0);
  });

  it('leaves releases alone whose provider is not configured any more, and says so', async () => {
    const before = (await fleet.releaseProxies()).map(({ metadata }) => metadata.uid).sort();
    await fleet.manager.stop();
    await fleet.startManager();
    await eventually(async () => {
      const proxies = (await fleet.releaseProxies()).filter(({ spec }) => spec.clusterRef?.name.includes('#'));
      for (const proxy of proxies) expect(condition(proxy, 'ClusterAvailable')?.message).toContain('its provider');
    });
    expect((await fleet.releaseProxies()).map(({ metadata }) => metadata.uid).sort()).toEqual(before);
    await fleet.manager.stop();
    await start();
    await deployedOn('gold', ['c1', 'kubeconfig#fleet/two']);
  });

  it('lets go of the releases of a cluster whose Secret or file goes, also while no manager runs', async () => {
    await rm(join(files, 'edge.yaml'));
    await deployedOn('edge', []);
    // As with a Cluster: the cluster is gone, and nothing is uninstalled from it.
    expect(await installed(fleet.cluster(3), 'edge')).toBe(true);
    await fleet.manager.stop();
    await fleet.api.delete(secretPath('two'));
    await start();
    await deployedOn('gold', ['c1']);
    for (const name of ['gold', 'edge', 'hub', 'silver']) await fleet.removeChartProxy(name);
  });
});

/** Add-ons on the one cluster that there is: no Cluster API anywhere. */
describe('somebody with a single cluster', () => {
  let environment: Environment;
  let charts: ChartRepository;
  let manager: Manager;

  beforeAll(async () => {
    environment = await startEnvironment({ clusters: 0 });
    charts = await ChartRepository.start();
    charts.publish(simpleChart({ name: 'app', version: '1.0.0', objects: 1 }));
    const { api } = environment.management;
    await installCrds(
      api,
      ['helmchartproxies.yaml', 'helmreleaseproxies.yaml'].map((file) => join(CRDS, file)),
    );
    await environment.management.restartControllers();
    await api.create('/api/v1/namespaces/default/secrets', {
      metadata: { name: 'repo-ca' },
      data: { 'ca.crt': Buffer.from(charts.ca).toString('base64') },
    });
    manager = await Manager.start(environment, { flags: ['--local-cluster', '--local-cluster-labels=here=yes'] });
  });
  afterAll(async () => {
    await manager.stop();
    await charts.stop();
    await environment.stop();
  });

  it('has its charts installed, upgraded and uninstalled there', async () => {
    const { api } = environment.management;
    const path = '/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/default/helmchartproxies';
    await api.create(path, {
      apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
      kind: 'HelmChartProxy',
      metadata: { name: 'app' },
      spec: {
        clusterSelector: { matchLabels: { here: 'yes' } },
        repoURL: charts.url,
        tlsConfig: { caSecret: { name: 'repo-ca' } },
        chartName: 'app',
        releaseName: 'app',
        namespace: 'app',
      },
    });
    const message = async (): Promise<string | undefined> =>
      (await api.find<KubeObject & { data: { message: string } }>('/api/v1/namespaces/app/configmaps/app-0'))?.data
        .message;
    await eventually(async () => expect(await message()).toBe('hello'));
    await api.patch(`${path}/app`, { spec: { valuesTemplate: 'message: second\n' } });
    await eventually(async () => expect(await message()).toBe('second'));
    await api.delete(`${path}/app`);
    await eventually(async () => expect(await message()).toBeUndefined());
    await eventually(async () => expect(await api.list(path)).toEqual([]));
  });
});
