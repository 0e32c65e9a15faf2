/** The HelmChartProxy as a whole: finalizer, status at a bounded rate, deletion. What happens on clusters is placement.ts's. */
import { HCP_FINALIZER } from '../../api/index.ts';
import type { HelmChartProxy, HelmReleaseProxy } from '../../api/index.ts';
import type { KubeClient } from '../../kube/index.ts';
import type { ReconcileContext, Reconciler, Request, Result } from '../../runtime/index.ts';
import { setCondition, summarize } from '../conditions.ts';
import { hasCode } from '../errors.ts';
import { HRP } from '../resources.ts';
import type { StatusWriter } from '../status-writer.ts';
import type { Strategy } from '../types.ts';
import { isMovedAway, isPaused } from './decide.ts';
import { isOwnedBy, strategyName } from './desired.ts';
import { clusterKeyOf } from './fleet-view.ts';
import type { FleetView } from './fleet-view.ts';
import type { Outcomes } from './outcomes.ts';
import { PROXIES_READY, SPECS_UP_TO_DATE, chartProxyStatus, deletionStatus } from './status.ts';

export interface ChartProxyParts {
  readonly view: FleetView;
  readonly client: KubeClient;
  readonly chartProxies: StatusWriter<HelmChartProxy>;
  readonly releaseProxies: StatusWriter<HelmReleaseProxy>;
  readonly strategies: readonly Strategy[];
  readonly outcomes: Outcomes;
  /** `group/version` of Cluster. */
  readonly clusterApiVersion: () => string;
  /** Told that a pass over this object begins. */
  readonly passed: (request: Request) => void;
}

/** Deletes sent at a time: a thousand HelmReleaseProxies go in seconds without crowding out everything else. */
const DELETES_AT_A_TIME = 20;
/** What `kubectl delete --cascade=orphan` sets: the garbage collector takes the owner references off first. */
const ORPHAN_FINALIZER = 'orphan';

export class ChartProxyReconciler implements Reconciler {
  readonly #parts: ChartProxyParts;

  constructor(parts: ChartProxyParts) {
    this.#parts = parts;
  }

  async reconcile(request: Request, context: ReconcileContext): Promise<Result> {
    const known = this.#parts.view.chartProxy(request);
    if (known === undefined || !this.#parts.view.isWatched(known)) return {};
    const chartProxy = this.#parts.chartProxies.freshest(known);
    // Paused: not even the status moves (caaph W13). Moved away: clusterctl takes the finalizer off by itself.
    if (isPaused(chartProxy) || isMovedAway(chartProxy)) return {};
    this.#parts.passed(request);
    if (chartProxy.metadata.deletionTimestamp === undefined) await this.#update(chartProxy, context);
    else await this.#delete(chartProxy, context);
    return {};
  }

  async #update(chartProxy: HelmChartProxy, context: ReconcileContext): Promise<void> {
    const { view, outcomes } = this.#parts;
    const selection = view.selected(chartProxy);
    const releaseProxies = view.ownedBy(chartProxy).map((proxy) => this.#parts.releaseProxies.freshest(proxy));
    const input = {
      selected: selection.clusters.map((cluster) => cluster.metadata.name),
      selectorProblem: selection.problem,
      clusterApiVersion: this.#parts.clusterApiVersion(),
      releaseProxies,
      outcomes: outcomes.of(chartProxy.metadata.uid ?? ''),
      unobserved: this.#unobserved(chartProxy, releaseProxies),
    };
    const wanted = (current: HelmChartProxy): HelmChartProxy => ({
      ...withFinalizer(current),
      status: chartProxyStatus({ ...input, chartProxy: current }),
    });
    await this.#parts.chartProxies.update(chartProxy, wanted, { signal: context.signal });
  }

  /** HelmReleaseProxies whose controller will not look at them: their Cluster is paused, or they are handed off. */
  #unobserved(chartProxy: HelmChartProxy, releaseProxies: readonly HelmReleaseProxy[]): Set<HelmReleaseProxy> {
    const name = strategyName(chartProxy.spec);
    const strategy = this.#parts.strategies.find((candidate) => candidate.name === name);
    return new Set(
      releaseProxies.filter(
        (proxy) =>
          strategy?.handedOff(proxy) === true ||
          isPaused(proxy) ||
          this.#parts.view.cluster(clusterKeyOf(proxy))?.spec?.paused === true,
      ),
    );
  }

