import type { Informer } from '../kube/index.ts';
import type { ClusterView } from './cluster-view.ts';
import type { CapiCluster } from './shared.ts';

/** An informer as the view of all clusters: Cluster API's alone, and listed. */
export function allKnown<T extends Pick<Informer<CapiCluster>, 'get' | 'list' | 'addHandler'>>(
  informer: T,
): T & ClusterView {
  return Object.assign(informer, { knows: () => true, onKnown: () => () => undefined });
}
