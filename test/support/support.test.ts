import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Environment, KubeObject } from './index.ts';
import {
  ApiError,
  ChartRepository,
  OciRegistry,
  RestClient,
  benchChart,
  clusterPath,
  createCluster,
  deleteCluster,
  eventually,
  installCapi,
  runProgram,
  simpleChart,
  startEnvironment,
  startSilentServer,
} from './index.ts';

const AUTH = { username: 'robot', password: 'p&ss word' };

describe('an environment of real clusters', () => {
  let environment: Environment;

  beforeAll(async () => {
    environment = await startEnvironment({ clusters: 2 });
  });

  afterAll(async () => {
    await environment.stop();
  });

  it('keeps its clusters apart and serves kubectl, helm 4 and helm 3', async () => {
    const [first, second] = environment.clusters;
    await first!.kubectl(['create', 'configmap', 'only-here']);
    expect(await second!.kubectl(['get', 'configmap', '-o', 'name'])).not.toContain('only-here');
    expect(await first!.helm(['version', '--short'])).toMatch(/^v4\./);
    expect(await first!.helm3(['version', '--short'])).toMatch(/^v3\./);
    const version = await first!.api.get<{ gitVersion: string }>('/version');
    expect(version.gitVersion).toMatch(/^v1\.\d+\.\d+/);
  });

  it('deletes namespaces on the management cluster', async () => {
    const { api, kubectl } = managementOf(environment);
    await api.create('/api/v1/namespaces', { metadata: { name: 'short-lived' } });
    await kubectl(['delete', 'namespace', 'short-lived', '--timeout=30s']);
    expect(await api.find('/api/v1/namespaces/short-lived')).toBeUndefined();
  });

  it.each(['token', 'certificate'] as const)('rotates credentials without a restart: %s', async (credentials) => {
    const cluster = await environment.addCluster(`rotating-${credentials}`, { credentials });
    const old = cluster.kubeconfig;
    const oldFile = join(environment.directory, `old-${credentials}`);
    await writeFile(oldFile, old, { mode: 0o600 });
    const getWith = (file: string) => cluster.kubectl(['get', 'ns'], { env: { KUBECONFIG: file } });
    await getWith(oldFile);
    expect(await cluster.rotateCredentials()).not.toBe(old);
    await expect(getWith(oldFile)).rejects.toThrow(/Unauthorized|logged in/);
    await getWith(cluster.kubeconfigPath);
    await cluster.dispose();
  });

  it('stops, restarts and freezes a cluster without losing its data or address', async () => {
    const cluster = environment.clusters[1]!;
    await cluster.kubectl(['create', 'configmap', 'kept']);
    await cluster.stop();
    await expect(cluster.api.get('/version')).rejects.toThrow(/ECONNREFUSED/);
    await cluster.start();
    expect(await cluster.api.find('/api/v1/namespaces/default/configmaps/kept')).toBeDefined();
    cluster.pause();
    await expect(cluster.api.request('GET', '/version', { timeoutMs: 500 })).rejects.toThrow(/timeout/i);
    cluster.resume();
    await cluster.api.get('/version');
  });

  it('declares Clusters as Cluster API does', async () => {
    const { api } = environment.management;
    await installCapi(api);
    const key = { name: 'one', namespace: 'fleet' };
    const cluster = await createCluster(api, {
      ...key,
      labels: { env: 'test' },
      kubeconfig: environment.clusters[0]!.kubeconfig,
      controlPlane: { spec: { version: 'v1.35.4' } },
      infraCluster: { kind: 'OldCluster', spec: { region: 'moon' } },
    });
    expect(cluster).toMatchObject({
      metadata: { labels: { env: 'test' } },
      spec: {
        controlPlaneRef: { apiGroup: 'controlplane.cluster.x-k8s.io', kind: 'TestControlPlane', name: 'one' },
        infrastructureRef: { kind: 'OldCluster' },
      },
      status: { initialization: { controlPlaneInitialized: true } },
    });
    const secret = await api.get<KubeObject & { data: { value: string } }>(
      '/api/v1/namespaces/fleet/secrets/one-kubeconfig',
    );
    expect(Buffer.from(secret.data.value, 'base64').toString()).toBe(environment.clusters[0]!.kubeconfig);
    expect(await api.find(clusterPath({ ...key, version: 'v1beta1' }))).toBeDefined();
    await deleteCluster(api, key);
    expect(await api.find('/api/v1/namespaces/fleet/secrets/one-kubeconfig')).toBeUndefined();
  });

  it('serves charts over HTTPS with a private authority, basic authentication, entity tags and faults', async () => {
    const repository = await ChartRepository.start({ auth: AUTH });
    const cluster = environment.clusters[0]!;
    repository.publish(simpleChart({ name: 'demo', objects: 3 }), simpleChart({ name: 'demo', version: '1.1.0' }));
    const caFile = await fileWith(environment, 'charts-ca.crt', repository.ca);
    const source = ['demo', '--repo', repository.url, '--ca-file', caFile];
    const login = ['--username', AUTH.username, '--password', AUTH.password];
    await expect(cluster.helm(['template', ...source])).rejects.toThrow(/401/);
    await cluster.helm(['install', 'web', ...source, ...login, '--version', '1.0.0']);
    const made = await cluster.api.list('/api/v1/namespaces/default/configmaps');
    expect(made.map(({ metadata }) => metadata.name)).toEqual(expect.arrayContaining(['web-0', 'web-1', 'web-2']));
    expect(await cluster.helm3(['template', ...source, ...login])).toContain('chart: demo-1.1.0');
    expect(repository.downloads('demo', '1.0.0')).toBe(1);
    repository.fail(/\.tgz$/, { kind: 'status', status: 500 }, 1);
    await expect(cluster.helm(['template', ...source, ...login])).rejects.toThrow(/500/);
    repository.fail(/\.tgz$/, { kind: 'drop' }, 1);
    await expect(cluster.helm(['template', ...source, ...login])).rejects.toThrow(/EOF/);
    await cluster.helm(['template', ...source, ...login]);
    await repository.stop();
  });

  it('answers a known entity tag with 304', async () => {
    const repository = await ChartRepository.start({ tls: false });
    repository.publish(benchChart('bench'));
    const first = await fetch(`${repository.url}/index.yaml`);
    await first.arrayBuffer();
    const again = () =>
      fetch(`${repository.url}/index.yaml`, { headers: { 'if-none-match': first.headers.get('etag')! } });
    expect((await again()).status).toBe(304);
    repository.publish(benchChart('bench', '2.0.0'));
    expect((await again()).status).toBe(200);
    expect(repository.indexRequests()).toBe(3);
    await repository.stop();
  });

  it('serves charts from a real OCI registry with a private authority and a password', async () => {
    const registry = await OciRegistry.start(environment, { auth: AUTH });
    const chart = benchChart('bench', '1.2.3+build.4');
    await registry.push(chart);
    const caFile = await fileWith(environment, 'registry-ca.crt', registry.ca);
    const config = await fileWith(environment, 'docker.json', registry.dockerConfig());
    const cluster = environment.clusters[0]!;
    const source = [`${registry.url}/bench`, '--version', chart.version, '--ca-file', caFile];
    await expect(cluster.helm(['template', ...source])).rejects.toThrow(/401|basic credential/);
    for (const helm of [cluster.helm.bind(cluster), cluster.helm3.bind(cluster)]) {
      const rendered = await helm(['template', 'x', ...source, '--registry-config', config]);
      expect(rendered.match(/^kind: /gm)).toHaveLength(26);
    }
    expect(await registry.downloads(chart)).toBe(2);
    await registry.stop();
  });

  it('plays a server that never answers', async () => {
    const silent = await startSilentServer();
    const client = new RestClient({ server: silent.server, ca: '' });
    await expect(client.request('GET', '/version', { timeoutMs: 300 })).rejects.toThrow(/timeout/i);
    await client.close();
    await eventually(() => {
      expect(silent.connections).toBe(0);
    });
    await silent.stop();
  });

  it('runs Deployments and Jobs to their end where kwok was asked for', async () => {
    const cluster = await environment.addCluster('with-pods', { kwok: true });
    await cluster.kubectl(['create', 'deployment', 'web', '--image=none', '--replicas=2']);
    await cluster.kubectl(['create', 'job', 'once', '--image=none']);
    await cluster.kubectl(['wait', 'deployment/web', '--for=condition=Available', '--timeout=60s']);
    await cluster.kubectl(['wait', 'job/once', '--for=condition=Complete', '--timeout=60s']);
    await cluster.restart();
    await cluster.kubectl(['scale', 'deployment/web', '--replicas=3']);
    await cluster.kubectl(['rollout', 'status', 'deployment/web', '--timeout=60s']);
    await cluster.dispose();
  });
});

