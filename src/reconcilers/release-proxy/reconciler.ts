/** One pass over one HelmReleaseProxy (caaph §1.7, with fewer writes: W30). */
import { INSTALLED_ANNOTATION, WORKLOAD_CLUSTER_UID_ANNOTATION } from '../../api/index.ts';
import type { HelmReleaseProxy } from '../../api/index.ts';
import { isHelmError } from '../../helm/index.ts';
import type { ReleaseSummary } from '../../helm/index.ts';
import { TerminalError } from '../../runtime/index.ts';
import type { Cluster, ReconcileContext, Reconciler, Request, Result } from '../../runtime/index.ts';
import { errorText } from '../../telemetry/index.ts';
import type { ConditionInput } from '../conditions.ts';
import { ReconcilerError } from '../errors.ts';
import { HRP } from '../resources.ts';
import type { Deployment, Strategy } from '../types.ts';
import { notConnectedCondition, whyNotConnected } from './cluster-access.ts';
import { ReleaseDeletion } from './deletion.ts';
import { ObjectChanged, isInterruption } from './interruption.ts';
import type { Settled } from './memory.ts';
import { settleReader } from './parts.ts';
import type { Parts } from './parts.ts';
import { withFinalizer } from './preparation.ts';
import { clusterKeyOf, clusterNameOf, isDeleting, isPaused, namesCluster, passesFilter, uidOf } from './proxy.ts';
import {
  clusterAvailable,
  clusterNotAvailable,
  noRelease,
  releaseCondition,
  releaseFailed,
  withFindings,
} from './proxy-conditions.ts';
import type { Findings } from './proxy-conditions.ts';
import { ReleaseRun } from './release-run.ts';
import { GET_CA_FAILED, GET_CREDENTIALS_FAILED } from './repository-access.ts';

/** Limit for the first list of a cluster's release Secrets. Milliseconds. */
const READER_SYNC_MS = 30_000;
/** A resync comes at the period less or more up to this part of it, so that a fleet's do not come together. */
const RESYNC_JITTER = 0.1;

/** Failures that only a change of the object ends: it is not tried again before one. */
const TERMINAL_HELM = ['OptionUnsupported', 'ValuesInvalid', 'VersionInvalid'] as const;

