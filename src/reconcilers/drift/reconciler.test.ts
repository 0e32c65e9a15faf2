import { afterEach, describe, expect, it, vi } from 'vitest';
import { DRIFT_RETRY_ANNOTATION, INSTALLED_ANNOTATION, PAUSED_ANNOTATION } from '../../api/index.ts';
import { ForbiddenError, NetworkError, ServerError, TimedOutError } from '../../kube/index.ts';
import type { Verdict } from '../../drift/index.ts';
import { ClusterNotConnectedError } from '../../runtime/index.ts';
import { C1, DriftWorld, KEY, configMap, deployment, field, live, modified } from './world.test-support.ts';

const IN_SYNC = 'True InSync: 2 objects are as in revision 1';

async function swept(...options: ConstructorParameters<typeof DriftWorld>): Promise<DriftWorld> {
  const w = new DriftWorld(...options);
  await w.pass();
  w.verified.length = 0;
  return w;
}

describe('the first look at a release', () => {
  it('verifies everything once and says that it is in sync; the next pass costs nothing', async () => {
    const w = new DriftWorld();
    await w.pass();
    expect(w.verified).toEqual(['settings', 'web']);
    expect(w.inSync()).toBe(IN_SYNC);
    expect(w.proxy().status?.drift).toEqual({ revision: 1, objects: 2, drifted: 0, corrections: 0 });
    const [writes, { fetches }] = [w.writes(), w.base.storage(C1)];
    await w.pass();
    expect(w.verified).toHaveLength(2);
    expect(w.writes()).toBe(writes);
    expect(w.base.storage(C1).fetches).toBe(fetches);
    expect(w.later).toEqual([]);
  });

  it('claims nothing about the generation', async () => {
    const w = await swept();
    expect(w.proxy().status?.observedGeneration).toBeUndefined();
  });

  it('reads many of one kind by one list, and by themselves those that it does not tell', async () => {
    const documents = ['a', 'b', 'c', 'd'].map(configMap);
    const w = new DriftWorld({ documents: [...documents, deployment('web')] });
    w.listed = ['a', 'b', 'd'].map((name) => live(name));
    await w.pass();
    expect(w.lists).toEqual([{ namespace: 'apps', labelSelector: 'app.kubernetes.io/managed-by=Helm' }]);
    expect(w.verified).toEqual(['a (given)', 'b (given)', 'c', 'd (given)', 'web']);
  });

  it('gives way after a while and goes on afterwards', async () => {
    const w = new DriftWorld();
    w.duringVerify = () => {
      w.base.nowMs += 3_000;
    };
    await w.pass();
    expect(w.verified).toEqual(['settings']);
    expect(w.inSync()).toContain('Unknown Verifying');
    expect(w.later).toEqual([{ name: 'p', afterMs: 1 }]);
    await w.pass();
    expect(w.verified).toEqual(['settings', 'web']);
    await w.pass();
    expect(w.inSync()).toBe(IN_SYNC);
  });

  it('is made anew for a new revision, with the same watches', async () => {
    const w = await swept();
    w.deploy(2, [configMap('settings')]);
    await w.pass();
    expect(w.verified).toEqual(['settings']);
    expect(w.trackers).toHaveLength(1);
    expect(w.tracker.tracked.map(({ keep }) => keep)).toEqual([false, false]);
    expect(w.inSync()).toBe('True InSync: 1 object is as in revision 2');
  });

  it('of kinds that are served now keeps what is verified of the others', async () => {
    const w = await swept();
    w.tracker.outdated = true;
    await w.pass();
    expect(w.tracker.tracked).toEqual([
      { wide: false, keep: false },
      { wide: false, keep: true },
    ]);
    expect(w.verified).toEqual([]);
  });

  it('of a kind that is served now forgets what was told under the name that it had before', async () => {
    const widget = { apiVersion: 'example.com/v1', kind: 'Unserved', metadata: { name: 'w' } };
    const w = new DriftWorld({ documents: [widget, deployment('web')] });
    w.verdicts.set('w', { state: 'NotServed' });
    await w.pass();
    expect(w.inSync()).toBe('False DriftDetected: Unserved w (its kind is not served)');
    w.served.add('Unserved');
    w.verdicts.delete('w');
    w.tracker.outdated = true;
    await w.pass();
    expect(w.inSync()).toBe(IN_SYNC);
  });

  it('waits for no list that hangs', async () => {
    const w = new DriftWorld();
    const pass = w.pass();
    await pass;
    w.tracker.syncFailure = new TimedOutError('hangs');
    w.deploy(2);
    await w.pass();
    expect(w.inSync()).toBe('True InSync: 2 objects are as in revision 2');
  });
});

