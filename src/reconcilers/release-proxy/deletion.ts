/** A HelmReleaseProxy that goes: its release is uninstalled first, where that is its business (caaph §1.7 "Deletion", W18). */
import { DELETE_FOR_MOVE_ANNOTATION, FORCE_DELETE_ANNOTATION, HRP_FINALIZER } from '../../api/index.ts';
import type { HelmReleaseProxy } from '../../api/index.ts';
import type { ReleaseKey } from '../../helm/index.ts';
import type { Cluster, ReconcileContext, Result } from '../../runtime/index.ts';
import { ClusterNotConnectedError } from '../../runtime/index.ts';
import { errorText } from '../../telemetry/index.ts';
import { isForeign } from '../cluster-names.ts';
import { getCondition } from '../conditions.ts';
import type { ConditionInput } from '../conditions.ts';
import type { Strategy } from '../types.ts';
import { notConnectedCondition, whyNotConnected } from './cluster-access.ts';
import { helmOptions } from './options.ts';
import type { Parts } from './parts.ts';
import { clusterKeyOf, clusterNameOf, isForced, isOfCluster, releaseKeyOf, uidOf } from './proxy.ts';
import {
  RELEASE_READY,
  clusterAvailable,
  deleted,
  releaseFailed,
  releaseNotReady,
  withFindings,
} from './proxy-conditions.ts';
import { isInterruption } from './interruption.ts';
import { ReleaseRun } from './release-run.ts';

/** Limit for the first list of a cluster's release Secrets. Milliseconds. */
const READER_SYNC_MS = 30_000;

export class ReleaseDeletion {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Rejects with ClusterNotConnectedError while the cluster is needed and not there; with anything else to be tried again. */
  async reconcile(proxy: HelmReleaseProxy, context: ReconcileContext): Promise<Result> {
    if (!(proxy.metadata.finalizers ?? []).includes(HRP_FINALIZER)) return {};
    if (isForced(proxy)) return this.#force(proxy, context);
    const strategy = this.#parts.strategies.find(proxy);
    if (strategy === undefined) return this.#unknownStrategy(proxy, context);
    if (await this.#leavesRelease(proxy, strategy, context)) return this.#drop(proxy, context);
    return this.#uninstall(proxy, context);
  }

  /** Is there nothing on a cluster that this object must take away? Answered without the cluster. */
  async #leavesRelease(proxy: HelmReleaseProxy, strategy: Strategy, context: ReconcileContext): Promise<boolean> {
    if (!strategy.uninstallsOnDelete || strategy.handedOff(proxy)) return true;
    // It lives on in another management cluster, with its release.
    if (proxy.metadata.annotations?.[DELETE_FOR_MOVE_ANNOTATION] !== undefined) return true;
    // It never had the release: another object has, or had, and decides what becomes of it.
    const ready = getCondition(proxy.status?.conditions, RELEASE_READY);
    if (releaseKeyOf(proxy) === undefined || ready?.reason === 'ReleaseNameCollision') return true;
    return this.#clusterIsGone(proxy, context);
  }

