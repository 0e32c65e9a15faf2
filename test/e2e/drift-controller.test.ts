/** The manager's drift controller as a whole: what is edited or deleted on a workload cluster is told and put back. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet, KubeObject } from '../support/index.ts';
import { eventually } from '../support/index.ts';
import { Drifting, startDriftFleet } from './drifting.ts';

const TEMPLATES = {
  'configmap.yaml': `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  mode: calm
  level: "3"
`,
  'deployment.yaml': `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector:
    matchLabels: { app: web }
  template:
    metadata:
      labels: { app: web }
    spec:
      containers:
        - name: web
          image: web:1.0
`,
};

/** Of kinds that Helm installs one after the other. */
const MANY = {
  'all.yaml': Array.from({ length: 17 }, (_, index) => manyOf(String(index))).join(''),
};

function manyOf(index: string): string {
  return ['ServiceAccount', 'ConfigMap', 'Service']
    .map((kind) => {
      const spec = kind === 'Service' ? 'spec: { ports: [{ port: 80 }] }\n' : '';
      return `---\napiVersion: v1\nkind: ${kind}\nmetadata: { name: many-${index} }\n${spec}`;
    })
    .join('');
}

type Settings = KubeObject & { data: Record<string, string> };

let fleet: Fleet;
let drifting: Drifting;

beforeAll(async () => {
  // Short pauses, so that a fight comes to its end within a test.
  fleet = await startDriftFleet({ flags: ['--drift-retry-delays=0s,100ms,200ms'] });
  drifting = new Drifting(fleet);
  drifting.publish('many', '1.0.0', MANY);
  // All at once: the index of a repository is not asked for at every look.
  for (const name of ['web', 'fight', 'upgraded', 'warned', 'away']) drifting.publish(name, '1.0.0', TEMPLATES);
});

afterAll(async () => {
  await fleet.stop();
});

function settings(name: string): string {
  return `/api/v1/namespaces/${name}/configmaps/settings`;
}

function web(name: string): string {
  return `/apis/apps/v1/namespaces/${name}/deployments/web`;
}

async function setMode(name: string, mode: string, manager = 'kubectl-edit'): Promise<void> {
  const patch = JSON.stringify({ data: { mode } });
  const args = ['patch', 'configmap', 'settings', '-n', name, '--type=merge', '-p', patch];
  await drifting.cluster.kubectl([...args, `--field-manager=${manager}`]);
}

async function modeIs(name: string, mode: string): Promise<void> {
  await drifting.until<Settings>(settings(name), ({ data }) => expect(data['mode']).toBe(mode));
}

describe('a release in mode Correct', () => {
  it('has an edited ConfigMap and a deleted Deployment put back, with its revision unchanged', async () => {
    await drifting.install('web', TEMPLATES);
    const before = await drifting.cluster.api.get(web('web'));
    await setMode('web', 'wild');
    await drifting.cluster.kubectl(['delete', 'deployment', 'web', '-n', 'web']);
    await modeIs('web', 'calm');
    const after = await drifting.until(web('web'), (object) =>
      expect(object.metadata.uid).not.toBe(before.metadata.uid),
    );
    expect(after.metadata.labels).toMatchObject({ 'app.kubernetes.io/managed-by': 'Helm' });
    expect(await drifting.revision('web')).toBe(1);
    const drift = await drifting.corrected('web', 2);
    expect(drift).toMatchObject({ revision: 1, objects: 2, drifted: 0, corrections: 2 });
    await drifting.inSync('web');
    const events = await eventsOf('web');
    expect(
      events.find(({ reason, message }) => reason === 'DriftDetected' && message.includes('/data/mode'))?.message,
    ).toBe('ConfigMap web/settings (/data/mode changed by kubectl-edit): differs from the chart');
    expect(events.filter(({ reason }) => reason === 'DriftCorrected').length).toBeGreaterThan(0);
    expect(events.map(({ message }) => message).join()).not.toContain('wild');
  });

  it('costs no request for what is no drift', async () => {
    const dryRuns = await metric('capstan_drift_dry_runs_total');
    const detected = await metric('capstan_drift_detected_total');
    await drifting.cluster.kubectl(['annotate', 'configmap', 'settings', '-n', 'web', 'who=me']);
    await drifting.cluster.kubectl(['label', 'deployment', 'web', '-n', 'web', 'seen=yes']);
    await setMode('web', 'loud');
    await modeIs('web', 'calm');
    await drifting.corrected('web', 3);
    expect(await metric('capstan_drift_detected_total')).toBe(detected + 1);
    expect(await metric('capstan_drift_dry_runs_total')).toBe(dryRuns + 1);
    expect((await drifting.cluster.api.get(settings('web'))).metadata.annotations).toMatchObject({ who: 'me' });
  });

  it('stops when somebody does not give in, names field and manager, and begins anew when asked', async () => {
    await drifting.install('fight', TEMPLATES);
    for (const mode of ['one', 'two', 'three']) {
      await setMode('fight', mode, 'stubborn');
      await modeIs('fight', 'calm');
    }
    await setMode('fight', 'four', 'stubborn');
    const condition = await drifting.outOfSync('fight', 'DriftNotConverging');
    expect(condition.message).toContain('/data/mode');
    expect(condition.message).toContain('stubborn');
    // Another object of the release is still put back.
    await drifting.cluster.kubectl(['scale', 'deployment', 'web', '-n', 'fight', '--replicas=5']);
    await drifting.until<KubeObject & { spec: { replicas: number } }>(web('fight'), ({ spec }) =>
      expect(spec.replicas).toBe(2),
    );
    expect((await drifting.cluster.api.get<Settings>(settings('fight'))).data['mode']).toBe('four');
    await annotate('fight', 'again');
    await modeIs('fight', 'calm');
    await drifting.inSync('fight');
    expect(await drifting.revision('fight')).toBe(1);
  });

  it('with correction Upgrade makes exactly one revision', async () => {
    await drifting.install('upgraded', TEMPLATES, { driftDetection: { mode: 'Correct', correction: 'Upgrade' } });
    // At once, so that they are one piece of news.
    const { api } = drifting.cluster;
    await Promise.all([api.patch(settings('upgraded'), { data: { mode: 'wild' } }), api.delete(web('upgraded'))]);
    await drifting.until(web('upgraded'), () => undefined);
    await drifting.corrected('upgraded', 2);
    await modeIs('upgraded', 'calm');
    await drifting.inSync('upgraded');
    expect(await drifting.revision('upgraded')).toBe(2);
  });
});