describe('a release that is not looked at', () => {
  it.each([
    ['is paused', (w: DriftWorld) => w.annotate({ [PAUSED_ANNOTATION]: '' })],
    ['is being deleted', (w: DriftWorld) => w.base.delete('p')],
    [
      'is of a paused Cluster',
      (w: DriftWorld) => w.base.clusters.put({ metadata: { namespace: 'fleet', name: 'c1' }, spec: { paused: true } }),
    ],
  ])('%s: its watches end and its status stays', async (_what, happens) => {
    const w = await swept();
    happens(w);
    const writes = w.writes();
    await w.pass();
    expect(w.tracker.closed).toBe(true);
    expect(w.writes()).toBe(writes);
    expect(w.inSync()).toBe(IN_SYNC);
  });

  it.each([
    ['mode Disabled', (w: DriftWorld) => w.ask({ mode: 'Disabled' })],
    [
      'a strategy that does not ask for it',
      (w: DriftWorld) => w.edit((proxy) => ({ ...proxy, spec: { ...proxy.spec, reconcileStrategy: 'InstallOnce' } })),
    ],
    ['no release any more', (w: DriftWorld) => w.base.storage(C1).clear(KEY)],
  ])('%s: what was said is taken back', async (_what, happens) => {
    const w = await swept();
    happens(w);
    await w.pass();
    expect(w.tracker.closed).toBe(true);
    expect(w.inSync()).toBeUndefined();
    expect(w.proxy().status?.drift).toBeUndefined();
    const writes = w.writes();
    await w.pass();
    expect(w.writes()).toBe(writes);
  });

  it('InstallOnce is never looked at, handed off or not', async () => {
    const w = new DriftWorld();
    w.edit((proxy) => ({ ...proxy, spec: { ...proxy.spec, reconcileStrategy: 'InstallOnce' } }));
    await w.pass();
    w.annotate({ [INSTALLED_ANNOTATION]: 'true' });
    await w.pass();
    expect(w.trackers).toEqual([]);
    expect(w.base.storage(C1).readers).toBe(0);
  });

  it('belongs to another object that names it, too', async () => {
    const w = new DriftWorld();
    w.base.addProxy('older', {}, { metadata: { creationTimestamp: '2025-01-01T00:00:00Z' } });
    await w.pass();
    expect(w.verified).toEqual([]);
  });

  it('waits for its cluster', async () => {
    const w = new DriftWorld();
    w.base.fleet.waiting.set(C1, { code: 'Unreachable', message: 'no answer' });
    await expect(w.pass()).rejects.toBeInstanceOf(ClusterNotConnectedError);
  });

  it('is looked at anew on the next engagement, by another tracker', async () => {
    const w = await swept();
    w.addCluster();
    await w.pass();
    expect(w.trackers).toHaveLength(2);
    expect(w.trackers[0]?.closed).toBe(true);
    expect(w.verified).toEqual(['settings', 'web']);
  });
});

