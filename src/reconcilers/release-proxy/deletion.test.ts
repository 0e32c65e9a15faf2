import { describe, expect, it, vi } from 'vitest';
import {
  DELETE_FOR_MOVE_ANNOTATION,
  FORCE_DELETE_ANNOTATION,
  HRP_FINALIZER,
  INSTALLED_ANNOTATION,
  PAUSED_ANNOTATION,
  WORKLOAD_CLUSTER_UID_ANNOTATION,
} from '../../api/index.ts';
import type { HelmReleaseProxy } from '../../api/index.ts';
import { HelmError } from '../../helm/index.ts';
import type { ReleaseStatus } from '../../helm/index.ts';
import { ClusterNotConnectedError, clusterName } from '../../runtime/index.ts';
import { World } from './world.test-support.ts';

const KEY = { namespace: 'apps', name: 'app' };
const C1 = clusterName('fleet/c1');

/** One object that is being deleted, with its release in a state. */
function deleting(
  spec: Partial<HelmReleaseProxy['spec']> = {},
  status: ReleaseStatus | 'absent' = 'deployed',
  annotations: Record<string, string> = { [INSTALLED_ANNOTATION]: 'true' },
): World {
  const w = new World();
  w.addCluster('c1');
  if (status !== 'absent') w.storage(C1).put(KEY, { status, revision: 1 });
  w.addProxy('p', spec, {
    metadata: { finalizers: [HRP_FINALIZER], annotations, deletionTimestamp: '2026-12-01T00:00:00Z' },
    status: { status: 'deployed', revision: 1, clusterUID: 'uid-c1' },
  });
  return w;
}

