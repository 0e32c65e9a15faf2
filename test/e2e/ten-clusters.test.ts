import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { condition, createCluster, eventually, Fleet } from '../support/index.ts';
import { refusingKubeconfig, simpleChart, startSilentServer } from '../support/index.ts';
import type { DeadServer } from '../support/index.ts';

const GOOD = 8;
const SILENT = GOOD + 1;
const REFUSING = GOOD + 2;
/** Of the good ones: these die later, with a release on them. */
const [HUNG, STOPPED] = [GOOD - 1, GOOD];
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
    await haul('ten');
    for (let index = 1; index <= GOOD; index++) await fleet.deployed('ten', index);
    for (const index of [SILENT, REFUSING]) {
      const wanted = { type: 'ClusterAvailable', status: 'False', reason: 'ClusterUnreachable' };
      const found = await fleet.conditionOf({ chartProxy: 'ten', index }, wanted);
      expect(found.message).not.toBe('');
    }
    const ready = await fleet.conditionOf({ chartProxy: 'ten' }, { type: 'HelmReleaseProxiesReady', status: 'False' });
    for (const index of [SILENT, REFUSING])
      expect(ready.message).toContain((await fleet.releaseProxy('ten', index)).metadata.name);
    expect(fleet.charts.downloads('app')).toBe(1);
  });

  it('rolls a change out to the eight while the two are away', async () => {
    await fleet.patchChartProxy('ten', { spec: { valuesTemplate: 'message: "{{ .Cluster.metadata.name }}"\n' } });
    for (let index = 1; index <= GOOD; index++) await fleet.deployed('ten', index, { revision: 2 });
  });

  it('deletes it while the two have never been reached: there is nothing to wait for', async () => {
    await fleet.removeChartProxy('ten');
    for (let index = 1; index <= GOOD; index++) expect(await fleet.releases(index)).toEqual([]);
  });

  it('deletes another while two that have its release are dead: it says which it waits for, and how to let go', async () => {
    await haul('dead');
    for (let index = 1; index <= GOOD; index++) await fleet.deployed('dead', index);
    await fleet.manager.stop();
    await fleet.cluster(STOPPED).stop();
    fleet.cluster(HUNG).pause();
    await fleet.startManager();
    await fleet.deleteChartProxy('dead');
    await eventually(
      async () => {
        const left = (await fleet.releaseProxies('dead')).map((proxy) => proxy.spec.clusterRef?.name);
        expect(left).toEqual([`c${HUNG}`, `c${STOPPED}`]);
      },
      { timeoutMs: 90_000, what: 'only the two are left' },
    );
    for (let index = 1; index < HUNG; index++) expect(await fleet.releases(index)).toEqual([]);
    await waitsFor([HUNG, STOPPED], /waiting for 2 HelmReleaseProxies/);
  });

  it('forces one to go, and the other comes back: its release is uninstalled, and the HelmChartProxy is gone', async () => {
    const { name } = (await fleet.releaseProxy('dead', STOPPED)).metadata;
    await fleet.api.patch(`${fleet.path('helmreleaseproxies')}/${name ?? ''}`, {
      metadata: { annotations: { [FORCE]: 'true' } },
    });
    await waitsFor([HUNG], /waiting for 1 HelmReleaseProxy/);
    fleet.cluster(HUNG).resume();
    await eventually(
      async () => {
        expect(await fleet.findChartProxy('dead')).toBeUndefined();
      },
      { timeoutMs: 120_000, what: 'the HelmChartProxy is gone' },
    );
    expect(await fleet.releases(HUNG)).toEqual([]);
    await fleet.cluster(STOPPED).start();
    expect((await fleet.releases(STOPPED)).map((release) => release.name)).toEqual(['dead']);
  });

  async function haul(name: string): Promise<void> {
    await fleet.createChartProxy(name, { chartName: 'app', releaseName: name, namespace: name });
  }

  /** Waits until the HelmChartProxy says for which clusters it waits, and how to let go. */
  async function waitsFor(indexes: number[], words: RegExp): Promise<void> {
    await eventually(
      async () => {
        const found = condition(await fleet.chartProxy('dead'), 'HelmReleaseProxiesReady');
        expect(found).toMatchObject({ status: 'False', reason: 'HelmReleaseProxiesDeleting' });
        expect(found?.message).toMatch(words);
        for (const index of indexes) {
          expect(found?.message).toContain((await fleet.releaseProxy('dead', index)).metadata.name);
          expect(found?.message).toContain(`(cluster c${index})`);
        }
        expect(found?.message).toContain(FORCE);
      },
      { timeoutMs: 90_000, what: `it waits for ${indexes.join(', ')}` },
    );
  }
});
