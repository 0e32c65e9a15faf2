import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, Fleet, setLabels, simpleChart } from '../support/index.ts';

interface Event {
  reason: string;
  type: string;
  message: string;
  count?: number;
  involvedObject: { kind: string; name: string };
  [field: string]: unknown;
}

describe('a platform engineer who reads kubectl get events', () => {
  let fleet: Fleet;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 1 });
    fleet.charts.publish(simpleChart({ name: 'app' }));
    await setLabels(fleet.api, { name: 'c1', namespace: fleet.namespace }, { events: 'yes' });
  });

  afterAll(async () => {
    await fleet.stop();
  });

  async function events(): Promise<Event[]> {
    return (await fleet.api.list(`/api/v1/namespaces/${fleet.namespace}/events`)) as unknown as Event[];
  }

  async function told(reason: string, type: 'Normal' | 'Warning', about: string): Promise<Event> {
    return eventually(
      async () => {
        const found = (await events()).find(
          (event) => event.reason === reason && event.type === type && event.involvedObject.name.startsWith(about),
        );
        if (!found)
          throw new Error((await events()).map((event) => `${event.reason} ${event.involvedObject.name}`).join());
        return found;
      },
      { what: `Event ${reason} about ${about}` },
    );
  }

  it('is told of install, upgrade and uninstall', async () => {
    await fleet.createChartProxy('life', { chartName: 'app', releaseName: 'life', namespace: 'life' });
    await fleet.deployed('life', 1);
    const installed = await told('HelmInstalled', 'Normal', 'app-c1');
    expect(installed.involvedObject.kind).toBe('HelmReleaseProxy');
    expect(installed.message).toContain('life');
    await fleet.patchChartProxy('life', { spec: { valuesTemplate: 'message: two\n' } });
    await fleet.deployed('life', 1, { revision: 2 });
    await told('HelmUpgraded', 'Normal', 'app-c1');
    await fleet.removeChartProxy('life');
    await told('HelmUninstalled', 'Normal', 'app-c1');
  });

  it('is told when a release is handed off', async () => {
    await fleet.createChartProxy('once', {
      chartName: 'app',
      releaseName: 'once',
      namespace: 'once',
      reconcileStrategy: 'InstallOnce',
    });
    await fleet.deployed('once', 1);
    await told('HandedOff', 'Normal', 'app-c1');
    await fleet.removeChartProxy('once');
  });

  it('is told of a failure, in one Event however often it repeats', async () => {
    await fleet.createChartProxy('broken', { chartName: 'missing', releaseName: 'broken', namespace: 'broken' });
    const failed = await told('HelmInstallOrUpgradeFailed', 'Warning', 'missing-c1');
    expect(failed.message).toContain('missing');
    expect(failed.message.length).toBeLessThanOrEqual(1024);
    await eventually(async () => {
      const retried = await fleet.manager.metric('controller_runtime_reconcile_errors_total', {
        controller: 'helmreleaseproxy',
      });
      if (retried < 4) throw new Error(`${retried} failures so far`);
    });
    const repeated = (await events()).filter((event) => event.reason === 'HelmInstallOrUpgradeFailed');
    expect(repeated).toHaveLength(1);
    await fleet.removeChartProxy('broken');
  });
});
