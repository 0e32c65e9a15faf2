/** Drift that happens while nobody can look, and objects whose namespace or kind goes and comes back. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet, KubeObject } from '../support/index.ts';
import { ensureNamespace, eventually, setKubeconfig } from '../support/index.ts';
import { configMap, deployment, widgetCrd } from './drift-manifests.ts';
import type { ReportedObject } from './drifting.ts';
import { CANARY, Drifting, startDriftFleet } from './drifting.ts';
import { RecordingProxy } from './recording-proxy.ts';

type Settings = KubeObject & { data: Record<string, string> };
type Web = KubeObject & { spec: { replicas: number } };

const FLAGS = ['--drift-retry-delays=0s,200ms,400ms,1s,1s,1s'];
const LONG_MS = 90_000;

const TEMPLATES = {
  'settings.yaml': configMap('settings', { mode: 'calm' }),
  'lost.yaml': configMap('lost', { a: '1' }),
  'unlabelled.yaml': configMap('unlabelled', { a: '1' }),
  'taken.yaml': configMap('taken', { a: '1' }),
  'web.yaml': deployment('web', { spec: 'replicas: 2' }),
  'canary.yaml': CANARY,
};

const NEAR = {
  'far.yaml': configMap('far', { a: '1' }).replace('name: far', 'name: far\n  namespace: elsewhere'),
  'canary.yaml': CANARY,
};

const MAKER = {
  'made.yaml': 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: made\n',
  'inner.yaml': configMap('inner', { a: '1' }).replace('name: inner', 'name: inner\n  namespace: made'),
  'canary.yaml': CANARY,
};

const WIDGETS = {
  'widget.yaml': 'apiVersion: drift.test/v1\nkind: Widget\nmetadata:\n  name: one\nspec: { cpu: "1" }\n',
  'canary.yaml': CANARY,
};

let fleet: Fleet;
let drifting: Drifting;
/** Between the manager and the cluster; the test itself goes straight there. */
let road: RecordingProxy;

beforeAll(async () => {
  fleet = await startDriftFleet({ controllers: true, flags: FLAGS });
  drifting = new Drifting(fleet);
  const { cluster } = drifting;
  road = await RecordingProxy.start(cluster);
  const kubeconfig = road.kubeconfig(cluster.kubeconfig, cluster);
  await setKubeconfig(fleet.api, { name: 'c1', namespace: fleet.namespace }, kubeconfig);
  // All at once: the index of a repository is not asked for at every look.
  for (const name of ['down', 'cut', 'crashed', 'frozen', 'own']) drifting.publish(name, '1.0.0', TEMPLATES);
  drifting.publish('near', '1.0.0', NEAR);
  drifting.publish('maker', '1.0.0', MAKER);
  drifting.publish('widgets', '1.0.0', WIDGETS);
});

afterAll(async () => {
  await road.stop();
  await fleet.stop();
});

function configMapPath(namespace: string, name: string): string {
  return `/api/v1/namespaces/${namespace}/configmaps/${name}`;
}

function webPath(namespace: string): string {
  return `/apis/apps/v1/namespaces/${namespace}/deployments/web`;
}

async function kubectl(namespace: string, ...args: string[]): Promise<void> {
  await drifting.cluster.kubectl([...args, '-n', namespace]);
}

/** One change of every sort: a value, an object, Helm's label, and an object that is somebody else's now. */
async function havoc(name: string): Promise<void> {
  await kubectl(name, 'patch', 'configmap', 'settings', '--type=merge', '-p', '{"data":{"mode":"wild"}}');
  await kubectl(name, 'delete', 'configmap', 'lost');
  await kubectl(name, 'label', 'configmap', 'unlabelled', 'app.kubernetes.io/managed-by-');
  await kubectl(name, 'delete', 'configmap', 'taken');
  await kubectl(name, 'create', 'configmap', 'taken', '--from-literal=a=2');
  await kubectl(name, 'scale', 'deployment', 'web', '--replicas=5');
  // And what is no drift.
  await kubectl(name, 'annotate', 'configmap', `${name}-canary`, 'who=me');
}

