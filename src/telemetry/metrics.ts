import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { LabelValues } from 'prom-client';
import { CountedTogether, SummedGauge } from './metrics-together.ts';

/** The label that grows with the fleet. */
const CLUSTER_LABEL = 'cluster';

/** A registry whose metrics do not tell clusters apart: for fleets whose series would be too many for their Prometheus. */
class RegistryOfAll extends Registry {}

/**
 * A registry of one manager's own. With `perCluster: false` no metric has the label `cluster`: counters count all clusters
 * together, gauges tell the sum. The traces and the log still name each cluster.
 */
export function createRegistry(options: { readonly perCluster: boolean }): Registry {
  return options.perCluster ? new Registry() : new RegistryOfAll();
}

/**
 * Get or create: many connections and controllers of one manager share a registry, and whoever comes first makes the
 * metric. A name that another type of metric has is a mistake of the programmer, and prom-client throws.
 */
export function counter<L extends string>(
  registry: Registry,
  name: string,
  help: string,
  labels: readonly L[],
): Counter<L> {
  const known = registry.getSingleMetric(name);
  if (known instanceof Counter) return known;
  const options = { name, help, registers: [registry] };
  return isOfAll(registry, labels)
    ? new CountedTogether<L>({ ...options, labelNames: without(labels) }, CLUSTER_LABEL)
    : new Counter<L>({ ...options, labelNames: labels });
}

/** As `counter`. */
export function gauge<L extends string>(
  registry: Registry,
  name: string,
  help: string,
  labels: readonly L[],
): Gauge<L> {
  const known = registry.getSingleMetric(name);
  if (known instanceof Gauge) return known;
  const options = { name, help, labelNames: labels, registers: [registry] };
  return isOfAll(registry, labels) ? new SummedGauge<L>(options, CLUSTER_LABEL) : new Gauge<L>(options);
}

/**
 * As `counter`; the last argument holds the upper bounds of the buckets, in the unit that the name tells. None has the
 * label `cluster`: buckets times clusters would be most of a scrape.
 */
export function histogram<L extends string>(
  ...[registry, name, help, labels, buckets]: [Registry, string, string, readonly L[], readonly number[]]
): Histogram<L> {
  const known = registry.getSingleMetric(name);
  if (known instanceof Histogram) return known;
  return new Histogram<L>({ name, help, labelNames: labels, buckets: [...buckets], registers: [registry] });
}

/** Takes every series of a cluster that has left the fleet out of the registry: otherwise each cluster that ever was stays in memory and in every scrape. */
export async function forgetCluster(registry: Registry, cluster: string): Promise<void> {
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    if (!(metric instanceof Counter || metric instanceof Gauge || metric instanceof Histogram)) continue;
    const { values } = metric instanceof SummedGauge ? await metric.parts() : await metric.get();
    for (const { labels } of values) {
      if (labels[CLUSTER_LABEL] !== cluster) continue;
      // A histogram's series differ by bucket; `remove` wants the labels without it.
      const own: LabelValues<string> = Object.fromEntries(Object.entries(labels).filter(([label]) => label !== 'le'));
      metric.remove(own);
    }
  }
}

function isOfAll(registry: Registry, labels: readonly string[]): boolean {
  return registry instanceof RegistryOfAll && labels.includes(CLUSTER_LABEL);
}

function without<L extends string>(labels: readonly L[]): L[] {
  return labels.filter((label) => label !== CLUSTER_LABEL);
}