describe('many objects at once', () => {
  it('are put back in one pass, in install order', async () => {
    await drifting.install('many', MANY);
    await drifting.cluster.kubectl([
      'delete',
      'services,configmaps,serviceaccounts',
      '--all',
      '-n',
      'many',
      '--wait=false',
    ]);
    const drift = await drifting.corrected('many', 51);
    expect(drift).toMatchObject({ drifted: 0, objects: 51 });
    await drifting.inSync('many');
    expect(await drifting.revision('many')).toBe(1);
    const logged = fleet.manager
      .log()
      .split('\n')
      .filter((line) => line.includes('"drift corrected"') && line.includes('many-c1'))
      .map((line) => (JSON.parse(line) as { object: string }).object.split(' ')[0] ?? '');
    const order = ['ServiceAccount', 'ConfigMap', 'Service'];
    expect(logged).toHaveLength(51);
    expect(logged).toEqual([...logged].sort((a, b) => order.indexOf(a) - order.indexOf(b)));
    expect(await drifting.corrections('many')).toBe(51);
  });
});

describe('drift that nobody could see when it came', () => {
  it('is found when the manager is back, and nothing else is', async () => {
    await drifting.install('away', TEMPLATES);
    await fleet.manager.stop();
    await setMode('away', 'wild');
    await drifting.cluster.kubectl(['delete', 'deployment', 'web', '-n', 'away']);
    await fleet.startManager({ flags: ['--drift-detection=Correct'] });
    await modeIs('away', 'calm');
    await drifting.until(web('away'), () => undefined);
    await drifting.corrected('away', 2);
    expect(await metric('capstan_drift_detected_total')).toBe(2);
  });

  it('is found when the API server has begun anew', async () => {
    await drifting.cluster.restart();
    await setMode('away', 'wild');
    await modeIs('away', 'calm');
    expect(await drifting.revision('away')).toBe(1);
  });
});

describe('a release in mode Warn', () => {
  it('is told of and left as it is; Disabled takes back what was said', async () => {
    await drifting.install('warned', TEMPLATES, { driftDetection: { mode: 'Warn' } });
    await setMode('warned', 'wild');
    await drifting.outOfSync('warned');
    const { details = [] } = await drifting.drift('warned');
    expect(details).toMatchObject([
      {
        kind: 'ConfigMap',
        name: 'settings',
        state: 'Modified',
        action: 'Reported',
        fields: [{ path: '/data/mode', change: 'changed', wanted: '"calm"', live: '"wild"', manager: 'kubectl-edit' }],
      },
    ]);
    expect((await drifting.cluster.api.get<Settings>(settings('warned'))).data['mode']).toBe('wild');
    await fleet.patchChartProxy('warned', { spec: { driftDetection: { mode: 'Correct' } } });
    await modeIs('warned', 'calm');
    await drifting.inSync('warned');
    await fleet.patchChartProxy('warned', { spec: { driftDetection: { mode: 'Disabled' } } });
    await eventually(async () => {
      expect(await drifting.condition('warned')).toBeUndefined();
      expect(await drifting.drift('warned')).toEqual({});
    });
    expect(await drifting.revision('warned')).toBe(1);
  });
});

async function annotate(name: string, text: string): Promise<void> {
  const { metadata } = await drifting.proxy(name);
  const { name: proxy = '' } = metadata;
  const key = 'helmreleaseproxy.addons.cluster.x-k8s.io/drift-retry';
  const args = ['annotate', 'helmreleaseproxy', proxy, '-n', metadata.namespace ?? '', `${key}=${text}`];
  await fleet.environment.management.kubectl([...args, '--overwrite']);
}

interface CoreEvent extends KubeObject {
  reason: string;
  message: string;
  involvedObject: { name: string };
}

async function eventsOf(name: string): Promise<CoreEvent[]> {
  const { metadata } = await drifting.proxy(name);
  const all = await fleet.api.list<CoreEvent>(`/api/v1/namespaces/${metadata.namespace ?? ''}/events`);
  return all.filter(({ involvedObject }) => involvedObject.name === metadata.name);
}

async function metric(name: string): Promise<number> {
  return fleet.manager.metric(name);
}
