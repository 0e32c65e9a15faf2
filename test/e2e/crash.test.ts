import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually, Fleet, Manager } from '../support/index.ts';
import type { Environment, Proxy, TestCluster } from '../support/index.ts';
import { Hauling } from './hauling.ts';
import { HELM_VERSIONS } from './helm-versions.ts';
import { allGone, ended, helmAtWork, helmProcesses } from './processes.ts';
import { applied, letReady, waitingChart } from './waiting-chart.ts';

const CHART = 'slow';
/** Nothing in these tests may come to its end because Helm's own patience did. */
const OPTIONS = { wait: true, timeout: '10m' };
const EXIT_LIMIT_MS = 60_000;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';

let fleet: Fleet;
let environment: Environment;
let cluster: TestCluster;
const managers: Manager[] = [];

beforeAll(async () => {
  fleet = await Fleet.start({ clusters: 1, manager: false });
  ({ environment } = fleet);
  cluster = fleet.cluster(1);
  fleet.charts.publish(waitingChart(CHART, '1.0.0'), waitingChart(CHART, '1.1.0'));
});

afterEach(async () => {
  for (const manager of managers.splice(0)) await manager.kill();
});

afterAll(async () => {
  await fleet.stop();
});

async function start(helm: string, flags: string[] = []): Promise<Manager> {
  const manager = await Manager.start(environment, { helm, flags });
  managers.push(manager);
  return manager;
}

/** Creates a HelmChartProxy without a release name; its release is in a namespace of its own. */
async function create(name: string): Promise<void> {
  await fleet.createChartProxy(name, { chartName: CHART, version: '1.0.0', namespace: name, options: OPTIONS });
}

/** Waits until Helm waits for the objects of that chart version; resolves with the HelmReleaseProxy and helm's pid. */
async function waiting(
  manager: Manager,
  helm: string,
  at: { name: string; version: string; operation: string },
): Promise<{ proxy: Proxy; helmPid: number; release: string }> {
  const helmPid = await helmAtWork(manager.pid, helm, at.operation);
  const proxy = await fleet.releaseProxy(at.name, 1);
  const release = proxy.spec.releaseName ?? '';
  expect(release).not.toBe('');
  await applied(cluster, { namespace: at.name, release, version: at.version });
  return { proxy, helmPid, release };
}

/** The one release of a scene: deployed, of that version, under that name, with nothing beside it. */
async function expectOnlyRelease(name: string, release: string, version: string): Promise<void> {
  const proxy = await new Hauling(fleet).recovered(name);
  expect(proxy.spec.releaseName).toBe(release);
  const releases = (await fleet.releases(1)).filter((candidate) => candidate.namespace === name);
  expect(releases).toEqual([
    expect.objectContaining({ name: release, status: 'deployed', chart: `${CHART}-${version}` }),
  ]);
}

/** Both the manager and its helm are gone before either can write another word: a node that loses power. */
async function losePower(manager: Manager, helmPid: number): Promise<void> {
  process.kill(manager.pid, 'SIGSTOP');
  process.kill(helmPid, 'SIGKILL');
  await manager.kill();
}

/** Removes a scene, so that the next manager has only its own. */
async function clear(name: string): Promise<void> {
  await fleet.removeChartProxy(name);
}

