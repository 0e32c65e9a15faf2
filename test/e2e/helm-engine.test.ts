/** Helm's work on a real API server, with helm 4 and helm 3, through the engine and the reader of src/helm. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  HelmProcesses,
  NativeReleaseReader,
  ProcessHelmEngine,
  decodeRawRecord,
  encodeRawRecord,
  helmProcessOptions,
  valuesDigest,
} from '../../src/helm/index.ts';
import type { DeployRequest, HelmOptions, HelmTarget, JsonObject, ReleaseSummary } from '../../src/helm/index.ts';
import { Connection, RestClient, SharedWatchSet } from '../../src/kube/index.ts';
import { createTelemetry } from '../../src/telemetry/index.ts';
import {
  chartFromFiles,
  eventually,
  refusingKubeconfig,
  simpleChart,
  startEnvironment,
  startSilentServer,
} from '../support/index.ts';
import type { Chart, Environment, TestCluster } from '../support/index.ts';

const control = { signal: new AbortController().signal };

let environment: Environment;
let cluster: TestCluster;
let connection: Connection;
let watches: SharedWatchSet;
let reader: NativeReleaseReader;
let directory: string;
let namespaces = 0;

beforeAll(async () => {
  // kwok makes pods ready, so that `wait` ends; nodes and pods need the controllers.
  environment = await startEnvironment({ clusters: 1, management: false, controllers: true, kwok: true });
  cluster = environment.clusters[0]!;
  directory = await mkdtemp(join(environment.directory, 'charts-'));
  const telemetry = createTelemetry();
  connection = Connection.fromKubeconfig(cluster.kubeconfig, { clusterName: 'one', telemetry });
  watches = new SharedWatchSet(connection);
  reader = new NativeReleaseReader({ cluster: 'one', client: new RestClient(connection), watches, telemetry });
  await reader.synced(control.signal, 20_000);
});

afterAll(async () => {
  reader.close();
  await watches.close();
  await connection.close();
  await environment.stop();
});

interface Overrides extends Partial<Omit<HelmOptions, 'install' | 'upgrade' | 'uninstall'>> {
  install?: Partial<HelmOptions['install']>;
  upgrade?: Partial<HelmOptions['upgrade']>;
  uninstall?: HelmOptions['uninstall'];
}

function optionsOf(overrides: Overrides = {}): HelmOptions {
  return {
    timeoutMs: 30_000,
    ...overrides,
    install: { createNamespace: true, ...overrides.install },
    upgrade: { maxHistory: 10, ...overrides.upgrade },
    uninstall: overrides.uninstall ?? {},
  };
}

/** A chart as the chart cache would hand it out. */
async function archiveOf(chart: Chart): Promise<DeployRequest['chart']> {
  const path = join(directory, `${chart.digest}.tgz`);
  await writeFile(path, chart.archive);
  return { path, name: chart.name, version: chart.version, digest: `sha256:${chart.digest}` };
}

async function requestOf(
  chart: Chart,
  more: { values?: string; options?: Overrides; name?: string } = {},
): Promise<DeployRequest> {
  return {
    release: { namespace: `ns-${String(++namespaces)}`, name: more.name ?? 'demo' },
    chart: await archiveOf(chart),
    values: more.values ?? '',
    options: optionsOf(more.options),
  };
}

function oneTemplate(template: string, more: Record<string, string> = {}): Chart {
  return chartFromFiles({ name: 'one', version: '1.0.0' }, { 'templates/all.yaml': template, ...more });
}

