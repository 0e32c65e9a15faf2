import { clusterName, prefixedClusterName } from './cluster-name.ts';
import { InvalidClusterNameError } from './errors.ts';
import type { ClusterName, ClusterSink, Provider } from './types.ts';

/** Between a provider's name and its cluster's. No name of a Kubernetes object has it. */
export const CLUSTER_PREFIX_SEPARATOR = '#';
const SEPARATOR = CLUSTER_PREFIX_SEPARATOR;

/**
 * The provider with every cluster named `provider#name`, however many providers there are: a name must not change when
 * a second provider comes, or its releases would be another cluster's. Who calls: whoever puts providers together.
 * Throws InvalidClusterNameError when the provider's own name cannot be a prefix.
 */
export function prefixed(provider: Provider): Provider {
  const { name } = provider;
  clusterName(name);
  if (name.includes(SEPARATOR)) throw new InvalidClusterNameError(name, `a provider's name has no "${SEPARATOR}"`);
  const full = (bare: ClusterName): ClusterName => prefixedClusterName(name, bare);
  const refresh = provider.refresh?.bind(provider);
  return {
    name,
    bare: true,
    run: async (sink, signal) => provider.run(prefixedSink(sink, full), signal),
    ...(refresh === undefined
      ? {}
      : { refresh: (cluster) => refresh(clusterName(cluster.slice(name.length + SEPARATOR.length))) }),
  };
}

/** The sink under other names. */
export function prefixedSink(sink: ClusterSink, full: (bare: ClusterName) => ClusterName): ClusterSink {
  return {
    discover: (name, reason, about) => sink.discover(full(name), reason, about),
    engage: (name, spec, about) => sink.engage(full(name), spec, about),
    disengage: (name, reason) => sink.disengage(full(name), reason),
    synced: () => sink.synced?.(),
  };
}
