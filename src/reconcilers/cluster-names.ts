/**
 * Clusters under two names: the fleet's, and namespace and name as an object's reference has them. A Cluster of Cluster
 * API is `namespace/name` in the fleet. A cluster of another provider (`provider#name`) is in the namespace of whoever may
 * select it, and its name there is the fleet's (docs/adr/0008-clusters-of-other-providers.md).
 */
import { CLUSTER_PREFIX_SEPARATOR, clusterName, namespacedClusterName, splitClusterName } from '../runtime/index.ts';
import type { ClusterName, Request } from '../runtime/index.ts';

export interface ClusterKey {
  readonly namespace: string;
  readonly name: string;
}

/** Stands in references to a cluster that no object stands for, e.g. one from a kubeconfig file. */
export const BARE_CLUSTER = { apiVersion: 'capstan.dev/v1', kind: 'Cluster' } as const;

/** Throws InvalidClusterNameError when the key names no cluster. */
export function fleetNameOf({ namespace, name }: ClusterKey): ClusterName {
  return isForeign(name) ? clusterName(name) : namespacedClusterName(namespace, name);
}

/** Of the cluster that a request is for, whose object is in the cluster's namespace; undefined for a name of neither form. */
export function clusterKeyOfRequest({ cluster, namespace }: Request): ClusterKey | undefined {
  return isForeign(cluster) ? { namespace, name: cluster } : splitClusterName(cluster);
}

/** Of another provider than Cluster API's: the name begins with the provider's. */
export function isForeign(name: string): boolean {
  return name.includes(CLUSTER_PREFIX_SEPARATOR);
}

/** The provider of a foreign cluster. */
export function providerOf(name: string): string {
  return name.slice(0, name.indexOf(CLUSTER_PREFIX_SEPARATOR));
}
