import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Relay } from '../../hack/soak/relay.ts';
import { condition, eventually, Fleet, setKubeconfig, simpleChart } from '../support/index.ts';
import type { TestCluster } from '../support/index.ts';

/** A cluster that is cut off is degraded after five probes of 10 s. Milliseconds. */
const LONG_MS = 240_000;

/** What becomes of a cluster whose address, CA or credentials change, counted at the manager. */
describe('a platform engineer whose clusters change under the manager', () => {
  let fleet: Fleet;
  let relay: Relay;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 2 });
    relay = await Relay.start(Number(new URL(fleet.cluster(1).server).port));
    fleet.charts.publish(simpleChart({ name: 'app', version: '1.0.0', objects: 2 }));
    await fleet.createChartProxy('app', {
      chartName: 'app',
      releaseName: 'app',
      namespace: 'app',
      driftDetection: { mode: 'Correct' },
      valuesTemplate: 'message: first\n',
    });
    await fleet.deployed('app', 1);
    await fleet.deployed('app', 2);
    await inSync(1);
    await inSync(2);
  });
  afterAll(async () => {
    await fleet.stop();
    await relay.stop();
  });

  const path = '/api/v1/namespaces/app/configmaps/app-0';

  function key(index: number): { name: string; namespace: string } {
    return { name: `c${String(index)}`, namespace: fleet.namespace };
  }

  async function metric(name: string, index: number, labels: Record<string, string> = {}): Promise<number> {
    return fleet.manager.metric(name, { cluster: `${fleet.namespace}/c${String(index)}`, ...labels });
  }

  /** How often the manager said something of a cluster. */
  function said(index: number, message: string): number {
    const lines = fleet.manager
      .log()
      .split('\n')
      .filter((line) => line.includes(`"cluster":"${fleet.namespace}/c${String(index)}"`));
    return lines.filter((line) => line.includes(`"msg":"${message}"`)).length;
  }

  function engagements(index: number): number {
    return said(index, 'cluster engaged');
  }

  async function inSync(index: number): Promise<void> {
    await eventually(async () => {
      expect(condition(await fleet.releaseProxy('app', index), 'ReleaseInSync')?.status).toBe('True');
    });
  }

  /** An edit is noticed and put back: its watches live, and what it writes arrives. */
  async function expectWatched(cluster: TestCluster): Promise<void> {
    await cluster.api.patch(path, { data: { message: 'by hand' } });
    await eventually(async () => {
      const { data } = (await cluster.api.get(path)) as unknown as { data: { message: string } };
      expect(data.message).not.toBe('by hand');
    });
  }

  async function revisions(cluster: TestCluster): Promise<string[]> {
    const records = await cluster.api.list('/api/v1/namespaces/app/secrets?labelSelector=owner%3Dhelm');
    return records.map(({ metadata }) => metadata.labels?.['version'] ?? '').sort();
  }

  it('rotates its credentials: no watch starts anew, no request is lost, the other cluster is not touched', async () => {
    const before = [await metric('capstan_watch_starts_total', 1), engagements(1), engagements(2)];
    await fleet.cluster(1).rotateCredentials();
    // The old ones are refused by now; whatever was asked meanwhile waits for the new ones.
    await setKubeconfig(fleet.api, key(1), fleet.cluster(1).kubeconfig);
    await eventually(() => expect(fleet.manager.log()).toContain('credentials were swapped in place'));
    await expectWatched(fleet.cluster(1));
    expect([await metric('capstan_watch_starts_total', 1), engagements(1), engagements(2)]).toEqual(before);
    expect(await metric('capstan_cluster_transitions_total', 1, { to: 'degraded' })).toBe(0);
    expect(await revisions(fleet.cluster(1))).toEqual(['1']);
  });

  it('is told of an address behind which nobody is: the old one serves on, and that is said', async () => {
    const before = engagements(1);
    const nowhere = fleet
      .cluster(1)
      .kubeconfig.replace(/server: .*/, `server: https://127.0.0.1:${await fleet.environment.ports.take()}`);
    await setKubeconfig(fleet.api, key(1), nowhere);
    await eventually(() => expect(said(1, 'cluster in service with a warning')).toBeGreaterThan(0));
    await fleet.patchChartProxy('app', { spec: { valuesTemplate: 'message: second\n' } });
    await fleet.deployed('app', 1, { revision: 2 });
    await fleet.deployed('app', 2, { revision: 2 });
    await expectWatched(fleet.cluster(1));
    expect(engagements(1)).toBe(before);
  });

  it(
    'gets another address: it is engaged there, and its release is left as it is',
    async () => {
      const before = engagements(1);
      const moved = fleet.cluster(1).kubeconfig.replace(/server: .*/, `server: https://127.0.0.1:${relay.port}`);
      await setKubeconfig(fleet.api, key(1), moved);
      await eventually(() => expect(engagements(1)).toBeGreaterThan(before));
      await inSync(1);
      await expectWatched(fleet.cluster(1));
      expect(await revisions(fleet.cluster(1))).toEqual(['1', '2']);
      // What it does now goes by the new way alone.
      relay.set('cut');
      await eventually(
        async () => {
          const available = condition(await fleet.releaseProxy('app', 1), 'ClusterAvailable');
          expect(available?.status).toBe('False');
        },
        { timeoutMs: 90_000 },
      );
      relay.set('open');
      await eventually(
        async () => {
          expect(condition(await fleet.releaseProxy('app', 1), 'ClusterAvailable')?.status).toBe('True');
        },
        { timeoutMs: 90_000 },
      );
      await expectWatched(fleet.cluster(1));
    },
    LONG_MS,
  );

  it('gets another address, CA and credentials in one: it is the same cluster, and keeps its release', async () => {
    const [before, other] = [engagements(2), engagements(1)];
    const successor = await fleet.environment.addCluster('successor', {
      dataOf: 'workload-2',
      credentials: 'certificate',
    });
    expect(successor.ca).not.toBe(fleet.cluster(2).ca);
    await setKubeconfig(fleet.api, key(2), successor.kubeconfig);
    await eventually(() => expect(engagements(2)).toBeGreaterThan(before));
    // The one before is gone for good.
    await fleet.cluster(2).stop();
    await fleet.patchChartProxy('app', { spec: { valuesTemplate: 'message: third\n' } });
    await fleet.deployed('app', 2, { revision: 3 });
    await inSync(2);
    await expectWatched(successor);
    expect(await revisions(successor)).toEqual(['1', '2', '3']);
    expect(engagements(1)).toBe(other);
  });
});
