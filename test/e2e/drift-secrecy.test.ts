/** No value of a Secret, neither the chart's nor what somebody made of it, is to be seen anywhere but on the workload cluster. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/index.ts';
import type { Fleet, KubeObject } from '../support/index.ts';
import { CANARY, Drifting, startDriftFleet } from './drifting.ts';
import type { ReportedObject } from './drifting.ts';

type Secret = KubeObject & { data: Record<string, string> };

/** What must not be told, by what it is. */
const VALUES = {
  wanted: 'wanted-7f3a9c51',
  edited: 'edited-5b0e77d2',
  applied: 'applied-c2c4d018',
  added: 'added-91e6aa34',
  annotated: 'annotated-0d9b42fe',
  remade: 'remade-e8135c6b',
  refused: 'refused-2a6cf0d9',
};

const SECRET = `apiVersion: v1
kind: Secret
metadata: { name: login, annotations: { note: ${VALUES.annotated} } }
stringData: { password: ${VALUES.wanted}, user: robot }
`;

const TEMPLATES = { 'secret.yaml': SECRET, 'canary.yaml': CANARY };

let fleet: Fleet;
let drifting: Drifting;

beforeAll(async () => {
  // All that is ever logged.
  fleet = await startDriftFleet({ flags: ['-v=4', '--drift-retry-delays=0s,0s,0s,0s'] });
  drifting = new Drifting(fleet);
  // All at once: the index of a repository is not asked for at every look.
  for (const name of ['warned', 'corrected', 'refused', 'remade']) drifting.publish(name, '1.0.0', TEMPLATES);
});

afterAll(async () => {
  await fleet.stop();
});

function path(name: string): string {
  return `/api/v1/namespaces/${name}/secrets/login`;
}

async function passwordIs(name: string, password: string): Promise<void> {
  await drifting.until<Secret>(path(name), ({ data }) => expect(data['password']).toBe(btoa(password)));
}

async function password(name: string, value: string): Promise<void> {
  await drifting.cluster.api.patch(path(name), { stringData: { password: value } });
}

async function told(name: string, check: (object: ReportedObject) => void): Promise<void> {
  await eventually(async () => {
    const { details = [] } = await drifting.drift(name);
    const found = details.find(({ kind }) => kind === 'Secret');
    if (found === undefined) throw new Error(JSON.stringify(details));
    check(found);
  });
}

/** All that the management cluster and the manager show to anyone. */
async function allThatIsShown(): Promise<string> {
  const { management } = fleet.environment;
  const args = ['-n', fleet.namespace, '-o', 'yaml'];
  const proxies = await management.kubectl(['get', 'helmreleaseproxies,helmchartproxies', ...args]);
  const events = await management.kubectl(['get', 'events,events.events.k8s.io', ...args]);
  const metrics = JSON.stringify(await fleet.manager.metrics());
  return [proxies, events, metrics, fleet.manager.log()].join('\n');
}

/** As text, as a Secret holds it, and that once more. */
async function nothingIsShown(): Promise<void> {
  const shown = await allThatIsShown();
  // Else nothing would be shown by a search in nothing.
  expect(shown).toContain('/data/password');
  for (const [what, value] of Object.entries(VALUES)) {
    for (const form of [value, btoa(value), btoa(btoa(value))]) {
      expect(shown.includes(form), `${what} is shown as ${form}`).toBe(false);
    }
  }
}

/** From now on nobody changes a Secret of this namespace; the server quotes both values. */
async function forbidChanges(namespace: string): Promise<void> {
  const { api } = drifting.cluster;
  const group = '/apis/admissionregistration.k8s.io/v1';
  const metadata = { name: 'drift-secrecy' };
  const secrets = { apiGroups: [''], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['secrets'] };
  const messageExpression = `string(object.data.password) + ' is no better than ' + string(oldObject.data.password)`;
  await api.create(`${group}/validatingadmissionpolicies`, {
    metadata,
    spec: {
      matchConstraints: { resourceRules: [secrets] },
      validations: [{ expression: 'false', messageExpression }],
    },
  });
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
  await api.create(`${group}/validatingadmissionpolicybindings`, {
    metadata,
    spec: { policyName: metadata.name, validationActions: ['Deny'], matchResources: { namespaceSelector } },
  });
  // It takes a moment to hold.
  await eventually(async () => {
    const attempt = api.patch(`${path(namespace)}?dryRun=All`, { metadata: { labels: { a: 'b' } } });
    await expect(attempt).rejects.toThrow('is no better than');
  });
}