  /** Needs no selector and no cluster: neither can keep an object from going (caaph W9). Each deletion that ends is an event. */
  async #delete(chartProxy: HelmChartProxy, context: ReconcileContext): Promise<void> {
    const finalizers = chartProxy.metadata.finalizers ?? [];
    if (!finalizers.includes(HCP_FINALIZER) || finalizers.includes(ORPHAN_FINALIZER)) return;
    const remaining = this.#parts.view.ownedBy(chartProxy).filter((proxy) => isOwnedBy(proxy, chartProxy));
    try {
      await this.#deleteAll(remaining, context.signal);
    } catch (error) {
      context.signal.throwIfAborted();
      await this.#tellDeletionFailed(chartProxy, error, context.signal);
      throw error;
    }
    const wanted = (current: HelmChartProxy): HelmChartProxy =>
      remaining.length === 0 ? withoutFinalizer(current) : { ...current, status: deletionStatus(current, remaining) };
    await this.#parts.chartProxies.update(chartProxy, wanted, { signal: context.signal });
    if (remaining.length === 0) context.log.info('HelmChartProxy is deleted');
  }

  async #deleteAll(proxies: readonly HelmReleaseProxy[], signal: AbortSignal): Promise<void> {
    const alive = proxies.filter((proxy) => proxy.metadata.deletionTimestamp === undefined);
    for (let at = 0; at < alive.length; at += DELETES_AT_A_TIME) {
      await Promise.all(alive.slice(at, at + DELETES_AT_A_TIME).map(async (proxy) => this.#deleteOne(proxy, signal)));
    }
  }

  async #deleteOne({ metadata: { namespace, name, uid } }: HelmReleaseProxy, signal: AbortSignal): Promise<void> {
    try {
      await this.#parts.client.delete(HRP, { namespace, name }, { uid, signal });
    } catch (error) {
      // Another object has the name by now.
      if (!hasCode(error, 'Conflict')) throw error;
    }
  }

  async #tellDeletionFailed(chartProxy: HelmChartProxy, error: unknown, signal: AbortSignal): Promise<void> {
    const message = error instanceof Error ? error.message : String(error);
    const input = {
      type: SPECS_UP_TO_DATE,
      status: 'False',
      reason: 'HelmReleaseProxyDeletionFailed',
      message,
    } as const;
    const wanted = (current: HelmChartProxy): HelmChartProxy => {
      const generation = current.metadata.generation;
      const conditions = setCondition(current.status?.conditions, input, generation);
      const all = summarize(conditions, [SPECS_UP_TO_DATE, PROXIES_READY], generation);
      return { ...current, status: { ...current.status, conditions: all } };
    };
    await this.#parts.chartProxies.update(chartProxy, wanted, { signal });
  }
}

function withFinalizer(chartProxy: HelmChartProxy): HelmChartProxy {
  const finalizers = chartProxy.metadata.finalizers ?? [];
  if (finalizers.includes(HCP_FINALIZER)) return chartProxy;
  return { ...chartProxy, metadata: { ...chartProxy.metadata, finalizers: [...finalizers, HCP_FINALIZER] } };
}

function withoutFinalizer(chartProxy: HelmChartProxy): HelmChartProxy {
  const finalizers = (chartProxy.metadata.finalizers ?? []).filter((finalizer) => finalizer !== HCP_FINALIZER);
  return { ...chartProxy, metadata: { ...chartProxy.metadata, finalizers } };
}
