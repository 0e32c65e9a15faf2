import { describe, expect, it, vi } from 'vitest';
import {
  HRP_FINALIZER,
  INSTALLED_ANNOTATION,
  WORKLOAD_CLUSTER_UID_ANNOTATION,
  PAUSED_ANNOTATION,
  RELEASE_NAME_GENERATED_ANNOTATION,
  WATCH_FILTER_LABEL,
} from '../../api/index.ts';
import type { HelmReleaseProxy } from '../../api/index.ts';
import { HelmError } from '../../helm/index.ts';
import {
  ClusterGoneError,
  ClusterNotConnectedError,
  ClusterNotFoundError,
  TerminalError,
  clusterName,
} from '../../runtime/index.ts';
import { installOnceStrategy } from '../install-once/index.ts';
import type { Strategy } from '../types.ts';
import { World } from './world.test-support.ts';

const KEY = { namespace: 'apps', name: 'app' };
const C1 = clusterName('fleet/c1');
const READY = { status: 'True', reason: 'InfoReported', message: '' };
const RELEASE_READY = { status: 'True', reason: 'Ready', message: '' };
const AVAILABLE = { status: 'True', reason: 'Available', message: '' };

function world(...options: ConstructorParameters<typeof World>): World {
  const made = new World(...options);
  made.addCluster('c1');
  return made;
}

function annotationsOf(proxy: HelmReleaseProxy): Record<string, string> {
  return proxy.metadata.annotations ?? {};
}

function values(text: string): (proxy: HelmReleaseProxy) => HelmReleaseProxy {
  return (proxy) => ({ ...proxy, spec: { ...proxy.spec, values: text } });
}

describe('install', () => {
  it('installs, and tells revision, status, conditions, and from what it was made', async () => {
    const w = world();
    w.addProxy('p', { values: 'a: 1' });
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install']);
    expect(w.engine.calls[0]).toMatchObject({ cluster: 'fleet/c1', release: KEY, request: { values: 'a: 1' } });
    const { metadata, spec, status } = w.proxy('p');
    expect(spec.releaseName).toBe('app');
    expect(metadata.finalizers).toEqual([HRP_FINALIZER]);
    expect(annotationsOf(w.proxy('p'))).toEqual({
      [INSTALLED_ANNOTATION]: 'true',
      [WORKLOAD_CLUSTER_UID_ANNOTATION]: 'uid-c1',
    });
    expect(status).toMatchObject({
      status: 'deployed',
      revision: 1,
      observedGeneration: 1,
      chartVersion: '1.0.0',
      chartDigest: 'sha256:chart',
      valuesDigest: 'digest of a: 1',
      clusterUID: 'uid-c1',
    });
    expect(status?.operation).toBeUndefined();
    expect(w.condition('p', 'Ready')).toEqual(READY);
    expect(w.condition('p', 'HelmReleaseReady')).toEqual(RELEASE_READY);
    expect(w.condition('p', 'ClusterAvailable')).toEqual(AVAILABLE);
    expect(w.events.map((event) => event.reason)).toEqual(['HelmInstalled']);
    expect(w.charts.held).toBe(0);
  });

  it('W30: writes the first condition with the operation, then once more, and the annotation', async () => {
    const w = world();
    w.addProxy('p', {}, { metadata: { finalizers: [HRP_FINALIZER] } });
    await w.reconcile('p');
    expect(w.api.writes.map((write) => write.subresource ?? 'object')).toEqual(['status', 'status', 'object']);
  });

  it('says what it is about to do before Helm runs, and does not claim to have handled the generation', async () => {
    const w = world();
    w.addProxy('p');
    let during: HelmReleaseProxy | undefined;
    w.engine.during = () => {
      during = w.proxy('p');
    };
    await w.reconcile('p');
    expect(during?.status).toMatchObject({
      operation: { type: 'install', revision: 1, startedAt: '2026-12-01T00:00:00.000Z', timeoutSeconds: 600 },
      clusterUID: 'uid-c1',
    });
    expect(during?.status?.observedGeneration).toBeUndefined();
    expect(during?.status?.conditions).toContainEqual(
      expect.objectContaining({ ...AVAILABLE, type: 'ClusterAvailable' }),
    );
    expect(during?.status?.conditions?.map((c) => [c.type, c.reason])).toContainEqual([
      'HelmReleaseReady',
      'PreparingToHelmInstall',
    ]);
  });

  it('W17: persists a generated name before Helm runs, and keeps to it', async () => {
    const w = world();
    w.addProxy('p', { releaseName: undefined, chartName: 'team/app.v1' });
    let before: HelmReleaseProxy | undefined;
    w.engine.during = () => {
      before = w.proxy('p');
    };
    w.engine.failure = new HelmError('Timeout', 'timed out');
    await expect(w.reconcile('p')).rejects.toThrow('timed out');
    const name = `app-${w.nowMs / 1000}`;
    expect(before?.spec.releaseName).toBe(name);
    expect(annotationsOf(w.proxy('p'))).toEqual({ [RELEASE_NAME_GENERATED_ANNOTATION]: 'true' });
    w.engine.failure = undefined;
    w.nowMs += 60_000;
    await w.reconcile('p');
    expect(new Set(w.engine.calls.map((call) => call.release.name))).toEqual(new Set([name]));
  });

  it('W17: generates no second name while the cache still shows the object without one', async () => {
    const w = world();
    const stale = w.addProxy('p', { releaseName: undefined });
    await w.reconcile('p');
    w.proxies.put(stale);
    w.nowMs += 60_000;
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install']);
  });

  it('a name that the object has gets no annotation', async () => {
    const w = world();
    w.addProxy('p');
    await w.reconcile('p');
    expect(annotationsOf(w.proxy('p'))[RELEASE_NAME_GENERATED_ANNOTATION]).toBeUndefined();
  });

  it('stops before Helm runs when the object was edited meanwhile', async () => {
    const w = world();
    const seen = w.addProxy('p');
    w.edit('p', values('b: 2'));
    w.proxies.put(seen);
    expect(await w.reconcile('p')).toBeUndefined();
    expect(w.engine.calls).toEqual([]);
    expect(w.events).toEqual([]);
  });

  it('takes an existing release over that was installed by hand, and upgrades it when it differs', async () => {
    const w = world();
    w.storage(C1).put(KEY, { status: 'deployed', revision: 4, valuesDigest: 'other' });
    w.addProxy('p');
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['upgrade']);
    expect(w.proxy('p').status).toMatchObject({ revision: 5, status: 'deployed' });
  });
});

