import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, Fleet, simpleChart } from '../support/index.ts';
import { apiRequests, countRequests, WRITES } from './api-requests.ts';

const CLUSTERS = 2;
/** The resources that Capstan could write to or read bodies of; the control planes' own housekeeping is in none of them. */
const WRITTEN = ['helmchartproxies', 'helmreleaseproxies', 'secrets', 'configmaps', 'events', 'namespaces'];

/** Everything that a pass may cost, as counters. */
async function costs(fleet: Fleet): Promise<Record<string, number>> {
  const { manager, environment } = fleet;
  const clusters = await Promise.all([environment.management, ...environment.clusters].map(apiRequests));
  const rows = clusters.flat();
  return {
    'helm processes': await manager.metric('capstan_helm_operations_total'),
    'charts downloaded': fleet.charts.downloads('app'),
    'index requests': fleet.charts.indexRequests(),
    'values rendered': await manager.metric('capstan_values_renders_total'),
    writes: countRequests(rows, (row) => WRITES.includes(row.verb) && WRITTEN.includes(row.resource)),
    'secret reads': countRequests(rows, (row) => row.verb === 'GET' && row.resource === 'secrets'),
    'lists of secrets': countRequests(rows, (row) => row.verb === 'LIST' && row.resource === 'secrets'),
    'watches started': await manager.metric('capstan_watch_starts_total'),
    'watches stopped': await manager.metric('capstan_watch_stops_total'),
  };
}

describe('a platform engineer whose fleet is as it should be', () => {
  let fleet: Fleet;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: CLUSTERS, manager: { flags: ['--sync-period=2s'] } });
    fleet.charts.publish(simpleChart({ name: 'app', version: '1.0.0', objects: 3 }));
    for (const [name, spec] of Object.entries({
      exact: { version: '1.0.0', valuesTemplate: 'message: "{{ .Cluster.metadata.name }}"\n' },
      random: { version: '1.0.0', valuesTemplate: 'message: {{ randAlphaNum 12 }}\n' },
      once: { version: '1.0.0', reconcileStrategy: 'InstallOnce' },
    })) {
      await fleet.createChartProxy(name, { chartName: 'app', releaseName: name, namespace: name, ...spec });
    }
    for (const name of ['exact', 'random', 'once']) {
      for (let index = 1; index <= CLUSTERS; index++) await fleet.deployed(name, index);
    }
    await settled();
  });

  afterAll(async () => {
    await fleet.stop();
  });

  /** Waits until a whole pass has cost nothing: what installing left to write has been written. */
  async function settled(): Promise<void> {
    let before = await costs(fleet);
    await eventually(
      async () => {
        await passes();
        const after = await costs(fleet);
        const paid = Object.entries(after).filter(([what, count]) => count !== before[what]);
        before = after;
        if (paid.length > 0) throw new Error(`the last pass still cost ${paid.map(([what]) => what).join(', ')}`);
      },
      { timeoutMs: 60_000 },
    );
  }

  /** Waits until every object has been looked at at least once more. */
  async function passes(count = 1): Promise<void> {
    const objects = 3 * CLUSTERS;
    const reconciled = async (): Promise<number> =>
      fleet.manager.metric('controller_runtime_reconcile_total', { controller: 'helmreleaseproxy' });
    const goal = (await reconciled()) + 2 * objects * count;
    await eventually(async () => {
      const now = await reconciled();
      if (now < goal) throw new Error(`${now} of ${goal} reconciles`);
    });
  }

  it('pays nothing for resyncs: no helm, no download, no write, no release read, no watch', async () => {
    const before = await costs(fleet);
    await passes(3);
    expect(await costs(fleet)).toEqual(before);
  });

  it('pays no Helm operation, no write and no revision for a restart of the manager', async () => {
    await fleet.manager.stop();
    const before = await costsOfClusters();
    await fleet.startManager({ flags: ['--sync-period=2s'] });
    await passes(2);
    // The one helm process is `helm version`.
    expect(await fleet.manager.metric('capstan_helm_operations_total', { operation: 'upgrade' })).toBe(0);
    expect(await fleet.manager.metric('capstan_helm_operations_total', { operation: 'install' })).toBe(0);
    expect(await fleet.manager.metric('capstan_values_renders_total')).toBe(0);
    expect(await costsOfClusters()).toBe(before);
    for (const name of ['exact', 'random', 'once']) {
      for (let index = 1; index <= CLUSTERS; index++)
        expect((await fleet.releaseProxy(name, index)).status?.revision).toBe(1);
    }
  });

  async function costsOfClusters(): Promise<number> {
    const all = await Promise.all([fleet.environment.management, ...fleet.environment.clusters].map(apiRequests));
    return countRequests(all.flat(), (row) => WRITES.includes(row.verb) && WRITTEN.includes(row.resource));
  }

  it('asks a repository at most once per freshness window, however many releases float on its newest version', async () => {
    fleet.charts.resetRequests();
    for (const name of ['floating-a', 'floating-b', 'floating-c']) {
      await fleet.createChartProxy(name, { chartName: 'app', releaseName: name, namespace: name });
    }
    for (const name of ['floating-a', 'floating-b', 'floating-c']) {
      for (let index = 1; index <= CLUSTERS; index++) await fleet.deployed(name, index);
    }
    await passes(3);
    expect(fleet.charts.indexRequests()).toBeLessThanOrEqual(1);
    expect(fleet.charts.downloads('app')).toBeLessThanOrEqual(1);
  });
});