describe('deletion', () => {
  it('uninstalls and goes', async () => {
    const w = deleting();
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['uninstall']);
    expect(w.find('p')).toBeUndefined();
    expect(w.events.map((event) => event.reason)).toEqual(['HelmUninstalled']);
    expect(w.logged).toEqual(['release uninstalled']);
    expect(w.api.writes).toHaveLength(1);
  });

  it('goes without an uninstall when there is no release', async () => {
    const w = deleting({}, 'absent');
    await w.reconcile('p');
    expect(w.engine.calls).toEqual([]);
    expect(w.find('p')).toBeUndefined();
  });

  it('goes when the release never got a name', async () => {
    const w = deleting({ releaseName: undefined });
    await w.reconcile('p');
    expect(w.engine.calls).toEqual([]);
    expect(w.find('p')).toBeUndefined();
  });

  it.each(['failed', 'pending-install', 'pending-upgrade', 'pending-rollback', 'uninstalling', 'superseded'] as const)(
    'uninstalls a release that is %s',
    async (status) => {
      const w = deleting({}, status);
      await w.reconcile('p');
      expect(w.engine.verbs()).toEqual(['uninstall']);
      expect(w.find('p')).toBeUndefined();
    },
  );

  it('leaves the history of an uninstalled release where that is to be kept', async () => {
    const w = deleting({ options: { uninstall: { keepHistory: true } } }, 'uninstalled');
    await w.reconcile('p');
    expect(w.engine.calls).toEqual([]);
    expect(w.storage(C1).newest(KEY)?.status).toBe('uninstalled');
    expect(w.find('p')).toBeUndefined();
  });

  it('says why the uninstall failed, and tries again', async () => {
    const w = deleting();
    w.engine.failure = new HelmError('HookFailed', 'hook failed');
    await expect(w.reconcile('p')).rejects.toBe(w.engine.failure);
    expect(w.condition('p', 'HelmReleaseReady')).toMatchObject({
      status: 'False',
      reason: 'HelmReleaseDeletionFailed',
    });
    expect(w.condition('p', 'HelmReleaseReady')?.message).toMatch(
      /unable to remove helm release apps\/app .*hook failed/,
    );
    expect(w.proxy('p').metadata.finalizers).toEqual([HRP_FINALIZER]);
    w.engine.failure = undefined;
    await w.reconcile('p');
    expect(w.find('p')).toBeUndefined();
  });

  it('says when the release cannot be read', async () => {
    const w = deleting();
    w.storage(C1).failure = new HelmError('Unreachable', 'no answer');
    await expect(w.reconcile('p')).rejects.toThrow('no answer');
    expect(w.condition('p', 'HelmReleaseReady')).toMatchObject({ reason: 'HelmReleaseGetFailed' });
    expect(w.engine.calls).toEqual([]);
  });

  it('W18: says what it waits for while the cluster is not connected, and how to let go', async () => {
    const w = deleting();
    w.fleet.waiting.set(C1, { code: 'Unreachable', message: 'connection refused' });
    await expect(w.reconcile('p')).rejects.toBeInstanceOf(ClusterNotConnectedError);
    const message = w.condition('p', 'HelmReleaseReady')?.message;
    expect(message).toContain('fleet/c1');
    expect(message).toContain('connection refused');
    expect(message).toContain(FORCE_DELETE_ANNOTATION);
    expect(w.condition('p', 'ClusterAvailable')).toMatchObject({ reason: 'ClusterUnreachable' });
    expect(w.proxy('p').metadata.finalizers).toEqual([HRP_FINALIZER]);
  });

  it('W18: lets go by force, and says so', async () => {
    const w = deleting({}, 'deployed', { [FORCE_DELETE_ANNOTATION]: 'true' });
    w.fleet.waiting.set(C1, { code: 'Unreachable', message: 'connection refused' });
    await w.reconcile('p');
    expect(w.find('p')).toBeUndefined();
    expect(w.engine.calls).toEqual([]);
    expect(w.events.map((event) => event.reason)).toEqual(['ForceDeleted']);
  });

  it('goes when its Cluster is gone', async () => {
    const w = deleting();
    w.removeCluster('c1');
    await w.reconcile('p');
    expect(w.find('p')).toBeUndefined();
    expect(w.engine.calls).toEqual([]);
  });

  it('does not believe a cache that a Cluster is gone', async () => {
    const w = deleting();
    w.clusters.remove('fleet', 'c1');
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['uninstall']);
  });

  it('touches no cluster that another namespace has, whatever the object names', async () => {
    const w = deleting({ clusterRef: { namespace: 'fleet', name: 'kubeconfig#other/c1' } });
    const theirs = w.fleet.get(C1);
    vi.spyOn(w.fleet, 'get').mockReturnValue(theirs);
    // Its provider has not told of everything yet: it is not known to be gone either.
    w.clusters.knows = () => false;
    await expect(w.reconcile('p')).rejects.toThrow('no provider has told namespace fleet of it yet');
    expect(w.engine.calls).toEqual([]);
    expect(w.find('p')?.metadata.finalizers).toEqual([HRP_FINALIZER]);
  });

  it('leaves the release to the management cluster that it was moved to', async () => {
    const w = deleting({}, 'deployed', { [DELETE_FOR_MOVE_ANNOTATION]: '' });
    await w.reconcile('p');
    expect(w.engine.calls).toEqual([]);
    expect(w.find('p')).toBeUndefined();
  });

  it('knows by its annotation, where a move left no status, that a cluster is another', async () => {
    const w = deleting({}, 'deployed', { [WORKLOAD_CLUSTER_UID_ANNOTATION]: 'uid-old' });
    w.edit('p', (proxy) => ({ ...proxy, status: undefined }));
    await w.reconcile('p');
    expect(w.engine.calls).toEqual([]);
    expect(w.find('p')).toBeUndefined();
  });

  it('touches nothing on a cluster made anew under the same name', async () => {
    const w = deleting();
    w.removeCluster('c1');
    w.addCluster('c1', { uid: 'uid-new' });
    await w.reconcile('p');
    expect(w.engine.calls).toEqual([]);
    expect(w.find('p')).toBeUndefined();
  });

  it.each([
    ['handed off', { [INSTALLED_ANNOTATION]: 'true' }],
    ['not yet handed off', {}],
  ])('InstallOnce (%s) goes without the cluster and leaves the release', async (_name, annotations) => {
    const w = deleting({ reconcileStrategy: 'InstallOnce' }, 'deployed', annotations);
    w.fleet.waiting.set(C1, { code: 'Unreachable', message: 'connection refused' });
    await w.reconcile('p');
    expect(w.find('p')).toBeUndefined();
    expect(w.engine.calls).toEqual([]);
    expect(w.api.reads).toEqual([]);
  });

  it('an unknown strategy says so and stays', async () => {
    const w = deleting({ reconcileStrategy: 'Weekly' });
    await w.reconcile('p');
    expect(w.condition('p', 'HelmReleaseReady')).toMatchObject({ reason: 'UnknownStrategy' });
    expect(w.condition('p', 'HelmReleaseReady')?.message).toContain(FORCE_DELETE_ANNOTATION);
  });

  it('W13: waits while it is paused', async () => {
    const w = deleting({}, 'deployed', { [PAUSED_ANNOTATION]: '' });
    await w.reconcile('p');
    expect(w.api.writes).toEqual([]);
    expect(w.engine.calls).toEqual([]);
  });

  it('W24: does not uninstall what another object has', async () => {
    const w = deleting({}, 'deployed', {});
    w.addProxy('owner', {}, { metadata: { annotations: { [INSTALLED_ANNOTATION]: 'true' } } });
    await w.reconcile('p');
    expect(w.engine.calls).toEqual([]);
    expect(w.find('p')).toBeUndefined();
  });

  it('W24: nor what another one had and left there', async () => {
    const w = new World();
    w.addCluster('c1');
    w.addProxy('owner', { reconcileStrategy: 'InstallOnce' });
    await w.reconcile('owner');
    w.addProxy('p', {}, { metadata: { creationTimestamp: '2026-05-01T00:00:00Z', finalizers: [HRP_FINALIZER] } });
    await w.reconcile('p');
    w.delete('owner');
    await w.reconcile('owner');
    expect(w.find('owner')).toBeUndefined();
    w.delete('p');
    await w.reconcile('p');
    expect(w.find('p')).toBeUndefined();
    expect(w.engine.verbs()).toEqual(['install']);
  });

  it('tells others’ finalizers that the release is gone', async () => {
    const w = deleting();
    w.edit('p', (proxy) => ({ ...proxy, metadata: { ...proxy.metadata, finalizers: [HRP_FINALIZER, 'theirs'] } }));
    await w.reconcile('p');
    expect(w.proxy('p').metadata.finalizers).toEqual(['theirs']);
    expect(w.condition('p', 'HelmReleaseReady')).toMatchObject({ reason: 'HelmReleaseDeleted' });
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['uninstall']);
  });
});