describe('a release that is as wanted', () => {
  async function settled(): Promise<World> {
    const w = world();
    w.addProxy('p');
    await w.reconcile('p');
    w.api.writes.length = 0;
    w.api.reads.length = 0;
    w.storage(C1).fetches = 0;
    w.charts.acquired = 0;
    w.engine.calls.length = 0;
    return w;
  }

  it('a resync runs no helm, downloads no chart, reads no secret, writes nothing, and comes again', async () => {
    const w = await settled();
    expect(await w.reconcile('p')).toBe(600_000);
    expect(w.engine.calls).toEqual([]);
    expect(w.charts.acquired).toBe(0);
    expect(w.api.writes).toEqual([]);
    expect(w.api.reads).toEqual([]);
    expect(w.storage(C1).fetches).toBe(0);
  });

  it('a change of options alone is noted and upgrades nothing', async () => {
    const w = await settled();
    w.edit('p', (proxy) => ({ ...proxy, spec: { ...proxy.spec, options: { wait: true } } }));
    await w.reconcile('p');
    expect(w.engine.calls).toEqual([]);
    expect(w.proxy('p').status?.observedGeneration).toBe(2);
  });

  it('a change of how drift is looked for is noted and upgrades nothing', async () => {
    const w = await settled();
    w.edit('p', (proxy) => ({ ...proxy, spec: { ...proxy.spec, driftDetection: { mode: 'Correct' } } }));
    await w.reconcile('p');
    expect(w.engine.calls).toEqual([]);
    expect(w.charts.acquired).toBe(0);
    expect(w.proxy('p').status?.observedGeneration).toBe(2);
    expect(w.condition('p', 'Ready')).toEqual(READY);
  });

  it('stays good while its repository is down', async () => {
    const w = await settled();
    w.charts.failure = new HelmError('Failed', 'no answer');
    await w.reconcile('p');
    expect(w.condition('p', 'Ready')).toEqual(READY);
    expect(w.api.writes).toEqual([]);
  });

  it('is not called good when the version that is wanted cannot be told', async () => {
    const w = await settled();
    w.edit('p', (proxy) => ({ ...proxy, spec: { ...proxy.spec, version: '>= 1' } }));
    w.charts.failure = new HelmError('Failed', 'no answer');
    await expect(w.reconcile('p')).rejects.toThrow('no answer');
    expect(w.condition('p', 'HelmReleaseReady')).toMatchObject({ reason: 'HelmInstallOrUpgradeFailed' });
  });

  it('an object that CAAPH left is adopted without any operation', async () => {
    const w = world();
    w.storage(C1).put(KEY, { status: 'deployed', revision: 2 });
    const metadata = { finalizers: [HRP_FINALIZER], annotations: { [INSTALLED_ANNOTATION]: 'true' } };
    w.addProxy('p', {}, { metadata, status: { status: 'deployed', revision: 2, observedGeneration: 1 } });
    await w.reconcile('p');
    expect(w.engine.calls).toEqual([]);
    expect(w.proxy('p').status).toMatchObject({ revision: 2, chartDigest: 'sha256:chart', clusterUID: 'uid-c1' });
  });
});