describe('while Helm is at work', () => {
  it('nothing is looked at; watches stay', async () => {
    const w = await swept();
    const unlock = await w.parts.locks.lock(C1, KEY, new AbortController().signal);
    await w.event('settings', modified('settings'));
    expect(w.verified).toEqual([]);
    unlock();
    w.deploy(2, undefined, 'pending-upgrade');
    await w.pass();
    expect(w.verified).toEqual([]);
    expect(w.tracker.closed).toBe(false);
    expect(w.inSync()).toBe(IN_SYNC);
  });

  it('in another process, nothing is corrected, though the watch on records is behind', async () => {
    const w = await swept();
    w.base.storage(C1).freeze();
    w.deploy(2, undefined, 'pending-upgrade');
    await w.event('settings', modified('settings'));
    expect(w.verified).toEqual(['settings']);
    expect(w.corrected).toEqual([]);
  });

  it('that has failed, it is said that nothing is known', async () => {
    const w = await swept();
    w.deploy(2, undefined, 'failed');
    await w.pass();
    expect(w.inSync()).toBe('Unknown DriftUnverified: the newest revision, 2, is failed');
  });

  it('nothing is corrected that somebody has given up meanwhile', async () => {
    const w = await swept();
    w.duringVerify = () => w.annotate({ [PAUSED_ANNOTATION]: '' });
    await w.event('settings', modified('settings'));
    expect(w.corrected).toEqual([]);
  });
});

