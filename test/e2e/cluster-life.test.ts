import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clusterPath, condition, createCluster, deleteCluster, eventually, Fleet } from '../support/index.ts';
import { setKubeconfig, setReady, simpleChart } from '../support/index.ts';
import type { KubeObject, Proxy } from '../support/index.ts';
import { Hauling } from './hauling.ts';
import { newestRecord } from './release-secrets.ts';
import { applied, letReady, waitingChart } from './waiting-chart.ts';

const HCP_LABEL = 'helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name';
/** A probe every 10 s, 5 s long, five times in a row, and then some for a busy machine. */
const DEGRADED_MS = 150_000;

/**
 * Clusters come, go, die and return. The resync period is an hour throughout: whatever happens here happens because an
 * event told of it.
 */
describe('a platform engineer whose clusters come and go', () => {
  let fleet: Fleet;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 3, declared: 0 });
    fleet.charts.publish(simpleChart({ name: 'app' }), waitingChart('slow', '1.0.0'));
  });

  afterAll(async () => {
    await fleet.stop();
  });

  /** A HelmChartProxy whose release and namespace have its name, for the Clusters that carry a label of its name. */
  async function haul(name: string, spec: Record<string, unknown> = {}): Promise<void> {
    await fleet.createChartProxy(name, {
      chartName: 'app',
      releaseName: name,
      namespace: name,
      clusterSelector: { matchLabels: { [name]: 'yes' } },
      ...spec,
    });
  }

  /** Declares workload cluster `index` under the name `c<index>` for the HelmChartProxies of these names. */
  async function declare(
    index: number,
    names: string[],
    more: { ready?: boolean; kubeconfig?: string } = {},
  ): Promise<void> {
    await fleet.declare(index, { labels: Object.fromEntries(names.map((name) => [name, 'yes'])), ...more });
  }

  function key(index: number): { name: string; namespace: string } {
    return { name: `c${index}`, namespace: fleet.namespace };
  }

  async function undeclare(...indexes: number[]): Promise<void> {
    for (const index of indexes) await deleteCluster(fleet.api, key(index));
  }

  async function operations(): Promise<number> {
    return fleet.manager.metric('capstan_helm_operations_total');
  }

  async function releaseOf(index: number, name: string): Promise<string[]> {
    const all = await fleet.releases(index);
    return all.filter((release) => release.name === name).map(({ status, revision }) => `${status} ${revision}`);
  }

  /** Waits until a placement's HelmReleaseProxy is gone. */
  async function expectNoPlacement(name: string, index: number): Promise<void> {
    await eventually(
      async () => {
        const left = (await fleet.releaseProxies(name)).filter((proxy) => proxy.spec.clusterRef?.name === `c${index}`);
        if (left.length > 0) throw new Error(JSON.stringify(left[0]?.status));
      },
      { timeoutMs: 60_000, what: `${name} is off c${index}` },
    );
  }

  it('adds a cluster after the HelmChartProxy: it gets the chart without a resync', async () => {
    await haul('late');
    await fleet.conditionOf({ chartProxy: 'late' }, { type: 'Ready', status: 'True' });
    await declare(1, ['late']);
    await fleet.deployed('late', 1);
    await fleet.removeChartProxy('late');
    await undeclare(1);
  });

  it('adds a cluster whose control plane is not ready: NotAvailable and no Helm; when it is ready, the chart comes', async () => {
    const before = await operations();
    await haul('early');
    await declare(1, ['early'], { ready: false });
    await fleet.conditionOf(
      { chartProxy: 'early', index: 1 },
      { type: 'ClusterAvailable', status: 'False', reason: 'NotAvailable' },
    );
    await fleet.conditionOf({ chartProxy: 'early' }, { type: 'HelmReleaseProxiesReady', status: 'False' });
    expect(await operations()).toBe(before);
    await setReady(fleet.api, key(1), true);
    await fleet.deployed('early', 1);
    await fleet.conditionOf({ chartProxy: 'early' }, { type: 'Ready', status: 'True' });
    await fleet.removeChartProxy('early');
    await undeclare(1);
  });

  it('forgets the kubeconfig Secret, then writes one that is none, then one that is refused, then a good one', async () => {
    await haul('unreached');
    await declare(1, ['unreached'], { kubeconfig: undefined });
    const reason = { type: 'ClusterAvailable', status: 'False', reason: 'GetKubeconfigFailed' };
    const told = async (message: RegExp): Promise<void> => {
      await eventually(async () => {
        const found = condition(await fleet.releaseProxy('unreached', 1), 'ClusterAvailable');
        expect(found).toMatchObject(reason);
        expect(found?.message).toMatch(message);
      });
    };
    await told(/Secret fleet\/c1-kubeconfig is missing/);
    await setKubeconfig(fleet.api, key(1), 'this is: [no kubeconfig');
    await told(/kubeconfig/);
    const good = fleet.cluster(1).kubeconfig;
    await setKubeconfig(fleet.api, key(1), good.replace(/token: .*/, 'token: canary-3e5a'));
    await told(/Unauthorized|credentials/i);
    await setKubeconfig(fleet.api, key(1), good);
    await fleet.deployed('unreached', 1);
    expect(fleet.manager.log()).not.toContain('canary-3e5a');

    // A bad one later on does not take the cluster out of service.
    await setKubeconfig(fleet.api, key(1), 'this is: [no kubeconfig');
    await fleet.patchChartProxy('unreached', { spec: { valuesTemplate: 'message: still\n' } });
    await fleet.deployed('unreached', 1, { revision: 2 });
    await setKubeconfig(fleet.api, key(1), good);
    await fleet.removeChartProxy('unreached');
    await undeclare(1);
  });

  it('rotates credentials while Helm waits: the release is finished with the new ones, no watch starts anew', async () => {
    await haul('rotated', { chartName: 'slow', options: { wait: true, timeout: '10m' } });
    await declare(1, ['rotated']);
    const at = { namespace: 'rotated', release: 'rotated', version: '1.0.0' };
    await applied(fleet.cluster(1), at);
    const cluster = `${fleet.namespace}/c1`;
    const watches = await fleet.manager.metric('capstan_watch_starts_total', { cluster });
    expect(watches).toBeGreaterThan(0);

    // As Cluster API does it: the new ones are in the Secret before the old ones end.
    await setKubeconfig(fleet.api, key(1), await fleet.cluster(1).certificateKubeconfig());
    await eventually(() => {
      expect(fleet.manager.log()).toContain('credentials were swapped in place');
    });
    // What helm was started with is refused from here on.
    await fleet.cluster(1).rotateCredentials();
    await letReady(fleet.cluster(1), at);
    await new Hauling(fleet).recovered('rotated');
    expect(await releaseOf(1, 'rotated')).toEqual([expect.stringMatching(/^deployed /)]);
    expect(await fleet.manager.metric('capstan_watch_starts_total', { cluster })).toBe(watches);
    expect(await fleet.manager.metric('capstan_cluster_transitions_total', { cluster, to: 'degraded' })).toBe(0);
    await fleet.removeChartProxy('rotated');
    await undeclare(1);
  });

  it('loses one cluster and hangs another, in the middle of installs: both are told, the third is served, both go on', async () => {
    await haul('fate');
    await haul('slow', { chartName: 'slow', options: { wait: true, timeout: '10m' } });
    await declare(1, ['fate']);
    await declare(2, ['fate', 'slow']);
    await declare(3, ['fate', 'slow']);
    for (const index of [1, 2, 3]) await fleet.deployed('fate', index);
    const at = { namespace: 'slow', release: 'slow', version: '1.0.0' };
    for (const index of [2, 3]) await applied(fleet.cluster(index), at);

    await fleet.cluster(2).stop();
    fleet.cluster(3).pause();
    try {
      await fleet.patchChartProxy('fate', { spec: { valuesTemplate: 'message: new\n' } });
      await fleet.deployed('fate', 1, { revision: 2 });
      for (const chartProxy of ['fate', 'slow']) {
        for (const index of [2, 3]) {
          const wanted = { type: 'ClusterAvailable', status: 'False', reason: 'ClusterUnreachable' };
          await fleet.conditionOf({ chartProxy, index }, wanted, DEGRADED_MS);
        }
      }
      await fleet.patchChartProxy('fate', { spec: { valuesTemplate: 'message: newer\n' } });
      await fleet.deployed('fate', 1, { revision: 3 });
      const ready = await fleet.conditionOf(
        { chartProxy: 'fate' },
        { type: 'HelmReleaseProxiesReady', status: 'False' },
      );
      for (const index of [2, 3])
        expect(ready.message).toContain((await fleet.releaseProxy('fate', index)).metadata.name ?? '?');
    } finally {
      fleet.cluster(3).resume();
      await fleet.cluster(2).start();
    }

    for (const index of [2, 3]) {
      await expectValues(index, 'fate', { message: 'newer' });
      await letReady(fleet.cluster(index), at);
      await eventually(
        async () => {
          const proxy = await fleet.releaseProxy('slow', index);
          expect(condition(proxy, 'Ready')?.status).toBe('True');
        },
        { timeoutMs: 90_000, what: `slow is deployed on c${index}` },
      );
      expect(await releaseOf(index, 'slow')).toEqual([expect.stringMatching(/^deployed /)]);
    }
    await fleet.conditionOf({ chartProxy: 'fate' }, { type: 'Ready', status: 'True' });
    await fleet.removeChartProxy('fate');
    await fleet.removeChartProxy('slow');
    await undeclare(1, 2, 3);
  }, 400_000);

  /** Waits until a release was made from these values, by whatever revision. */
  async function expectValues(index: number, name: string, values: object): Promise<void> {
    await eventually(
      async () => {
        const record = await newestRecord(fleet.cluster(index), name, name);
        expect(record.info.status).toBe('deployed');
        expect(record.config).toEqual(values);
      },
      { timeoutMs: 90_000, what: `${name} on c${index} has ${JSON.stringify(values)}` },
    );
  }

  it('deletes a Cluster: its HelmReleaseProxies go, nothing is uninstalled', async () => {
    await haul('widowed');
    await haul('widowed-once', { reconcileStrategy: 'InstallOnce' });
    await declare(1, ['widowed', 'widowed-once']);
    await fleet.deployed('widowed', 1);
    await fleet.deployed('widowed-once', 1);
    await undeclare(1);
    await expectNoPlacement('widowed', 1);
    await expectNoPlacement('widowed-once', 1);
    expect(
      await fleet.manager.metric('capstan_helm_operations_total', {
        operation: 'uninstall',
        cluster: `${fleet.namespace}/c1`,
      }),
    ).toBe(0);
    expect(await releaseOf(1, 'widowed')).toEqual(['deployed 1']);
    expect(await releaseOf(1, 'widowed-once')).toEqual(['deployed 1']);
    await fleet.conditionOf({ chartProxy: 'widowed' }, { type: 'Ready', status: 'True' });
    await fleet.removeChartProxy('widowed');
    await fleet.removeChartProxy('widowed-once');
  });

  it('recreates a Cluster under the same name, on another API server: both strategies install there', async () => {
    await haul('reborn');
    await haul('reborn-once', { reconcileStrategy: 'InstallOnce' });
    await declare(1, ['reborn', 'reborn-once']);
    await fleet.deployed('reborn', 1);
    await fleet.deployed('reborn-once', 1);
    await undeclare(1);
    // At once: the old HelmReleaseProxies may still be there.
    await declare(1, ['reborn', 'reborn-once'], { kubeconfig: fleet.cluster(2).kubeconfig });
    for (const name of ['reborn', 'reborn-once']) {
      await eventually(
        async () => {
          expect(await releaseOf(2, name)).toEqual(['deployed 1']);
        },
        { timeoutMs: 60_000, what: `${name} is on the new cluster` },
      );
      await fleet.deployed(name, 1);
      expect(await releaseOf(1, name)).toEqual(['deployed 1']);
    }
    await fleet.removeChartProxy('reborn');
    await fleet.removeChartProxy('reborn-once');
    expect(await releaseOf(2, 'reborn')).toEqual([]);
    expect(await releaseOf(2, 'reborn-once')).toEqual(['deployed 1']);
    await undeclare(1);
  });

  it('moves the management cluster with clusterctl: what was installed once is left alone', async () => {
    await haul('moved', { reconcileStrategy: 'InstallOnce' });
    await haul('kept');
    await declare(3, ['moved', 'kept']);
    await fleet.deployed('moved', 3);
    await fleet.deployed('kept', 3);
    await eventually(async () => {
      const annotations = (await fleet.releaseProxy('moved', 3)).metadata.annotations ?? {};
      expect(Object.keys(annotations).join(' ')).toContain('release-successfully-installed');
    });
    await fleet.manager.stop();
    for (const name of ['moved', 'kept']) await recreate(name);
    await fleet.startManager();
    // The InstallOnce one is offered something else, and the other is the sentinel: when it has followed, all was looked at.
    await fleet.patchChartProxy('moved', { spec: { valuesTemplate: 'message: moved\n' } });
    await fleet.patchChartProxy('kept', { spec: { valuesTemplate: 'message: moved\n' } });
    await fleet.deployed('kept', 3, { revision: 2 });
    await fleet.conditionOf({ chartProxy: 'moved' }, { type: 'HelmReleaseProxySpecsUpToDate', status: 'True' });
    expect(await releaseOf(3, 'moved')).toEqual(['deployed 1']);
    expect(await fleet.manager.metric('capstan_helm_operations_total', { operation: 'install' })).toBe(0);
    const uid = (await fleet.api.get(clusterPath(key(3)))).metadata.uid;
    expect((await fleet.releaseProxy('moved', 3)).spec.clusterRef).toMatchObject({ name: 'c3', uid });
    await fleet.removeChartProxy('moved');
    await fleet.removeChartProxy('kept');
    await undeclare(3);
  });

  /** As `clusterctl move` leaves things: all objects anew, with new UIDs and without status. The first call also moves the Cluster. */
  async function recreate(name: string): Promise<void> {
    const proxies = fleet.path('helmreleaseproxies');
    const chartProxy = await fleet.chartProxy(name);
    const releaseProxy = await fleet.releaseProxy(name, 3);
    const path = `${proxies}/${releaseProxy.metadata.name ?? ''}`;
    for (const finalized of [`${fleet.path('helmchartproxies')}/${name}`, path]) {
      await fleet.api.patch(finalized, { metadata: { finalizers: null } });
      await fleet.api.delete(finalized);
    }
    if (name === 'moved') {
      const { labels } = (await fleet.api.get(clusterPath(key(3)))).metadata;
      await deleteCluster(fleet.api, key(3));
      await createCluster(fleet.api, { ...key(3), labels, kubeconfig: fleet.cluster(3).kubeconfig });
    }
    const { uid } = await fleet.api
      .create<Proxy>(fleet.path('helmchartproxies'), moved(chartProxy))
      .then((o) => o.metadata);
    const again = moved(releaseProxy);
    const ownerReferences = releaseProxy.metadata['ownerReferences'] as { kind: string }[];
    await fleet.api.create(proxies, {
      ...again,
      metadata: {
        ...again.metadata,
        ownerReferences: ownerReferences.map((o) => (o.kind === 'HelmChartProxy' ? { ...o, uid } : o)),
      },
    });
    expect(releaseProxy.metadata.labels?.[HCP_LABEL]).toBe(name);
  }

  function moved(object: Proxy): KubeObject {
    const { name, labels, annotations } = object.metadata;
    const { apiVersion, kind, spec } = object;
    const finalizers = object.metadata['finalizers'];
    return { apiVersion, kind, metadata: { name, labels, annotations, finalizers }, spec };
  }
});