describe('upgrade', () => {
  async function installed(spec: Partial<HelmReleaseProxy['spec']> = {}): Promise<World> {
    const w = world();
    w.addProxy('p', spec);
    await w.reconcile('p');
    w.events.length = 0;
    return w;
  }

  it('follows the values', async () => {
    const w = await installed();
    w.edit('p', values('a: 2'));
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install', 'upgrade']);
    expect(w.proxy('p').status).toMatchObject({ revision: 2, observedGeneration: 2, valuesDigest: 'digest of a: 2' });
    expect(w.events.map((event) => event.reason)).toEqual(['HelmUpgraded']);
  });

  it('W3: values that are cleared are cleared, once', async () => {
    const w = await installed({ values: 'a: 1' });
    w.edit('p', values(''));
    await w.reconcile('p');
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install', 'upgrade']);
    expect(w.engine.calls[1]?.request?.values).toBe('');
  });

  it('W32: follows a chart that was published anew under its version', async () => {
    const w = await installed();
    w.charts.digest = 'sha256:anew';
    await w.reconcile('p');
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install', 'upgrade']);
    expect(w.proxy('p').status?.chartDigest).toBe('sha256:anew');
  });

  it('follows the newest version where none is named', async () => {
    const w = await installed({ version: undefined });
    w.charts.version = '1.1.0';
    w.charts.digest = 'sha256:newer';
    await w.reconcile('p');
    expect(w.proxy('p').status).toMatchObject({ revision: 2, chartVersion: '1.1.0' });
  });

  it('puts right what somebody else upgraded, rolled back or uninstalled', async () => {
    const w = await installed();
    w.storage(C1).put(KEY, { status: 'deployed', revision: 2, valuesDigest: 'theirs' });
    await w.reconcile('p');
    expect(w.proxy('p').status?.revision).toBe(3);
    w.storage(C1).clear(KEY);
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install', 'upgrade', 'install']);
  });

  it('undoes an upgrade by somebody else also when it was seen under way', async () => {
    const w = await installed();
    const written = new Date(w.nowMs).toISOString();
    w.storage(C1).put(KEY, { status: 'pending-upgrade', revision: 2, valuesDigest: 'theirs', lastDeployed: written });
    await w.reconcile('p');
    expect(w.condition('p', 'HelmReleaseReady')).toMatchObject({ reason: 'HelmReleasePending' });
    w.storage(C1).put(KEY, { status: 'deployed', revision: 2, valuesDigest: 'theirs', lastDeployed: written });
    await w.reconcile('p');
    expect(w.proxy('p').status).toMatchObject({ status: 'deployed', revision: 3, valuesDigest: 'digest of ' });
  });

  it('reads storage itself while the watch is behind its own operation', async () => {
    const w = world();
    w.storage(C1).freeze();
    w.addProxy('p');
    await w.reconcile('p');
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install']);
  });
});