describe('drift', () => {
  it('in mode Warn is told once, and again when it changes', async () => {
    const w = await swept({ mode: 'Warn' });
    await w.event('settings', modified('settings'));
    expect(w.inSync()).toBe('False DriftDetected: ConfigMap apps/settings (/data/mode changed by kubectl-edit)');
    const { lastDetectedTime, ...drift } = w.proxy().status?.drift ?? {};
    expect(lastDetectedTime).toBe('2026-12-01T00:00:00Z');
    expect(drift).toEqual({
      revision: 1,
      objects: 2,
      drifted: 1,
      corrections: 0,
      details: [
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          namespace: 'apps',
          name: 'settings',
          state: 'Modified',
          action: 'Reported',
          fields: [
            {
              path: '/data/mode',
              change: 'changed',
              wanted: '"calm"',
              live: '"wild"',
              manager: 'kubectl-edit',
              operation: 'Update',
            },
          ],
        },
      ],
    });
    const told = ['DriftDetected ConfigMap apps/settings (/data/mode changed by kubectl-edit): differs from the chart'];
    expect(w.events()).toEqual(told);
    // Whoever puts a removed field back leaves no trace in Helm's entries.
    expect(w.tracker.settled.at(-1)).toMatchObject({ name: 'settings', wide: true });
    const writes = w.writes();
    await w.event('settings', modified('settings'));
    expect(w.events()).toEqual(told);
    expect(w.writes()).toBe(writes);
    await w.event('settings', modified('settings', [field(['data', 'mode'], 'somebody-else')]));
    expect(w.events()).toHaveLength(2);
    await w.event('settings', undefined);
    expect(w.inSync()).toBe(IN_SYNC);
    expect(w.corrected).toEqual([]);
    expect(await w.counted('capstan_drift_detected_total')).toBe(2);
  });

  it('in mode Warn that no watch sees is looked at again, less and less often', async () => {
    const w = await swept({ mode: 'Warn' });
    await w.event('settings', { state: 'Missing' }, 'gone');
    for (const pauseMs of [2_000, 4_000, 8_000]) {
      expect(w.later.at(-1)).toEqual({ name: 'p', afterMs: pauseMs });
      w.base.nowMs += pauseMs;
      await w.pass();
    }
    expect(w.verified).toEqual(['settings', 'settings', 'settings', 'settings']);
    expect(w.events()).toHaveLength(1);
    // Somebody has made it again, without Helm's label.
    const unseen = live('settings');
    delete unseen.metadata.labels;
    w.verdicts.set('settings', { ...modified('settings'), live: unseen } as Verdict);
    w.base.nowMs += 16_000;
    await w.pass();
    expect(w.inSync()).toContain('/data/mode changed by kubectl-edit');
    expect(w.later.at(-1)).toEqual({ name: 'p', afterMs: 2_000 });
    // And has given it the label: the watch sees it again.
    const count = w.later.length;
    await w.event('settings', modified('settings'));
    expect(w.later).toHaveLength(count);
  });

  it('in a field that is nobody’s is noticed by everybody’s edits', async () => {
    const w = await swept();
    await w.event('settings', { state: 'InSync', live: live('settings'), watch: [], unowned: true });
    await w.event('web', { state: 'InSync', live: live('web'), watch: [] });
    expect(w.tracker.settled.slice(-2)).toMatchObject([
      { name: 'settings', wide: true },
      { name: 'web', wide: false },
    ]);
  });

  it('in mode Correct is put back in install order in one pass, under the lock, and told in one write', async () => {
    const w = await swept();
    w.verdicts.set('web', { state: 'Missing' });
    w.tracker.stir('uid of p', 'web', 'gone');
    const writes = w.writes();
    await w.event('settings', modified('settings'));
    expect(w.corrected).toEqual([
      { name: 'settings', skip: [], locked: true },
      { name: 'web', skip: [], locked: true },
    ]);
    expect(w.writes()).toBe(writes + 1);
    expect(w.inSync()).toBe(IN_SYNC);
    expect(w.proxy().status?.drift).toMatchObject({
      drifted: 0,
      corrections: 2,
      lastDetectedTime: '2026-12-01T00:00:00Z',
      lastCorrectedTime: '2026-12-01T00:00:00Z',
      details: [
        { name: 'settings', action: 'Corrected' },
        { name: 'web', action: 'Corrected', state: 'Missing' },
      ],
    });
    expect(w.base.events.map(({ reason }) => reason)).toEqual([
      'DriftDetected',
      'DriftDetected',
      'DriftCorrected',
      'DriftCorrected',
    ]);
    expect(w.later).toEqual([]);
    expect(w.parts.locks.isLocked(C1, KEY)).toBe(false);
    expect(await w.counted('capstan_drift_corrected_total')).toBe(2);
  });

  it('once put back is settled with the server’s answer, so that our own event stirs nothing', async () => {
    const w = await swept();
    await w.event('settings', modified('settings'));
    expect(w.tracker.settled.at(-1)).toMatchObject({ name: 'settings', live: { metadata: { resourceVersion: '2' } } });
  });

  it('found by the first look is put back, too', async () => {
    const w = new DriftWorld();
    w.verdicts.set('web', { state: 'Missing' });
    await w.pass();
    expect(w.corrected.map(({ name }) => name)).toEqual(['web']);
  });

  it('of many objects is one Event, and ten of them stand in the status', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `c${String(index).padStart(2, '0')}`);
    const w = new DriftWorld({ mode: 'Warn', documents: names.map(configMap) });
    for (const name of names) w.verdicts.set(name, { state: 'Missing' });
    await w.pass();
    expect(w.events()).toEqual([
      'DriftDetected 12 objects: differs from the chart: ConfigMap apps/c00, ConfigMap apps/c01, ConfigMap apps/c02, ... (9 more)',
    ]);
    const drift = w.proxy().status?.drift;
    expect(drift).toMatchObject({ drifted: 12, more: 2 });
    expect(drift?.details?.map(({ name }) => name)).toEqual(names.slice(0, 10));
  });

  it.each([
    [
      { state: 'Foreign', live: live('settings'), owner: 'other/app' } as const,
      'Reported',
      'belongs to the release other/app',
    ],
    [{ state: 'NotServed' } as const, 'Waiting', undefined],
    [{ state: 'Terminating', live: live('settings') } as const, 'Waiting', undefined],
  ])('that is not ours to correct is told only: %o', async (verdict, action, message) => {
    const w = await swept();
    await w.event('settings', verdict);
    expect(w.corrected).toEqual([]);
    expect(w.proxy().status?.drift?.details).toMatchObject([
      { state: verdict.state, action, ...(message && { message }) },
    ]);
    expect(w.inSync()).toContain('False DriftDetected');
    expect(w.events()).toHaveLength(verdict.state === 'Terminating' ? 0 : 1);
    expect(w.later).toEqual([]);
  });

  it('that is taken out is none', async () => {
    const w = await swept();
    await w.event('settings', { state: 'Excluded', live: live('settings'), by: 'annotation' });
    expect(w.inSync()).toBe(IN_SYNC);
  });

  it('by added fields is only told with extraFields Report', async () => {
    const w = await swept({ spec: { extraFields: 'Report' } });
    const added = { change: 'added', path: ['data', 'extra'], wanted: undefined, live: 'x' } as const;
    await w.event('settings', modified('settings', [added]));
    expect(w.corrected).toEqual([]);
    expect(w.proxy().status?.drift?.details).toMatchObject([{ action: 'Reported' }]);
    expect(w.tracker.tracked[0]?.wide).toBe(true);
  });

  it('is not put back while an ignore rule cannot be read, and that is said', async () => {
    const w = await swept({ spec: { ignore: [{ paths: ['/data'], target: { kind: '(' } }] } });
    await w.event('settings', modified('settings'));
    expect(w.corrected).toEqual([]);
    expect(w.inSync()).toContain('nothing is put back while an ignore rule cannot be read');
    expect(w.base.condition('p', 'DriftRulesValid')).toMatchObject({ status: 'False', reason: 'IgnoreRuleInvalid' });
  });
});

