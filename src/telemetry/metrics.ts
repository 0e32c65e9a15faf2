import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

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
  return new Counter<L>({ name, help, labelNames: labels, registers: [registry] });
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
  return new Gauge<L>({ name, help, labelNames: labels, registers: [registry] });
}

/** As `counter`; the last argument holds the upper bounds of the buckets, in the unit that the name tells. */
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
    const { values } = await metric.get();
    for (const { labels } of values) {
      if (labels.cluster !== cluster) continue;
      // A histogram's series differ by bucket; `remove` wants the labels without it.
      const own = Object.entries(labels).filter(([label]) => label !== 'le');
      metric.remove(Object.fromEntries(own));
    }
  }
}
