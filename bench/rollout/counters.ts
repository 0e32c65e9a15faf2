import type { MetricSample } from '../../test/support/index.ts';

/** What the manager counts, summed up for the bench. Objects are counts by operation or verb. */
export interface Counters {
  /** Helm processes by operation and result, "install success". */
  helm: Record<string, number>;
  /** Seconds that helm processes ran, by operation. */
  helmSeconds: Record<string, number>;
  /** Requests to the management cluster by verb. */
  management: Record<string, number>;
  /** Requests to all workload clusters by verb. */
  workload: Record<string, number>;
  /** Reconciles by controller and result. */
  reconciles: Record<string, number>;
}

const READING = new Set(['get', 'list', 'watch']);

/** Takes the bench's counters from /metrics; `local` is the name that the management cluster has there. */
export function countersFrom(samples: readonly MetricSample[], local: string): Counters {
  const counters: Counters = { helm: {}, helmSeconds: {}, management: {}, workload: {}, reconciles: {} };
  for (const { name, labels, value } of samples) {
    const { operation = '', result = '', verb = '', controller = '', cluster } = labels;
    if (name === 'capstan_helm_operations_total') add(counters.helm, `${operation} ${result}`, value);
    else if (name === 'capstan_helm_operation_seconds_sum') add(counters.helmSeconds, operation, value);
    else if (name === 'controller_runtime_reconcile_total') add(counters.reconciles, `${controller} ${result}`, value);
    else if (name === 'capstan_kube_requests_total') {
      add(cluster === local ? counters.management : counters.workload, verb, value);
    }
  }
  return counters;
}

/** What was counted between two moments; only what moved. */
export function difference(before: Counters, after: Counters): Counters {
  const moved = (key: keyof Counters) =>
    Object.fromEntries(
      Object.entries(after[key])
        .map(([name, value]): [string, number] => [name, value - (before[key][name] ?? 0)])
        .filter(([, value]) => value !== 0),
    );
  return {
    helm: moved('helm'),
    helmSeconds: moved('helmSeconds'),
    management: moved('management'),
    workload: moved('workload'),
    reconciles: moved('reconciles'),
  };
}

export function total(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** The requests that write, by verb. */
export function writes(requests: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(requests).filter(([verb]) => !READING.has(verb)));
}

function add(counts: Record<string, number>, key: string, value: number): void {
  counts[key] = (counts[key] ?? 0) + value;
}