  /** Asked of the server, not of a cache: an uninstall that is left out is never made up for. */
  async #clusterIsGone(proxy: HelmReleaseProxy, context: ReconcileContext): Promise<boolean> {
    const key = clusterKeyOf(proxy);
    const { caches, deps } = this.#parts;
    const { clusters, clusterResource } = caches;
    if (clusters.get(key.namespace, key.name) !== undefined || !clusters.knows(key)) return false;
    // There is no object to ask for: its provider has told of all that it has.
    if (isForeign(key.name) || clusterResource === undefined) return true;
    const options = { signal: context.signal, form: 'metadata' } as const;
    return (await deps.management.client.find(clusterResource, key, options)) === undefined;
  }

  async #uninstall(proxy: HelmReleaseProxy, context: ReconcileContext): Promise<Result> {
    const key = releaseKeyOf(proxy);
    const cluster = await this.#cluster(proxy, key, context);
    // A cluster made anew under the same name never got this release.
    if (key === undefined || !isOfCluster(proxy, cluster)) return this.#drop(proxy, context);
    const signal = AbortSignal.any([context.signal, cluster.signal]);
    const run = new ReleaseRun(this.#parts, { proxy, cluster, reconcile: { ...context, signal } });
    let reason = 'HelmReleaseGetFailed';
    try {
      await run.reader.synced(signal, READER_SYNC_MS);
      const release = await run.refresh(key);
      reason = 'HelmReleaseDeletionFailed';
      const keepHistory = helmOptions(proxy.spec.options).uninstall.keepHistory === true;
      const isGone = release === undefined || (release.status === 'uninstalled' && keepHistory);
      if (!isGone) await run.uninstall();
    } catch (error) {
      if (!isInterruption(error, signal)) await this.#failed(proxy, { reason, error, key }, context);
      throw error;
    }
    return this.#drop(proxy, context);
  }

  async #cluster(proxy: HelmReleaseProxy, key: ReleaseKey | undefined, context: ReconcileContext): Promise<Cluster> {
    try {
      return this.#engaged(proxy);
    } catch (error) {
      const reason = whyNotConnected(error);
      if (reason !== undefined) {
        const condition = notConnectedCondition(proxy, reason);
        const waiting = releaseNotReady(
          'HelmReleaseDeletionWaiting',
          `waiting for cluster ${clusterNameOf(proxy)} to uninstall release ${spelled(key)}: ${reason.message}; ` +
            `annotate with ${FORCE_DELETE_ANNOTATION}=true to let go without an uninstall`,
        );
        await this.#write(proxy, condition === undefined ? [waiting] : [condition, waiting], context);
      }
      throw error;
    }
  }

  /** What the fleet has under that name is this object's only where its namespace has the cluster: another's is not to be touched. */
  #engaged(proxy: HelmReleaseProxy): Cluster {
    const { namespace, name } = clusterKeyOf(proxy);
    const cluster = clusterNameOf(proxy);
    if (isForeign(name) && this.#parts.caches.clusters.get(namespace, name) === undefined) {
      const message = `no provider has told namespace ${namespace} of it yet`;
      throw new ClusterNotConnectedError(cluster, { code: 'NotDeclared', message });
    }
    return this.#parts.deps.fleet.get(cluster);
  }

  async #failed(
    proxy: HelmReleaseProxy,
    failure: { reason: string; error: unknown; key: ReleaseKey },
    context: ReconcileContext,
  ): Promise<void> {
    const { reason, error, key } = failure;
    const text = `release ${spelled(key)} on cluster ${clusterNameOf(proxy)}: ${errorText(error)}`;
    const message = reason === 'HelmReleaseGetFailed' ? `unable to read helm ${text}` : `unable to remove helm ${text}`;
    await this.#write(proxy, [clusterAvailable, releaseNotReady(reason, message)], context);
    this.#parts.deps.events.record(proxy, { type: 'Warning', reason, message });
  }

  async #unknownStrategy(proxy: HelmReleaseProxy, context: ReconcileContext): Promise<Result> {
    const error = this.#parts.strategies.unknown(proxy);
    const message = `${error.message}; annotate with ${FORCE_DELETE_ANNOTATION}=true to let go without an uninstall`;
    await this.#write(proxy, [releaseFailed(error.code, new Error(message))], context);
    return {};
  }

  async #force(proxy: HelmReleaseProxy, context: ReconcileContext): Promise<Result> {
    const key = releaseKeyOf(proxy);
    this.#parts.deps.events.record(proxy, {
      type: 'Warning',
      reason: 'ForceDeleted',
      message: `let go without an uninstall, as the annotation ${FORCE_DELETE_ANNOTATION} asks; release ${spelled(key)} may remain on cluster ${clusterNameOf(proxy)}`,
    });
    context.log.warn('release let go without an uninstall', { release: spelled(key) });
    return this.#drop(proxy, context);
  }

  async #drop(proxy: HelmReleaseProxy, context: ReconcileContext): Promise<Result> {
    const now = new Date(this.#parts.tools.now());
    // The status is written only when somebody else's finalizer keeps the object.
    const wanted = (current: HelmReleaseProxy): HelmReleaseProxy => {
      const finalizers = (current.metadata.finalizers ?? []).filter((name) => name !== HRP_FINALIZER);
      const told = withFindings(current, { conditions: [deleted], release: null, operation: null }, now);
      return { ...told, metadata: { ...told.metadata, finalizers } };
    };
    await this.#parts.writer.update(proxy, wanted, { signal: context.signal });
    this.#parts.memories.forget(uidOf(proxy));
    return {};
  }

  async #write(
    proxy: HelmReleaseProxy,
    conditions: readonly ConditionInput[],
    context: ReconcileContext,
  ): Promise<void> {
    const now = new Date(this.#parts.tools.now());
    await this.#parts.writer.update(proxy, (current) => withFindings(current, { conditions }, now), {
      signal: context.signal,
    });
  }
}

function spelled(key: ReleaseKey | undefined): string {
  return key === undefined ? '(not yet named)' : `${key.namespace}/${key.name}`;
}
