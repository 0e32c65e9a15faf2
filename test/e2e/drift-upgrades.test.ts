/** Drift and new revisions: who makes one, who does not, and what holds when both happen at once or the manager dies. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet, KubeObject } from '../support/index.ts';
import { chartFromFiles, eventually, setKubeconfig } from '../support/index.ts';
import { configMap, deployment } from './drift-manifests.ts';
import { CANARY, Drifting, startDriftFleet } from './drifting.ts';
import type { ProxiedRequest } from './recording-proxy.ts';
import { RecordingProxy } from './recording-proxy.ts';

type Settings = KubeObject & { data: Record<string, string> };
type Web = KubeObject & { spec: { replicas: number } };

const TEMPLATES = {
  'settings.yaml': configMap('settings', {
    mode: 'calm',
    tone: '{{ .Values.tone }}',
    revision: '{{ .Release.Revision }}',
  }),
  'web.yaml': deployment('web', { spec: 'replicas: 2' }),
  'canary.yaml': CANARY,
};
const FILES = { 'values.yaml': 'tone: "0"\n' };
/** More corrections of a field than there are edits of it in one revision: nothing is given up here. */
const NO_PAUSES = `--drift-retry-delays=${Array.from({ length: 12 }, () => '0s').join(',')}`;
const ROUNDS = 20;
const EDITS_PER_ROUND = 5;
const EDIT_PAUSE_MS = 70;
/** Objects of the release that a restart is to find in order. */
const QUIET = Object.fromEntries(
  Array.from({ length: 20 }, (_, index) => [
    `${String(index)}.yaml`,
    [configMap(`c${String(index)}`, { a: '1' }), deployment(`d${String(index)}`)].join('---\n'),
  ]),
);

let fleet: Fleet;
let drifting: Drifting;
/** Between the manager and cluster c1; the test itself goes straight there. */
let road: RecordingProxy;

beforeAll(async () => {
  fleet = await startDriftFleet({ clusters: 2, flags: [NO_PAUSES] });
  drifting = new Drifting(fleet);
  const { cluster } = drifting;
  road = await RecordingProxy.start(cluster);
  const kubeconfig = road.kubeconfig(cluster.kubeconfig, cluster);
  await setKubeconfig(fleet.api, { name: 'c1', namespace: fleet.namespace }, kubeconfig);
  // All at once: the index of a repository is not asked for at every look.
  const names = ['mended', 'raced', 'by-hand', 'asks-nobody', 'killed', 'everywhere'];
  for (const name of names) drifting.publish(name, '1.0.0', TEMPLATES, FILES);
  drifting.publish('quiet', '1.0.0', { ...QUIET, 'canary.yaml': CANARY });
});

afterAll(async () => {
  await road.stop();
  await fleet.stop();
});

function settingsPath(namespace: string): string {
  return `/api/v1/namespaces/${namespace}/configmaps/settings`;
}

function webPath(namespace: string): string {
  return `/apis/apps/v1/namespaces/${namespace}/deployments/web`;
}

function isWrite({ method, path }: ProxiedRequest): boolean {
  return method !== 'GET' && !path.includes('dryRun=');
}

async function dataIs(name: string, data: Record<string, string>): Promise<void> {
  await drifting.until<Settings>(settingsPath(name), (object) => expect(object.data).toMatchObject(data));
}

async function metric(name: string, labels: Record<string, string> = {}): Promise<number> {
  return fleet.manager.metric(name, labels);
}

/** The chart as a file for the helm CLI. */
async function chartFile(name: string): Promise<string> {
  const named = Object.entries(TEMPLATES).map(([file, text]): [string, string] => [`templates/${file}`, text]);
  const chart = chartFromFiles({ name, version: '1.0.0' }, { ...Object.fromEntries(named), ...FILES });
  const path = join(drifting.cluster.directory, `${name}.tgz`);
  await writeFile(path, chart.archive);
  return path;
}

async function reasonsOf(name: string): Promise<string[]> {
  const { metadata } = await drifting.proxy(name);
  type CoreEvent = KubeObject & { reason: string; involvedObject: { name: string } };
  const all = await fleet.api.list<CoreEvent>(`/api/v1/namespaces/${fleet.namespace}/events`);
  return all.filter(({ involvedObject }) => involvedObject.name === metadata.name).map(({ reason }) => reason);
}

describe('correction: Upgrade', () => {
  it('makes one revision for all that differs, and none when nothing does', async () => {
    const { api } = drifting.cluster;
    await drifting.install('mended', TEMPLATES, { driftDetection: { mode: 'Correct', correction: 'Upgrade' } }, FILES);
    await Promise.all([api.patch(settingsPath('mended'), { data: { mode: 'wild' } }), api.delete(webPath('mended'))]);
    await drifting.until(webPath('mended'), () => undefined);
    await drifting.corrected('mended', 2);
    await dataIs('mended', { mode: 'calm' });
    await fleet.deployed('mended', 1, { revision: 2 });
    await drifting.inSyncWith('mended', 2);
    // One more, so that what would have been made meanwhile is counted too.
    await api.patch(settingsPath('mended'), { data: { mode: 'wild' } });
    await fleet.deployed('mended', 1, { revision: 3 });
    await dataIs('mended', { mode: 'calm' });
    await drifting.inSync('mended');
    const records = await api.list('/api/v1/namespaces/mended/secrets?labelSelector=owner%3Dhelm');
    expect(records.map(({ metadata }) => metadata.labels?.['version']).sort()).toEqual(['1', '2', '3']);
  });
});

