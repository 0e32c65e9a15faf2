import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject, OwnedProcess, Proxy } from '../support/index.ts';
import { eventually, Fleet, simpleChart } from '../support/index.ts';
import { chartOf, NEVER_READY } from './chart-files.ts';
import { Hauling } from './hauling.ts';
import { lookAgain, operations } from './looks.ts';
import { forceStatus } from './release-secrets.ts';

/** Defects W16, W17 and W20 of CAAPH: releases in states that an operation, or somebody else, left behind. */
describe('a platform engineer whose releases are touched by others too', () => {
  let fleet: Fleet;
  let hauling: Hauling;
  let slowChart: string;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 1 });
    hauling = new Hauling(fleet);
    const slow = chartOf('slow', { 'templates/service.yaml': NEVER_READY });
    fleet.charts.publish(slow, simpleChart({ name: 'app', objects: 1 }));
    slowChart = join(fleet.environment.directory, 'slow.tgz');
    await writeFile(slowChart, slow.archive);
  });

  afterAll(async () => {
    await fleet.stop();
  });

  /** Somebody's own `helm upgrade --wait`, of a release that never gets ready unless the test makes it so. */
  async function upgradeByHand(name: string): Promise<OwnedProcess> {
    const { environment } = fleet;
    const process = environment.processes.start({
      name: `by-hand-${name}`,
      command: environment.binaries.helm3,
      args: ['upgrade', name, slowChart, '-n', name, '--wait', '--timeout=5m', '--set=by=hand'].concat(
        `--kubeconfig=${fleet.cluster(1).adminKubeconfigPath}`,
      ),
      directory: environment.directory,
      env: { HOME: environment.directory },
    });
    await stateOf(name, 'pending-upgrade');
    return process;
  }

  async function stateOf(name: string, status: string): Promise<void> {
    await eventually(
      async () => {
        expect((await hauling.record(name)).info.status).toBe(status);
      },
      { what: `release ${name} is ${status}` },
    );
  }

  /** What a load balancer's controller would do. */
  async function giveAddress(release: string): Promise<void> {
    await fleet.cluster(1).api.patch(`/api/v1/namespaces/${release}/services/${release}-lb/status`, {
      status: { loadBalancer: { ingress: [{ ip: '127.0.0.9' }] } },
    });
  }

  async function eventsOf(reason: string): Promise<KubeObject[]> {
    const events = await fleet.api.list(`/api/v1/namespaces/${fleet.namespace}/events`);
    return events.filter((event) => event['reason'] === reason);
  }

  it('W16: an operation that somebody else has under way is waited for, and its end is followed at once', async () => {
    await hauling.install('held', { chartName: 'slow', valuesTemplate: 'by: fleet\n' });
    const upgrades = await operations(fleet, 'upgrade');
    await upgradeByHand('held');
    const told = await fleet.conditionOf(
      { chartProxy: 'held', index: 1 },
      { type: 'HelmReleaseReady', status: 'False', reason: 'HelmReleasePending' },
    );
    expect(told.message).toMatch(/pending-upgrade.*another operation.*taken over at/);
    await lookAgain(fleet, 'held');
    await lookAgain(fleet, 'held');
    expect((await hauling.record('held')).info.status).toBe('pending-upgrade');
    expect(await operations(fleet, 'upgrade')).toBe(upgrades);
    await giveAddress('held');
    // The hand's upgrade comes to its end (revision 2), and what the fleet wants is put back (revision 3).
    await fleet.deployed('held', 1, { revision: 3 });
    expect((await hauling.record('held')).config).toEqual({ by: 'fleet' });
    expect(await hauling.revisions('held')).toEqual([1, 2, 3]);
    expect(await eventsOf('RecoveredPending')).toEqual([]);
    await fleet.removeChartProxy('held');
  });

  it('W16: one that was broken off is taken over when its time is up, in one pass', async () => {
    const options = { timeout: '8s' };
    await hauling.install('broken', { chartName: 'slow', options, valuesTemplate: 'by: fleet\n' });
    const process = await upgradeByHand('broken');
    await process.stop('kill');
    await stateOf('broken', 'pending-upgrade');
    await fleet.deployed('broken', 1, { revision: 3 });
    expect((await hauling.record('broken')).config).toEqual({ by: 'fleet' });
    await eventually(async () => {
      const [event] = await eventsOf('RecoveredPending');
      expect(event?.['message']).toMatch(/revision 2 of release broken\/broken/);
    });
    await fleet.removeChartProxy('broken');
  });

  it('W17: a generated name stands in the object before Helm runs, and every retry keeps to it', async () => {
    const options = { wait: true, timeout: '6s' };
    await hauling.create('named', { chartName: 'slow', releaseName: undefined, options });
    const running = await eventually(async () => {
      const proxy: Proxy = await fleet.releaseProxy('named', 1);
      const list = await fleet.releases(1);
      expect(list.find(({ namespace }) => namespace === 'named')?.status).toBe('pending-install');
      return proxy;
    });
    expect(running.spec.releaseName).toMatch(/^slow-\d{10}$/);
    expect(running.metadata.annotations).toMatchObject({
      'helmreleaseproxy.addons.cluster.x-k8s.io/is-release-name-generated': 'true',
    });
    const name = running.spec.releaseName ?? '';
    await fleet.conditionOf(
      { chartProxy: 'named', index: 1 },
      { type: 'HelmReleaseReady', reason: 'HelmInstallOrUpgradeFailed' },
    );
    await fleet.cluster(1).api.patch(`/api/v1/namespaces/named/services/${name}-lb/status`, {
      status: { loadBalancer: { ingress: [{ ip: '127.0.0.9' }] } },
    });
    const proxy = await hauling.recovered('named');
    expect(proxy.spec.releaseName).toBe(name);
    const mine = (await fleet.releases(1)).filter(({ namespace }) => namespace === 'named');
    expect(mine.map((release) => [release.name, release.status])).toEqual([[name, 'deployed']]);
    expect((await fleet.chartProxy('named')).spec.releaseName ?? '').toBe('');
    await fleet.removeChartProxy('named');
  });

  it('W20: a release that was uninstalled with its history kept is installed again', async () => {
    await hauling.install('kept', { chartName: 'app' });
    await fleet.cluster(1).helm3(['uninstall', 'kept', '-n', 'kept', '--keep-history']);
    const proxy = await fleet.deployed('kept', 1, { revision: 2 });
    expect(proxy.status?.status).toBe('deployed');
    expect((await hauling.configMap('kept', '0'))?.data).toMatchObject({ message: 'hello' });
    await fleet.removeChartProxy('kept');
  });

  it('W20: one that is being uninstalled is told so, waited for, and then installed again', async () => {
    await hauling.install('leaving', { chartName: 'app', options: { timeout: '8s' } });
    await forceStatus(fleet.cluster(1), { namespace: 'leaving', name: 'leaving' }, 'uninstalling');
    const told = await fleet.conditionOf(
      { chartProxy: 'leaving', index: 1 },
      { type: 'HelmReleaseReady', status: 'False', reason: 'HelmReleaseNotDeployed' },
    );
    expect(told.message).toContain('Helm release is in state: uninstalling');
    const proxy = await hauling.recovered('leaving');
    expect(proxy.status?.status).toBe('deployed');
    expect((await hauling.record('leaving')).info.status).toBe('deployed');
    await fleet.removeChartProxy('leaving');
  });

  it('W20: one of which no revision is deployed any more is upgraded', async () => {
    await hauling.install('outdone', { chartName: 'app' });
    await forceStatus(fleet.cluster(1), { namespace: 'outdone', name: 'outdone' }, 'superseded');
    const proxy = await fleet.deployed('outdone', 1, { revision: 2 });
    expect(proxy.status?.status).toBe('deployed');
    await fleet.removeChartProxy('outdone');
  });
});
