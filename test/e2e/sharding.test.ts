import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Ranking } from '../../src/runtime/sharding/rendezvous.ts';
import { createCluster, deleteCluster, eventually, Fleet, Manager, simpleChart } from '../support/index.ts';
import type { KubeObject, Proxy } from '../support/index.ts';
import { allGone, ended, helmAtWork, helmProcesses } from './processes.ts';
import { applied, letReady, waitingChart } from './waiting-chart.ts';

// Three managers with --sharding on one management cluster: real processes, killed, stopped and let go on.

const CLUSTERS = 12;
const SERVERS = 2;
const GROUP = 'sharded';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
const FLAGS = [
  '--sharding',
  '--leader-elect',
  '--leader-elect-resource-namespace=default',
  `--leader-elect-resource-name=${GROUP}`,
];
const NAMES = Array.from({ length: CLUSTERS }, (_, i) => `c${String(i + 1)}`);
const LIMIT_MS = 90_000;

interface Lease extends KubeObject {
  spec: { holderIdentity: string };
}

let fleet: Fleet;
const managers: Manager[] = [];

beforeAll(async () => {
  fleet = await Fleet.start({ clusters: SERVERS, declared: 0, manager: false });
  for (const version of ['1.0.0', '1.1.0', '1.2.0'])
    fleet.charts.publish(simpleChart({ name: 'app', version, objects: 2 }));
  fleet.charts.publish(waitingChart('slow', '1.0.0'), waitingChart('slow', '1.1.0'));
  for (const [index, name] of NAMES.entries()) {
    await createCluster(fleet.api, {
      name,
      namespace: fleet.namespace,
      labels: { fleet: 'yes', name },
      // Several Clusters stand for one server; each has releases of its own there.
      kubeconfig: fleet.cluster((index % SERVERS) + 1).kubeconfig,
    });
  }
});

afterAll(async () => {
  for (const manager of managers) {
    manager.resume();
    await manager.kill();
  }
  await fleet.stop();
});

async function start(): Promise<Manager> {
  const manager = await Manager.start(fleet.environment, { flags: FLAGS });
  managers.push(manager);
  return manager;
}

async function startAll(count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, start));
}

function forget(manager: Manager): void {
  managers.splice(managers.indexOf(manager), 1);
}

/** Clusters that a manager is connected to: those of a cluster that was given up are dropped from its metrics. */
async function served(manager: Manager): Promise<string[]> {
  const names = (await manager.metrics())
    .filter(({ name }) => name === 'capstan_kube_requests_total')
    .map(({ labels }) => labels.cluster?.split('/')[1] ?? '');
  return [...new Set(names)].filter((name) => name !== '').sort(byNumber);
}

function byNumber(a: string, b: string): number {
  return Number(a.slice(1)) - Number(b.slice(1));
}

/** Each cluster is served by exactly one of the managers. Resolves with who serves what. */
async function shared(names = NAMES): Promise<Map<string, Manager>> {
  return eventually(
    async () => {
      const shares = await Promise.all(managers.map(served));
      expect(shares.flat().sort(byNumber)).toEqual(names);
      const counts = await Promise.all(managers.map(async (manager) => manager.metric('capstan_shard_clusters')));
      expect(counts).toEqual(shares.map((share) => share.length));
      const members = await Promise.all(managers.map(async (manager) => manager.metric('capstan_shard_members')));
      expect(members).toEqual(managers.map(() => managers.length));
      return new Map(managers.flatMap((manager, i) => (shares[i] ?? []).map((name) => [name, manager] as const)));
    },
    { timeoutMs: LIMIT_MS, what: 'every cluster is served by one manager' },
  );
}

/** One HelmChartProxy for each Cluster: several are one server, on which each needs a release of its own. */
function app(name: string): [string, Record<string, unknown>] {
  const clusterSelector = { matchLabels: { name } };
  const release = { namespace: 'apps', releaseName: `app-${name}` };
  return [`app-${name}`, { chartName: 'app', version: '1.0.0', ...release, clusterSelector }];
}

async function patchAll(spec: Record<string, unknown>): Promise<void> {
  await Promise.all(NAMES.map(async (name) => fleet.patchChartProxy(`app-${name}`, { spec })));
}

async function proxiesOf(chartName: string): Promise<Proxy[]> {
  return (await fleet.releaseProxies()).filter(({ spec }) => spec.chartName === chartName);
}