async function dataOf(namespace: string, name: string): Promise<Record<string, string> | undefined> {
  const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`;
  return (await cluster.api.find<{ metadata: { name: string }; data?: Record<string, string> }>(path))?.data;
}

async function newest(request: Pick<DeployRequest, 'release'>): Promise<ReleaseSummary> {
  const summary = await reader.refresh(request.release, control);
  if (summary === undefined) throw new Error('there is no record');
  return summary;
}

/** Rewrites a release's record, as a helm would leave it that was killed. */
async function force(request: DeployRequest, revision: number, status: string): Promise<void> {
  const path = `/api/v1/namespaces/${request.release.namespace}/secrets/sh.helm.release.v1.demo.v${String(revision)}`;
  const secret = await cluster.api.get<{ metadata: { name: string }; data: { release: string } }>(path);
  const raw = await decodeRawRecord(secret.data.release);
  const release = await encodeRawRecord({ ...raw, info: { ...(raw['info'] as JsonObject), status } });
  await cluster.api.patch(path, { metadata: { labels: { status } }, data: { release } });
}

/** With `nowhere` its pods belong to a node that is not there: they never become ready. */
const DEPLOYMENT = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: "{{ .Release.Name }}" }
spec:
  selector: { matchLabels: { app: "{{ .Values.app | default "one" }}" } }
  template:
    metadata: { labels: { app: "{{ .Values.app | default "one" }}" } }
    spec:
      containers: [{ name: main, image: example.invalid/none }]
      {{- if .Values.nowhere }}
      nodeName: nowhere
      {{- end }}
`;

const HOOK = `
apiVersion: batch/v1
kind: Job
metadata:
  name: "{{ .Release.Name }}-{{ .Values.event }}"
  annotations: { helm.sh/hook: "{{ .Values.event }}" }
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{ name: main, image: example.invalid/none }]
      {{- if .Values.nowhere }}
      nodeName: nowhere
      {{- end }}
`;

/** Everything about numbers, words and texts in which YAML parsers differ. */
const VALUES = `
int: 1
float: 1.0
big: 12345678901234567890
exponent: 1e3
small: 1e-7
huge: 1e21
hex: 0x10
octal: 010
yes: yes
off: off
nothing: ~
empty:
text: "yes"
date: 2001-01-01
time: 1:30
unicode: "é 😀 \\u2028 \\x85"
anchor: &anchor { a: 1, b: [1, 2, null] }
merged: { <<: *anchor, c: 3 }
noMap: {}
noList: []
"quoted key": 'it''s'
1: a number as key
1.5: another
twice: 1
twice: 2
html: "<a href='x'>&</a>"
block: |
  one
   two

last: |
  no line break at the end`;

describe.each([
  ['helm 4', 4],
  ['helm 3', 3],
])('with %s', (_helm, major) => {
  let engine: ProcessHelmEngine;
  let target: HelmTarget;

  beforeAll(() => {
    engine = engineOf();
    target = { cluster: 'one', kubeconfig: () => cluster.kubeconfig };
  });

  afterAll(async () => {
    await engine.close();
  });

  afterEach(() => {
    expect(engine.running).toBe(0);
  });

  function engineOf(): ProcessHelmEngine {
    const telemetry = createTelemetry();
    const helmPath = major === 4 ? environment.binaries.helm : environment.binaries.helm3;
    const options = helmProcessOptions({ helmPath, workDir: join(environment.directory, 'work') });
    return new ProcessHelmEngine(new HelmProcesses(options, telemetry), telemetry);
  }

  /** Upgrades as the reconcilers do: with what the newest record says. */
  async function upgrade(request: DeployRequest): Promise<void> {
    const { applyMethod } = await newest(request);
    await engine.upgrade(target, { ...request, serverSide: applyMethod === 'server' }, control);
  }

  it('tells its version', async () => {
    expect(await engine.version(control)).toMatchObject({ major });
  });

  it('installs, upgrades, rolls back and uninstalls', async () => {
    const request = await requestOf(simpleChart({ name: 'demo', objects: 2 }), { values: 'message: one' });
    const { namespace } = request.release;
    const changes: string[] = [];
    const stop = reader.onChange((key) => {
      if (key.namespace === namespace) changes.push(reader.marks(key)[0]?.status ?? 'gone');
    });
    await engine.install(target, request, control);
    const installed = await newest(request);
    expect(installed).toMatchObject({
      revision: 1,
      status: 'deployed',
      chartName: 'demo',
      chartVersion: '1.0.0',
      valuesDigest: valuesDigest('message: one'),
      applyMethod: major === 4 ? 'server' : 'client',
    });
    expect(await dataOf(namespace, 'demo-1')).toMatchObject({ message: 'one' });

    await upgrade({ ...request, values: 'message: two' });
    expect(await dataOf(namespace, 'demo-1')).toMatchObject({ message: 'two' });
    expect(await newest(request)).toMatchObject({ revision: 2, applyMethod: installed.applyMethod });

    await engine.rollback(target, { release: request.release, revision: 1, options: request.options }, control);
    expect(await dataOf(namespace, 'demo-1')).toMatchObject({ message: 'one' });
    const rolledBack = { revision: 3, status: 'deployed', valuesDigest: installed.valuesDigest };
    expect(await newest(request)).toMatchObject(rolledBack);

    await engine.uninstall(target, request, control);
    expect(await reader.refresh(request.release, control)).toBeUndefined();
    expect(await dataOf(namespace, 'demo-1')).toBeUndefined();
    await engine.uninstall(target, request, control);
    await eventually(() => {
      expect(changes.at(-1)).toBe('gone');
    });
    expect(changes).toEqual(expect.arrayContaining(['pending-install', 'deployed', 'pending-upgrade', 'uninstalling']));
    stop();
  });

  it('clears values that are cleared, and keeps them when asked to', async () => {
    const request = await requestOf(simpleChart({ name: 'demo' }), { values: 'message: own\nother: 1' });
    await engine.install(target, request, control);
    await upgrade({ ...request, values: 'other: 2', options: optionsOf({ upgrade: { reuseValues: true } }) });
    expect((await newest(request)).valuesDigest).toBe(valuesDigest('message: own\nother: 2'));
    await upgrade({ ...request, values: '' });
    expect(await newest(request)).toMatchObject({ revision: 3, valuesDigest: valuesDigest('') });
    expect(await dataOf(request.release.namespace, 'demo-0')).toMatchObject({ message: 'hello' });
  });

  it('stores values with the digest that their text has', async () => {
    const request = await requestOf(simpleChart({ name: 'demo' }), { values: VALUES });
    await engine.install(target, request, control);
    expect((await newest(request)).valuesDigest).toBe(valuesDigest(VALUES));
    const big = `blob: "${'0123456789abcdef'.repeat(56_250)}"`;
    await upgrade({ ...request, chart: await archiveOf(oneTemplate(DEPLOYMENT)), values: big });
    expect((await newest(request)).valuesDigest).toBe(valuesDigest(big));
  });

  it('renders without a cluster', async () => {
    const template =
      'kind: {{ .Values.kind }}\nfor: {{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.APIVersions.Has "own/v1" }}';
    const request = await requestOf(oneTemplate(template), { values: 'kind: Widget' });
    const text = await engine.template({ ...request, kubeVersion: '1.31.0', apiVersions: ['own/v1'] }, control);
    expect(text).toContain('kind: Widget\nfor: v1.31.0 true');
  });

  it('makes the namespace only when it may', async () => {
    const request = await requestOf(simpleChart({ name: 'demo' }), {
      options: { install: { createNamespace: false } },
    });
    const refused = engine.install(target, request, control);
    await expect(refused).rejects.toThrow(`namespaces "${request.release.namespace}" not found`);
    await engine.install(target, { ...request, options: optionsOf() }, control);
    expect(await newest(request)).toMatchObject({ status: 'deployed' });
  });

  it('keeps as many revisions as it shall', async () => {
    const request = await requestOf(simpleChart({ name: 'demo' }), { options: { upgrade: { maxHistory: 2 } } });
    await engine.install(target, request, control);
    for (const message of ['b', 'c', 'd']) await upgrade({ ...request, values: `message: ${message}` });
    await eventually(() => {
      expect(reader.marks(request.release).map(({ revision }) => revision)).toEqual([4, 3]);
    });
  });

  it('waits for workloads, and gives up at the timeout', async () => {
    const ready = await requestOf(oneTemplate(DEPLOYMENT), { options: { wait: true, timeoutMs: 60_000 } });
    await engine.install(target, ready, control);
    const path = `/apis/apps/v1/namespaces/${ready.release.namespace}/deployments/demo`;
    const deployment = await cluster.api.get<{ metadata: { name: string }; status: { readyReplicas?: number } }>(path);
    expect(deployment.status.readyReplicas).toBe(1);

    const never = await requestOf(oneTemplate(DEPLOYMENT), {
      values: 'nowhere: true',
      options: { wait: true, timeoutMs: 2_000 },
    });
    await expect(engine.install(target, never, control)).rejects.toMatchObject({ code: 'Timeout' });
    expect(await newest(never)).toMatchObject({ status: 'failed' });
  });

  it('takes an atomic install back', async () => {
    const options = { atomic: true, timeoutMs: 2_000 };
    const request = await requestOf(oneTemplate(DEPLOYMENT), { values: 'nowhere: true', options });
    await expect(engine.install(target, request, control)).rejects.toThrow(/has been uninstalled/);
    expect(await reader.refresh(request.release, control)).toBeUndefined();
  });

  it('records an install as failed that is cancelled while it waits, and goes on from there', async () => {
    const request = await requestOf(oneTemplate(DEPLOYMENT), { values: 'nowhere: true', options: { wait: true } });
    const stop = new AbortController();
    const running = engine.install(target, request, { signal: stop.signal }).catch((error: unknown) => error);
    await eventually(async () => {
      const path = `/apis/apps/v1/namespaces/${request.release.namespace}/deployments/demo`;
      expect(await cluster.api.find(path)).toBeDefined();
    });
    stop.abort(new Error('the cluster is gone'));
    expect(await running).toMatchObject({ code: 'Cancelled', cause: { message: 'the cluster is gone' } });
    expect(await newest(request)).toMatchObject({ revision: 1, status: 'failed' });
    await upgrade({ ...request, values: '' });
    expect(await newest(request)).toMatchObject({ revision: 2, status: 'deployed' });
  });

  it.each(['pending-install', 'pending-upgrade', 'pending-rollback'] as const)(
    'accepts an upgrade of a release stuck in %s once that is marked as failed',
    async (status) => {
      const request = await requestOf(simpleChart({ name: 'demo' }));
      await engine.install(target, request, control);
      const before = await newest(request);
      await force(request, 1, status);
      await expect(upgrade(request)).rejects.toMatchObject({ code: 'ReleasePending' });
      await expect(reader.markFailed(before, 'stale', control)).rejects.toMatchObject({ code: 'RecordChanged' });
      const stuck = await newest(request);
      expect(stuck.status).toBe(status);
      await reader.markFailed(stuck, 'broken off', control);
      expect(await newest(request)).toMatchObject({ status: 'failed', description: 'broken off' });
      await upgrade(request);
      expect(await newest(request)).toMatchObject({ revision: 2, status: 'deployed' });
      await engine.uninstall(target, request, control);
    },
  );

  it('uninstalls a release whose uninstall was broken off', async () => {
    const request = await requestOf(simpleChart({ name: 'demo' }));
    await engine.install(target, request, control);
    await force(request, 1, 'uninstalling');
    await engine.uninstall(target, request, control);
    expect(await reader.refresh(request.release, control)).toBeUndefined();
    expect(await dataOf(request.release.namespace, 'demo-0')).toBeUndefined();
  });

  it('keeps the history when told to, and installs over it when told to', async () => {
    const request = await requestOf(simpleChart({ name: 'demo' }));
    await engine.install(target, request, control);
    const options = optionsOf({ uninstall: { keepHistory: true, description: 'moved away' } });
    await engine.uninstall(target, { release: request.release, options }, control);
    await engine.uninstall(target, { release: request.release, options }, control);
    expect(await newest(request)).toMatchObject({ status: 'uninstalled', description: 'moved away' });
    await expect(engine.install(target, request, control)).rejects.toMatchObject({ code: 'ReleaseExists' });
    await expect(engine.upgrade(target, request, control)).rejects.toMatchObject({ code: 'NoDeployedRelease' });
    await engine.install(target, { ...request, replace: true }, control);
    expect(await newest(request)).toMatchObject({ revision: 2, status: 'deployed' });
  });

  it('runs hooks and tests, and says which failed', async () => {
    const chart = oneTemplate(HOOK);
    const request = await requestOf(chart, { values: 'event: pre-install', options: { timeoutMs: 30_000 } });
    await engine.install(target, request, control);
    await upgrade({ ...request, values: 'event: test' });
    await engine.test(target, { release: request.release, timeoutMs: 30_000 }, control);
    await upgrade({ ...request, values: 'event: test\nnowhere: true' });
    const failing = engine.test(target, { release: request.release, timeoutMs: 2_000 }, control);
    await expect(failing).rejects.toMatchObject({ code: 'Timeout' });

    const values = 'event: pre-install\nnowhere: true';
    const hooked = await requestOf(chart, { values, options: { timeoutMs: 2_000 } });
    await expect(engine.install(target, hooked, control)).rejects.toMatchObject({ code: 'HookFailed' });
    expect(await newest(hooked)).toMatchObject({ status: 'failed' });
    const without = await requestOf(chart, { values, options: { disableHooks: true } });
    await engine.install(target, without, control);
    expect(await newest(without)).toMatchObject({ status: 'deployed' });
  });

  it('leaves an object of somebody else alone until it may take it', async () => {
    const request = await requestOf(simpleChart({ name: 'demo' }));
    const { namespace } = request.release;
    await cluster.kubectl(['create', 'namespace', namespace]);
    await cluster.kubectl(['create', 'configmap', 'demo-0', '-n', namespace, '--from-literal=message=mine']);
    await expect(engine.install(target, request, control)).rejects.toMatchObject({ code: 'OwnershipConflict' });
    await engine.install(target, { ...request, options: optionsOf({ takeOwnership: true }) }, control);
    expect(await dataOf(namespace, 'demo-0')).toMatchObject({ message: 'hello' });
  });

  it('takes back a field that somebody else wrote', async () => {
    const request = await requestOf(simpleChart({ name: 'demo' }));
    const { namespace } = request.release;
    await engine.install(target, request, control);
    await cluster.kubectl([
      'patch',
      'configmap',
      'demo-0',
      '-n',
      namespace,
      '--type=merge',
      '-p',
      '{"data":{"message":"drift"}}',
    ]);
    await upgrade({ ...request, values: 'message: wanted' });
    expect(await dataOf(namespace, 'demo-0')).toMatchObject({ message: 'wanted' });
  });

  it('replaces by force what cannot be patched', async () => {
    const request = await requestOf(simpleChart({ name: 'demo' }));
    await engine.install(target, request, control);
    await upgrade({ ...request, values: 'message: forced', options: optionsOf({ upgrade: { force: true } }) });
    expect(await dataOf(request.release.namespace, 'demo-0')).toMatchObject({ message: 'forced' });
    await upgrade({ ...request, values: 'message: after' });
    expect(await dataOf(request.release.namespace, 'demo-0')).toMatchObject({ message: 'after' });
  });

  it('refuses a field that the API does not know, also where its own check is left out', async () => {
    const template = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: one }\ndate: { a: b }';
    const request = await requestOf(oneTemplate(template));
    const outcome = engine.install(target, request, control);
    // Helm 3's check lets unknown fields pass, and the server on client-side apply warns (tried).
    if (major === 3) await outcome;
    else await expect(outcome).rejects.toMatchObject({ code: 'ObjectInvalid' });
  });

  it('says what is wrong in a class of its own, without the values', async () => {
    const immutable = await requestOf(oneTemplate(DEPLOYMENT));
    await engine.install(target, immutable, control);
    await expect(upgrade({ ...immutable, values: 'app: two' })).rejects.toMatchObject({ code: 'ImmutableField' });

    const schema = JSON.stringify({ type: 'object', properties: { password: { type: 'string', pattern: '^x+$' } } });
    const checked = await requestOf(oneTemplate('', { 'values.schema.json': schema }), { values: 'password: hunter2' });
    await expect(engine.install(target, checked, control)).rejects.toMatchObject({
      code: 'ValuesInvalid',
      message: expect.not.stringContaining('hunter2') as string,
    });

    const failing = await requestOf(oneTemplate('{{ fail (print "bad: " .Values.password) }}'), {
      values: 'password: hunter2',
    });
    await expect(engine.install(target, failing, control)).rejects.toMatchObject({
      code: 'ChartInvalid',
      message: expect.stringMatching(/bad: \*\*\*$/) as string,
    });

    const dependencies = [{ name: 'sub', version: '1.0.0', repository: 'https://charts.invalid' }];
    const lacking = await requestOf(chartFromFiles({ name: 'lacking', version: '1.0.0', dependencies }, {}));
    await expect(engine.install(target, lacking, control)).rejects.toMatchObject({ code: 'ChartInvalid' });
    const updated = { ...lacking, options: optionsOf({ dependencyUpdate: true }) };
    const refused = { code: 'OptionUnsupported', field: 'options.dependencyUpdate' };
    await expect(engine.install(target, updated, control)).rejects.toMatchObject(refused);
    const complete = await requestOf(simpleChart({ name: 'demo' }), { options: { dependencyUpdate: true } });
    await engine.install(target, complete, control);
  });

  it('tells a cluster that refuses from one that never answers and from bad credentials', async () => {
    const request = await requestOf(simpleChart({ name: 'demo' }));
    const dead = await refusingKubeconfig('dead', await environment.ports.take());
    const refusing = { cluster: 'dead', kubeconfig: () => dead };
    await expect(engine.install(refusing, request, control)).rejects.toMatchObject({ code: 'Unreachable' });

    const stranger = cluster.kubeconfig.replaceAll(/token: .*/g, 'token: wrong');
    const unauthorized = { cluster: 'one', kubeconfig: () => stranger };
    await expect(engine.uninstall(unauthorized, request, control)).rejects.toMatchObject({ code: 'Unauthorized' });

    const silent = await startSilentServer();
    const impatient = { ...control, limitMs: 500 };
    const quick = { ...request, options: optionsOf({ timeoutMs: 1_000 }) };
    const hanging = { cluster: 'silent', kubeconfig: () => silent.kubeconfig };
    await expect(engine.install(hanging, quick, impatient)).rejects.toMatchObject({ code: 'Timeout' });
    await silent.stop();
  });

  it('ends what runs when it is closed', async () => {
    const closing = engineOf();
    const request = await requestOf(oneTemplate(DEPLOYMENT), { values: 'nowhere: true', options: { wait: true } });
    const running = closing.install(target, request, control).catch((error: unknown) => error);
    await eventually(async () => {
      expect(await reader.refresh(request.release, control)).toMatchObject({ status: 'pending-install' });
    });
    await closing.close();
    expect(await running).toMatchObject({ code: 'Cancelled' });
    expect(closing.running).toBe(0);
    expect(await newest(request)).toMatchObject({ status: 'failed' });
  });
});