export class ReleaseProxyReconciler implements Reconciler {
  readonly #parts: Parts;
  readonly #deletion: ReleaseDeletion;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#deletion = new ReleaseDeletion(parts);
  }

  async reconcile(request: Request, context: ReconcileContext): Promise<Result> {
    const cached = this.#parts.caches.releaseProxies.get(request.namespace, request.name);
    if (cached === undefined) return {};
    const proxy = await this.#newest(cached, context);
    if (proxy === undefined || !this.#isOurs(proxy, request)) return {};
    try {
      return isDeleting(proxy) ? await this.#deletion.reconcile(proxy, context) : await this.#reconcile(proxy, context);
    } catch (error) {
      if (error instanceof ObjectChanged) return {};
      throw error;
    }
  }

  /** After a hand-over the cache may lack what the replica before wrote last, and a release would be upgraded once more. */
  async #newest(cached: HelmReleaseProxy, { signal }: ReconcileContext): Promise<HelmReleaseProxy | undefined> {
    const { deps, memories, writer } = this.#parts;
    const memory = memories.of(uidOf(cached));
    if (deps.sharding !== undefined && !memory.isConfirmed) {
      const { namespace, name } = cached.metadata;
      const read = await deps.management.client.find<HelmReleaseProxy>(HRP, { namespace, name }, { signal });
      if (read === undefined || read.metadata.uid !== cached.metadata.uid) return undefined;
      writer.note(read);
      memory.isConfirmed = true;
    }
    return writer.freshest(cached);
  }

  /** Paused objects and those of paused Clusters are not touched, not even their status (caaph W13). */
  #isOurs(proxy: HelmReleaseProxy, request: Request): boolean {
    if (!namesCluster(proxy) || clusterNameOf(proxy) !== request.cluster) return false;
    if (!passesFilter(proxy, this.#parts.deps.options.watchFilter) || isPaused(proxy)) return false;
    const { namespace, name } = clusterKeyOf(proxy);
    return this.#parts.caches.clusters.get(namespace, name)?.spec?.paused !== true;
  }

  async #reconcile(proxy: HelmReleaseProxy, context: ReconcileContext): Promise<Result> {
    const strategy = this.#parts.strategies.find(proxy);
    if (strategy === undefined) {
      const error = this.#parts.strategies.unknown(proxy);
      await this.#write(proxy, { conditions: [releaseFailed(error.code, error)] }, context);
      return {};
    }
    if (strategy.handedOff(proxy)) {
      settleReader(this.#parts, clusterNameOf(proxy));
      // Only that this generation was looked at.
      await this.#write(proxy, {}, context);
      return {};
    }
    const cluster = await this.#cluster(proxy, context);
    return cluster === undefined ? {} : this.#onCluster(strategy, { proxy, cluster, context });
  }

  /** The engaged cluster; undefined when its Cluster object is gone. Rejects with ClusterNotConnectedError, or quietly with ClusterNotFoundError. */
  async #cluster(proxy: HelmReleaseProxy, context: ReconcileContext): Promise<Cluster | undefined> {
    const key = clusterKeyOf(proxy);
    const { clusters } = this.#parts.caches;
    if (clusters.get(key.namespace, key.name) === undefined) {
      const message = clusters.knows(key)
        ? `Cluster ${key.namespace}/${key.name} is not there`
        : `nothing is known of cluster ${key.name} yet: its provider has not told of its clusters, or is not configured`;
      await this.#write(proxy, { conditions: [clusterNotAvailable('GetClusterFailed', message)] }, context);
      return undefined;
    }
    try {
      return this.#parts.deps.fleet.get(clusterNameOf(proxy));
    } catch (error) {
      const reason = whyNotConnected(error);
      const condition = reason === undefined ? undefined : notConnectedCondition(proxy, reason);
      if (condition !== undefined) await this.#write(proxy, { conditions: [condition] }, context);
      throw error;
    }
  }

  async #onCluster(
    strategy: Strategy,
    subject: { proxy: HelmReleaseProxy; cluster: Cluster; context: ReconcileContext },
  ): Promise<Result> {
    const { proxy, cluster, context } = subject;
    const signal = AbortSignal.any([context.signal, cluster.signal]);
    const run = new ReleaseRun(this.#parts, { proxy, cluster, reconcile: { ...context, signal } });
    let deployment: Deployment;
    try {
      if (!(await this.#parts.readers.ready(cluster, signal, READER_SYNC_MS))) return {};
      deployment = await strategy.reconcile(run);
    } catch (error) {
      return this.#failed(run, error, { context, signal });
    }
    await this.#succeeded(strategy, { run, deployment, context });
    const resyncMs = this.#resyncMs();
    return { requeueAfterMs: Math.min(deployment.requeueAfterMs ?? resyncMs, resyncMs) };
  }

  async #succeeded(
    strategy: Strategy,
    pass: { run: ReleaseRun; deployment: Deployment; context: ReconcileContext },
  ): Promise<void> {
    const { run, deployment, context } = pass;
    const { release, action } = deployment;
    const memory = this.#parts.memories.of(uidOf(run.proxy));
    const found: Settled = { proxy: run.proxy, release, made: run.made, clusterUID: run.cluster.uid };
    // A fleet at rest has every object looked at once per period: what was right and is the same is not compared anew.
    if (action === 'none' && memory.isSettled(found)) return;
    const written = await this.#write(run.proxy, findingsOf(run, deployment), context, true);
    if (written === undefined || release?.status !== 'deployed') return;
    // After the status: a strategy that lets go upon the annotation never looks at the object again.
    const after = await this.#annotate(strategy, written, context);
    if (after === run.proxy && action === 'none') memory.settle(found);
  }

  async #annotate(
    strategy: Strategy,
    proxy: HelmReleaseProxy,
    context: ReconcileContext,
  ): Promise<HelmReleaseProxy | undefined> {
    const after = await this.#parts.writer.update(proxy, withInstalled, { signal: context.signal });
    if (after !== undefined && !strategy.handedOff(proxy) && strategy.handedOff(after))
      this.#handOff(strategy, after, context);
    return after;
  }

  #handOff(strategy: Strategy, after: HelmReleaseProxy, context: ReconcileContext): void {
    this.#parts.deps.events.record(after, {
      type: 'Normal',
      reason: 'HandedOff',
      message: `release ${after.spec.namespace ?? ''}/${after.spec.releaseName ?? ''} is deployed and from now on left alone (${strategy.name})`,
    });
    context.log.info('release handed off', { release: after.spec.releaseName, strategy: strategy.name });
    settleReader(this.#parts, clusterNameOf(after), after.metadata.uid);
  }

  async #failed(
    run: ReleaseRun,
    error: unknown,
    at: { context: ReconcileContext; signal: AbortSignal },
  ): Promise<Result> {
    if (isInterruption(error, at.signal)) throw error;
    const conditions = failureConditions(error);
    const findings: Findings = { conditions, release: run.outcome, clusterUID: run.cluster.uid };
    // Helm may have died before its last word, or the cluster with it: what is still held, or cannot be read, is our own.
    await this.#write(run.proxy, isOver(run.outcome) ? { ...findings, operation: null } : findings, at.context, true);
    if (error instanceof ReconcilerError && error.class === 'Wait') return { requeueAfterMs: this.#resyncMs() };
    this.#parts.deps.events.record(run.proxy, {
      type: 'Warning',
      reason: conditions.find((condition) => condition.status === 'False')?.reason ?? 'HelmInstallOrUpgradeFailed',
      message: errorText(error),
    });
    throw isTerminal(error) ? new TerminalError(errorText(error), { cause: error }) : error;
  }

  async #write(
    proxy: HelmReleaseProxy,
    findings: Findings,
    context: ReconcileContext,
    ours = false,
  ): Promise<HelmReleaseProxy | undefined> {
    const now = new Date(this.#parts.tools.now());
    const wanted = (current: HelmReleaseProxy): HelmReleaseProxy =>
      withFindings(ours ? withFinalizer(current) : current, findings, now);
    return this.#parts.writer.update(proxy, wanted, { signal: context.signal });
  }

  #resyncMs(): number {
    const jitter = 1 + RESYNC_JITTER * (2 * this.#parts.tools.random() - 1);
    return Math.round(this.#parts.deps.options.syncPeriodMs * jitter);
  }
}

function findingsOf(run: ReleaseRun, { release, action, reason }: Deployment): Findings {
  const note = action === 'wait' ? reason : '';
  const ready = release === undefined ? noRelease(note) : releaseCondition(release, note);
  return {
    conditions: [clusterAvailable, ready],
    release: release ?? null,
    made: release === undefined ? undefined : run.made,
    clusterUID: run.cluster.uid,
    operation: null,
  };
}

function withInstalled(proxy: HelmReleaseProxy): HelmReleaseProxy {
  if (isDeleting(proxy)) return proxy;
  const annotations: Record<string, string> = { ...proxy.metadata.annotations, [INSTALLED_ANNOTATION]: 'true' };
  // For the chart-proxy side, which must know the cluster again after `clusterctl move`: status does not move along.
  const workload = proxy.status?.clusterUID;
  if (workload !== undefined) annotations[WORKLOAD_CLUSTER_UID_ANNOTATION] = workload;
  return { ...proxy, metadata: { ...proxy.metadata, annotations } };
}

/** Has the operation left nothing behind that only its owner may take over at once? */
function isOver(outcome: ReleaseSummary | null | undefined): boolean {
  if (outcome === undefined) return false;
  return outcome === null || !(outcome.status.startsWith('pending-') || outcome.status === 'uninstalling');
}

function isTerminal(error: unknown): boolean {
  return isHelmError(error, ...TERMINAL_HELM) || (error instanceof ReconcilerError && error.class === 'User');
}

/** Which condition tells a failure, with CAAPH's reason where it has one. */
function failureConditions(error: unknown): ConditionInput[] {
  if (error instanceof ReconcilerError) {
    return error.code === GET_CREDENTIALS_FAILED || error.code === GET_CA_FAILED
      ? [clusterNotAvailable(error.code, error.message)]
      : [clusterAvailable, releaseFailed(error.code, error)];
  }
  const reason = isHelmError(error, 'OptionUnsupported') ? 'HelmOptionUnsupported' : 'HelmInstallOrUpgradeFailed';
  return [clusterAvailable, releaseFailed(reason, error)];
}