describe('a pass that takes long', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('says what it has found before it ends', async () => {
    vi.useFakeTimers();
    const w = await swept();
    let meanwhile: string | undefined;
    w.during = async () => {
      await vi.advanceTimersByTimeAsync(1_000);
      meanwhile = w.inSync();
    };
    await w.event('settings', modified('settings'));
    expect(meanwhile).toContain('False DriftDetected');
    expect(w.inSync()).toBe(IN_SYNC);
  });

  it('and whose signal aborts leaves what it did not do to the next one', async () => {
    const w = await swept();
    const halt = new AbortController();
    w.during = () => halt.abort(new Error('stopping'));
    w.answers.set('settings', [new Error('aborted')]);
    w.verdicts.set('settings', modified('settings'));
    w.tracker.stir('uid of p', 'settings');
    await expect(w.pass(halt.signal)).rejects.toThrow();
    expect(w.parts.locks.isLocked(C1, KEY)).toBe(false);
    w.during = undefined;
    await w.pass();
    expect(w.inSync()).toBe(IN_SYNC);
  });
});

describe('rules', () => {
  it('that match nothing are named, good ones said to be good, and nothing is said without any', async () => {
    const w = await swept({ spec: { ignore: [{ paths: ['/data'], target: { kind: 'Secret' } }] } });
    const rules = w.base.condition('p', 'DriftRulesValid');
    expect(rules).toMatchObject({ status: 'False', reason: 'IgnoreRuleMatchesNothing' });
    expect(rules?.message).toContain('ignore[0]');
    w.ask({ ignore: [{ paths: ['/data'], target: { kind: 'ConfigMap' } }] });
    await w.pass();
    expect(w.base.condition('p', 'DriftRulesValid')).toMatchObject({ status: 'True', reason: 'Valid' });
    w.ask({});
    await w.pass();
    expect(w.base.condition('p', 'DriftRulesValid')).toBeUndefined();
    // Each change of the rules has everything looked at anew.
    expect(w.verified).toHaveLength(4);
  });
});

