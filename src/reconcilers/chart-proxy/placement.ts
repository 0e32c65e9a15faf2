/** One placement: a HelmChartProxy on a Cluster. Everything that fails here concerns this cluster alone (caaph W8). */
import { HCP_FINALIZER } from '../../api/index.ts';
import type { HelmChartProxy, HelmReleaseProxy } from '../../api/index.ts';
import { matchesSelector } from '../../kube/index.ts';
import type { KubeClient } from '../../kube/index.ts';
import { fleetNameOf } from '../cluster-names.ts';
import type { Fleet, ReconcileContext, Reconciler, Request, Result } from '../../runtime/index.ts';
import { activeTraceparent } from '../../telemetry/index.ts';
import { ReconcilerError, hasCode } from '../errors.ts';
import { HRP } from '../resources.ts';
import type { CapiCluster } from '../shared.ts';
import { FIELD_MANAGER } from '../status-writer.ts';
import type { StatusWriter } from '../status-writer.ts';
import { withTraceparent } from '../trace-context.ts';
import type { Strategy } from '../types.ts';
import type { Builtins } from './builtins.ts';
import { decide, mayAct } from './decide.ts';
import type { Action, Observed } from './decide.ts';
import { adoptedReleaseProxy, isOwnedBy, newReleaseProxy, strategyName, updatedReleaseProxy } from './desired.ts';
import type { Placement } from './desired.ts';
import { sortOut } from './duplicates.ts';
import type { Duplicates } from './duplicates.ts';
import { clusterOf, selectorProblem } from './fleet-view.ts';
import type { FleetView } from './fleet-view.ts';
import { askAgainMs, identified } from './identity.ts';
import type { Identify } from './identity.ts';
import type { NamedIn } from './naming.ts';
import type { Outcome } from './outcomes.ts';
import { Settlement } from './settlement.ts';
import type { SettlementParts } from './settlement.ts';
import type { Values } from './values.ts';

export interface PlacementParts extends SettlementParts {
  readonly view: FleetView;
  readonly values: Values;
  readonly builtins: Builtins;
  readonly client: KubeClient;
  readonly chartProxies: StatusWriter<HelmChartProxy>;
  readonly releaseProxies: StatusWriter<HelmReleaseProxy>;
  readonly strategies: readonly Strategy[];
  readonly fleet: Fleet;
  /** Only where other replicas serve clusters. */
  readonly identify?: Identify;
  /** `group/version` of Cluster API's Cluster. */
  readonly clusterApiVersion: () => string;
  readonly watchFilter?: string;
}

/** What a reconcile of one placement works with. */
interface Work {
  readonly request: Request;
  readonly context: ReconcileContext;
  readonly chartProxy: HelmChartProxy;
  readonly clusterKey: NamedIn;
  readonly cluster: CapiCluster | undefined;
  readonly duplicates: Duplicates;
  readonly observed: Observed;
}

const DONE: Outcome = { state: 'done' };
/** Reason of a failed write, as CAAPH's. */
const CREATION_FAILED = 'HelmReleaseProxyCreationFailed';
const DELETION_FAILED = 'HelmReleaseProxyDeletionFailed';

/** Never asks for the workload cluster: a cluster that cannot be reached still gets its HelmReleaseProxy. */
export class PlacementReconciler implements Reconciler {
  readonly #parts: PlacementParts;
  readonly #strategies: ReadonlyMap<string, Strategy>;
  readonly #settlement: Settlement;

  constructor(parts: PlacementParts) {
    this.#parts = parts;
    this.#settlement = new Settlement(parts);
    this.#strategies = new Map(parts.strategies.map((strategy) => [strategy.name, strategy]));
  }

