import type { Attributes } from '@opentelemetry/api';
import { reasonOf, withTimeout } from '../kube/index.ts';
import {
  CLUSTER_ATTRIBUTE,
  NAMESPACE_ATTRIBUTE,
  describeSpan,
  errorText,
  failSpan,
  inTrace,
} from '../telemetry/index.ts';
import type { Logger, Telemetry } from '../telemetry/index.ts';
import { aborted, linkSignals, settledWithin } from './abort.ts';
import type { LinkedSignal } from './abort.ts';
import {
  ClusterNotConnectedError,
  ClusterNotFoundError,
  LeadershipLostError,
  ReconcileTimeoutError,
  StoppingError,
  TerminalError,
} from './errors.ts';
import type { LaneOptions } from './lane.ts';
import { Origins } from './origins.ts';
import { ParkingLot } from './parking-lot.ts';
import { QueueMetrics } from './queue-metrics.ts';
import type { ReconcileResult } from './queue-metrics.ts';
import { ShardDispatch } from './sharding/dispatch.ts';
import type { ShardedWork } from './sharding/dispatch.ts';
import type { Permit } from './sharding/types.ts';
import type {
  Cluster,
  ClusterName,
  Enqueuer,
  Fleet,
  Priority,
  Reconciler,
  Request,
  Result,
  Runnable,
} from './types.ts';
import { WorkQueue } from './work-queue.ts';
import type { Outcome, WorkQueueOptions } from './work-queue.ts';

export interface ControllerLane extends LaneOptions {
  /** Limit of one reconcile, milliseconds; 15 min. Longer than the longest operation that the reconciler may wait for. */
  readonly limitMs?: number;
}

/**
 * Feeds a controller: registers event handlers that enqueue, and undoes that when `signal` aborts. A promise resolves
 * when the source's cache has synced; the controller hands out no work before all have.
 */
export type Source = (queue: Enqueuer, signal: AbortSignal) => Promise<void> | undefined;

export interface ControllerOptions extends Pick<
  WorkQueueOptions,
  'lane' | 'backoffBaseMs' | 'backoffCapMs' | 'random'
> {
  /** Stands in logs, spans and metrics (`controller`). */
  readonly name: string;
  readonly reconciler: Reconciler;
  readonly telemetry: Telemetry;
  /** Several replicas share the work: what of it this one may do. Absent: all. */
  readonly sharding?: ShardedWork;
  /** Where the clusters of requests are known. Absent: a controller of the management cluster alone. */
  readonly fleet?: Fleet;
  readonly sources?: readonly Source[];
  /** Pools by name; one named `default` with 10 places when absent. */
  readonly lanes?: Readonly<Record<string, ControllerLane>>;
  /** On stop, what runs may go on for so long before its signal aborts, milliseconds; 20 s. */
  readonly graceMs?: number;
  /** Limit for the sources to sync, milliseconds; 2 min. */
  readonly syncTimeoutMs?: number;
}

const DEFAULT_LANES: Readonly<Record<string, ControllerLane>> = { default: { concurrency: 10 } };
/** Requests that `debug` names: enough to see what hangs, little enough to read. */
const DEBUG_REQUESTS = 200;
const DEFAULT_LIMIT_MS = 15 * 60_000;
const DEFAULT_GRACE_MS = 20_000;
const DEFAULT_SYNC_TIMEOUT_MS = 120_000;
/** After its signal aborted, work gets so long to notice. Whoever does not is left behind, and said so. */
const ABORT_GRACE_MS = 5_000;

/**
 * Runs a reconciler on a queue. Work for a cluster is not held back here: the reconciler asks the fleet for the cluster
 * when it needs it, and a ClusterNotConnectedError parks the request until that cluster is in service again. Asking
 * for a parked request anew (an event, a resync) runs it at once: much can be done without the cluster.
 */
export class Controller implements Runnable, Enqueuer {
  readonly name: string;
  readonly #options: ControllerOptions;
  readonly #queue: WorkQueue;
  readonly #metrics: QueueMetrics;
  readonly #parked: ParkingLot;
  readonly #dispatch: ShardDispatch | undefined;
  readonly #origins = new Origins();
  readonly #log: Logger;
  /** Aborts what runs, when the grace of a stop is over. */
  readonly #halt = new AbortController();

