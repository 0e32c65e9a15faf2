/** What can be told from a HelmReleaseProxy alone. */
import {
  FORCE_DELETE_ANNOTATION,
  PAUSED_ANNOTATION,
  WATCH_FILTER_LABEL,
  WORKLOAD_CLUSTER_UID_ANNOTATION,
} from '../../api/index.ts';
import type { HelmReleaseProxy, HelmReleaseProxyStatus } from '../../api/index.ts';
import type { ReleaseKey } from '../../helm/index.ts';
import type { Cluster, ClusterName, Request } from '../../runtime/index.ts';
import { fleetNameOf } from '../cluster-names.ts';
import type { Caches } from '../shared.ts';
import type { Recorded } from './decide.ts';

/** CAAPH's webhook default; objects of before it have no namespace. */
const DEFAULT_NAMESPACE = 'default';

/** Names of the indexes over HelmReleaseProxies. */
export const BY_CLUSTER = 'release-proxy/cluster';
export const BY_RELEASE = 'release-proxy/release';

/** Namespace and name of the Cluster that the object is for. */
export function clusterKeyOf(proxy: HelmReleaseProxy): { namespace: string; name: string } {
  const { namespace, name } = proxy.spec.clusterRef;
  return { namespace: namespace ?? proxy.metadata.namespace ?? '', name: name ?? '' };
}

/** Throws InvalidClusterNameError when the object names no cluster. */
export function clusterNameOf(proxy: HelmReleaseProxy): ClusterName {
  return fleetNameOf(clusterKeyOf(proxy));
}

export function requestFor(proxy: HelmReleaseProxy): Request {
  return { cluster: clusterNameOf(proxy), namespace: proxy.metadata.namespace ?? '', name: proxy.metadata.name };
}

/** The request's object is there no more, so nothing is to be done for it, by whomever. */
export function isGone(caches: Pick<Caches, 'releaseProxies'>, { namespace, name }: Request): boolean {
  return caches.releaseProxies.get(namespace, name) === undefined;
}

export function releaseNamespaceOf(proxy: HelmReleaseProxy): string {
  const namespace = proxy.spec.namespace ?? '';
  return namespace === '' ? DEFAULT_NAMESPACE : namespace;
}

/** The release that the object names, or undefined while its name is still to be generated. */
export function releaseKeyOf(proxy: HelmReleaseProxy): ReleaseKey | undefined {
  const name = proxy.spec.releaseName ?? '';
  return name === '' ? undefined : { namespace: releaseNamespaceOf(proxy), name };
}

/** Index value of a release on a cluster. */
export function releaseIndexKey(cluster: ClusterName, key: ReleaseKey): string {
  return `${cluster} ${key.namespace} ${key.name}`;
}

export function byCluster(proxy: HelmReleaseProxy): readonly string[] {
  return namesCluster(proxy) ? [clusterNameOf(proxy)] : [];
}

export function byRelease(proxy: HelmReleaseProxy): readonly string[] {
  const key = releaseKeyOf(proxy);
  return key !== undefined && namesCluster(proxy) ? [releaseIndexKey(clusterNameOf(proxy), key)] : [];
}

/** What tells the object from a later one of its name. */
export function uidOf(proxy: HelmReleaseProxy): string {
  return proxy.metadata.uid ?? `${proxy.metadata.namespace ?? ''}/${proxy.metadata.name}`;
}

export function namesCluster(proxy: HelmReleaseProxy): boolean {
  return (proxy.spec.clusterRef.name ?? '') !== '';
}

export function isPaused(proxy: HelmReleaseProxy): boolean {
  return proxy.metadata.annotations?.[PAUSED_ANNOTATION] !== undefined;
}

export function isDeleting(proxy: HelmReleaseProxy): boolean {
  return proxy.metadata.deletionTimestamp !== undefined;
}

/** Is the release to be given up without an uninstall (caaph W18)? */
export function isForced(proxy: HelmReleaseProxy): boolean {
  return proxy.metadata.annotations?.[FORCE_DELETE_ANNOTATION] === 'true';
}

/** Does the object belong to a manager with this `--watch-filter`? */
export function passesFilter(proxy: HelmReleaseProxy, watchFilter: string | undefined): boolean {
  return watchFilter === undefined || proxy.metadata.labels?.[WATCH_FILTER_LABEL] === watchFilter;
}

/** Is what was recorded of a release about this very cluster, and not about one that had its name before? The annotation counts where `clusterctl move` left no status. */
export function isOfCluster(proxy: HelmReleaseProxy, cluster: Cluster): boolean {
  const recorded = proxy.status?.clusterUID ?? proxy.metadata.annotations?.[WORKLOAD_CLUSTER_UID_ANNOTATION];
  return recorded === undefined || cluster.uid === undefined || recorded === cluster.uid;
}

/** The status, as far as it is about this cluster's release. */
export function statusOn(proxy: HelmReleaseProxy, cluster: Cluster): HelmReleaseProxyStatus | undefined {
  return isOfCluster(proxy, cluster) ? proxy.status : undefined;
}

export function recordedIn(status: HelmReleaseProxyStatus | undefined): Recorded {
  return {
    revision: status?.revision,
    chartDigest: status?.chartDigest,
    valuesDigest: status?.valuesDigest,
  };
}