/** All of it is put back, and nothing else is touched. */
async function allIsWell(name: string): Promise<void> {
  const drift = await drifting.corrected(name, 5, LONG_MS);
  expect(drift).toMatchObject({ corrections: 5, drifted: 0, revision: 1 });
  await drifting.inSync(name);
  const { api } = drifting.cluster;
  for (const [object, data] of [
    ['settings', { mode: 'calm' }],
    ['lost', { a: '1' }],
    ['unlabelled', { a: '1' }],
    ['taken', { a: '1' }],
  ] as const) {
    const live = await api.get<Settings>(configMapPath(name, object));
    expect(live.data).toEqual(data);
    expect(live.metadata.labels).toMatchObject({ 'app.kubernetes.io/managed-by': 'Helm' });
    expect(live.metadata.annotations).toMatchObject({ 'meta.helm.sh/release-name': name });
  }
  expect((await api.get<Web>(webPath(name))).spec.replicas).toBe(2);
  const canary = await api.get(configMapPath(name, `${name}-canary`));
  expect(canary.metadata.annotations).toMatchObject({ who: 'me' });
  expect(await drifting.revision(name)).toBe(1);
  await drifting.nothingElseCorrected(name);
}

/** Waits until the manager knows that it does not reach the cluster. */
async function unreachable(): Promise<void> {
  await eventually(
    async () => {
      expect(await fleet.manager.metric('capstan_clusters', { phase: 'engaged' })).toBe(0);
    },
    { timeoutMs: LONG_MS, what: 'the cluster is known to be out of reach' },
  );
}

function watchFailures(): number {
  return fleet.manager.log().split('a watch failed').length;
}

/** Waits until status.drift has an object in this state, by kind and name. */
async function detail(name: string, wanted: Partial<ReportedObject>): Promise<ReportedObject> {
  return eventually(
    async () => {
      const { details = [] } = await drifting.drift(name);
      const found = details.find((one) => one.kind === wanted.kind && one.name === wanted.name);
      expect(found).toMatchObject(wanted);
      return found as ReportedObject;
    },
    { timeoutMs: LONG_MS, what: `${name} tells of ${JSON.stringify(wanted)}` },
  );
}

describe('what happened meanwhile is put back', () => {
  it('when the manager was down', async () => {
    await drifting.install('down', TEMPLATES);
    await fleet.manager.stop();
    await havoc('down');
    await fleet.startManager({ flags: ['--drift-detection=Correct', ...FLAGS] });
    await allIsWell('down');
  });

  it('when the network was away', async () => {
    await drifting.install('cut', TEMPLATES);
    const failures = watchFailures();
    road.cut();
    await havoc('cut');
    await eventually(async () => {
      await Promise.resolve();
      expect(watchFailures()).toBeGreaterThan(failures);
    });
    road.mend();
    await allIsWell('cut');
  });

  it('when the cluster crashed right after it', async () => {
    await drifting.install('crashed', TEMPLATES);
    road.cut();
    await havoc('crashed');
    await drifting.cluster.restart();
    road.mend();
    await allIsWell('crashed');
  });

  it('when the cluster hung until it was given up', async () => {
    await drifting.install('frozen', TEMPLATES);
    road.cut();
    await havoc('frozen');
    drifting.cluster.pause();
    try {
      road.mend();
      await unreachable();
    } finally {
      drifting.cluster.resume();
    }
    await allIsWell('frozen');
  });
});

