/**
 * Whatever somebody does to an object with kubectl is put back, said with who did it where managedFields prove that, and
 * leaves the release's revision as it was: on objects that Capstan's Helm made, and on those that CAAPH left.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet, KubeObject } from '../support/index.ts';
import { chartFromFiles, eventually } from '../support/index.ts';
import { CaaphState } from './caaph-state.ts';
import type { ReportedObject } from './drifting.ts';
import { CANARY, Drifting, startDriftFleet } from './drifting.ts';
import type { Edit, ExpectedField } from './edits.ts';
import { EDITS, REMADE, Target, templateOf } from './edits.ts';
import { HELM_VERSIONS } from './helm-versions.ts';

/** By release, which is namespace and HelmChartProxy as well. */
const RELEASES = [
  { release: 'native', made: 'that Capstan installed' },
  { release: 'legacy', made: 'that CAAPH installed, as field manager "manager"' },
];

type Settings = KubeObject & { data: Record<string, string> };

describe.each(HELM_VERSIONS)('on $name', ({ binary }) => {
  let fleet: Fleet;
  let drifting: Drifting;

  beforeAll(async () => {
    // Every edit is made twice: without a pause between corrections nobody has to wait.
    fleet = await startDriftFleet({ helm: binary, flags: ['--drift-retry-delays=0s,0s,0s,0s'] });
    drifting = new Drifting(fleet);
    const templates = templatesOf(EDITS);
    for (const name of ['native', 'legacy']) drifting.publish(name, '1.0.0', templates);
    drifting.publish('warned', '1.0.0', templatesOf(REMADE));
    await leaveBehind(fleet, 'legacy', templates);
    await drifting.install('native', templates);
    await drifting.install('warned', templatesOf(REMADE), { driftDetection: { mode: 'Warn' } });
    await drifting.inSync('legacy');
  });

  afterAll(async () => {
    await fleet.stop();
  });

  describe.each(RELEASES)('an object $made', ({ release }) => {
    it.each(EDITS)('is put back after $title, as often as that is done', async (edit) => {
      const target = targetOf(drifting, release, edit);
      const before = await target.live();
      await editedAndPutBack(drifting, target, { edit, before });
      await editedAndPutBack(drifting, target, { edit, before });
    });

    it('is not touched for what is no drift', async () => {
      const target = targetOf(drifting, release, { kind: 'Deployment', slug: 'set-image' });
      await target.kubectl(['rollout', 'restart', target.ref]);
      await target.kubectl(['annotate', target.ref, 'who=me']);
      await target.kubectl(['label', target.ref, 'seen=yes']);
      await target.patch('merge', { status: { observedGeneration: 1 } }, '--subresource=status');
      // Somebody owns the same value as well.
      const same = templateOf('ConfigMap', 'edit');
      await target.kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], { stdin: same });
      await drifting.nothingElseCorrected(release);
      const after = await target.live<KubeObject & { spec: { template: KubeObject } }>();
      expect(after.metadata).toMatchObject({ annotations: { who: 'me' }, labels: { seen: 'yes' } });
      const { annotations = {} } = after.spec.template.metadata;
      expect(annotations['kubectl.kubernetes.io/restartedAt']).toBeDefined();
    });

    it('is put back without naming anybody when who did it says that it is Helm', async () => {
      const target = targetOf(drifting, release, { kind: 'ConfigMap', slug: 'edit' });
      for (const manager of ['helm', 'manager']) {
        const count = await drifting.corrections(release);
        await target.patch('merge', { data: { mode: manager } }, `--field-manager=${manager}`);
        await modeIs(drifting, target, 'calm');
        const [field] = fieldsOf(await reported(drifting, release, { target, count: count + 1 }));
        expect(field).toEqual({ path: '/data/mode', change: 'changed', wanted: '"calm"', live: `"${manager}"` });
      }
    });

    it('never costs a revision', async () => {
      await drifting.inSync(release);
      expect(await drifting.revision(release)).toBe(1);
      expect(await drifting.drift(release)).toMatchObject({ revision: 1, drifted: 0 });
    });
  });

  it.each(REMADE)('an object is told of, and put back when asked to, after $title', async (edit) => {
    const target = targetOf(drifting, 'warned', edit);
    const before = await target.live();
    const since = Date.now();
    await edit.run(target);
    await eventually(async () => {
      const { details = [] } = await drifting.drift('warned');
      const told = details.find(({ name, state }) => name === target.name && state === 'Modified');
      expectFields(told, edit, since);
    });
    await fleet.patchChartProxy('warned', { spec: { driftDetection: { mode: 'Correct' } } });
    const after = await drifting.until(target.path, (object) => expectAsBefore(object, before));
    expect(after.metadata.uid).not.toBe(before.metadata.uid);
    await drifting.inSync('warned');
    await fleet.patchChartProxy('warned', { spec: { driftDetection: { mode: 'Warn' } } });
    await drifting.inSync('warned');
    expect(await drifting.revision('warned')).toBe(1);
  });
});