  async reconcile(request: Request, context: ReconcileContext): Promise<Result> {
    const clusterKey = clusterOf(request);
    const known = this.#parts.view.chartProxy(request);
    if (clusterKey === undefined || known === undefined || !this.#parts.view.isWatched(known)) {
      this.#parts.builtins.release(request);
      return {};
    }
    const looked = this.#look(request, context, { chartProxy: this.#parts.chartProxies.freshest(known), clusterKey });
    const work = { ...looked, observed: await identified(looked.observed, this.#parts.identify, context) };
    try {
      const outcome = await this.#act(work);
      this.#settle(work, outcome === DONE ? conflictOf(work.duplicates) : outcome);
      // Of a cluster that this replica does not serve no engagement tells.
      return { requeueAfterMs: this.#parts.identify && askAgainMs(work.observed) };
    } catch (error) {
      context.signal.throwIfAborted();
      this.#settle(work, failureOf(error));
      if (error instanceof ReconcilerError && error.class !== 'Retry') return {};
      throw error;
    }
  }

  #look(request: Request, context: ReconcileContext, of: { chartProxy: HelmChartProxy; clusterKey: NamedIn }): Work {
    const { chartProxy, clusterKey } = of;
    const cluster = this.#parts.view.cluster(clusterKey);
    const placed = this.#parts.view
      .placed(chartProxy, clusterKey)
      .map((proxy) => this.#parts.releaseProxies.freshest(proxy));
    const duplicates = sortOut(placed);
    const state = this.#parts.fleet.state(fleetNameOf(clusterKey));
    const engaged = state?.phase === 'engaged' || state?.phase === 'degraded';
    const observed: Observed = {
      chartProxy,
      cluster,
      unknown: cluster === undefined && !this.#parts.view.knows(clusterKey),
      selected: isSelected(chartProxy, cluster),
      proxy: duplicates.keep,
      strategy: this.#strategies.get(strategyName(chartProxy.spec)),
      engaged,
      workloadUid: engaged ? state.cluster.uid : undefined,
    };
    return { request, context, chartProxy, clusterKey, cluster, duplicates, observed };
  }

  /** Resolves to what became of the placement; undefined: nothing to say about it yet. */
  async #act(work: Work): Promise<Outcome | undefined> {
    // An invalid selector says nothing: nobody comes in and nobody is thrown out on its account (caaph W9).
    if (work.cluster !== undefined && selectorProblem(work.chartProxy) !== undefined) return undefined;
    if (mayAct(work.observed)) await this.#removeDuplicates(work);
    return this.#do(work, decide(work.observed));
  }

  async #do(work: Work, action: Action): Promise<Outcome | undefined> {
    switch (action.type) {
      case 'none':
        work.context.log.debug('nothing to place', { why: action.why });
        return DONE;
      case 'wait':
        work.context.log.debug('placement waits', { why: action.why });
        return action.reinstalling ? reinstalling(work) : DONE;
      case 'delete':
        return this.#delete(work, action);
      case 'adopt':
        return this.#adopt(work);
      case 'create':
      case 'update':
        return this.#place(work);
    }
  }

  async #place(work: Work): Promise<Outcome | undefined> {
    const { chartProxy, cluster, context } = work;
    const proxy = work.observed.proxy;
    if (cluster === undefined) return DONE;
    // Without the finalizer nobody would clean up; its arrival is an event.
    if (proxy === undefined && chartProxy.metadata.finalizers?.includes(HCP_FINALIZER) !== true) return undefined;
    const values = await this.#parts.values.of({ request: work.request, chartProxy, cluster, proxy }, context.signal);
    const placement: Placement = {
      chartProxy,
      cluster,
      clusterApiVersion: this.#parts.clusterApiVersion(),
      watchFilter: this.#parts.watchFilter,
    };
    const traceparent = activeTraceparent();
    if (proxy === undefined)
      return this.#create(work, withTraceparent(proxy, newReleaseProxy(placement, values), traceparent));
    const after = await this.#parts.releaseProxies.update(
      proxy,
      (current) => withTraceparent(current, updatedReleaseProxy(current, placement, values), traceparent),
      { signal: context.signal, observe: false },
    );
    if (after !== undefined && after !== proxy)
      context.log.info('HelmReleaseProxy updated', { proxy: proxy.metadata.name });
    return DONE;
  }

  /** Done only when the cache shows it: a status told before would count no HelmReleaseProxy and call that ready. Its arrival is an event. */
  async #create(work: Work, proxy: HelmReleaseProxy): Promise<Outcome | undefined> {
    const { context } = work;
    const name = proxy.metadata.name;
    try {
      const made = await this.#parts.client.create(HRP, proxy, { signal: context.signal, fieldManager: FIELD_MANAGER });
      this.#parts.releaseProxies.note(made);
      context.log.info('HelmReleaseProxy created', { proxy: name });
      return undefined;
    } catch (error) {
      if (!hasCode(error, 'AlreadyExists')) throw error;
      return this.#taken(work, name, error);
    }
  }

  /** The name is in use: by this very placement, when the cache lags behind; by a predecessor on its way out; or by somebody else. */
  async #taken(work: Work, name: string, cause: unknown): Promise<Outcome | undefined> {
    const { chartProxy, context } = work;
    const key = { namespace: chartProxy.metadata.namespace, name };
    const standing = await this.#parts.client.find<HelmReleaseProxy>(HRP, key, { signal: context.signal });
    if (standing === undefined) throw cause;
    if (standing.metadata.deletionTimestamp !== undefined) return reinstalling(work);
    if (isOwnedBy(standing, chartProxy)) return undefined;
    throw new ReconcilerError({
      code: CREATION_FAILED,
      class: 'Wait',
      message: `HelmReleaseProxy ${name} for cluster '${work.clusterKey.name}' exists already and belongs to somebody else`,
      cause,
    });
  }

  async #adopt(work: Work): Promise<Outcome> {
    const { cluster, observed, context } = work;
    if (observed.proxy === undefined) return DONE;
    await this.#parts.releaseProxies.update(
      observed.proxy,
      (current) => adoptedReleaseProxy(current, cluster?.metadata.uid, observed.workloadUid),
      { signal: context.signal, observe: false },
    );
    return DONE;
  }

  async #delete(work: Work, action: Action & { type: 'delete' }): Promise<Outcome> {
    const proxy = work.observed.proxy;
    const outcome = action.reinstall ? reinstalling(work) : DONE;
    // Told before it begins: a small release is gone and back within a second (caaph W11).
    if (action.reinstall) this.#settle(work, outcome);
    if (proxy !== undefined) await this.#remove(work, proxy, action.why);
    return outcome;
  }

  async #removeDuplicates(work: Work): Promise<void> {
    const keep = work.duplicates.keep?.metadata.name ?? '';
    for (const proxy of work.duplicates.remove) await this.#remove(work, proxy, `${keep} is for the same cluster`);
  }

  async #remove(work: Work, proxy: HelmReleaseProxy, why: string): Promise<void> {
    const { namespace, name, uid } = proxy.metadata;
    try {
      await this.#parts.client.delete(HRP, { namespace, name }, { uid, signal: work.context.signal });
      work.context.log.info('HelmReleaseProxy is being deleted', { proxy: name, why });
    } catch (error) {
      // Another object has the name by now: its event brings us back.
      if (hasCode(error, 'Conflict')) return;
      work.context.signal.throwIfAborted();
      throw new ReconcilerError({
        code: DELETION_FAILED,
        class: 'Retry',
        message: `failed to delete HelmReleaseProxy ${name} on cluster '${work.clusterKey.name}': ${messageOf(error)}`,
        cause: error,
      });
    }
  }

  #settle(work: Work, outcome: Outcome | undefined): void {
    const { chartProxy, clusterKey, observed } = work;
    if (readsNothing(observed)) this.#parts.builtins.release(work.request);
    this.#settlement.settle({ chartProxy, cluster: clusterKey.name, over: isOver(observed) }, outcome);
  }
}