it('goes on as a release began: on the client side what helm 3 made, also with helm 4', async () => {
  const telemetry = createTelemetry();
  const engineWith = (helmPath: string): ProcessHelmEngine =>
    new ProcessHelmEngine(new HelmProcesses(helmProcessOptions({ helmPath }), telemetry), telemetry);
  const three = engineWith(environment.binaries.helm3);
  const four = engineWith(environment.binaries.helm);
  const target = { cluster: 'one', kubeconfig: () => cluster.kubeconfig };
  const request = await requestOf(simpleChart({ name: 'demo' }));
  await three.install(target, request, control);
  expect(await newest(request)).toMatchObject({ applyMethod: 'client' });
  await four.upgrade(target, { ...request, values: 'message: four', serverSide: false }, control);
  expect(await newest(request)).toMatchObject({ revision: 2, applyMethod: 'client' });
  const other = await requestOf(simpleChart({ name: 'demo' }));
  await four.install(target, other, control);
  await three.upgrade(target, { ...other, values: 'message: three' }, control);
  expect(await newest(other)).toMatchObject({ revision: 2, applyMethod: 'client' });
  expect(await dataOf(other.release.namespace, 'demo-0')).toMatchObject({ message: 'three' });
  await three.close();
  await four.close();
});

afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});