describe('a correction that does not hold', () => {
  async function fighting(): Promise<DriftWorld> {
    const w = await swept();
    w.verdicts.set('settings', () => modified('settings', [field(['data', 'mode'], 'stubborn')]));
    return w;
  }

  /** The other one writes at once; the pass upon that, and the one when the correction is due. */
  async function round(w: DriftWorld): Promise<number | undefined> {
    w.later.length = 0;
    w.tracker.stir('uid of p', 'settings');
    await w.pass();
    const due = w.later[0]?.afterMs;
    w.base.nowMs += due ?? 0;
    await w.pass();
    return due;
  }

  it('is made again after longer and longer pauses, then no more', async () => {
    const w = await fighting();
    const waits = [await round(w), await round(w), await round(w)];
    expect(waits).toEqual([2_000, 6_000, undefined]);
    expect(w.corrected).toHaveLength(3);
    expect(w.inSync()).toBe(
      'False DriftNotConverging: ConfigMap apps/settings (/data/mode changed by stubborn): /data/mode: corrected 3 times, and changed again by stubborn',
    );
    expect(w.events().filter((text) => text.startsWith('DriftNotConverging'))).toHaveLength(1);
    await round(w);
    expect(w.corrected).toHaveLength(3);
    expect(w.events().filter((text) => text.startsWith('DriftNotConverging'))).toHaveLength(1);
  });

  it.each([
    ['the annotation', (w: DriftWorld) => w.annotate({ [DRIFT_RETRY_ANNOTATION]: 'now' })],
    ['the spec', (w: DriftWorld) => w.edit((proxy) => ({ ...proxy, spec: { ...proxy.spec, values: 'a: 1' } }))],
    ['a new revision', (w: DriftWorld) => w.deploy(2)],
  ])('is made again when %s changes', async (_what, happens) => {
    const w = await fighting();
    for (let index = 0; index < 4; index++) await round(w);
    w.verdicts.set('settings', modified('settings', [field(['data', 'mode'], 'stubborn')]));
    happens(w);
    await w.pass();
    expect(w.corrected).toHaveLength(4);
    expect(w.inSync()).toContain('True InSync');
  });

  it('keeps neither another field nor another object from being put back', async () => {
    const w = await fighting();
    for (let index = 0; index < 4; index++) await round(w);
    const fields = [field(['data', 'mode'], 'stubborn'), field(['data', 'level'], 'kubectl-edit')];
    w.verdicts.set('web', { state: 'Missing' });
    w.tracker.stir('uid of p', 'web', 'gone');
    await w.event('settings', modified('settings', fields));
    expect(w.corrected.slice(3)).toEqual([
      { name: 'settings', skip: ['/data/mode'], locked: true },
      { name: 'web', skip: [], locked: true },
    ]);
  });
});

