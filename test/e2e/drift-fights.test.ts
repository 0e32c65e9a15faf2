/** Drift that does not end with one correction: somebody who does not give in, a server that refuses, and fifty objects at once. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet, KubeObject } from '../support/index.ts';
import { eventually, setKubeconfig } from '../support/index.ts';
import { configMap, deployment } from './drift-manifests.ts';
import type { ReportedObject } from './drifting.ts';
import { CANARY, Drifting, startDriftFleet } from './drifting.ts';
import { Opponent } from './opponent.ts';
import type { ProxiedRequest } from './recording-proxy.ts';
import { RecordingProxy } from './recording-proxy.ts';

type Settings = KubeObject & { data: Record<string, string> };
type Web = KubeObject & { spec: { replicas: number } };

/** Of the same field: three corrections, and no more. */
const DELAYS = '--drift-retry-delays=0s,200ms,400ms';
const CORRECTIONS = 3;
const RETRY = 'helmreleaseproxy.addons.cluster.x-k8s.io/drift-retry';

const TEMPLATES = {
  'settings.yaml': configMap('settings', { mode: 'calm', level: '3' }),
  'doomed.yaml': configMap('doomed', { a: '1' }),
  'web.yaml': deployment('web', { spec: 'replicas: 2' }),
  'canary.yaml': CANARY,
};

function jobOf(image: string): string {
  return `apiVersion: batch/v1
kind: Job
metadata: { name: job }
spec: { suspend: true, template: { spec: { restartPolicy: Never, containers: [{ name: job, image: "${image}" }] } } }
`;
}

const REFUSABLE = {
  'settings.yaml': configMap('settings', { mode: 'calm' }),
  'counted.yaml': configMap('counted', { a: '1' }),
  'web.yaml': deployment('web', { spec: 'replicas: 1' }),
  'job.yaml': jobOf('job:1'),
  'canary.yaml': CANARY,
};

/** Of kinds in Helm's install order. */
const KINDS = ['configmaps', 'services', 'deployments', 'jobs'];
const EACH = 12;
const MANY = Object.fromEntries(
  Array.from({ length: EACH }, (_, index) => [
    `${String(index)}.yaml`,
    [
      jobOf('job:1').replace('name: job', `name: j${String(index)}`),
      deployment(`d${String(index)}`),
      `apiVersion: v1\nkind: Service\nmetadata: { name: s${String(index)} }\nspec: { ports: [{ port: 80 }] }\n`,
      configMap(`c${String(index)}`, { a: '1' }),
    ].join('---\n'),
  ]),
);
const REST = { 'rest.yaml': ['last-1', 'last-2'].map((name) => configMap(name, { a: '1' })).join('---\n') };

let fleet: Fleet;
let drifting: Drifting;
/** Between the manager and the cluster; the test itself goes straight there. */
let road: RecordingProxy;

