import { readFile, rm, mkdtemp } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CachedChartStore, HelmProcesses, ProcessHelmEngine, helmProcessOptions } from '../../src/helm/index.ts';
import type { ChartSource, RepositoryCredentials } from '../../src/helm/index.ts';
import { createTelemetry } from '../../src/telemetry/index.ts';
import { ChartRepository, OciRegistry, chartFromFiles, simpleChart, startEnvironment } from '../support/index.ts';
import type { Environment } from '../support/index.ts';

const control = { signal: new AbortController().signal };
const robot = { username: 'robot', password: 's3cret' };

let environment: Environment;
let registry: OciRegistry;
let repository: ChartRepository;
let directory: string;
let store: CachedChartStore;

beforeAll(async () => {
  environment = await startEnvironment({ clusters: 0, management: false });
  registry = await OciRegistry.start(environment, { auth: robot });
  repository = await ChartRepository.start({ auth: robot });
  directory = await mkdtemp(join(tmpdir(), 'capstan-chart-store-'));
  store = new CachedChartStore({ directory }, createTelemetry());
});

afterAll(async () => {
  await store.close();
  await repository.stop();
  await environment.stop();
  await rm(directory, { recursive: true, force: true });
});

describe('a user whose charts are in a real registry with a private CA and a password', () => {
  const access = (): RepositoryCredentials => ({ ca: registry.ca, dockerConfigJson: registry.dockerConfig() });
  const source = (chartName: string, version = ''): ChartSource => ({
    repoURL: registry.url,
    chartName,
    version,
    access: access(),
  });

  it('gets the newest, the newest that fits, and an exact one; each is downloaded once', async () => {
    const charts = ['1.0.0', '1.2.0', '1.10.0', '2.0.0-rc.1'].map((version) =>
      simpleChart({ name: 'oci-demo', version }),
    );
    for (const chart of charts) await registry.push(chart);
    for (const [wanted, version] of [
      ['', '1.10.0'],
      ['~1.2', '1.2.0'],
      ['1.0.0', '1.0.0'],
      ['>0-0', '2.0.0-rc.1'],
    ] as const) {
      expect(await store.resolve(source('oci-demo', wanted), control)).toMatchObject({ version });
      const held = await Promise.all(
        Array.from({ length: 10 }, async () => store.acquire(source('oci-demo', wanted), control)),
      );
      const bytes = await readFile(held[0]!.archive.path);
      expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).toBe(held[0]!.archive.digest);
      for (const each of held) {
        expect(each.archive).toMatchObject({ name: 'oci-demo', version });
        each.release();
      }
    }
    for (const chart of charts) expect(await registry.downloads(chart)).toBe(1);
  });

  it('may use build metadata, which a tag writes with an underscore', async () => {
    await registry.push(simpleChart({ name: 'oci-build', version: '1.0.0+build.5' }));
    const held = await store.acquire(source('oci-build', '1.0.0+build.5'), control);
    expect(held.archive.version).toBe('1.0.0+build.5');
    expect(await store.resolve(source('oci-build'), control)).toMatchObject({ version: '1.0.0+build.5' });
  });

  it('is told when the password is wrong, the CA is not given, the chart is not there', async () => {
    const failures: [Partial<RepositoryCredentials>, string, string][] = [
      [
        { dockerConfigJson: registry.dockerConfig({ username: 'robot', password: 'wr0ng' }) },
        'oci-demo',
        'RepositoryUnauthorized',
      ],
      [{ dockerConfigJson: '{"auths":{}}' }, 'oci-demo', 'RepositoryUnauthorized'],
      [{ ca: undefined }, 'oci-demo', 'RepositoryUntrusted'],
      [{}, 'oci-nothing', 'ChartNotFound'],
    ];
    for (const [more, chartName, code] of failures) {
      const asked = store.acquire({ ...source(chartName), access: { ...access(), ...more } }, control);
      await expect(asked).rejects.toMatchObject({ code, message: expect.not.stringContaining('wr0ng') as string });
    }
    await expect(store.acquire(source('oci-demo', '7.0.0'), control)).rejects.toThrow(
      /available versions: 2.0.0-rc.1, 1.10.0/,
    );
  });

  it('is not kept waiting by a registry that answers no more', async () => {
    registry.pause();
    try {
      await expect(store.resolve(source('oci-frozen', '1.0.0'), { ...control, limitMs: 500 })).rejects.toMatchObject({
        code: 'Timeout',
      });
      expect(await store.resolve(source('oci-demo', '1.0.0'), control)).toMatchObject({ version: '1.0.0' });
    } finally {
      registry.resume();
    }
  });
});

describe('a user whose charts are in a private HTTPS repository', () => {
  it('gets them by a CA and a password (caaph W34), each once for many clusters', async () => {
    repository.publish(
      simpleChart({ name: 'demo', version: '1.0.0' }),
      simpleChart({ name: 'demo', version: '1.1.0' }),
    );
    const source = { repoURL: repository.url, chartName: 'demo', access: { ca: repository.ca, ...robot } };
    const held = await Promise.all(Array.from({ length: 20 }, async () => store.acquire(source, control)));
    expect(held[0]!.archive.version).toBe('1.1.0');
    expect(repository.downloads('demo')).toBe(1);
    expect(repository.indexRequests()).toBe(1);
    for (const each of held) each.release();
    const anonymous = store.acquire({ ...source, access: { ca: repository.ca } }, control);
    await expect(anonymous).rejects.toMatchObject({ code: 'RepositoryUnauthorized' });
  });
});

it('helm renders a chart from the cache, and two repositories with one chart name give each their own (caaph W37)', async () => {
  const chart = (text: string) =>
    chartFromFiles(
      { name: 'twin', version: '1.0.0' },
      { 'templates/a.yaml': `kind: ConfigMap\napiVersion: v1\nmetadata: {name: ${text}}\n` },
    );
  const second = await ChartRepository.start();
  repository.publish(chart('first'));
  second.publish(chart('second'));
  const processes = new HelmProcesses(
    helmProcessOptions({ helmPath: environment.binaries.helm, workDir: directory }),
    createTelemetry(),
  );
  try {
    const engine = new ProcessHelmEngine(processes, createTelemetry());
    for (const [text, repoURL, access] of [
      ['first', repository.url, { ca: repository.ca, ...robot }],
      ['second', second.url, { ca: second.ca }],
    ] as const) {
      const held = await store.acquire({ repoURL, chartName: 'twin', version: '1.0.0', access }, control);
      const options = {
        timeoutMs: 60_000,
        install: { createNamespace: false },
        upgrade: { maxHistory: 10 },
        uninstall: {},
      };
      const request = { release: { namespace: 'default', name: 'twin' }, chart: held.archive, values: '', options };
      expect(await engine.template(request, control)).toContain(`name: ${text}`);
      held.release();
    }
  } finally {
    await processes.close();
    await second.stop();
  }
});