/** Every placement of a chart is deployed with that version, at that revision. */
async function rolledOut(chart: string, version: string, revision: number, names = NAMES): Promise<Proxy[]> {
  return eventually(
    async () => {
      const proxies = await proxiesOf(chart);
      const states = proxies.map(({ spec, status }) => [
        spec.clusterRef?.name,
        spec.version,
        status?.revision,
        status?.conditions?.find(({ type }) => type === 'Ready')?.status,
      ]);
      const wanted = names.map((name) => [name, version, revision, 'True']);
      expect(states.sort(([a], [b]) => byNumber(String(a), String(b)))).toEqual(wanted);
      return proxies;
    },
    { timeoutMs: LIMIT_MS, what: `${chart} ${version} is rolled out at revision ${String(revision)}` },
  );
}

/** All releases on all servers, by name: as `helm list` tells them. */
async function releases(): Promise<Record<string, string>> {
  const lists = await Promise.all(Array.from({ length: SERVERS }, async (_, i) => fleet.releases(i + 1)));
  return Object.fromEntries(
    lists.flat().map(({ name, revision, status, chart }) => [name, `${revision} ${status} ${chart}`]),
  );
}

async function expectReleases(proxies: readonly Proxy[], what: string): Promise<void> {
  const names = proxies.map(({ spec }) => spec.releaseName ?? '');
  expect(await releases()).toEqual(Object.fromEntries(names.map((name) => [name, what])));
}

/** The members' Leases; one of a member that was killed stays for a while. */
async function memberLeases(): Promise<Lease[]> {
  const leases = await fleet.api.list<Lease>(LEASES);
  return leases.filter(({ metadata }) => metadata.labels?.['capstan.dev/shard-group'] === `${GROUP}-shards`);
}