const FIELD = { path: '/data/password', change: 'changed', wanted: '***', live: '***' };

describe('values of a Secret', () => {
  it('are masked where drift is only told', async () => {
    const driftDetection = { mode: 'Warn', extraFields: 'Report' };
    await drifting.install('warned', TEMPLATES, { driftDetection });
    const body = { metadata: { annotations: { note: VALUES.edited } }, stringData: { password: VALUES.edited } };
    await drifting.cluster.kubectl(['patch', 'secret', 'login', '-n', 'warned', '-p', JSON.stringify(body)]);
    await told('warned', ({ fields }) => {
      const by = { manager: 'kubectl-patch', operation: 'Update' };
      const annotation = { path: '/metadata/annotations/note', change: 'changed', wanted: '***', live: '***' };
      expect(fields).toMatchObject([
        { ...FIELD, ...by },
        { ...annotation, ...by },
      ]);
    });
    // kubectl writes the whole object into an annotation once more.
    const applied = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'login' } };
    const stdin = JSON.stringify({ ...applied, stringData: { password: VALUES.applied, extra: VALUES.added } });
    await drifting.cluster.kubectl(['apply', '-n', 'warned', '-f', '-'], { stdin });
    await told('warned', ({ fields = [] }) => {
      expect(fields).toContainEqual(expect.objectContaining({ path: '/data/extra', change: 'added', live: '***' }));
      expect(fields).toContainEqual(expect.objectContaining({ ...FIELD, manager: 'kubectl-client-side-apply' }));
    });
    await drifting.outOfSync('warned');
    await nothingIsShown();
  });

  it('are masked, and right on the cluster, where it is put back', async () => {
    await drifting.install('corrected', TEMPLATES);
    await password('corrected', VALUES.edited);
    await passwordIs('corrected', VALUES.wanted);
    await drifting.corrected('corrected', 1);
    await told('corrected', ({ action, fields }) => {
      expect(action).toBe('Corrected');
      expect(fields).toMatchObject([FIELD]);
    });
    await drifting.cluster.api.delete(path('corrected'));
    await passwordIs('corrected', VALUES.wanted);
    await drifting.inSync('corrected');
    await nothingIsShown();
  });

  it('are masked where the server says why it refuses', async () => {
    const driftDetection = { mode: 'Warn' };
    await drifting.install('refused', TEMPLATES, { driftDetection });
    await password('refused', VALUES.refused);
    await told('refused', ({ fields }) => expect(fields).toMatchObject([FIELD]));
    await forbidChanges('refused');
    await fleet.patchChartProxy('refused', { spec: { driftDetection: { mode: 'Correct' } } });
    await told('refused', ({ action, message }) => {
      expect(action).toBe('Refused');
      expect(message).toContain('is no better than');
    });
    await drifting.outOfSync('refused', 'DriftCorrectionFailed');
    await nothingIsShown();
  });

  it('are masked where only another object would do', async () => {
    await drifting.install('remade', TEMPLATES);
    await fleet.patchChartProxy('remade', { spec: { driftDetection: { mode: 'Warn' } } });
    const { api } = drifting.cluster;
    await api.delete(path('remade'));
    // A Secret that cannot be changed at all, with the label, so that it is seen.
    await api.create('/api/v1/namespaces/remade/secrets', {
      metadata: { name: 'login', labels: { 'app.kubernetes.io/managed-by': 'Helm' } },
      stringData: { password: VALUES.remade },
      immutable: true,
    });
    await told('remade', ({ state }) => expect(state).toBe('Modified'));
    await fleet.patchChartProxy('remade', { spec: { driftDetection: { mode: 'Correct' } } });
    await told('remade', ({ action }) => expect(action).toBe('NeedsRecreation'));
    await drifting.outOfSync('remade', 'DriftCorrectionFailed');
    await nothingIsShown();
  });
});