  constructor(options: ControllerOptions) {
    const lanes = options.lanes ?? DEFAULT_LANES;
    const places = Object.values(lanes).reduce((sum, lane) => sum + lane.concurrency, 0);
    this.name = options.name;
    this.#options = options;
    this.#log = options.telemetry.log.with({ controller: options.name });
    this.#metrics = new QueueMetrics(options.telemetry.metrics, options.name, places);
    this.#parked = new ParkingLot((cluster, count) => this.#metrics.parked(cluster, count));
    this.#dispatch = options.sharding && new ShardDispatch(options.sharding, ({ request }) => this.enqueue(request));
    this.#queue = new WorkQueue({
      ...options,
      lanes,
      metrics: this.#metrics,
      work: async (request, failures) => this.#permitted(request, failures),
      onBug: (err) => this.#log.error('the queue met an error of its own', { err }),
    });
  }

  /** Requests that wait for their clusters, for tests and status pages. */
  get parked(): number {
    return this.#parked.size;
  }

  /** Requests waiting to be worked on. */
  get depth(): number {
    return this.#queue.depth;
  }

  debug(): unknown {
    const { depth, active } = this.#queue;
    return {
      controller: this.name,
      waiting: depth,
      running: active,
      parked: this.parked,
      requests: this.#queue.debug(DEBUG_REQUESTS),
    };
  }

  enqueue(request: Request, options: { priority?: Priority; afterMs?: number } = {}): void {
    if (this.#dispatch?.keeps(request) === true) return;
    if ((options.afterMs ?? 0) <= 0) this.#parked.take(request);
    this.#origins.note(request);
    this.#queue.add(request, options.priority, options.afterMs);
  }

  /** Rejects when a source does not sync in time; otherwise resolves after `signal` aborted and the work has drained. */
  async run(signal: AbortSignal): Promise<void> {
    using feeding = linkSignals(signal);
    let unregister: (() => void) | undefined;
    const deaf = this.#dispatch?.listen();
    try {
      await this.#sync(feeding.signal);
      unregister = this.#options.fleet?.register({
        engaged: (cluster) => this.#resume(cluster.name),
        // What waits for a cluster that is gone runs once more, finds it gone and ends.
        changed: (name, state) => {
          if (state.phase === 'disengaged') this.#resume(name);
        },
      });
      this.#queue.start();
      await aborted(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      feeding.abort(new StoppingError(this.name));
      unregister?.();
      deaf?.();
      await this.#drain(signal.reason instanceof LeadershipLostError ? 0 : this.#options.graceMs);
    }
  }

  async #sync(signal: AbortSignal): Promise<void> {
    const limitMs = this.#options.syncTimeoutMs ?? DEFAULT_SYNC_TIMEOUT_MS;
    // Sources keep `signal` for as long as they feed; only the wait for them is limited.
    const synced = (this.#options.sources ?? []).map(async (source) => source(this, signal));
    await withTimeout(signal, limitMs, async () => Promise.all(synced), `${this.name}: sync of its caches`);
  }

  /** No grace when another process leads: two must not act together. */
  async #drain(graceMs = DEFAULT_GRACE_MS): Promise<void> {
    const stopped = this.#queue.stop();
    if (graceMs > 0 && (await settledWithin(stopped, graceMs))) return;
    this.#halt.abort(new StoppingError(this.name));
    if (await settledWithin(stopped, ABORT_GRACE_MS)) return;
    this.#log.error('work did not heed its signal and is left behind', { active: this.#queue.active });
  }

  #resume(cluster: ClusterName): void {
    for (const { request, priority } of this.#parked.takeAll(cluster)) this.#queue.add(request, priority);
  }

  async #permitted(request: Request, failures: number): Promise<Outcome> {
    if (this.#dispatch === undefined) return this.#traced(request, failures);
    using permit = this.#dispatch.enter(request);
    // It was ours when it was asked for; it comes back when it is again.
    if (permit === undefined) return { type: 'done' };
    return await this.#dispatch.run(permit, async () => this.#traced(request, failures, permit));
  }

  /** In the trace of whoever asked for it. */
  async #traced(request: Request, failures: number, permit?: Permit): Promise<Outcome> {
    const attributes: Attributes = {
      [CLUSTER_ATTRIBUTE]: request.cluster,
      [NAMESPACE_ATTRIBUTE]: request.namespace,
      'capstan.controller': this.name,
      'capstan.object.name': request.name,
    };
    const start = { origin: this.#origins.take(request), attributes };
    return inTrace(this.#options.telemetry.tracer, `reconcile ${this.name}`, start, async () =>
      this.#work(request, failures, permit),
    );
  }

  async #work(request: Request, failures: number, permit: Permit | undefined): Promise<Outcome> {
    const log = this.#log.with({
      cluster: request.cluster,
      namespace: request.namespace,
      name: request.name,
    });
    const cluster = this.#engagement(request.cluster);
    using linked = linkSignals(permit?.signal, this.#halt.signal, cluster?.signal);
    const limit = this.#limit(request, linked);
    try {
      const result = await this.#options.reconciler.reconcile(request, { signal: linked.signal, log, failures });
      return this.#lost(request, permit, log) ?? this.#succeeded(request, result);
    } catch (error) {
      const lost = this.#lost(request, permit, log);
      if (lost !== undefined) return lost;
      return this.#onError(request, linked.signal.aborted ? reasonOf(linked.signal) : error, {
        log,
        failures,
        cluster,
      });
    } finally {
      clearTimeout(limit);
    }
  }

  #succeeded(request: Request, result: Result): Outcome {
    if (result.requeueAfterMs === undefined) return this.#end(request, 'success', { type: 'done' });
    return this.#end(request, 'requeue_after', { type: 'later', afterMs: result.requeueAfterMs });
  }

  /** Another replica has, or will have, this work: whatever came of it here says nothing, and its last writes may be missing. */
  #lost(request: Request, permit: Permit | undefined, log: Logger): Outcome | undefined {
    if (permit === undefined || permit.valid || this.#dispatch === undefined) return undefined;
    log.info('this replica does not hold the cluster any more; the work is left to the one that does');
    const again = !this.#dispatch.keeps(request);
    return this.#end(request, again ? 'requeue' : 'parked', { type: again ? 'again' : 'done' });
  }

  #limit(request: Request, linked: LinkedSignal): NodeJS.Timeout {
    const lanes = this.#options.lanes ?? DEFAULT_LANES;
    const lane = lanes[this.#options.lane?.(request) ?? ''] ?? Object.values(lanes)[0];
    const limitMs = lane?.limitMs ?? DEFAULT_LIMIT_MS;
    return setTimeout(() => linked.abort(new ReconcileTimeoutError(limitMs)), limitMs);
  }

  #engagement(name: ClusterName): Cluster | undefined {
    const state = this.#options.fleet?.state(name);
    return state !== undefined && 'cluster' in state ? state.cluster : undefined;
  }

  #onError(
    request: Request,
    error: unknown,
    run: { log: Logger; failures: number; cluster: Cluster | undefined },
  ): Outcome {
    if (this.#halt.signal.aborted) return { type: 'done' };
    if (error instanceof ClusterNotFoundError) {
      run.log.debug('the cluster is gone: nothing to do');
      return this.#end(request, 'gone', { type: 'done' });
    }
    if (error instanceof ClusterNotConnectedError) return this.#park(request, error, run.log);
    // The engagement that the work began with is over: what failed for that reason is looked at anew, without blame.
    if (run.cluster?.signal.aborted === true) return this.#end(request, 'requeue', { type: 'again' });
    failSpan(error);
    if (error instanceof TerminalError) {
      run.log.error('reconcile failed and is not retried', { err: errorText(error) });
      return this.#end(request, 'error', { type: 'done' });
    }
    run.log.warn('reconcile failed; it is retried', { err: errorText(error), failures: run.failures + 1 });
    return this.#end(request, 'error', { type: 'retry' });
  }

  #park(request: Request, error: ClusterNotConnectedError, log: Logger): Outcome {
    const { fleet } = this.#options;
    const phase = fleet?.state(error.cluster)?.phase;
    // Engaged between the error and now (or never known to a fleet): nobody would wake it.
    if (phase === undefined || phase === 'engaged' || phase === 'disengaged')
      return this.#end(request, 'requeue', { type: 'retry' });
    log.debug('waits for its cluster', { reason: error.reason.code });
    this.#parked.put(error.cluster, request);
    return this.#end(request, 'parked', { type: 'done' });
  }

  #end(request: Request, result: ReconcileResult, outcome: Outcome): Outcome {
    this.#metrics.result(request.cluster, result);
    describeSpan({ 'capstan.reconcile.result': result });
    // The next attempt is made for the same cause.
    if (result === 'parked' || outcome.type === 'retry' || outcome.type === 'again') this.#origins.note(request);
    return outcome;
  }
}
