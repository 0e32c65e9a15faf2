import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject, TestCluster } from '../support/index.ts';
import { eventually, Fleet, Manager, simpleChart } from '../support/index.ts';
import { kubeconfigFor } from '../support/kubeconfig.ts';

// The manifests of deploy/ on a real API server, and the manager with no other rights than they give.

const DEPLOY = join(import.meta.dirname, '../../deploy');
const NAMESPACE = 'capstan-system';
const ACCOUNT = 'capstan-controller-manager';
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/controller-leader-election-caaph`;

interface PodTemplate {
  metadata: { labels: Record<string, string> };
  spec: { containers: [{ args: string[] }]; serviceAccountName: string };
}

let fleet: Fleet;
let management: TestCluster;
let manager: Manager;
let token: string;
let metricsPort: number;

beforeAll(async () => {
  fleet = await Fleet.start({
    clusters: 1,
    manager: false,
    declare: () => ({ controlPlane: { spec: { version: 'v1.35.4' } } }),
  });
  management = fleet.environment.management;
  await management.kubectl(['apply', '--server-side', '--force-conflicts', '-k', DEPLOY]);
  token = (await management.kubectl(['create', 'token', ACCOUNT, '-n', NAMESPACE])).trim();
  metricsPort = await fleet.environment.ports.take();
  manager = await startManager();
}, 180_000);

afterAll(async () => {
  await fleet.stop();
});

async function built(folder: string): Promise<KubeObject[]> {
  const text = await management.kubectl(['kustomize', folder]);
  return parseAllDocuments(text).map((document) => document.toJS() as KubeObject);
}

async function podTemplate(): Promise<PodTemplate> {
  const deployment = (await built(DEPLOY)).find(({ kind }) => kind === 'Deployment');
  return (deployment as unknown as { spec: { template: PodTemplate } }).spec.template;
}

/** With the Deployment's own arguments; only what a process outside a Pod needs is said besides. */
async function startManager(): Promise<Manager> {
  const kubeconfig = join(fleet.environment.directory, 'capstan.kubeconfig');
  await writeFile(kubeconfig, kubeconfigFor('management', { server: management.server, ca: management.ca, token }));
  const { args } = (await podTemplate()).spec.containers[0];
  return Manager.start(fleet.environment, {
    kubeconfig,
    flags: [
      ...args,
      `--leader-elect-resource-namespace=${NAMESPACE}`,
      `--diagnostics-address=127.0.0.1:${String(metricsPort)}`,
      '--debug-endpoints',
    ],
  });
}

async function can(verb: string, resource: string, namespace = 'fleet'): Promise<boolean> {
  const subject = `--as=system:serviceaccount:${NAMESPACE}:${ACCOUNT}`;
  const said = management.kubectl(['auth', 'can-i', verb, resource, '-n', namespace, subject]);
  // kubectl says no by its exit code as well.
  return said.then(
    (answer) => answer.startsWith('yes'),
    () => false,
  );
}

describe('kubectl kustomize', () => {
  it.each([
    ['', NAMESPACE, 14],
    ['crds', undefined, 2],
    ['overlays/caaph-system', 'caaph-system', 14],
    ['overlays/sharding', NAMESPACE, 17],
  ])('builds deploy/%s', async (folder, namespace, count) => {
    const objects = await built(join(DEPLOY, folder));
    expect(objects).toHaveLength(count);
    expect(JSON.stringify(objects)).not.toContain(namespace === 'caaph-system' ? 'capstan-system' : 'caaph-system');
    for (const { metadata } of objects) {
      expect(metadata.labels?.['cluster.x-k8s.io/provider']).toBe('helm');
      if (metadata.namespace !== undefined) expect(metadata.namespace).toBe(namespace);
    }
  });
});

describe('the Deployment', () => {
  it('keeps to the restricted Pod Security Standard, which its namespace enforces', async () => {
    const template = await podTemplate();
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'manager', namespace: NAMESPACE, labels: template.metadata.labels },
      spec: template.spec,
    };
    const path = `/api/v1/namespaces/${NAMESPACE}/pods?dryRun=All`;
    await fleet.api.create(path, pod);
    const privileged = structuredClone(pod) as unknown as { spec: { hostNetwork?: boolean } };
    privileged.spec.hostNetwork = true;
    await expect(fleet.api.create(path, privileged)).rejects.toThrow('violates PodSecurity');
  });

  it("is not selected by CAAPH's Services, and its own selects it", async () => {
    const { labels } = (await podTemplate()).metadata;
    const selected = (selector: Record<string, string>): boolean =>
      Object.entries(selector).every(([key, value]) => labels[key] === value);
    const service = (await built(DEPLOY)).find(({ kind }) => kind === 'Service');
    expect(selected((service?.spec as { selector: Record<string, string> }).selector)).toBe(true);
    expect(selected({ 'cluster.x-k8s.io/provider': 'helm', 'control-plane': 'controller-manager' })).toBe(false);
  });
});

describe('with the rights of deploy/ and no others, the manager', () => {
  it('installs, upgrades and uninstalls, templates that name the control plane included', async () => {
    fleet.charts.publish(simpleChart({ name: 'demo', objects: 1 }));
    await fleet.createChartProxy('demo', {
      chartName: 'demo',
      releaseName: 'demo',
      namespace: 'apps',
      valuesTemplate: 'version: {{ .ControlPlane.spec.version }}',
    });
    // Asked first, since its message says what stands in the way.
    await fleet.conditionOf({ chartProxy: 'demo' }, { type: 'HelmReleaseProxySpecsUpToDate', status: 'True' });
    expect((await fleet.deployed('demo', 1)).spec.values).toBe('version: v1.35.4');
    await fleet.patchChartProxy('demo', { spec: { valuesTemplate: 'a: 2' } });
    await fleet.deployed('demo', 1, { revision: 2 });
    await eventually(async () => {
      const events = await management.kubectl(['get', 'events', '-n', fleet.namespace, '-o', 'name']);
      expect(events).toContain('event/');
    });
    await fleet.removeChartProxy('demo');
    expect(await fleet.releases(1)).toEqual([]);
  });

  it('is refused nothing that it asks for', () => {
    expect(
      manager
        .log()
        .split('\n')
        .filter((line) => /forbidden|cannot (get|list|watch|patch|create)/i.test(line)),
    ).toEqual([]);
  });

  it.each([
    ['delete', 'helmchartproxies.addons.cluster.x-k8s.io'],
    ['create', 'helmchartproxies.addons.cluster.x-k8s.io'],
    ['patch', 'clusters.cluster.x-k8s.io'],
    ['delete', 'clusters.cluster.x-k8s.io'],
    ['create', 'secrets'],
    ['patch', 'secrets'],
    ['delete', 'secrets'],
    ['get', 'configmaps'],
    ['get', 'pods'],
    ['create', 'pods'],
    ['patch', 'customresourcedefinitions'],
    ['create', 'serviceaccounts/token'],
    ['bind', 'clusterroles'],
    ['get', 'leases.coordination.k8s.io'],
    ['delete', 'events'],
  ])('may not %s %s', async (verb, resource) => {
    expect(await can(verb, resource)).toBe(false);
  });

  it('may do what the test asks about at all', async () => {
    expect(await can('patch', 'helmchartproxies.addons.cluster.x-k8s.io')).toBe(true);
  });

  it.each([
    ['/metrics', 'capstan-metrics-reader', 'controller_runtime_reconcile_total'],
    ['/debug/queues', 'capstan-debug-reader', '"controller": "helmreleaseproxy"'],
  ])('serves %s to those who may read it', async (path, role, content) => {
    const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
    const read = async (headers: Record<string, string>): Promise<{ status: number; text: string }> => {
      const url = `https://127.0.0.1:${String(metricsPort)}${path}`;
      const { statusCode, body } = await request(url, { dispatcher, headers });
      return { status: statusCode, text: await body.text() };
    };
    const reader = `reads-${role}`;
    await management.kubectl(['create', 'serviceaccount', reader, '-n', NAMESPACE]);
    const authorization = `Bearer ${(await management.kubectl(['create', 'token', reader, '-n', NAMESPACE])).trim()}`;
    expect((await read({})).status).toBe(401);
    expect((await read({ authorization })).status).toBe(403);
    const subject = `--serviceaccount=${NAMESPACE}:${reader}`;
    await management.kubectl(['create', 'clusterrolebinding', reader, `--clusterrole=${role}`, subject]);
    await eventually(async () => {
      const { status, text } = await read({ authorization });
      expect(status).toBe(200);
      expect(text).toContain(content);
    });
    await dispatcher.close();
  });

  it('holds the Lease while it runs and gives it up when it stops', async () => {
    const holder = async (): Promise<string | undefined> =>
      ((await fleet.api.get(LEASE)).spec as { holderIdentity?: string }).holderIdentity;
    expect(await holder()).toBeTruthy();
    await manager.stop();
    expect(await holder()).toBeFalsy();
  });
});

