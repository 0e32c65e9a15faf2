import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, Fleet, setLabels, simpleChart } from '../support/index.ts';
import { apiRequests, countRequests } from './api-requests.ts';

describe('a platform engineer who counts watches', () => {
  let fleet: Fleet;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 2 });
    fleet.charts.publish(
      simpleChart({ name: 'app', version: '1.0.0', objects: 2 }),
      simpleChart({ name: 'app', version: '1.1.0', objects: 4 }),
    );
  });

  afterAll(async () => {
    await fleet.stop();
  });

  async function watches(cluster?: string): Promise<{ started: number; stopped: number }> {
    const labels: Record<string, string> = cluster === undefined ? {} : { cluster };
    return {
      started: await fleet.manager.metric('capstan_watch_starts_total', labels),
      stopped: await fleet.manager.metric('capstan_watch_stops_total', labels),
    };
  }

  it('sees none started or stopped by an upgrade that keeps the kinds of a release', async () => {
    await setLabels(fleet.api, { name: 'c1', namespace: fleet.namespace }, { app: 'yes' });
    await fleet.createChartProxy('app', {
      chartName: 'app',
      version: '1.0.0',
      releaseName: 'app',
      namespace: 'app',
      clusterSelector: { matchLabels: { app: 'yes' } },
    });
    await fleet.deployed('app', 1);
    const before = await watches();
    expect(before.started).toBeGreaterThan(0);
    await fleet.patchChartProxy('app', { spec: { version: '1.1.0', valuesTemplate: 'message: new\n' } });
    await fleet.deployed('app', 1, { revision: 2 });
    expect(await watches()).toEqual(before);
    await fleet.removeChartProxy('app');
  });

  it('sees nothing watched or read on a cluster that has only handed-off releases (W12)', async () => {
    await setLabels(fleet.api, { name: 'c2', namespace: fleet.namespace }, { once: 'yes' });
    await fleet.createChartProxy('once', {
      chartName: 'app',
      version: '1.0.0',
      releaseName: 'once',
      namespace: 'once',
      reconcileStrategy: 'InstallOnce',
      clusterSelector: { matchLabels: { once: 'yes' } },
    });
    await fleet.deployed('once', 2);
    const cluster = `${fleet.namespace}/c2`;
    await eventually(async () => {
      expect(await fleet.manager.metric('capstan_watches', { cluster })).toBe(0);
    });
    const secrets = async (): Promise<number> =>
      countRequests(await apiRequests(fleet.cluster(2)), (row) => row.resource === 'secrets' && row.verb !== 'WATCH');
    const before = await secrets();
    await fleet.patchChartProxy('once', { spec: { version: '1.1.0', valuesTemplate: 'message: new\n' } });
    await fleet.conditionOf({ chartProxy: 'once' }, { type: 'Ready', status: 'True' });
    await fleet.removeChartProxy('once');
    expect(await secrets()).toBe(before);
    expect((await fleet.releases(2)).map((release) => release.name)).toEqual(['once']);
  });
});
