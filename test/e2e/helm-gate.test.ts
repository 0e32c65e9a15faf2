/** Helm through the gate of a manager that shares its clusters: helm 4 and helm 3, a real API server. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HelmProcesses, helmProcessOptions, ProcessHelmEngine } from '../../src/helm/index.ts';
import type { DeployRequest, HelmTarget } from '../../src/helm/index.ts';
import { Connection } from '../../src/kube/index.ts';
import type { ForwardRequest } from '../../src/kube/index.ts';
import { createTelemetry } from '../../src/telemetry/index.ts';
import { benchChart, chartFromFiles, startEnvironment } from '../support/index.ts';
import type { Chart, Environment, TestCluster } from '../support/index.ts';
import { hook, widget, widgetCrd } from './chart-files.ts';
import { HELM_VERSIONS } from './helm-versions.ts';

const control = { signal: new AbortController().signal };

let environment: Environment;
let cluster: TestCluster;
let connection: Connection;
let directory: string;

beforeAll(async () => {
  environment = await startEnvironment({ clusters: 1, management: false, controllers: true, kwok: true });
  cluster = environment.clusters[0]!;
  directory = await mkdtemp(join(environment.directory, 'charts-'));
  connection = Connection.fromKubeconfig(cluster.kubeconfig, { clusterName: 'one', telemetry: createTelemetry() });
});
afterAll(async () => {
  await connection.close();
  await environment.stop();
});

describe.each(HELM_VERSIONS)('$name, whose requests go through this process', ({ name: helm, binary }) => {
  let engine: ProcessHelmEngine;
  const prefix = helm.replace(' ', '-');

  beforeAll(() => {
    const telemetry = createTelemetry();
    const options = helmProcessOptions({ helmPath: binary(environment), workDir: directory });
    engine = new ProcessHelmEngine(new HelmProcesses(options, telemetry), telemetry);
  });
  afterAll(async () => {
    await engine.close();
  });

  async function requestOf(chart: Chart, release: string, wait = false): Promise<DeployRequest> {
    const path = join(directory, `${prefix}-${chart.digest}.tgz`);
    await writeFile(path, chart.archive);
    return {
      release: { namespace: `${prefix}-${release}`, name: release },
      chart: { path, name: chart.name, version: chart.version, digest: `sha256:${chart.digest}` },
      values: '',
      options: {
        timeoutMs: 60_000,
        wait,
        install: { createNamespace: true },
        upgrade: { maxHistory: 5 },
        uninstall: {},
      },
    };
  }

  /** A way to the cluster whose permit is lost with the answer to the write that `isLast` says. `late`: what went on after that. */
  function target(isLast: (request: ForwardRequest) => boolean = () => false): { target: HelmTarget; late: string[] } {
    const lose = new AbortController();
    const permit = { signal: lose.signal, valid: true };
    const late: string[] = [];
    const forward = async (request: ForwardRequest) => {
      if (!permit.valid) late.push(`${request.method} ${request.path}`);
      const answer = await connection.forward(request);
      if (request.method !== 'GET' && isLast(request)) permit.valid = false;
      return answer;
    };
    // The engine is to have no other way.
    const kubeconfig = (): string => {
      throw new Error('helm asked for a way of its own');
    };
    return { target: { cluster: 'one', kubeconfig, passage: { forward, permit } }, late };
  }

  async function configMaps(namespace: string): Promise<string[]> {
    const all = await cluster.api.list(`/api/v1/namespaces/${namespace}/configmaps`);
    return all.map(({ metadata }) => metadata.name ?? '').filter((name) => name !== 'kube-root-ca.crt');
  }

  it('installs, waits for workloads, upgrades and uninstalls', async () => {
    const request = await requestOf(benchChart('gated'), 'whole', true);
    const { namespace } = request.release;
    await engine.install(target().target, request, control);
    expect((await configMaps(namespace)).length).toBe(21);
    await engine.upgrade(target().target, { ...request, values: 'message: second\n' }, control);
    const records = await cluster.api.list(`/api/v1/namespaces/${namespace}/secrets?labelSelector=owner%3Dhelm`);
    expect(records.map(({ metadata }) => metadata.labels?.['status']).sort()).toEqual(['deployed', 'superseded']);
    await engine.uninstall(target().target, { release: request.release, options: request.options }, control);
    expect(await configMaps(namespace)).toEqual([]);
  });

  it('runs hooks, and brings CRDs with objects of theirs', async () => {
    const chart = chartFromFiles(
      { name: 'gated-crds', version: '1.0.0' },
      {
        'crds/gate.yaml': widgetCrd(`Gate${prefix.at(-1) ?? ''}`),
        'templates/gate.yaml': widget(`Gate${prefix.at(-1) ?? ''}`),
        'templates/hook.yaml': hook('hooked', 'pre-install'),
      },
    );
    const request = await requestOf(chart, 'crds');
    await engine.install(target().target, request, control);
    expect(await configMaps(request.release.namespace)).toContainEqual(expect.stringContaining('hooked'));
  });

  it('writes nothing more once the cluster is lost in the middle of an install, and ends with an error', async () => {
    const request = await requestOf(benchChart('gated'), 'lost');
    let created = 0;
    const { target: way, late } = target(({ path }) => path.includes('/configmaps') && ++created === 5);
    await expect(engine.install(way, request, control)).rejects.toThrow(/does not serve cluster one any more/);
    expect(late).toEqual([]);
    const [record] = await cluster.api.list(
      `/api/v1/namespaces/${request.release.namespace}/secrets?labelSelector=owner%3Dhelm`,
    );
    // Not even helm's own word that it failed: it is another replica's to say.
    expect(record?.metadata.labels?.['status']).toBe('pending-install');
  });
});