describe('an upgrade by the user while there is drift', () => {
  /** What the revisions in the object were, one after the other. */
  async function follow(path: string, signal: AbortSignal, revisions: string[]): Promise<void> {
    const { metadata } = await drifting.cluster.api.get(path);
    const [collection, name] = [path.slice(0, path.lastIndexOf('/')), metadata.name];
    try {
      const options = { resourceVersion: metadata.resourceVersion ?? '', signal };
      for await (const { object } of drifting.cluster.api.watch<Settings>(collection, options))
        if (object.metadata.name === name) revisions.push(object.data['revision'] ?? '');
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Spread over the time that Helm takes, so that some of it falls between any two of its steps. */
  async function editAgainAndAgain(name: string, round: number): Promise<void> {
    for (let edit = 0; edit < EDITS_PER_ROUND; edit++) {
      await drifting.cluster.api.patch(settingsPath(name), { data: { mode: `wild-${String(round)}-${String(edit)}` } });
      await sleep(EDIT_PAUSE_MS);
    }
  }

  /** Upgrades and drift at the same time. No correction may write what an older revision had: there is no way back. */
  async function race(name: string, rounds: number, upgrade: (round: number) => Promise<unknown>): Promise<void> {
    const { api } = drifting.cluster;
    const revisions: string[] = [];
    const ending = new AbortController();
    const following = follow(settingsPath(name), ending.signal, revisions);
    try {
      for (let round = 1; round <= rounds; round++) {
        const steps = [
          async () => upgrade(round),
          async () => editAgainAndAgain(name, round),
          async () => api.patch(webPath(name), { spec: { replicas: 3 + round } }),
        ];
        // Each of them is the first one at times.
        const order = [...steps.slice(round % 3), ...steps.slice(0, round % 3)];
        await Promise.all(order.map(async (step) => step()));
        await fleet.deployed(name, 1, { revision: round + 1 });
        await dataIs(name, { mode: 'calm', revision: String(round + 1) });
        await drifting.until<Web>(webPath(name), ({ spec }) => expect(spec.replicas).toBe(2));
      }
    } finally {
      ending.abort();
      await following;
    }
    expect(revisions.length).toBeGreaterThanOrEqual(rounds);
    expect(revisions).toEqual([...revisions].sort((a, b) => Number(a) - Number(b)));
    await drifting.inSyncWith(name, rounds + 1);
    expect(await drifting.revision(name)).toBe(rounds + 1);
  }

  it('is never undone, whichever comes first', async () => {
    await drifting.install('raced', TEMPLATES, {}, FILES);
    const starts = await metric('capstan_watch_starts_total');
    const stops = await metric('capstan_watch_stops_total');
    await race('raced', ROUNDS, async (round) =>
      fleet.patchChartProxy('raced', { spec: { valuesTemplate: `tone: "${String(round)}"` } }),
    );
    await dataIs('raced', { tone: String(ROUNDS) });
    // The same kinds: the watches went on.
    expect(await metric('capstan_watch_starts_total')).toBe(starts);
    expect(await metric('capstan_watch_stops_total')).toBe(stops);
  });

  it('with the helm CLI is not undone by a correction; its manifest is what holds then', async () => {
    await drifting.install('by-hand', TEMPLATES, { valuesTemplate: 'tone: "5"' }, FILES);
    const { cluster } = drifting;
    const corrections = await metric('capstan_drift_corrected_total');
    const file = await chartFile('by-hand');
    const upgrade = async (): Promise<string> =>
      cluster.helm(['upgrade', 'by-hand', file, '-n', 'by-hand', '--set-string=tone=5']);
    await upgrade();
    await eventually(async () => expect((await drifting.drift('by-hand')).revision).toBe(2), {
      what: 'revision 2 is compared with',
    });
    await drifting.inSync('by-hand');
    expect(await metric('capstan_drift_corrected_total')).toBe(corrections);
    await cluster.api.patch(settingsPath('by-hand'), { data: { mode: 'wild', tone: 'wild' } });
    await dataIs('by-hand', { mode: 'calm', tone: '5' });
    await drifting.nothingElseCorrected('by-hand');
    expect(await drifting.revision('by-hand')).toBe(2);
  });

  it('with the helm CLI, which asks nobody, is not undone by a correction that is on its way', async () => {
    const { cluster } = drifting;
    await drifting.install('asks-nobody', TEMPLATES, { valuesTemplate: 'tone: "5"' }, FILES);
    const file = await chartFile('asks-nobody');
    await race('asks-nobody', ROUNDS / 2, async () =>
      cluster.helm(['upgrade', 'asks-nobody', file, '-n', 'asks-nobody', '--set-string=tone=5', '--force-conflicts']),
    );
  });
});

describe('a HelmChartProxy', () => {
  it('tells how many of its clusters drift, and which', async () => {
    await fleet.createChartProxy('everywhere', {
      chartName: 'everywhere',
      version: '1.0.0',
      releaseName: 'everywhere',
      namespace: 'everywhere',
      driftDetection: { mode: 'Warn' },
    });
    const subject = { chartProxy: 'everywhere' };
    const type = 'ReleaseInSync';
    await fleet.conditionOf(subject, { type, status: 'True', message: '2 of 2 clusters are in sync' });
    const path = settingsPath('everywhere');
    await fleet.cluster(2).api.patch(path, { data: { mode: 'wild' } });
    const drifts = { type, status: 'False', reason: 'DriftDetected' };
    await fleet.conditionOf(subject, { ...drifts, message: '1 of 2 clusters drift: c2' });
    await fleet.cluster(1).api.patch(path, { data: { mode: 'wild' } });
    await fleet.conditionOf(subject, { ...drifts, message: '2 of 2 clusters drift: c1, c2' });
    await fleet.conditionOf(subject, { type: 'Ready', status: 'True' });
    const [one, two] = [{ cluster: 'fleet/c1' }, { cluster: 'fleet/c2' }];
    expect(await metric('capstan_drift_detected_total', two)).toBe(1);
    expect(await metric('capstan_drift_corrected_total', two)).toBe(0);
    const before = await metric('capstan_drift_corrected_total', one);
    const observed = await metric('capstan_drift_detect_to_correct_seconds_count');
    await fleet.patchChartProxy('everywhere', { spec: { driftDetection: { mode: 'Correct' } } });
    await fleet.conditionOf(subject, { type, status: 'True', message: '2 of 2 clusters are in sync' });
    expect(await metric('capstan_drift_corrected_total', one)).toBe(before + 1);
    expect(await metric('capstan_drift_corrected_total', two)).toBe(1);
    expect(await metric('capstan_drift_detect_to_correct_seconds_count')).toBe(observed + 2);
    expect(await metric('capstan_drift_dry_runs_total', two)).toBeGreaterThan(0);
    // Settings, Deployment and canary.
    expect(await metric('capstan_drift_tracked_objects', two)).toBe(3);
    expect(await reasonsOf('everywhere')).toEqual(expect.arrayContaining(['DriftDetected', 'DriftCorrected']));
  });
});

describe('a manager that dies', () => {
  it('between detection and correction leaves the correction to the next one', async () => {
    const { api } = drifting.cluster;
    await drifting.install('killed', TEMPLATES, {}, FILES);
    const path = settingsPath('killed');
    const isCorrection = (request: ProxiedRequest): boolean => isWrite(request) && request.path.startsWith(path);
    const from = road.requests.length;
    // Never answered, and never sent on.
    road.delay(isCorrection, 3_600_000);
    await api.patch(path, { data: { mode: 'wild' } });
    await eventually(
      async () => {
        expect(road.requests.slice(from).some(isCorrection)).toBe(true);
        return Promise.resolve();
      },
      { what: 'the correction is on its way' },
    );
    await fleet.manager.kill();
    expect((await api.get<Settings>(path)).data['mode']).toBe('wild');
    await fleet.startManager({ flags: ['--drift-detection=Correct', NO_PAUSES] });
    await dataIs('killed', { mode: 'calm' });
    expect(await drifting.corrected('killed')).toMatchObject({ corrections: 1, drifted: 0, revision: 1 });
    await drifting.nothingElseCorrected('killed');
    expect(await drifting.revision('killed')).toBe(1);
  });
});

describe('a manager that is started again', () => {
  it('finds no drift, writes nothing, and asks for each kind but once or twice', async () => {
    await drifting.install('quiet', { ...QUIET, 'canary.yaml': CANARY });
    await fleet.manager.stop();
    const { resourceVersion } = (await drifting.proxy('quiet')).metadata;
    const from = road.requests.length;
    await fleet.startManager({ flags: ['--drift-detection=Correct', NO_PAUSES] });
    const objects = await eventually(async () => {
      const tracked = await metric('capstan_drift_tracked_objects', { cluster: 'fleet/c1' });
      expect(tracked).toBeGreaterThanOrEqual(41);
      return tracked;
    });
    // What is told of a correction tells that all else was looked at as well.
    expect((await drifting.proxy('quiet')).metadata.resourceVersion).toBe(resourceVersion);
    await drifting.nothingElseCorrected('quiet');
    const since = road.requests.slice(from).filter(({ path }) => !path.includes('/quiet-canary'));
    expect(since.filter(({ method }) => method !== 'GET').map(({ method, path }) => `${method} ${path}`)).toEqual([]);
    expect(await metric('capstan_drift_detected_total')).toBe(1);
    expect(await metric('capstan_drift_corrected_total')).toBe(1);
    expect(since.filter(({ path }) => path.includes('/namespaces/quiet/')).length).toBeLessThanOrEqual(10);
    expect(since.length).toBeLessThan(objects);
    expect(await drifting.revision('quiet')).toBe(1);
  });
});
