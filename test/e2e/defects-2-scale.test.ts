import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { benchChart, createCluster, eventually, Fleet, refusingKubeconfig, simpleChart } from '../support/index.ts';
import { condition } from '../support/index.ts';
import { apiRequests, countRequests, WRITES } from './api-requests.ts';

const FEW = 5;
const MANY = 100;
const EVENTS = 5;

/** The manager has one worker for each of its controllers: whatever holds one, holds all. */
describe('an operator of many clusters with a small manager', () => {
  let fleet: Fleet;
  let directory: string;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 2, manager: false });
    directory = join(fleet.environment.directory, 'manager');
    // W38: a chart that lies where the manager runs, under the name of one in the repository.
    await mkdir(join(directory, 'app', 'templates'), { recursive: true });
    await mkdir(join(directory, 'cache'));
    await writeFile(join(directory, 'app', 'Chart.yaml'), 'apiVersion: v2\nname: app\nversion: 1.0.0\n');
    await writeFile(
      join(directory, 'app', 'templates', 'object.yaml'),
      'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: decoy }\n',
    );
    fleet.charts.publish(simpleChart({ name: 'app' }), benchChart('sick'));
    await fleet.startManager({
      flags: [
        '--helm-chart-proxy-concurrency=1',
        '--helm-release-proxy-concurrency=1',
        `--cache-dir=${join(directory, 'cache')}`,
      ],
      directory,
    });
  });

  afterAll(async () => {
    await fleet.stop();
  });

  async function apply(name: string, spec: Record<string, unknown>): Promise<void> {
    await fleet.createChartProxy(name, { chartName: 'app', releaseName: name, namespace: name, ...spec });
  }

  /** What the manager has done so far on the management cluster: requests, and looks at objects. */
  async function work(): Promise<{ requests: number; reconciles: number }> {
    return {
      requests: await fleet.manager.metric('capstan_kube_requests_total', { cluster: 'local' }),
      reconciles: await fleet.manager.metric('controller_runtime_reconcile_total'),
    };
  }

  /** Waits until the manager has nothing more to do: two readings with a pause between them are equal. */
  async function atRest(): Promise<{ requests: number; reconciles: number }> {
    let before = await work();
    return eventually(
      async () => {
        const now = await work();
        const same = now.reconciles === before.reconciles;
        before = now;
        if (!same) throw new Error(JSON.stringify(now));
        return now;
      },
      { intervalMs: 1_500, timeoutMs: 90_000, what: 'the manager rests' },
    );
  }

  /** Clusters that are not there yet: cheap, and each gets its HelmReleaseProxy all the same. */
  async function declareMany(label: string, count: number): Promise<void> {
    const one = async (index: number): Promise<void> => {
      const name = `${label}-${index}`;
      const labels = { size: label };
      await createCluster(fleet.api, { name, namespace: fleet.namespace, labels, ready: false });
    };
    for (let index = 0; index < count; index += 10) {
      await Promise.all(Array.from({ length: Math.min(10, count - index) }, (_, more) => one(index + more)));
    }
    await apply(label, {
      clusterSelector: { matchLabels: { size: label } },
      valuesTemplate: 'message: "{{ .Cluster.metadata.annotations.note }}"\n',
    });
    await eventually(
      async () => {
        const proxies = await fleet.releaseProxies(label);
        const told = proxies.filter((proxy) => condition(proxy, 'ClusterAvailable') !== undefined);
        if (told.length < count) throw new Error(`${told.length} of ${count}`);
      },
      { timeoutMs: 90_000, intervalMs: 500, what: `HelmReleaseProxies for ${count} clusters` },
    );
    const { status } = await fleet.chartProxy(label);
    expect(status?.matchingClusters).toHaveLength(count);
  }

  /** The price of EVENTS Clusters that change, each followed to the end. */
  async function priceOfEvents(label: string): Promise<{ requests: number; reconciles: number }> {
    const before = await atRest();
    for (let index = 0; index < EVENTS; index++) {
      const name = `${label}-${index}`;
      const cluster = `/apis/cluster.x-k8s.io/v1beta2/namespaces/${fleet.namespace}/clusters/${name}`;
      await fleet.api.patch(cluster, { metadata: { annotations: { note: 'changed' } } });
      await eventually(async () => {
        const proxy = (await fleet.releaseProxies(label)).find(({ spec }) => spec.clusterRef?.name === name);
        expect(proxy?.spec.values).toContain('changed');
      });
    }
    const after = await atRest();
    return { requests: after.requests - before.requests, reconciles: after.reconciles - before.reconciles };
  }

  it('W25, W26: pays for a Cluster event the same with 5 clusters and with 100', async () => {
    await declareMany('few', FEW);
    const few = await priceOfEvents('few');
    await declareMany('many', MANY);
    const many = await priceOfEvents('many');
    expect(few.requests).toBeGreaterThanOrEqual(EVENTS);
    // Twenty times the clusters. What may differ is how many changes of one status fall together into one write.
    expect(many.requests).toBeLessThanOrEqual(few.requests + 2 * EVENTS);
    expect(many.reconciles).toBeLessThanOrEqual(few.reconciles + 2 * EVENTS);
    await Promise.all([fleet.removeChartProxy('few'), fleet.removeChartProxy('many', 90_000)]);
  });

  it('W28: installs elsewhere and beside them while sick releases are waited for, and ends the wait with their deletion', async () => {
    await apply('sick', { chartName: 'sick', options: { wait: true, timeout: '10m0s' } });
    for (const index of [1, 2]) {
      await eventually(async () => {
        const found = (await fleet.releases(index)).find(({ name }) => name === 'sick');
        expect(found?.status).toBe('pending-install');
      });
    }
    await apply('healthy', {});
    for (const index of [1, 2]) await fleet.deployed('healthy', index);
    await fleet.patchChartProxy('healthy', { spec: { valuesTemplate: 'message: two\n' } });
    for (const index of [1, 2]) await fleet.deployed('healthy', index, { revision: 2 });
    for (const index of [1, 2]) {
      const statuses = (await fleet.releases(index)).map(({ name, status }) => `${name} ${status}`).sort();
      expect(statuses).toEqual(['healthy deployed', 'sick pending-install']);
    }
    await fleet.removeChartProxy('sick');
    expect(await fleet.manager.metric('capstan_helm_processes')).toBe(0);
    expect((await fleet.releases(1)).map(({ name }) => name)).toEqual(['healthy']);
    await fleet.removeChartProxy('healthy');
  });

  it('W30: writes a HelmReleaseProxy a few times for an install and fewer for an upgrade', async () => {
    const writes = async (): Promise<number> =>
      countRequests(
        await apiRequests(fleet.environment.management),
        ({ resource, verb }) => resource === 'helmreleaseproxies' && WRITES.includes(verb),
      );
    const before = await writes();
    await apply('thrifty', { clusterSelector: { matchLabels: { idx: '1' } } });
    await fleet.deployed('thrifty', 1);
    await atRest();
    const installed = await writes();
    await fleet.patchChartProxy('thrifty', { spec: { valuesTemplate: 'message: two\n' } });
    await fleet.deployed('thrifty', 1, { revision: 2 });
    await atRest();
    const upgraded = await writes();
    // The object, its finalizer with the operation and their status, the outcome, the annotation; CAAPH: seven and more.
    expect(installed - before).toBeLessThanOrEqual(5);
    // The new spec, the operation, the outcome.
    expect(upgraded - installed).toBeLessThanOrEqual(3);
  });

  it('W31: is told how the other clusters are while one does not answer', async () => {
    const kubeconfig = await refusingKubeconfig('dead', await fleet.environment.ports.take());
    await createCluster(fleet.api, { name: 'dead', namespace: fleet.namespace, labels: { idx: 'dead' }, kubeconfig });
    await apply('uneven', {
      clusterSelector: { matchExpressions: [{ key: 'idx', operator: 'In', values: ['1', '2', 'dead'] }] },
      valuesTemplate: 'message: one\n',
    });
    for (const index of [1, 2]) await fleet.deployed('uneven', index);
    const dead = async (): Promise<string> =>
      (await fleet.releaseProxies('uneven')).find(({ spec }) => spec.clusterRef?.name === 'dead')?.metadata.name ?? '?';
    const readiness = { type: 'HelmReleaseProxiesReady', status: 'False' } as const;
    await fleet.conditionOf({ chartProxy: 'uneven' }, { type: 'HelmReleaseProxySpecsUpToDate', status: 'True' });
    const before = await fleet.conditionOf({ chartProxy: 'uneven' }, readiness);
    expect(before.message.split('\n')[0]).toContain(await dead());
    await fleet.patchChartProxy('uneven', { spec: { valuesTemplate: 'message: two\n' } });
    for (const index of [1, 2]) await fleet.deployed('uneven', index, { revision: 2 });
    await fleet.conditionOf({ chartProxy: 'uneven' }, { type: 'HelmReleaseProxySpecsUpToDate', status: 'True' });
    // One more goes wrong: the aggregate is not frozen.
    await fleet.api.patch(`${fleet.path('helmchartproxies')}/uneven`, { spec: { version: '9.9.9' } });
    await eventually(async () => {
      const { message } = await fleet.conditionOf({ chartProxy: 'uneven' }, readiness);
      expect(message).toContain('9.9.9');
      expect(message).toContain(await dead());
    });
    const clusterPath = `/apis/cluster.x-k8s.io/v1beta2/namespaces/${fleet.namespace}/clusters/dead`;
    await fleet.api.delete(clusterPath);
    await fleet.removeChartProxy('uneven');
  });

  it('W38: gets the chart of the repository, whatever lies in the manager’s working directory', async () => {
    await fleet.deployed('thrifty', 1, { revision: 2 });
    const names = (await fleet.cluster(1).api.list('/api/v1/namespaces/thrifty/configmaps')).map(
      ({ metadata }) => metadata.name,
    );
    expect(names).toEqual(['thrifty-0']);
    expect(fleet.charts.downloads('app')).toBe(1);
  });

  it('W39: finds no more open files and no temporary ones after ten operations', async () => {
    const open = async (): Promise<number> => (await readdir(`/proc/${fleet.manager.pid}/fd`)).length;
    const upgrade = async (revision: number): Promise<void> => {
      await fleet.patchChartProxy('thrifty', { spec: { valuesTemplate: `message: "${revision}"\n` } });
      await fleet.deployed('thrifty', 1, { revision });
    };
    for (const revision of [3, 4]) await upgrade(revision);
    await atRest();
    const before = await open();
    for (let revision = 5; revision < 15; revision++) await upgrade(revision);
    await atRest();
    // Kept-alive connections come and go; ten operations must not leave ten of anything.
    expect(await open()).toBeLessThan(before + 5);
    await fleet.removeChartProxy('thrifty');
    const files = await readdir(join(directory, 'cache'), { recursive: true });
    expect(files.filter((file) => /kubeconfig|values/.test(file))).toEqual([]);
  });

  it('W42: reads metrics of everything that a dashboard needs', async () => {
    const names = new Set((await fleet.manager.metrics()).map(({ name }) => name));
    expect([...names]).toEqual(
      expect.arrayContaining([
        'capstan_clusters',
        'capstan_cluster_transitions_total',
        'capstan_helm_operations_total',
        'capstan_helm_operation_seconds_bucket',
        'capstan_helm_processes',
        'capstan_chart_downloads_total',
        'capstan_chart_index_requests_total',
        'capstan_values_renders_total',
        'capstan_kube_requests_total',
        'capstan_watches',
        'capstan_watch_starts_total',
        'capstan_watch_stops_total',
        'controller_runtime_reconcile_total',
        'process_resident_memory_bytes',
      ]),
    );
    expect(await fleet.manager.metric('capstan_helm_operations_total', { operation: 'upgrade' })).toBeGreaterThan(0);
  });
});