function templatesOf(edits: readonly Edit[]): Record<string, string> {
  const named = edits.map(({ kind, slug }): [string, string] => [`${slug}.yaml`, templateOf(kind, slug)]);
  return { ...Object.fromEntries(named), 'canary.yaml': CANARY };
}

function targetOf(drifting: Drifting, namespace: string, { kind, slug }: Pick<Edit, 'kind' | 'slug'>): Target {
  return new Target(drifting.cluster, { namespace, kind, name: slug });
}

/** A release of CAAPH's, and the objects that it had for it. */
async function leaveBehind(fleet: Fleet, name: string, templates: Record<string, string>): Promise<void> {
  const files = Object.entries(templates).map(([file, text]): [string, string] => [`templates/${file}`, text]);
  const chart = chartFromFiles({ name, version: '1.0.0' }, Object.fromEntries(files));
  const placement = { cluster: 1, releaseName: name, revisions: ['{}\n'] };
  const caaph = await CaaphState.prepare(fleet);
  await caaph.release(chart, name, placement);
  const clusterSelector = { matchLabels: { idx: '1' } };
  const spec = { namespace: name, releaseName: name, version: '1.0.0', valuesTemplate: '{}\n', clusterSelector };
  await caaph.chartProxy({ name, chart: name, namespace: name, spec, placements: [placement] });
}

async function editedAndPutBack(
  drifting: Drifting,
  target: Target,
  { edit, before }: { edit: Edit; before: KubeObject },
): Promise<void> {
  const count = await drifting.corrections(target.namespace);
  const since = Date.now();
  await edit.run(target);
  const object = await reported(drifting, target.namespace, { target, count: count + 1 });
  expect(object?.action).toBe('Corrected');
  expectFields(object, edit, since);
  await drifting.until(target.path, (live) => expectAsBefore(live, before));
  expect(await drifting.corrections(target.namespace)).toBe(count + 1);
}

/** What the status tells of the object once it counts that many corrections. */
async function reported(
  drifting: Drifting,
  name: string,
  { target, count }: { target: Target; count: number },
): Promise<ReportedObject | undefined> {
  const { details = [] } = await drifting.corrected(name, count);
  return details.find((object) => object.kind === target.kind && object.name === target.name);
}

function expectFields(object: ReportedObject | undefined, edit: Edit, since: number): void {
  expect(object?.state).toBe(edit.fields.length === 0 ? 'Missing' : 'Modified');
  expect(fieldsOf(object)).toEqual(edit.fields);
  for (const { manager, time } of object?.fields ?? []) {
    if (manager === undefined || edit.timeless === true) continue;
    // Whole seconds.
    expect(Date.parse(time ?? '')).toBeGreaterThan(since - 1_000);
    expect(Date.parse(time ?? '')).toBeLessThanOrEqual(Date.now());
  }
}

function fieldsOf(object: ReportedObject | undefined): ExpectedField[] {
  return (object?.fields ?? []).map((field) => {
    const timeless = { ...field };
    delete timeless.time;
    return timeless as ExpectedField;
  });
}

/** What the chart says is there again; what others have added may be, too. */
function expectAsBefore(live: KubeObject, before: KubeObject): void {
  expect({ spec: live['spec'], data: live['data'] }).toEqual({ spec: before['spec'], data: before['data'] });
  const { labels, annotations } = before.metadata;
  expect(live.metadata).toMatchObject({ labels, annotations });
}

async function modeIs(drifting: Drifting, target: Target, mode: string): Promise<void> {
  await drifting.until<Settings>(target.path, ({ data }) => expect(data['mode']).toBe(mode));
}