describe('the end of an environment', () => {
  it('leaves no process, no file and no API', async () => {
    const environment = await startEnvironment({ clusters: 1, management: false });
    const { api } = environment.clusters[0]!;
    const pids = environment.processes.running.map(({ pid }) => pid!);
    expect(pids).toHaveLength(2);
    expect(() => environment.management).toThrow(/management: false/);
    await environment.stop();
    expect(pids.filter(isAlive)).toEqual([]);
    expect(existsSync(environment.directory)).toBe(false);
    await expect(api.get('/version')).rejects.not.toBeInstanceOf(ApiError);
    await environment.stop();
  });

  it.runIf(process.platform === 'linux')('takes its processes along when it is killed', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'capstan-owner-'));
    const script = `
      import { Processes } from ${JSON.stringify(join(import.meta.dirname, 'process.ts'))};
      const child = new Processes().start({ name: 'sleeper', command: 'sleep', args: ['60'], directory: process.cwd() });
      setTimeout(() => { console.log(child.pid); process.kill(process.pid, 'SIGKILL'); }, 300);
    `;
    const run = runProgram(process.execPath, ['--input-type=module-typescript', '-e', script], { cwd: directory });
    const pid = await run.then(
      () => Promise.reject(new Error('the owner was not killed')),
      (error: unknown) => Number((error as { stdout: string }).stdout),
    );
    expect(pid).toBeGreaterThan(1);
    await eventually(() => {
      expect(isAlive(pid)).toBe(false);
    });
    await rm(directory, { recursive: true });
  });
});

function managementOf(environment: Environment) {
  const { management } = environment;
  return { api: management.api, kubectl: management.kubectl.bind(management) };
}

async function fileWith(environment: Environment, name: string, content: string): Promise<string> {
  const file = join(environment.directory, name);
  await writeFile(file, content, { mode: 0o600 });
  return file;
}

/** Whether the process runs; one that has ended and waits for its parent to notice (state Z) does not. */
function isAlive(pid: number): boolean {
  try {
    if (process.platform === 'linux') return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
