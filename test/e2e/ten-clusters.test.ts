import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { condition, createCluster, eventually, Fleet } from '../support/index.ts';
import { refusingKubeconfig, simpleChart, startSilentServer } from '../support/index.ts';
import type { DeadServer } from '../support/index.ts';

const GOOD = 8;
const SILENT = GOOD + 1;
const REFUSING = GOOD + 2;
const FORCE = 'helmreleaseproxy.addons.cluster.x-k8s.io/force-delete';

describe('a platform engineer with ten clusters of which one never answers and one refuses', () => {
  let fleet: Fleet;
  let silent: DeadServer;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: GOOD, manager: false });
    silent = await startSilentServer();
    const refusing = await refusingKubeconfig('refusing', await fleet.environment.ports.take());
    for (const [index, kubeconfig] of [
      [SILENT, silent.kubeconfig],
      [REFUSING, refusing],
    ] as const) {
      await createCluster(fleet.api, {
        name: `c${index}`,
        namespace: fleet.namespace,
        labels: { fleet: 'yes' },
        kubeconfig,
      });
    }
    fleet.charts.publish(simpleChart({ name: 'app' }));
    await fleet.startManager();
  });

  afterAll(async () => {
    await fleet.stop();
    await silent.stop();
  });

  it('serves the other eight at once, and says of the two what is wrong', async () => {
    await fleet.createChartProxy('ten', { chartName: 'app', releaseName: 'ten', namespace: 'ten' });
    for (let index = 1; index <= GOOD; index++) await fleet.deployed('ten', index);
    for (const index of [SILENT, REFUSING]) {
      const wanted = { type: 'ClusterAvailable', status: 'False', reason: 'ClusterUnreachable' };
      const found = await fleet.conditionOf({ chartProxy: 'ten', index }, wanted);
      expect(found.message).not.toBe('');
    }
    const ready = await fleet.conditionOf({ chartProxy: 'ten' }, { type: 'HelmReleaseProxiesReady', status: 'False' });
    for (const index of [SILENT, REFUSING])
      expect(ready.message).toContain((await fleet.releaseProxy('ten', index)).metadata.name);
    expect(silent.connections).toBeGreaterThan(0);
    const downloads = fleet.charts.downloads('app');
    expect(downloads).toBe(1);
  });

  it('rolls a change out to the eight while the two are away', async () => {
    await fleet.patchChartProxy('ten', { spec: { valuesTemplate: 'message: "{{ .Cluster.metadata.name }}"\n' } });
    for (let index = 1; index <= GOOD; index++) await fleet.deployed('ten', index, { revision: 2 });
  });

  it('deletes the HelmChartProxy: the eight are cleared, and it says which two it waits for and how to let go', async () => {
    await fleet.deleteChartProxy('ten');
    await eventually(
      async () => {
        const left = (await fleet.releaseProxies('ten')).map((proxy) => proxy.spec.clusterRef?.name);
        expect(left.sort()).toEqual([`c${REFUSING}`, `c${SILENT}`].sort());
      },
      { timeoutMs: 90_000, what: 'only the two are left' },
    );
    for (let index = 1; index <= GOOD; index++) expect(await fleet.releases(index)).toEqual([]);
    await eventually(async () => {
      const found = condition(await fleet.chartProxy('ten'), 'HelmReleaseProxiesReady');
      expect(found).toMatchObject({ status: 'False', reason: 'HelmReleaseProxiesDeleting' });
      expect(found?.message).toMatch(/waiting for 2 HelmReleaseProxies/);
      for (const index of [SILENT, REFUSING]) {
        expect(found?.message).toContain((await fleet.releaseProxy('ten', index)).metadata.name);
        expect(found?.message).toContain(`(cluster c${index})`);
      }
      expect(found?.message).toContain(FORCE);
    });
  });

  it('forces one to go, then the other: the HelmChartProxy goes with the last', async () => {
    const force = async (index: number): Promise<void> => {
      const { name } = (await fleet.releaseProxy('ten', index)).metadata;
      await fleet.api.patch(`${fleet.path('helmreleaseproxies')}/${name ?? ''}`, {
        metadata: { annotations: { [FORCE]: 'true' } },
      });
    };
    await force(SILENT);
    await eventually(async () => {
      const found = condition(await fleet.chartProxy('ten'), 'HelmReleaseProxiesReady');
      expect(found?.message).toMatch(/waiting for 1 HelmReleaseProxy/);
      expect(found?.message).not.toContain(`(cluster c${SILENT})`);
    });
    await force(REFUSING);
    await eventually(async () => {
      expect(await fleet.findChartProxy('ten')).toBeUndefined();
    });
    expect(await fleet.releaseProxies('ten')).toEqual([]);
  });
});