describe('three managers that share twelve clusters', () => {
  it('install each release once, and each cluster is served by one of them', async () => {
    await startAll(3);
    await Promise.all(NAMES.map(async (name) => fleet.createChartProxy(...app(name))));
    const proxies = await rolledOut('app', '1.0.0', 1);
    await shared();
    await expectReleases(proxies, '1 deployed app-1.0.0');
    const lease = await fleet.api.get<Lease>(`${LEASES}/${GROUP}`);
    expect(lease.spec.holderIdentity).toBe(`${GROUP}-shards`);
  });

  it('SIGKILL: the others serve what it served, and roll out what changes meanwhile, once', async () => {
    const [victim] = managers as [Manager];
    await victim.kill();
    forget(victim);
    await patchAll({ version: '1.1.0' });
    const proxies = await rolledOut('app', '1.1.0', 2);
    await shared();
    await expectReleases(proxies, '2 deployed app-1.1.0');
  });

  it('a newcomer takes its share from the others, and nothing moves between those', async () => {
    const before = await shared();
    const old = (await memberLeases()).map(({ spec }) => spec.holderIdentity);
    const newcomer = await start();
    const after = await shared();
    const lease = (await memberLeases()).find(({ spec }) => !old.includes(spec.holderIdentity));
    const ranking = Ranking.parse(lease?.metadata.annotations?.['capstan.dev/shard-view'] ?? '');
    expect(ranking?.members.size).toBe(3);
    const owner = (name: string): string | undefined => ranking?.owner(`${fleet.namespace}/${name}`);
    const share = NAMES.filter((name) => owner(name) === lease?.spec.holderIdentity);
    expect(await served(newcomer)).toEqual(share);
    const moved = NAMES.filter((name) => before.get(name) !== after.get(name));
    expect(moved).toEqual(share);
  });

  it('SIGSTOP in the middle of an upgrade: the others finish it, and what goes on after SIGCONT does nothing twice', async () => {
    await fleet.createChartProxy('slow', {
      chartName: 'slow',
      version: '1.0.0',
      namespace: 'slow',
      releaseName: 'slow',
      clusterSelector: { matchLabels: { name: 'c1' } },
      options: { wait: true, timeout: '10m' },
    });
    const release = { namespace: 'slow', release: 'slow' };
    await letReady(fleet.cluster(1), { ...release, version: '1.0.0' });
    await rolledOut('slow', '1.0.0', 1, ['c1']);
    const owner = (await shared()).get('c1');
    if (owner === undefined) throw new Error('nobody serves c1');
    await fleet.patchChartProxy('slow', { spec: { version: '1.1.0' } });
    await helmAtWork(owner.pid, fleet.environment.binaries.helm, 'upgrade');
    await applied(fleet.cluster(1), { ...release, version: '1.1.0' });
    const helms = await helmProcesses(owner.pid, fleet.environment.binaries.helm);
    owner.pause();
    forget(owner);
    const successor = await eventually(
      async () => {
        const shares = await Promise.all(managers.map(served));
        const found = managers.find((_, i) => shares[i]?.includes('c1') === true);
        if (found === undefined) throw new Error('nobody serves c1');
        return found;
      },
      { timeoutMs: LIMIT_MS, what: 'another manager serves c1' },
    );
    await helmAtWork(successor.pid, fleet.environment.binaries.helm, 'upgrade');
    await letReady(fleet.cluster(1), { ...release, version: '1.1.0' });
    const [finished] = await rolledOut('slow', '1.1.0', 3, ['c1']);
    const settled = await releases();
    expect(settled.slow).toBe('3 deployed slow-1.1.0');

    owner.resume();
    managers.push(owner);
    await eventually(async () => expect(await owner.metric('capstan_shard_lapses_total')).toBe(1), {
      what: 'it knows that it was away',
    });
    await allGone(helms, 60_000);
    await owner.ready();
    await shared();
    expect(await releases()).toEqual(settled);
    // Its helm, which nobody stopped, waited for the same objects: it has not written that they are ready.
    const secrets = await fleet.cluster(1).api.list('/api/v1/namespaces/slow/secrets?labelSelector=owner%3Dhelm');
    expect(secrets.map(({ metadata }) => metadata.labels?.status)).toEqual(['superseded', 'failed', 'deployed']);
    const now = await proxiesOf('slow');
    expect(now.map(({ status }) => status)).toEqual([finished?.status]);
    expect(owner.log()).not.toContain('"level":"error"');
  });

  it('put back what drifts', async () => {
    const [proxy] = await proxiesOf('app');
    await patchAll({ driftDetection: { mode: 'Correct' } });
    await eventually(
      async () => {
        const proxies = await proxiesOf('app');
        const known = proxies.filter(({ status }) =>
          status?.conditions?.some(({ type, status: is }) => type === 'ReleaseInSync' && is === 'True'),
        );
        expect(known).toHaveLength(CLUSTERS);
      },
      { timeoutMs: LIMIT_MS, what: 'drift is looked for everywhere' },
    );
    const index = NAMES.indexOf(proxy?.spec.clusterRef?.name ?? '');
    const { api } = fleet.cluster((index % SERVERS) + 1);
    const path = `/api/v1/namespaces/apps/configmaps/${proxy?.spec.releaseName ?? ''}-0`;
    await api.patch(path, { data: { message: 'edited' } });
    await eventually(
      async () => {
        const { data } = await api.get<KubeObject & { data: { message: string } }>(path);
        expect(data.message).toBe('hello');
      },
      { timeoutMs: LIMIT_MS, what: 'the edit is put back' },
    );
  });

  it('SIGTERM: it hands over in order, its Lease is gone, and the others serve what it served', async () => {
    const [leaver] = managers as [Manager];
    const before = await memberLeases();
    leaver.terminate();
    forget(leaver);
    await ended(leaver.ended, LIMIT_MS);
    expect(leaver.log()).toContain('this replica has left the shard group');
    await shared();
    await eventually(
      async () => {
        const leases = await memberLeases();
        expect(leases.filter(({ spec }) => spec.holderIdentity === '')).toEqual([]);
        expect(leases.length).toBeLessThan(before.length);
      },
      { what: 'its Lease is deleted' },
    );
    await patchAll({ version: '1.2.0' });
    await rolledOut('app', '1.2.0', 3);
  });

  it('a restart of all of them changes nothing', async () => {
    const before = await releases();
    const proxies = (await fleet.releaseProxies()).map(({ metadata }) => metadata.uid).sort();
    await Promise.all(managers.map(async (manager) => manager.kill()));
    managers.length = 0;
    await startAll(3);
    await shared();
    // Long enough for whoever would take what is not there yet for gone.
    await sleep(3_000);
    expect(await releases()).toEqual(before);
    expect((await fleet.releaseProxies()).map(({ metadata }) => metadata.uid).sort()).toEqual(proxies);
  });

  it('a Cluster that goes takes its HelmReleaseProxies along; a HelmChartProxy that goes, its releases', async () => {
    await deleteCluster(fleet.api, { name: 'c12', namespace: fleet.namespace });
    const rest = NAMES.slice(0, -1);
    await rolledOut('app', '1.2.0', 3, rest);
    await shared(rest);
    await Promise.all(NAMES.map(async (name) => fleet.removeChartProxy(`app-${name}`, LIMIT_MS)));
    const left = await releases();
    // What stood on the cluster that is gone is nobody's any more; `slow` is another's.
    expect(Object.keys(left)).toHaveLength(2);
    expect(left.slow).toBe('3 deployed slow-1.1.0');
    expect((await fleet.releaseProxies()).map(({ spec }) => spec.clusterRef?.name)).toEqual(['c1']);
  });
});