describe.each(HELM_VERSIONS)('a platform engineer whose manager dies, on $name', ({ name: version, binary }) => {
  const suffix = version.replace('helm ', 'h');
  let helm: string;

  beforeAll(() => {
    helm = binary(environment);
  });

  it('SIGKILL in the middle of an install: no helm is left, the release goes on under its generated name', async () => {
    const name = `kill-install-${suffix}`;
    const first = await start(helm);
    await create(name);
    const { release, helmPid } = await waiting(first, helm, { name, version: '1.0.0', operation: 'install' });
    const pids = await helmProcesses(first.pid, helm);
    expect(pids).toContain(helmPid);
    await first.kill();
    await allGone(pids);
    await start(helm);
    await letReady(cluster, { namespace: name, release, version: '1.0.0' });
    await expectOnlyRelease(name, release, '1.0.0');
    await clear(name);
  });

  it('power lost in the middle of an install: pending-install is taken over at once', async () => {
    const name = `power-install-${suffix}`;
    const first = await start(helm);
    await create(name);
    const { release, helmPid } = await waiting(first, helm, { name, version: '1.0.0', operation: 'install' });
    await losePower(first, helmPid);
    expect((await fleet.releases(1)).filter((r) => r.namespace === name)).toEqual([
      expect.objectContaining({ name: release, status: 'pending-install' }),
    ]);
    await start(helm);
    await letReady(cluster, { namespace: name, release, version: '1.0.0' });
    await expectOnlyRelease(name, release, '1.0.0');
    await clear(name);
  });

  it('the manager dies in the middle of an upgrade, twice: first alone, then with its helm', async () => {
    const name = `kill-upgrade-${suffix}`;
    let manager = await start(helm);
    await create(name);
    const { release } = await waiting(manager, helm, { name, version: '1.0.0', operation: 'install' });
    await letReady(cluster, { namespace: name, release, version: '1.0.0' });
    await fleet.deployed(name, 1);

    await fleet.patchChartProxy(name, { spec: { version: '1.1.0' } });
    await waiting(manager, helm, { name, version: '1.1.0', operation: 'upgrade' });
    const pids = await helmProcesses(manager.pid, helm);
    await manager.kill();
    await allGone(pids);

    manager = await start(helm);
    const again = await waiting(manager, helm, { name, version: '1.1.0', operation: 'upgrade' });
    await losePower(manager, again.helmPid);

    await start(helm);
    await letReady(cluster, { namespace: name, release, version: '1.1.0' });
    await expectOnlyRelease(name, release, '1.1.0');
    await clear(name);
  });

  it('SIGTERM lets an install that runs come to its end, and leaves with exit code 0', async () => {
    const name = `drain-${suffix}`;
    const manager = await start(helm, ['--drain-timeout=60s']);
    await create(name);
    const { release } = await waiting(manager, helm, { name, version: '1.0.0', operation: 'install' });
    process.kill(manager.pid, 'SIGTERM');
    await eventually(() => {
      expect(manager.log()).toContain('manager stopping');
    });
    await letReady(cluster, { namespace: name, release, version: '1.0.0' });
    expect(await ended(manager.ended, EXIT_LIMIT_MS)).toMatch(/ended \(0\)/);
    const proxy = await fleet.deployed(name, 1, { revision: 1, timeoutMs: 1_000 });
    expect(proxy.spec.releaseName).toBe(release);
    await start(helm);
    await clear(name);
  });

  it('SIGTERM ends an install that would hold it up: exit code 0, no helm is left, the next manager goes on', async () => {
    const name = `cut-short-${suffix}`;
    const manager = await start(helm, ['--drain-timeout=1s']);
    await create(name);
    const { release } = await waiting(manager, helm, { name, version: '1.0.0', operation: 'install' });
    const pids = await helmProcesses(manager.pid, helm);
    process.kill(manager.pid, 'SIGTERM');
    expect(await ended(manager.ended, EXIT_LIMIT_MS)).toMatch(/ended \(0\)/);
    await allGone(pids, 1_000);
    await start(helm);
    await letReady(cluster, { namespace: name, release, version: '1.0.0' });
    await expectOnlyRelease(name, release, '1.0.0');
    await clear(name);
  });
});

describe('an operator who runs two managers with leader election', () => {
  const flags = (lease: string): string[] => [
    '--leader-elect',
    '--leader-elect-resource-namespace=default',
    `--leader-elect-resource-name=${lease}`,
    '--leader-elect-lease-duration=12s',
    '--leader-elect-renew-deadline=10s',
    '--leader-elect-retry-period=500ms',
  ];

  async function holder(lease: string): Promise<string> {
    const found = await fleet.api.find(`${LEASES}/${lease}`);
    return (found?.['spec'] as { holderIdentity?: string } | undefined)?.holderIdentity ?? '';
  }

  /** Two managers, of which the first has the Lease. */
  async function pair(lease: string): Promise<{ first: Manager; second: Manager }> {
    const first = await start(environment.binaries.helm, flags(lease));
    await eventually(async () => {
      expect(await holder(lease)).not.toBe('');
    });
    return { first, second: await start(environment.binaries.helm, flags(lease)) };
  }

  /** A release that needs no waiting, at that message. */
  async function haul(name: string): Promise<void> {
    await fleet.createChartProxy(name, { chartName: CHART, version: '1.0.0', namespace: name, releaseName: name });
    await fleet.deployed(name, 1);
  }

  it('has one that acts; at its SIGTERM the Lease is given back, and the other takes over', async () => {
    const lease = 'handed-over';
    const { first, second } = await pair(lease);
    await haul('elected');
    expect(await second.metric('capstan_helm_operations_total', { operation: 'install' })).toBe(0);
    expect(await second.metric('controller_runtime_reconcile_total')).toBe(0);
    expect(await first.metric('capstan_helm_operations_total', { operation: 'install' })).toBe(1);

    const before = await holder(lease);
    process.kill(first.pid, 'SIGTERM');
    expect(await ended(first.ended, EXIT_LIMIT_MS)).toMatch(/ended \(0\)/);
    // Given back, hence nobody's or already the other's.
    expect(await holder(lease)).not.toBe(before);
    await fleet.patchChartProxy('elected', { spec: { valuesTemplate: 'message: second\n' } });
    await fleet.deployed('elected', 1, { revision: 2 });
    expect(await second.metric('capstan_helm_operations_total', { operation: 'upgrade' })).toBe(1);
    await clear('elected');
  });

  it('loses one without a word: the other takes over when the Lease has run out', async () => {
    const { first, second } = await pair('run-out');
    await haul('bereft');
    await first.kill();
    await fleet.patchChartProxy('bereft', { spec: { valuesTemplate: 'message: second\n' } });
    await fleet.deployed('bereft', 1, { revision: 2 });
    expect(await second.metric('capstan_helm_operations_total', { operation: 'upgrade' })).toBe(1);
    await clear('bereft');
  });
});