/** Is there nothing left to be told of the placement? */
function isOver({ cluster, selected }: Observed): boolean {
  return cluster === undefined || !selected;
}

/** Will values not be needed again? */
function readsNothing(observed: Observed): boolean {
  return isOver(observed) || (observed.proxy !== undefined && observed.strategy?.handedOff(observed.proxy) === true);
}

function isSelected(chartProxy: HelmChartProxy, cluster: CapiCluster | undefined): boolean {
  if (cluster === undefined || cluster.metadata.namespace !== chartProxy.metadata.namespace) return false;
  return matchesSelector(chartProxy.spec.clusterSelector, cluster.metadata.labels);
}

function reinstalling(work: Work): Outcome {
  // CAAPH's words (caaph §3.2, TestReconcileForCluster 5).
  const message = `HelmReleaseProxy on cluster '${work.clusterKey.name}' successfully deleted, preparing to reinstall`;
  return { state: 'reinstalling', message };
}

function conflictOf({ keep, conflicting }: Duplicates): Outcome {
  if (keep === undefined || conflicting.length === 0) return DONE;
  const others = conflicting.map((proxy) => proxy.metadata.name).sort();
  return {
    state: 'failed',
    reason: 'HelmReleaseProxyDuplicate',
    message: `HelmReleaseProxy ${keep.metadata.name} counts for cluster '${keep.spec.clusterRef.name ?? ''}', but ${others.join(', ')} made a release of its own there; delete what is not wanted`,
  };
}

function failureOf(error: unknown): Outcome {
  if (error instanceof ReconcilerError) return { state: 'failed', reason: error.code, message: error.message };
  return { state: 'failed', reason: CREATION_FAILED, message: messageOf(error) };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