describe('failure', () => {
  it('tells Helm’s message, copies status and revision, and is tried again', async () => {
    const w = world();
    w.addProxy('p');
    w.engine.failure = new HelmError('ObjectInvalid', 'Service "x" is invalid');
    await expect(w.reconcile('p')).rejects.toBe(w.engine.failure);
    expect(w.condition('p', 'HelmReleaseReady')).toEqual({
      status: 'False',
      reason: 'HelmInstallOrUpgradeFailed',
      message: 'Service "x" is invalid',
    });
    expect(w.condition('p', 'ClusterAvailable')).toEqual(AVAILABLE);
    expect(w.proxy('p').status).toMatchObject({ status: 'failed', revision: 1 });
    expect(w.proxy('p').status?.operation).toBeUndefined();
    expect(annotationsOf(w.proxy('p'))).toEqual({});
    expect(w.events.map((event) => event.reason)).toEqual(['HelmInstallOrUpgradeFailed']);
    w.engine.failure = undefined;
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install', 'upgrade']);
    expect(w.condition('p', 'Ready')).toEqual(READY);
    expect(w.charts.held).toBe(0);
  });

  it('bounds the message', async () => {
    const w = world();
    w.addProxy('p');
    w.engine.failure = new HelmError('Failed', 'x'.repeat(5000));
    await expect(w.reconcile('p')).rejects.toThrow();
    expect(w.condition('p', 'HelmReleaseReady')?.message.length).toBe(1024);
  });

  it('its own late events do not wake a release that failed: the back-off holds', async () => {
    const w = world();
    w.addProxy('p');
    w.engine.failure = new HelmError('Failed', 'no');
    await expect(w.reconcile('p')).rejects.toThrow();
    const memory = w.parts.memories.of('uid of p');
    expect(w.changes.length).toBeGreaterThan(0);
    for (const { reader, key } of w.changes) expect(memory.isNews(reader, key)).toBe(false);
    w.storage(C1).put(KEY, { status: 'deployed', revision: 9 });
    const last = w.changes.at(-1);
    expect(last && memory.isNews(last.reader, last.key)).toBe(true);
  });

  it.each([
    ['OptionUnsupported', 'HelmOptionUnsupported'],
    ['ValuesInvalid', 'HelmInstallOrUpgradeFailed'],
  ] as const)('%s ends until the object changes', async (code, reason) => {
    const w = world();
    w.addProxy('p');
    w.engine.failure = new HelmError(code, 'cannot be done');
    await expect(w.reconcile('p')).rejects.toBeInstanceOf(TerminalError);
    expect(w.condition('p', 'HelmReleaseReady')).toMatchObject({ reason });
  });

  it('values that are none are told before anything is run', async () => {
    const w = world();
    w.addProxy('p', { values: 'invalid' });
    await expect(w.reconcile('p')).rejects.toBeInstanceOf(TerminalError);
    expect(w.engine.calls).toEqual([]);
    expect(w.condition('p', 'HelmReleaseReady')?.message).toContain('line 1');
  });

  it('a release whose cluster went away in the middle keeps its operation written down, and nothing is blamed', async () => {
    const w = world();
    w.addProxy('p');
    w.engine.during = () => {
      w.disengage('c1', new ClusterGoneError(C1, 'gone'));
      throw new HelmError('Cancelled', 'cancelled');
    };
    await expect(w.reconcile('p')).rejects.toThrow('cancelled');
    expect(w.proxy('p').status?.operation).toMatchObject({ type: 'install', revision: 1 });
    expect(w.condition('p', 'HelmReleaseReady')).toMatchObject({ reason: 'PreparingToHelmInstall' });
    expect(w.events).toEqual([]);
  });

  it('a Helm that died without a last word leaves an operation that the next pass takes up at once', async () => {
    const w = world();
    w.addProxy('p');
    w.engine.during = () => {
      w.storage(C1).put(KEY, {
        status: 'pending-install',
        revision: 1,
        lastDeployed: new Date(w.nowMs).toISOString(),
      });
      throw new HelmError('Unauthorized', 'the credentials had been replaced');
    };
    await expect(w.reconcile('p')).rejects.toThrow('replaced');
    expect(w.proxy('p').status?.operation).toMatchObject({ type: 'install', revision: 1 });
    w.engine.during = undefined;
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install', 'upgrade']);
    expect(w.proxy('p').status?.operation).toBeUndefined();
  });

  it('a cluster that hangs while Helm waits on it is told of meanwhile, and that it is back', async () => {
    const w = world();
    w.addProxy('p');
    const says = async (reason: string): Promise<void> =>
      vi.waitFor(() => expect(w.condition('p', 'ClusterAvailable')).toMatchObject({ reason }));
    w.engine.during = async () => {
      const memory = w.parts.memories.of('uid of p');
      memory.clusterChanged(undefined);
      memory.clusterChanged({ code: 'Unreachable', message: 'no answer' });
      await says('ClusterUnreachable');
      expect(w.proxy('p').status?.observedGeneration).toBeUndefined();
      memory.clusterChanged(undefined);
      await says('Available');
    };
    await w.reconcile('p');
    expect(w.condition('p', 'Ready')).toEqual(READY);
  });

  it('an atomic install that failed leaves nothing and is installed again', async () => {
    const w = world();
    w.addProxy('p', { options: { atomic: true } });
    w.engine.during = () => {
      throw new HelmError('Failed', 'failed, and has been uninstalled');
    };
    await expect(w.reconcile('p')).rejects.toThrow('uninstalled');
    expect(w.proxy('p').status?.revision).toBeUndefined();
    w.engine.during = undefined;
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install', 'install']);
  });
});