describe('a correction that the server does not take', () => {
  it('is tried again later and later, and told once', async () => {
    const w = await swept();
    w.answers.set('settings', [
      { outcome: 'refused', message: 'exceeded quota' },
      { outcome: 'refused', message: 'exceeded quota' },
    ]);
    await w.event('settings', modified('settings'));
    expect(w.inSync()).toBe(
      'False DriftCorrectionFailed: ConfigMap apps/settings (/data/mode changed by kubectl-edit): exceeded quota',
    );
    expect(w.later).toEqual([{ name: 'p', afterMs: 2_000 }]);
    // An event meanwhile does not hurry it.
    await w.event('settings', modified('settings'));
    expect(w.corrected).toHaveLength(1);
    expect(w.inSync()).toContain('exceeded quota');
    w.base.nowMs += 2_000;
    await w.pass();
    expect(w.corrected).toHaveLength(2);
    expect(w.later.at(-1)).toEqual({ name: 'p', afterMs: 6_000 });
    w.base.nowMs += 6_000;
    await w.pass();
    expect(w.inSync()).toBe(IN_SYNC);
    expect(w.base.events.map(({ reason }) => reason)).toEqual([
      'DriftDetected',
      'DriftCorrectionFailed',
      'DriftCorrected',
    ]);
  });

  it('since an immutable field is in the way is not tried again before the object changes', async () => {
    const w = await swept();
    w.answers.set('web', [{ outcome: 'needs-recreation', message: 'field is immutable' }]);
    await w.event('web', modified('web'));
    expect(w.inSync()).toContain('DriftCorrectionFailed');
    expect(w.proxy().status?.drift?.details).toMatchObject([
      { action: 'NeedsRecreation', message: 'field is immutable' },
    ]);
    expect(w.later).toEqual([]);
    await w.pass();
    expect(w.corrected).toHaveLength(1);
    await w.event('web', modified('web'));
    expect(w.corrected).toHaveLength(2);
  });

  it('yet, since its namespace is going, is no failure', async () => {
    const w = await swept();
    w.answers.set('web', [{ outcome: 'waiting', message: 'namespace is going' }]);
    await w.event('web', { state: 'Missing' });
    expect(w.inSync()).toBe('False DriftDetected: Deployment apps/web (missing): namespace is going');
    expect(w.later).toEqual([{ name: 'p', afterMs: 2_000 }]);
    expect(w.base.events.map(({ reason }) => reason)).toEqual(['DriftDetected']);
  });

  it('as somebody wrote meanwhile is made after another look, three times at most', async () => {
    const w = await swept();
    const conflict = { outcome: 'conflict' } as const;
    w.answers.set('settings', [conflict, conflict]);
    await w.event('settings', modified('settings'));
    expect(w.corrected).toHaveLength(3);
    expect(w.inSync()).toBe(IN_SYNC);
    w.answers.set('settings', [conflict, conflict, conflict]);
    w.base.nowMs += 400_000;
    await w.event('settings', modified('settings'));
    expect(w.corrected).toHaveLength(6);
    expect(w.later).toEqual([{ name: 'p', afterMs: 1_000 }]);
  });

  it('as somebody wrote meanwhile is not made when that was an upgrade in another process', async () => {
    const w = await swept();
    w.base.storage(C1).freeze();
    w.answers.set('settings', [{ outcome: 'conflict' }]);
    w.during = () => w.deploy(2, undefined, 'pending-upgrade');
    await w.event('settings', modified('settings'));
    expect(w.corrected).toHaveLength(1);
  });

  it('for a reason of its own keeps no other object from being put back', async () => {
    const w = await swept();
    w.answers.set('settings', [new ServerError('the webhook is down', { status: 500 })]);
    w.verdicts.set('web', { state: 'Missing' });
    w.tracker.stir('uid of p', 'web', 'gone');
    await w.event('settings', modified('settings'));
    expect(w.corrected.map(({ name }) => name)).toEqual(['settings', 'web']);
    expect(w.proxy().status?.drift?.details).toMatchObject([
      { name: 'settings', action: 'Refused', message: 'the webhook is down' },
      { name: 'web', action: 'Corrected' },
    ]);
  });

  it('as the cluster is away is made by the next pass', async () => {
    const w = await swept();
    w.answers.set('settings', [new NetworkError('connection refused')]);
    await expect(w.event('settings', modified('settings'))).rejects.toThrow('connection refused');
    expect(w.parts.locks.isLocked(C1, KEY)).toBe(false);
    await w.pass();
    expect(w.corrected).toHaveLength(2);
    expect(w.inSync()).toBe(IN_SYNC);
  });

  it('as Helm has the release is made when it has let go', async () => {
    const w = await swept();
    let unlock: (() => void) | undefined;
    w.duringVerify = () => {
      unlock ??= w.parts.locks.tryLock(C1, KEY);
    };
    await w.event('settings', modified('settings'));
    expect(w.corrected).toEqual([]);
    expect(w.inSync()).toContain('False DriftDetected');
    w.duringVerify = undefined;
    unlock?.();
    await Promise.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    await w.pass();
    expect(w.corrected).toHaveLength(1);
  });
});

describe('correction Upgrade', () => {
  const spec = { correction: 'Upgrade' } as const;

  it('asks for one upgrade, and tells what the new revision’s first look finds in order', async () => {
    const w = await swept({ spec });
    w.verdicts.set('web', { state: 'Missing' });
    w.tracker.stir('uid of p', 'web', 'gone');
    await w.event('settings', modified('settings'));
    const memory = w.parts.memories.of('uid of p');
    expect(memory.wantedUpgrade).toBe('objects differ from the release: ConfigMap settings and 1 more');
    expect(w.corrected).toEqual([]);
    expect(w.inSync()).toContain('False DriftDetected');
    memory.wantUpgrade(undefined);
    w.verdicts.clear();
    w.deploy(2);
    await w.pass();
    expect(w.inSync()).toBe('True InSync: 2 objects are as in revision 2');
    expect(w.proxy().status?.drift).toMatchObject({ corrections: 2 });
    expect(await w.counted('capstan_drift_corrected_total')).toBe(2);
  });

  it('that mends nothing stops by the same schedule', async () => {
    const w = await swept({ spec });
    const memory = w.parts.memories.of('uid of p');
    let upgrades = 0;
    await w.event('settings', modified('settings'));
    for (let revision = 2; revision < 8; revision++) {
      if (memory.wantedUpgrade !== undefined) {
        upgrades += 1;
        memory.wantUpgrade(undefined);
        w.deploy(revision);
      }
      await w.pass();
      w.base.nowMs += 10_000;
      await w.pass();
    }
    expect(upgrades).toBe(3);
    expect(w.inSync()).toContain('DriftNotConverging');
  });

  it('is asked for once, however long it takes to begin', async () => {
    const w = await swept({ spec });
    await w.event('settings', modified('settings'));
    for (let index = 0; index < 9; index++) {
      w.base.nowMs += 10_000;
      await w.pass();
    }
    expect(w.inSync()).toContain('False DriftDetected');
    expect(w.later.every(({ afterMs }) => afterMs === 10_000)).toBe(true);
  });
});