describe('a namespace that somebody deletes', () => {
  it("which is the release's own, is made again with the release in it", async () => {
    await drifting.install('own', TEMPLATES);
    const before = await drifting.cluster.api.get(configMapPath('own', 'settings'));
    await kubectl('own', 'delete', 'namespace', 'own', '--wait=false');
    await drifting.until<Settings>(
      configMapPath('own', 'settings'),
      ({ metadata }) => expect(metadata.uid).not.toBe(before.metadata.uid),
      LONG_MS,
    );
    await fleet.deployed('own', 1, { timeoutMs: LONG_MS });
    await drifting.inSync('own', LONG_MS);
    await drifting.nothingElseCorrected('own');
  });

  it('which is not, keeps what was in it waiting, and nothing else', async () => {
    await ensureNamespace(drifting.cluster.api, 'elsewhere');
    await drifting.install('near', NEAR);
    await kubectl('near', 'delete', 'namespace', 'elsewhere');
    const waiting = await detail('near', { kind: 'ConfigMap', name: 'far', state: 'Missing', action: 'Waiting' });
    expect(waiting.message).toContain('elsewhere');
    // No failure of ours: somebody's decision that is told.
    await drifting.outOfSync('near');
    await kubectl('near', 'delete', 'configmap', 'near-canary');
    await drifting.until(configMapPath('near', 'near-canary'), () => undefined);
    await ensureNamespace(drifting.cluster.api, 'elsewhere');
    await drifting.until(configMapPath('elsewhere', 'far'), () => undefined, LONG_MS);
    await drifting.inSync('near');
    expect(await drifting.revision('near')).toBe(1);
  });

  it("which the chart makes, is put back with the chart's objects in it", async () => {
    await drifting.install('maker', MAKER);
    const before = await drifting.cluster.api.get('/api/v1/namespaces/made');
    await kubectl('maker', 'delete', 'namespace', 'made', '--wait=false');
    await drifting.until(
      '/api/v1/namespaces/made',
      ({ metadata }) => {
        expect(metadata.uid).not.toBe(before.metadata.uid);
      },
      LONG_MS,
    );
    await drifting.until<Settings>(configMapPath('made', 'inner'), ({ data }) => expect(data).toEqual({ a: '1' }));
    await drifting.inSync('maker', LONG_MS);
    expect(await drifting.revision('maker')).toBe(1);
  });
});

describe('a kind that is not served', () => {
  const CRD = 'widgets.drift.test';
  const widgetPath = (namespace: string): string => `/apis/drift.test/v1/namespaces/${namespace}/widgets/one`;

  async function serve(): Promise<void> {
    await drifting.cluster.kubectl(['apply', '-f', '-'], { stdin: widgetCrd('drift.test') });
    await drifting.cluster.kubectl(['wait', '--for=condition=Established', `crd/${CRD}`, '--timeout=60s']);
  }

  it('any more is told; the object is put back when it is served again', async () => {
    await serve();
    await drifting.install('widgets', WIDGETS);
    await drifting.cluster.kubectl(['delete', 'crd', CRD]);
    await detail('widgets', { kind: 'Widget', name: 'one', state: 'NotServed', action: 'Waiting' });
    await drifting.outOfSync('widgets');
    // The rest of the release is looked after.
    await kubectl('widgets', 'delete', 'configmap', 'widgets-canary');
    await drifting.until(configMapPath('widgets', 'widgets-canary'), () => undefined);
    await serve();
    await drifting.until(widgetPath('widgets'), () => undefined, LONG_MS);
    await drifting.inSync('widgets', LONG_MS);
    // And is noticed again.
    await kubectl('widgets', 'patch', 'widget', 'one', '--type=merge', '-p', '{"spec":{"cpu":"2"}}');
    await drifting.until<KubeObject & { spec: { cpu: string } }>(widgetPath('widgets'), ({ spec }) => {
      expect(spec.cpu).toBe('1');
    });
    expect(await drifting.revision('widgets')).toBe(1);
  });

  it('yet when the manager starts is told, and taken up when it is served', async () => {
    await fleet.manager.stop();
    await drifting.cluster.kubectl(['delete', 'crd', CRD]);
    await fleet.startManager({ flags: ['--drift-detection=Correct', ...FLAGS] });
    await detail('widgets', { kind: 'Widget', name: 'one', state: 'NotServed', action: 'Waiting' });
    await serve();
    await drifting.until(widgetPath('widgets'), () => undefined, LONG_MS);
    await drifting.inSync('widgets', LONG_MS);
    await drifting.nothingElseCorrected('widgets');
    expect(await drifting.revision('widgets')).toBe(1);
  });
});