describe('states of a release (W16, W20)', () => {
  const deployed = { status: 'deployed', revision: 1, clusterUID: 'uid-c1' };

  it.each(['pending-install', 'pending-upgrade', 'pending-rollback'] as const)(
    'a deployed release forced to %s is upgraded to revision 2 at once',
    async (status) => {
      const w = world();
      w.storage(C1).put(KEY, { status, revision: 1 });
      w.addProxy('p', {}, { status: deployed });
      await w.reconcile('p');
      expect(w.engine.verbs()).toEqual(['upgrade']);
      expect(w.proxy('p').status).toMatchObject({ status: 'deployed', revision: 2 });
      expect(w.events.map((event) => event.reason)).toEqual(['RecoveredPending', 'HelmUpgraded']);
    },
  );

  it('what was known of a forced release survives a pass that fails', async () => {
    const w = world();
    w.storage(C1).put(KEY, { status: 'pending-upgrade', revision: 1 });
    w.addProxy('p', {}, { status: deployed });
    w.charts.failure = new HelmError('Failed', 'no answer');
    await expect(w.reconcile('p')).rejects.toThrow('no answer');
    w.charts.failure = undefined;
    await w.reconcile('p');
    expect(w.proxy('p').status).toMatchObject({ status: 'deployed', revision: 2 });
  });

  it('an install that an earlier life began is taken up under its name', async () => {
    const w = world();
    const startedAt = new Date(w.nowMs - 5_000).toISOString();
    w.storage(C1).put(KEY, { status: 'pending-install', revision: 1, lastDeployed: startedAt });
    const operation = { type: 'install', revision: 1, startedAt, timeoutSeconds: 600 };
    w.addProxy('p', {}, { status: { operation, clusterUID: 'uid-c1' } });
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['upgrade']);
    expect(w.proxy('p').status).toMatchObject({ status: 'deployed', revision: 2 });
    expect(w.proxy('p').status?.operation).toBeUndefined();
  });

  it('somebody else’s operation is waited for, and the condition says until when', async () => {
    const w = world();
    w.storage(C1).put(KEY, {
      status: 'pending-upgrade',
      revision: 2,
      lastDeployed: new Date(w.nowMs - 60_000).toISOString(),
    });
    w.addProxy('p', { options: { timeout: '3m' } }, { status: deployed });
    expect(await w.reconcile('p')).toBe(121_000);
    expect(w.engine.calls).toEqual([]);
    expect(w.charts.sources).toEqual([]);
    expect(w.condition('p', 'HelmReleaseReady')).toMatchObject({ status: 'False', reason: 'HelmReleasePending' });
    expect(w.condition('p', 'HelmReleaseReady')?.message).toMatch(
      /^Helm release is in a pending state: pending-upgrade; .*2026-12-01T00:02:00/,
    );
    w.nowMs += 121_000;
    await w.reconcile('p');
    expect(w.proxy('p').status).toMatchObject({ status: 'deployed', revision: 3 });
  });

  it('an uninstalled release whose history was kept is installed again', async () => {
    const w = world();
    w.storage(C1).put(KEY, { status: 'uninstalled', revision: 3 });
    w.addProxy('p', { options: { uninstall: { keepHistory: true } } }, { status: deployed });
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install']);
    expect(w.proxy('p').status).toMatchObject({ status: 'deployed', revision: 4 });
  });

  it('an uninstall by somebody else is waited for; one that never ends is finished', async () => {
    const w = world();
    w.storage(C1).put(KEY, { status: 'uninstalling', revision: 1 });
    w.addProxy('p', {}, { status: deployed });
    await w.reconcile('p');
    expect(w.engine.calls).toEqual([]);
    expect(w.condition('p', 'HelmReleaseReady')).toMatchObject({ reason: 'HelmReleaseNotDeployed' });
    w.nowMs += 600_000;
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['uninstall', 'install']);
    expect(w.proxy('p').status).toMatchObject({ status: 'deployed', revision: 1 });
  });

  it('an upgrade goes on as the release began: on the server’s or the client’s side', async () => {
    const w = world();
    w.storage(C1).put(KEY, { status: 'failed', revision: 1, applyMethod: 'server' });
    w.storage(C1).put({ ...KEY, name: 'q' }, { status: 'failed', revision: 1, applyMethod: 'client' });
    w.addProxy('p');
    w.addProxy('q', { releaseName: 'q' });
    await w.reconcile('p');
    await w.reconcile('q');
    expect(w.engine.calls.map((call) => call.request?.serverSide)).toEqual([true, false]);
  });

  it.each([
    ['superseded', ['upgrade']],
    ['unknown', ['upgrade']],
    ['failed', ['upgrade']],
  ] as const)('%s → %j', async (status, verbs) => {
    const w = world();
    w.storage(C1).put(KEY, { status, revision: 1 });
    w.addProxy('p', {}, { status: deployed });
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(verbs);
    expect(w.condition('p', 'Ready')).toEqual(READY);
  });
});

