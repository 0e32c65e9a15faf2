import type { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { counter, gauge, histogram } from '../telemetry/index.ts';
import type { ClusterName } from './types.ts';

/** Seconds: from a resync with nothing to do (milliseconds) to an install that waits for its workloads (a quarter of an hour). */
const DURATION_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 900];

/** How a reconcile ended, in controller-runtime's words (`parked` and `gone` are Capstan's own). */
export type ReconcileResult = 'success' | 'error' | 'requeue' | 'requeue_after' | 'parked' | 'gone';

/**
 * A controller's metrics under controller-runtime's names, so that dashboards made for it keep working. Counters and
 * gauges carry the cluster as well; histograms do not: a thousand clusters times fifteen buckets times every controller
 * would be most of a scrape, and a cluster's own times are in the traces. The fleet drops the series of a cluster that
 * is gone (forgetCluster); gauges are therefore set, never counted up and down.
 */
export class QueueMetrics {
  readonly #controller: string;
  readonly #queueLabels: { readonly name: string; readonly controller: string };
  readonly #waiting = new Map<ClusterName, number>();
  readonly #working = new Map<ClusterName, number>();
  readonly #depth: Gauge<'name' | 'controller' | 'cluster'>;
  readonly #adds: Counter<'name' | 'controller' | 'cluster'>;
  readonly #retries: Counter<'name' | 'controller' | 'cluster'>;
  readonly #queued: Histogram<'name' | 'controller'>;
  readonly #worked: Histogram<'name' | 'controller'>;
  readonly #total: Counter<'controller' | 'result' | 'cluster'>;
  readonly #errors: Counter<'controller' | 'cluster'>;
  readonly #time: Histogram<'controller'>;
  readonly #active: Gauge<'controller' | 'cluster'>;
  readonly #parked: Gauge<'controller' | 'cluster'>;

  constructor(registry: Registry, controller: string, places: number) {
    const queue = ['name', 'controller', 'cluster'] as const;
    const queueTime = ['name', 'controller'] as const;
    const perCluster = ['controller', 'cluster'] as const;
    const perResult = ['controller', 'result', 'cluster'] as const;
    this.#controller = controller;
    this.#queueLabels = { name: controller, controller };
    this.#depth = gauge(registry, 'workqueue_depth', 'Requests waiting in the queue', queue);
    this.#adds = counter(registry, 'workqueue_adds_total', 'Requests put into the queue', queue);
    this.#retries = counter(registry, 'workqueue_retries_total', 'Requests put back after a failure', queue);
    this.#queued = histogram(
      registry,
      'workqueue_queue_duration_seconds',
      'Time that a request waited before it was worked on',
      queueTime,
      DURATION_BUCKETS,
    );
    this.#worked = histogram(
      registry,
      'workqueue_work_duration_seconds',
      'Time that work on a request took',
      queueTime,
      DURATION_BUCKETS,
    );
    this.#total = counter(registry, 'controller_runtime_reconcile_total', 'Reconciles by result', perResult);
    this.#errors = counter(registry, 'controller_runtime_reconcile_errors_total', 'Failed reconciles', perCluster);
    this.#time = histogram(
      registry,
      'controller_runtime_reconcile_time_seconds',
      'Time that a reconcile took',
      ['controller'],
      DURATION_BUCKETS,
    );
    this.#active = gauge(registry, 'controller_runtime_active_workers', 'Reconciles running now', perCluster);
    this.#parked = gauge(registry, 'capstan_parked_requests', 'Requests waiting for their cluster', perCluster);
    gauge(registry, 'controller_runtime_max_concurrent_reconciles', 'Places for reconciles', ['controller']).set(
      { controller },
      places,
    );
  }

  added(cluster: ClusterName): void {
    this.#adds.inc({ ...this.#queueLabels, cluster });
  }

  waiting(cluster: ClusterName, by: 1 | -1): void {
    this.#depth.set({ ...this.#queueLabels, cluster }, count(this.#waiting, cluster, by));
  }

  retried(cluster: ClusterName): void {
    this.#retries.inc({ ...this.#queueLabels, cluster });
  }

  started(cluster: ClusterName, waitedMs: number): void {
    this.#queued.observe(this.#queueLabels, waitedMs / 1000);
    this.#active.set({ controller: this.#controller, cluster }, count(this.#working, cluster, 1));
  }

  ended(cluster: ClusterName, tookMs: number): void {
    this.#worked.observe(this.#queueLabels, tookMs / 1000);
    this.#time.observe({ controller: this.#controller }, tookMs / 1000);
    this.#active.set({ controller: this.#controller, cluster }, count(this.#working, cluster, -1));
  }

  result(cluster: ClusterName, result: ReconcileResult): void {
    this.#total.inc({ controller: this.#controller, result, cluster });
    if (result === 'error') this.#errors.inc({ controller: this.#controller, cluster });
  }

  parked(cluster: ClusterName, parked: number): void {
    this.#parked.set({ controller: this.#controller, cluster }, parked);
  }
}

function count(counts: Map<ClusterName, number>, cluster: ClusterName, by: 1 | -1): number {
  const now = (counts.get(cluster) ?? 0) + by;
  if (now === 0) counts.delete(cluster);
  else counts.set(cluster, now);
  return now;
}