beforeAll(async () => {
  fleet = await startDriftFleet({ flags: [DELAYS] });
  drifting = new Drifting(fleet);
  const { cluster } = drifting;
  road = await RecordingProxy.start(cluster);
  const kubeconfig = road.kubeconfig(cluster.kubeconfig, cluster);
  await setKubeconfig(fleet.api, { name: 'c1', namespace: fleet.namespace }, kubeconfig);
  // All at once: the index of a repository is not asked for at every look.
  for (const name of ['fight', 'deleter']) drifting.publish(name, '1.0.0', TEMPLATES);
  drifting.publish('refused', '1.0.0', REFUSABLE);
  drifting.publish('many', '1.0.0', { ...MANY, ...REST });
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

function isWrite({ method, path }: ProxiedRequest): boolean {
  return method !== 'GET' && !path.includes('dryRun=');
}

/** Writes of the manager to an object, or what else a path begins with. */
function writesTo(path: string): number {
  return road.requests.filter((request) => isWrite(request) && request.path.split('?')[0] === path).length;
}

async function detail(name: string, wanted: Partial<ReportedObject>): Promise<ReportedObject> {
  return eventually(
    async () => {
      const { details = [] } = await drifting.drift(name);
      const found = details.find((one) => one.kind === wanted.kind && one.name === wanted.name);
      expect(found).toMatchObject(wanted);
      return found as ReportedObject;
    },
    { what: `${name} tells of ${JSON.stringify(wanted)}` },
  );
}

async function askAgain(name: string, text: string): Promise<void> {
  const { metadata } = await drifting.proxy(name);
  await fleet.api.patch(`${fleet.path('helmreleaseproxies')}/${metadata.name ?? ''}`, {
    metadata: { annotations: { [RETRY]: text } },
  });
}

async function eventsOf(name: string, reason: string): Promise<(KubeObject & { message: string; count?: number })[]> {
  const { metadata } = await drifting.proxy(name);
  type CoreEvent = KubeObject & { message: string; reason: string; involvedObject: { name: string } };
  const all = await fleet.api.list<CoreEvent>(`/api/v1/namespaces/${fleet.namespace}/events`);
  return all.filter((event) => event.involvedObject.name === metadata.name && event.reason === reason);
}

describe('somebody who edits a field again after each correction', () => {
  const path = configMapPath('fight', 'settings');
  let opponent: Opponent;
  /** Helm's own. */
  let installing: number;
  /** Corrections of the field that nobody fights over. */
  let others = 0;

  beforeAll(async () => {
    await drifting.install('fight', TEMPLATES);
    installing = writesTo(path);
    const { api } = drifting.cluster;
    opponent = Opponent.start(api, path, {
      isContent: (object) => (object as Settings | undefined)?.data['mode'] === 'theirs',
      write: async () =>
        api.request('PATCH', `${path}?fieldManager=stubborn`, {
          body: { data: { mode: 'theirs' } },
          contentType: 'merge',
        }),
    });
  });

  afterAll(async () => {
    await opponent.stop();
  });

  /** The fight is given up after so many corrections in all, and nobody writes any more. */
  async function givenUp(corrections: number): Promise<void> {
    await eventually(
      async () => {
        const { drifted } = await drifting.drift('fight');
        expect({ writes: writesTo(path) - installing, drifted }).toEqual({ writes: corrections, drifted: 1 });
        expect((await drifting.condition('fight'))?.reason).toBe('DriftNotConverging');
      },
      { timeoutMs: 60_000, what: `given up after ${String(corrections)} corrections` },
    );
    expect(opponent.writes).toBe(corrections - others + 1);
  }

  /** A field of the same object, and another object, are put back; the field that is fought over is not. */
  async function othersArePutBack(): Promise<void> {
    const { resourceVersion } = (await drifting.cluster.api.get(path)).metadata;
    await drifting.cluster.kubectl(['scale', 'deployment', 'web', '-n', 'fight', '--replicas=5']);
    await drifting.until<Web>(webPath('fight'), ({ spec }) => expect(spec.replicas).toBe(2));
    expect((await drifting.cluster.api.get(path)).metadata.resourceVersion).toBe(resourceVersion);
    await drifting.cluster.api.patch(path, { data: { level: '11' } });
    const after = await drifting.until<Settings>(path, ({ data }) => expect(data['level']).toBe('3'));
    expect(after.data['mode']).toBe('theirs');
    others += 1;
  }

  it('wins when the schedule is over; field and manager are named, and all else is still put back', async () => {
    await givenUp(CORRECTIONS);
    const condition = await drifting.outOfSync('fight', 'DriftNotConverging');
    expect(condition.message).toContain('ConfigMap fight/settings');
    expect(condition.message).toContain(
      `/data/mode: corrected ${String(CORRECTIONS)} times, and changed again by stubborn`,
    );
    await fleet.conditionOf(
      { chartProxy: 'fight' },
      { type: 'ReleaseInSync', status: 'False', reason: 'DriftNotConverging' },
    );
    expect(await detail('fight', { kind: 'ConfigMap', name: 'settings' })).toMatchObject({
      state: 'Modified',
      action: 'Stopped',
      fields: [{ path: '/data/mode', wanted: '"calm"', live: '"theirs"', manager: 'stubborn', operation: 'Update' }],
    });
    await othersArePutBack();
    await givenUp(CORRECTIONS + 1);
    expect(await eventsOf('fight', 'DriftNotConverging')).toMatchObject([
      { message: expect.stringContaining('stubborn') as string },
    ]);
  });

  it('is fought anew when the spec changes, and when the annotation asks; the revision stays', async () => {
    const before = writesTo(path) - installing;
    await fleet.patchChartProxy('fight', { spec: { driftDetection: { mode: 'Correct', extraFields: 'Report' } } });
    await givenUp(before + CORRECTIONS);
    await askAgain('fight', 'once more');
    await givenUp(before + 2 * CORRECTIONS);
    await opponent.stop();
    await askAgain('fight', 'and now');
    await drifting.until<Settings>(path, ({ data }) => expect(data['mode']).toBe('calm'));
    await drifting.inSync('fight');
    expect(await drifting.revision('fight')).toBe(1);
  });
});

describe('somebody who deletes an object again after each correction', () => {
  it('wins when the schedule is over, and nobody is named', async () => {
    const path = configMapPath('deleter', 'doomed');
    await drifting.install('deleter', TEMPLATES);
    const { api } = drifting.cluster;
    const opponent = Opponent.start(api, path, {
      isContent: (object) => object === undefined,
      write: async () => api.delete(path),
    });
    try {
      const condition = await drifting.outOfSync('deleter', 'DriftNotConverging');
      expect(condition.message).toContain('ConfigMap deleter/doomed');
      expect(condition.message).toMatch(/the object: corrected 3 times, and deleted again$/);
      expect(opponent.writes).toBe(CORRECTIONS + 1);
      await drifting.cluster.kubectl(['scale', 'deployment', 'web', '-n', 'deleter', '--replicas=5']);
      await drifting.until<Web>(webPath('deleter'), ({ spec }) => expect(spec.replicas).toBe(2));
      expect(opponent.writes).toBe(CORRECTIONS + 1);
    } finally {
      await opponent.stop();
    }
    await askAgain('deleter', 'now');
    await drifting.until(path, () => undefined);
    await drifting.inSync('deleter');
  });
});

describe('a server that refuses the correction', () => {
  const settings = configMapPath('refused', 'settings');
  const jobs = '/apis/batch/v1/namespaces/refused/jobs';
  const quota = '/api/v1/namespaces/refused/resourcequotas/none';
  const POLICY = 'fights.capstan.test';

  beforeAll(async () => {
    await drifting.install('refused', REFUSABLE);
  });

  /** Made anew by somebody, with labels and annotations as they were. */
  async function remade(path: string, change: (text: string) => string): Promise<void> {
    const { api } = drifting.cluster;
    const { apiVersion, kind, metadata, spec } = await api.get(path);
    const { name, labels, annotations } = metadata;
    const text = JSON.stringify({ apiVersion, kind, metadata: { name, labels, annotations }, spec });
    const stdin = change(text);
    // In one breath, so that nobody comes in between.
    process.kill(fleet.manager.pid, 'SIGSTOP');
    try {
      await api.delete(`${path}?propagationPolicy=Background`);
      await drifting.cluster.kubectl(['create', '-n', 'refused', '-f', '-'], { stdin });
    } finally {
      process.kill(fleet.manager.pid, 'SIGCONT');
    }
  }

  async function refusesAlready(request: () => Promise<unknown>): Promise<void> {
    await eventually(async () => expect(request(), 'it is not in force yet').rejects.toThrow(), {
      what: 'it is in force',
    });
  }

  it('is told by its message, and tried again until it goes', async () => {
    const { api } = drifting.cluster;
    await api.create('/api/v1/namespaces/refused/configmaps', { metadata: { name: 'probe' }, data: { mode: 'wild' } });
    await drifting.cluster.kubectl(['apply', '-f', '-'], { stdin: policyOf(POLICY) });
    await refusesAlready(async () =>
      api.patch(`${configMapPath('refused', 'probe')}?dryRun=All`, { data: { mode: 'calm' } }),
    );
    await api.patch(settings, { data: { mode: 'wild' } });
    const condition = await drifting.outOfSync('refused', 'DriftCorrectionFailed');
    expect(condition.message).toContain('ConfigMap refused/settings');
    expect(condition.message).toContain('nobody is calm here');
    await detail('refused', { kind: 'ConfigMap', name: 'settings', state: 'Modified', action: 'Refused' });
    const tries = writesTo(settings);
    await eventually(async () => {
      expect(writesTo(settings)).toBeGreaterThan(tries + 1);
      return Promise.resolve();
    });
    // Told once, however often it is tried.
    expect(await eventsOf('refused', 'DriftCorrectionFailed')).toMatchObject([{ count: 1 }]);
    expect(
      (await eventsOf('refused', 'DriftDetected')).filter(({ message }) => message.includes('settings')),
    ).toHaveLength(1);
    // Other objects of the release do not wait for it.
    await drifting.cluster.kubectl(['scale', 'deployment', 'web', '-n', 'refused', '--replicas=5']);
    await drifting.until<Web>(webPath('refused'), ({ spec }) => expect(spec.replicas).toBe(1));
    await drifting.cluster.kubectl(['delete', 'validatingadmissionpolicybinding', POLICY]);
    await drifting.until<Settings>(settings, ({ data }) => expect(data['mode']).toBe('calm'));
    await drifting.inSync('refused');
  });

  it('for its quota is told, and the object is made when there is room', async () => {
    const { api } = drifting.cluster;
    await api.create('/api/v1/namespaces/refused/resourcequotas', {
      metadata: { name: 'none' },
      spec: { hard: { 'count/configmaps': '0' } },
    });
    // What the controller of quotas would count, had it run.
    await api.patch(`${quota}/status`, {
      status: { hard: { 'count/configmaps': '0' }, used: { 'count/configmaps': '0' } },
    });
    await refusesAlready(async () =>
      api.create('/api/v1/namespaces/refused/configmaps?dryRun=All', { metadata: { name: 'probe-2' } }),
    );
    await api.delete(configMapPath('refused', 'counted'));
    const condition = await drifting.outOfSync('refused', 'DriftCorrectionFailed');
    expect(condition.message).toContain('exceeded quota');
    await detail('refused', { kind: 'ConfigMap', name: 'counted', state: 'Missing', action: 'Refused' });
    await api.delete(quota);
    await drifting.until(configMapPath('refused', 'counted'), () => undefined);
    await drifting.inSync('refused');
  });

  it('for an immutable field is told once, and never asked again', async () => {
    const { api } = drifting.cluster;
    await remade(webPath('refused'), (text) => text.replaceAll('"app":"web"', '"app":"other"'));
    await detail('refused', { kind: 'Deployment', name: 'web', state: 'Modified', action: 'NeedsRecreation' });
    await remade(`${jobs}/job`, (text) =>
      text
        .replaceAll('job:1', 'job:2')
        .replace(/"selector":\{.*?\}\},?/, '')
        .replaceAll(/"(batch.kubernetes.io\/)?(controller-uid|job-name)":"[^"]*",?/g, ''),
    );
    await detail('refused', { kind: 'Job', name: 'job', state: 'Modified', action: 'NeedsRecreation' });
    const condition = await drifting.outOfSync('refused', 'DriftCorrectionFailed');
    expect(condition.message).toContain('Deployment refused/web');
    const asked = (): number => road.requests.filter(({ path }) => /\/(deployments|jobs)\/\w/.test(path)).length;
    const before = asked();
    const live = await Promise.all([api.get(webPath('refused')), api.get(`${jobs}/job`)]);
    // A time in which they would have been: one after the other, so that each is a pass of its own.
    for (const mode of ['one', 'two', 'three']) {
      const count = await drifting.corrections('refused');
      await api.patch(configMapPath('refused', 'refused-canary'), { data: { bird: mode } });
      await drifting.corrected('refused', count + 1);
    }
    expect(asked()).toBe(before);
    expect(await Promise.all([api.get(webPath('refused')), api.get(`${jobs}/job`)])).toEqual(live);
    // Whoever deletes the objects has them as the chart wants them.
    await api.delete(`${jobs}/job?propagationPolicy=Background`);
    await api.delete(webPath('refused'));
    await drifting.inSync('refused');
    const web = await api.get(webPath('refused'));
    expect(web['spec']).toMatchObject({ selector: { matchLabels: { app: 'web' } } });
    expect(await drifting.revision('refused')).toBe(1);
  });
});

describe('fifty objects that are deleted at once', () => {
  it('are put back in one pass, in install order', async () => {
    await drifting.install('many', { ...MANY, ...REST });
    const total = EACH * KINDS.length + 2;
    // Whoever deletes fifty objects takes longer than Capstan waits for more: it hears of all of them together.
    process.kill(fleet.manager.pid, 'SIGSTOP');
    try {
      await drifting.cluster.kubectl(['delete', 'all,configmaps', '--all', '-n', 'many', '--wait=false']);
    } finally {
      process.kill(fleet.manager.pid, 'SIGCONT');
    }
    const drift = await drifting.corrected('many', total);
    expect(drift).toMatchObject({ objects: total, drifted: 0, corrections: total });
    await drifting.inSync('many');
    const made = road.requests
      .filter((request) => isWrite(request) && request.path.includes('/namespaces/many/'))
      .map(({ path }) => KINDS.findIndex((plural) => path.includes(`/${plural}`)));
    const order = made.slice(-total);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(order.filter((kind) => kind === 3)).toHaveLength(EACH);
    const events = await eventsOf('many', 'DriftCorrected');
    expect(events).toMatchObject([
      { message: expect.stringContaining(`${String(total)} objects: put back`) as string },
    ]);
    expect(await drifting.revision('many')).toBe(1);
  });
});

function policyOf(name: string): string {
  return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: ${name} }
spec:
  matchConstraints:
    resourceRules: [{ apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps] }]
    namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: refused } }
  validations: [{ expression: "!has(object.data.mode) || object.data.mode != 'calm'", message: nobody is calm here }]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: ${name} }
spec: { policyName: ${name}, validationActions: [Deny] }
`;
}