describe('InstallOnce', () => {
  const once = { reconcileStrategy: 'InstallOnce' };

  it('installs, says that it lets go, and stops watching the cluster', async () => {
    const w = world();
    w.addProxy('p', once);
    expect(w.storage(C1).readers).toBe(0);
    await w.reconcile('p');
    expect(annotationsOf(w.proxy('p'))[INSTALLED_ANNOTATION]).toBe('true');
    expect(w.events.map((event) => event.reason)).toEqual(['HelmInstalled', 'HandedOff']);
    expect(w.condition('p', 'Ready')).toEqual(READY);
    expect(w.storage(C1).readers).toBe(0);
  });

  it('W12: once handed off asks for nothing and changes nothing, whatever happens', async () => {
    const w = world();
    w.addProxy('p', once);
    await w.reconcile('p');
    w.edit('p', values('a: 2'));
    w.storage(C1).put(KEY, { status: 'failed', revision: 7 });
    w.disengage('c1', new Error('unreachable'));
    w.addSecret('creds', {});
    w.engine.calls.length = 0;
    expect(await w.reconcile('p')).toBeUndefined();
    expect(w.engine.calls).toEqual([]);
    expect(w.storage(C1).readers).toBe(0);
    expect(w.proxy('p').status).toMatchObject({ revision: 1, status: 'deployed', observedGeneration: 2 });
    expect(w.condition('p', 'Ready')).toEqual(READY);
  });

  it('is tried until it is deployed once', async () => {
    const w = world();
    w.addProxy('p', once);
    w.engine.failure = new HelmError('Timeout', 'timed out');
    await expect(w.reconcile('p')).rejects.toThrow('timed out');
    expect(annotationsOf(w.proxy('p'))).toEqual({});
    w.engine.failure = undefined;
    await w.reconcile('p');
    expect(annotationsOf(w.proxy('p'))[INSTALLED_ANNOTATION]).toBe('true');
  });

  it('keeps the reader while another object of the cluster needs it', async () => {
    const w = world();
    w.addProxy('q', { releaseName: 'other' });
    w.addProxy('p', once);
    await w.reconcile('p');
    expect(w.storage(C1).readers).toBe(1);
  });
});

describe('strategies', () => {
  it('an unknown one gets a condition and nothing else', async () => {
    const w = world();
    w.addProxy('p', { reconcileStrategy: 'Weekly' });
    expect(await w.reconcile('p')).toBeUndefined();
    expect(w.engine.calls).toEqual([]);
    expect(w.proxy('p').metadata.finalizers).toBeUndefined();
    expect(w.condition('p', 'HelmReleaseReady')).toMatchObject({ status: 'False', reason: 'UnknownStrategy' });
    expect(w.condition('p', 'HelmReleaseReady')?.message).toContain('Continuous, InstallOnce');
  });

  it('one of a third party decides', async () => {
    const lazy: Strategy = {
      ...installOnceStrategy,
      name: 'Lazy',
      reconcile: async (context) =>
        Promise.resolve({ release: undefined, action: 'none', reason: `not today on ${context.cluster.name}` }),
    };
    const w = world({ strategies: [lazy] });
    w.addProxy('p', { reconcileStrategy: 'Lazy' });
    await w.reconcile('p');
    expect(w.engine.calls).toEqual([]);
    expect(w.condition('p', 'HelmReleaseReady')).toMatchObject({ reason: 'HelmReleaseNotDeployed' });
  });
});