describe('with the rights of deploy/overlays/sharding and no others, two replicas', () => {
  const OVERLAY = join(DEPLOY, 'overlays/sharding');
  const GROUP = 'beside-the-other';
  const replicas: Manager[] = [];

  afterAll(async () => {
    for (const replica of replicas) await replica.kill();
  });

  async function startReplica(): Promise<Manager> {
    const deployment = (await built(OVERLAY)).find(({ kind }) => kind === 'Deployment');
    const { args } = (deployment as unknown as { spec: { template: PodTemplate } }).spec.template.spec.containers[0];
    expect(args).toContain('--sharding');
    const replica = await Manager.start(fleet.environment, {
      kubeconfig: join(fleet.environment.directory, 'capstan.kubeconfig'),
      flags: [
        // Where metrics are served is the test's business.
        ...args.filter((arg) => !arg.includes('diagnostics')),
        `--leader-elect-resource-namespace=${NAMESPACE}`,
        // The manager of the tests before holds the usual one.
        `--leader-elect-resource-name=${GROUP}`,
      ],
    });
    replicas.push(replica);
    return replica;
  }

  /** Of members: by their names, the shared one of leadership left out. */
  async function leases(): Promise<string[]> {
    const all = await fleet.api.list(LEASE.slice(0, LEASE.lastIndexOf('/')));
    return all.map(({ metadata }) => metadata.name ?? '').filter((name) => name.startsWith(`${GROUP}-shards-`));
  }

  it('share the clusters, and remove the Lease of one that left', async () => {
    await management.kubectl(['apply', '--server-side', '--force-conflicts', '-k', OVERLAY]);
    const [first, second] = [await startReplica(), await startReplica()];
    await eventually(async () => {
      for (const replica of replicas) expect(await replica.metric('capstan_shard_members')).toBe(2);
      const served = await Promise.all(replicas.map(async (replica) => replica.metric('capstan_shard_clusters')));
      expect(served.reduce((sum, count) => sum + count, 0)).toBe(1);
    });
    expect(await leases()).toHaveLength(2);
    await second.stop();
    await eventually(async () => expect(await leases()).toHaveLength(1));
    expect(await first.metric('capstan_shard_members')).toBe(1);
    const refused = first.log().split('\n');
    expect(refused.filter((line) => /forbidden|cannot (get|list|watch|patch|create|delete)/i.test(line))).toEqual([]);
  });
});