describe('an object that cannot be looked at', () => {
  it('is unverified, and asked for again later; others are looked at', async () => {
    const w = new DriftWorld();
    w.verdicts.set('settings', new ForbiddenError('you may not'));
    await w.pass();
    expect(w.verified).toEqual(['settings', 'web']);
    expect(w.inSync()).toBe('Unknown DriftUnverified: ConfigMap apps/settings (could not be read): you may not');
    expect(w.proxy().status?.drift?.drifted).toBe(0);
    expect(w.later).toEqual([{ name: 'p', afterMs: 2_000 }]);
    await w.pass();
    expect(w.verified).toHaveLength(2);
    w.verdicts.clear();
    w.base.nowMs += 2_000;
    await w.pass();
    expect(w.inSync()).toBe(IN_SYNC);
  });

  it('as the cluster is away ends the pass; nothing is lost', async () => {
    const w = new DriftWorld();
    w.verdicts.set('settings', new NetworkError('connection refused'));
    await expect(w.pass()).rejects.toThrow('connection refused');
    w.verdicts.clear();
    await w.pass();
    expect(w.inSync()).toBe(IN_SYNC);
  });

  it('tells no words of the server about a Secret', async () => {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: {} };
    const w = new DriftWorld({ documents: [secret] });
    w.verdicts.set('s', new ForbiddenError('hunter2 is no good'));
    await w.pass();
    expect(JSON.stringify(w.proxy().status)).not.toContain('hunter2');
  });

  it('or watched makes it unknown whether all is in order', async () => {
    const w = await swept();
    w.tracker.refusals = ['Widget.x cannot be watched: forbidden'];
    await w.pass();
    expect(w.inSync()).toBe('Unknown DriftUnverified: Widget.x cannot be watched: forbidden');
  });
});

it('goes on after a restart where the status says it was: known drift is not told anew', async () => {
  const w = await swept({ mode: 'Warn' });
  await w.event('settings', modified('settings'));
  const after = new DriftWorld({ mode: 'Warn' });
  after.base.proxies.put(
    after.base.api.put(
      { group: 'addons.cluster.x-k8s.io', version: 'v1alpha1', plural: 'helmreleaseproxies', namespaced: true },
      w.proxy(),
    ),
  );
  after.verdicts.set('settings', modified('settings'));
  const writes = after.writes();
  await after.pass();
  expect(after.verified).toEqual(['settings', 'web']);
  expect(after.events()).toEqual([]);
  expect(after.writes()).toBe(writes);
});

it('does not turn what it says unknown and back while the first look after a restart is under way', async () => {
  const w = await swept();
  w.parts.sessions.closeAll();
  w.duringVerify = () => {
    w.base.nowMs += 3_000;
  };
  const writes = w.writes();
  await w.pass();
  await w.pass();
  await w.pass();
  expect(w.verified).toEqual(['settings', 'web']);
  expect(w.writes()).toBe(writes);
  expect(w.inSync()).toBe(IN_SYNC);
});

it('logs a note on an object once', async () => {
  const w = new DriftWorld({ documents: [configMap('settings')] });
  w.notes = ['the server knows no field /spec/x of the manifest'];
  await w.pass();
  await w.event('settings', undefined);
  expect(w.base.logged).toEqual(['a note on an object of the release']);
});