describe('clusters', () => {
  it.each([
    ['ControlPlaneNotReady', 'NotAvailable', 'why'],
    ['KubeconfigUnavailable', 'GetKubeconfigFailed', 'failed to get kubeconfig for cluster: why'],
    ['Unauthorized', 'GetKubeconfigFailed', 'failed to get kubeconfig for cluster: why'],
    ['Unreachable', 'ClusterUnreachable', 'why'],
  ])('%s → %s', async (code, reason, message) => {
    const w = world();
    w.addProxy('p');
    w.fleet.waiting.set(C1, { code, message: 'why' });
    await expect(w.reconcile('p')).rejects.toBeInstanceOf(ClusterNotConnectedError);
    expect(w.condition('p', 'ClusterAvailable')).toEqual({ status: 'False', reason, message });
    expect(w.condition('p', 'HelmReleaseReady')).toMatchObject({ reason: 'PreparingToHelmInstall' });
    expect(w.engine.calls).toEqual([]);
  });

  it('one that is just being connected to takes no condition away', async () => {
    const w = world();
    w.addProxy('p');
    await w.reconcile('p');
    w.api.writes.length = 0;
    w.fleet.waiting.set(C1, { code: 'Connecting', message: 'connecting' });
    await expect(w.reconcile('p')).rejects.toBeInstanceOf(ClusterNotConnectedError);
    expect(w.api.writes).toEqual([]);
  });

  it('one that is not discovered yet ends quietly', async () => {
    const w = new World();
    w.addCluster('c1', { engaged: false });
    w.addProxy('p');
    await expect(w.reconcile('p')).rejects.toBeInstanceOf(ClusterNotFoundError);
    expect(w.condition('p', 'ClusterAvailable')).toMatchObject({ reason: 'NotAvailable' });
  });

  it('without a Cluster object: GetClusterFailed', async () => {
    const w = new World();
    w.addProxy('p');
    expect(await w.reconcile('p')).toBeUndefined();
    expect(w.condition('p', 'ClusterAvailable')).toMatchObject({ status: 'False', reason: 'GetClusterFailed' });
  });

  it('one made anew under the same name gets the release, and nothing recorded of the old one counts', async () => {
    const w = world();
    w.addProxy('p');
    await w.reconcile('p');
    w.removeCluster('c1');
    w.storages.clear();
    w.addCluster('c1', { uid: 'uid-new' });
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install', 'install']);
    expect(w.proxy('p').status).toMatchObject({ revision: 1, clusterUID: 'uid-new' });
    expect(annotationsOf(w.proxy('p'))[WORKLOAD_CLUSTER_UID_ANNOTATION]).toBe('uid-new');
  });

  it('W13: a paused Cluster’s objects are not touched', async () => {
    const w = new World();
    w.addCluster('c1', { paused: true });
    w.addProxy('p');
    expect(await w.reconcile('p')).toBeUndefined();
    expect(w.api.writes).toEqual([]);
    expect(w.engine.calls).toEqual([]);
  });

  it('nor is a paused object', async () => {
    const w = world();
    w.addProxy('p', {}, { metadata: { annotations: { [PAUSED_ANNOTATION]: '' } } });
    expect(await w.reconcile('p')).toBeUndefined();
    expect(w.api.writes).toEqual([]);
  });

  it('nor one of another manager', async () => {
    const w = world({ watchFilter: 'mine' });
    w.addProxy('p', {}, { metadata: { labels: { [WATCH_FILTER_LABEL]: 'theirs' } } });
    w.addProxy('q', { releaseName: 'q' }, { metadata: { labels: { [WATCH_FILTER_LABEL]: 'mine' } } });
    await w.reconcile('p');
    expect(w.engine.calls).toEqual([]);
    await w.reconcile('q');
    expect(w.engine.verbs()).toEqual(['install']);
  });
});

describe('repository access', () => {
  it('passes credentials and CA on, from the defaults of name and key', async () => {
    const w = world();
    w.addSecret('creds', { 'config.json': '{"auths":{}}' });
    w.addSecret('ca', { 'ca.crt': 'PEM' });
    w.addProxy('p', {
      credentials: { secret: { name: 'creds' } },
      tlsConfig: { caSecret: { name: 'ca' }, insecureSkipTLSVerify: true },
    });
    await w.reconcile('p');
    expect(w.charts.sources[0]?.access).toEqual({
      dockerConfigJson: '{"auths":{}}',
      ca: 'PEM',
      insecureSkipTLSVerify: true,
    });
  });

  it('skipping verification alone needs no Secret', async () => {
    const w = world();
    w.addProxy('p', { tlsConfig: { insecureSkipTLSVerify: true } });
    await w.reconcile('p');
    expect(w.charts.sources[0]?.access).toEqual({ insecureSkipTLSVerify: true });
    expect(w.api.reads).toEqual([]);
  });

  it.each([
    [
      'credentials',
      { credentials: { secret: { name: 'x' }, key: 'k' } },
      'GetCredentialsFailed',
      'fleet/x is not there',
    ],
    ['CA', { tlsConfig: { caSecret: { name: 'x' } } }, 'GetCACertificateFailed', 'fleet/x is not there'],
  ])('%s that are missing stand on ClusterAvailable, and are tried again', async (_name, spec, reason, text) => {
    const w = world();
    w.addProxy('p', spec);
    await expect(w.reconcile('p')).rejects.not.toBeInstanceOf(TerminalError);
    expect(w.condition('p', 'ClusterAvailable')).toMatchObject({ status: 'False', reason });
    expect(w.condition('p', 'ClusterAvailable')?.message).toContain(text);
  });

  it('a key that is missing is named', async () => {
    const w = world();
    w.addSecret('x', { other: 'value' });
    w.addProxy('p', { credentials: { secret: { name: 'x' }, key: 'k' } });
    await expect(w.reconcile('p')).rejects.toThrow('"k"');
    expect(JSON.stringify(w.proxy('p'))).not.toContain('value');
  });

  it('W35: another namespace is refused, with how to allow it', async () => {
    const credentials = { secret: { name: 'creds', namespace: 'elsewhere' } };
    const w = world();
    w.addSecret('creds', { 'config.json': '{}' }, 'elsewhere');
    w.addProxy('p', { credentials });
    await expect(w.reconcile('p')).rejects.toBeInstanceOf(TerminalError);
    expect(w.condition('p', 'ClusterAvailable')?.message).toContain('--cross-namespace-secrets');
    expect(w.api.reads).toEqual([]);
  });

  it('W35: and allowed by that option', async () => {
    const w = world({ allowCrossNamespaceSecrets: true });
    w.addSecret('creds', { 'config.json': '{}' }, 'elsewhere');
    w.addProxy('p', { credentials: { secret: { name: 'creds', namespace: 'elsewhere' } } });
    await w.reconcile('p');
    expect(w.charts.sources[0]?.access).toEqual({ dockerConfigJson: '{}' });
  });
});

describe('W24: two objects, one release', () => {
  it('the first keeps it; the other says whose it is, and gets it when the first is gone', async () => {
    const w = world();
    w.addProxy('first');
    w.addProxy('second', { values: 'b: 2' }, { metadata: { creationTimestamp: '2026-02-01T00:00:00Z' } });
    await w.reconcile('second');
    expect(w.engine.calls).toEqual([]);
    await w.reconcile('first');
    await w.reconcile('second');
    expect(w.engine.verbs()).toEqual(['install']);
    expect(w.condition('second', 'HelmReleaseReady')).toMatchObject({
      status: 'False',
      reason: 'ReleaseNameCollision',
    });
    expect(w.condition('second', 'HelmReleaseReady')?.message).toContain('fleet/first');
    w.delete('first');
    await w.reconcile('first');
    await w.reconcile('second');
    expect(w.engine.verbs()).toEqual(['install', 'uninstall', 'install']);
    expect(w.condition('second', 'Ready')).toEqual(READY);
  });

  it('the one that installed it keeps it, though it is younger', async () => {
    const w = world();
    const younger = { creationTimestamp: '2026-02-01T00:00:00Z' };
    w.addProxy('young', {}, { metadata: younger });
    await w.reconcile('young');
    w.addProxy('old');
    await w.reconcile('old');
    expect(w.condition('old', 'HelmReleaseReady')).toMatchObject({ reason: 'ReleaseNameCollision' });
  });
});

describe('an upgrade that is wanted for the sake of the objects', () => {
  it('is made once, though the release is made from what it should be', async () => {
    const w = world();
    w.addProxy('p');
    await w.reconcile('p');
    w.parts.memories.wantUpgrade(w.proxy('p'), 'objects differ');
    await w.reconcile('p');
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install', 'upgrade']);
    expect(w.proxy('p').status?.revision).toBe(2);
    expect(w.events.at(-1)?.message).toContain('objects differ');
  });

  it('waits for the chart, and is not asked for again once Helm has begun', async () => {
    const w = world();
    w.addProxy('p');
    await w.reconcile('p');
    w.parts.memories.wantUpgrade(w.proxy('p'), 'objects differ');
    w.charts.failure = new HelmError('RepositoryUnreachable', 'the repository is down');
    await expect(w.reconcile('p')).rejects.toThrow('the repository is down');
    w.charts.failure = undefined;
    w.engine.failure = new HelmError('Timeout', 'timed out');
    await expect(w.reconcile('p')).rejects.toThrow('timed out');
    expect(w.parts.memories.of('uid of p').wantedUpgrade).toBeUndefined();
  });

  it('waits, as every operation, for a correction that is under way', async () => {
    const w = world();
    w.addProxy('p');
    const unlock = w.parts.locks.tryLock(C1, KEY);
    const pass = w.reconcile('p');
    await new Promise((resolve) => setImmediate(resolve));
    expect(w.engine.verbs()).toEqual([]);
    let locked = false;
    w.engine.during = () => {
      locked = w.parts.locks.isLocked(C1, KEY);
    };
    unlock?.();
    await pass;
    expect(w.engine.verbs()).toEqual(['install']);
    expect(locked).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    expect(w.parts.locks.isLocked(C1, KEY)).toBe(false);
  });
});
