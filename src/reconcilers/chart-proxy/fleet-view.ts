/** The management cluster as placements see it: HelmChartProxies, Clusters, HelmReleaseProxies and who belongs to whom. Reads of caches only. */
import { HCP_NAME_ANNOTATION, HCP_NAME_LABEL, WATCH_FILTER_LABEL } from '../../api/index.ts';
import type { HelmChartProxy, HelmReleaseProxy } from '../../api/index.ts';
import { matchesSelector, validateSelector } from '../../kube/index.ts';
import type { KubeObject } from '../../kube/index.ts';
import { LOCAL_CLUSTER } from '../../runtime/index.ts';
import type { ClusterName, Request } from '../../runtime/index.ts';
import { clusterKeyOfRequest, fleetNameOf } from '../cluster-names.ts';
import type { Caches, CapiCluster } from '../shared.ts';
import { isOwnedBy, ownerOfProxy } from './desired.ts';
import type { NamedIn } from './naming.ts';

const BY_OWNER = 'chart-proxy/owner';
const BY_PLACEMENT = 'chart-proxy/placement';
const BY_CLUSTER = 'chart-proxy/cluster';
const BY_FLEET_NAME = 'chart-proxy/fleet-name';

export class FleetView {
  readonly #caches: Caches;
  readonly #watchFilter: string | undefined;

  constructor(caches: Caches, watchFilter: string | undefined) {
    this.#caches = caches;
    this.#watchFilter = watchFilter;
    caches.releaseProxies.addIndex(BY_OWNER, (proxy) => [ownerKey(namespaceOf(proxy), chartProxyNameOf(proxy))]);
    caches.releaseProxies.addIndex(BY_PLACEMENT, (proxy) => [
      placementKey({ namespace: namespaceOf(proxy), name: chartProxyNameOf(proxy) }, clusterKeyOf(proxy)),
    ]);
    caches.releaseProxies.addIndex(BY_CLUSTER, (proxy) => [keyText(clusterKeyOf(proxy))]);
    caches.releaseProxies.addIndex(BY_FLEET_NAME, (proxy) => [fleetNameText(clusterKeyOf(proxy))]);
  }

  chartProxy(key: NamedIn): HelmChartProxy | undefined {
    return this.#caches.chartProxies.get(key.namespace, key.name);
  }

  cluster(key: NamedIn): CapiCluster | undefined {
    return this.#caches.clusters.get(key.namespace, key.name);
  }

  /** A cluster that is not there is gone, and not merely unknown yet. */
  knows(key: NamedIn): boolean {
    return this.#caches.clusters.knows(key);
  }

  chartProxies(namespace?: string): HelmChartProxy[] {
    return this.#caches.chartProxies.list(namespace);
  }

  clusters(namespace?: string): CapiCluster[] {
    return this.#caches.clusters.list(namespace);
  }

  releaseProxies(): HelmReleaseProxy[] {
    return this.#caches.releaseProxies.list();
  }

  /** Is the object ours by --watch-filter? */
  isWatched(object: KubeObject): boolean {
    return this.#watchFilter === undefined || object.metadata.labels?.[WATCH_FILTER_LABEL] === this.#watchFilter;
  }

  /** Clusters that the selector matches, or what is wrong with the selector. */
  selected(chartProxy: HelmChartProxy): { clusters: CapiCluster[]; problem?: string } {
    const problem = selectorProblem(chartProxy);
    if (problem !== undefined) return { clusters: [], problem };
    const { clusterSelector } = chartProxy.spec;
    return {
      clusters: this.clusters(namespaceOf(chartProxy)).filter((cluster) =>
        matchesSelector(clusterSelector, cluster.metadata.labels),
      ),
    };
  }

  /** HelmReleaseProxies that the object controls, and those that carry its label and nobody controls. */
  ownedBy(chartProxy: HelmChartProxy): HelmReleaseProxy[] {
    const key = ownerKey(namespaceOf(chartProxy), chartProxy.metadata.name);
    return this.#caches.releaseProxies
      .byIndex(BY_OWNER, key)
      .filter((proxy) => isOwnedBy(proxy, chartProxy) || ownerOfProxy(proxy) === undefined);
  }

  /** Those of one placement. More than one only by accident (duplicates.ts). */
  placed(chartProxy: HelmChartProxy, cluster: NamedIn): HelmReleaseProxy[] {
    const key = placementKey({ namespace: namespaceOf(chartProxy), name: chartProxy.metadata.name }, cluster);
    return this.#caches.releaseProxies
      .byIndex(BY_PLACEMENT, key)
      .filter((proxy) => isOwnedBy(proxy, chartProxy) || ownerOfProxy(proxy) === undefined);
  }

  /** All that are for a cluster, whoever's. */
  onCluster(cluster: NamedIn): HelmReleaseProxy[] {
    return this.#caches.releaseProxies.byIndex(BY_CLUSTER, keyText(cluster));
  }

  /** The same, by the cluster's name in the fleet. */
  onFleetCluster(name: ClusterName): HelmReleaseProxy[] {
    return this.#caches.releaseProxies.byIndex(BY_FLEET_NAME, name);
  }
}

/** What is wrong with the selector, in words for the condition; undefined when it is valid. The API server does not check it (caaph W9). */
export function selectorProblem(chartProxy: HelmChartProxy): string | undefined {
  const problems = validateSelector(chartProxy.spec.clusterSelector, 'spec.clusterSelector');
  return problems.length === 0 ? undefined : `the cluster selector is not valid: ${problems.join('; ')}`;
}

/** The request of the HelmChartProxy itself. */
export function chartProxyRequest(key: NamedIn): Request {
  return { cluster: LOCAL_CLUSTER, namespace: key.namespace, name: key.name };
}

/** The request of a placement. */
export function placementRequest(chartProxy: NamedIn, cluster: NamedIn): Request {
  return {
    cluster: fleetNameOf(cluster),
    namespace: chartProxy.namespace,
    name: chartProxy.name,
  };
}

/** The Cluster that a placement's request is for. */
export function clusterOf(request: Request): NamedIn | undefined {
  return clusterKeyOfRequest(request);
}

export function keyOf(object: KubeObject): NamedIn {
  return { namespace: namespaceOf(object), name: object.metadata.name };
}

/** The HelmChartProxy that a HelmReleaseProxy belongs to, by name. */
export function chartProxyOf(proxy: HelmReleaseProxy): NamedIn | undefined {
  const name = chartProxyNameOf(proxy);
  return name === '' ? undefined : { namespace: namespaceOf(proxy), name };
}

export function clusterKeyOf({ metadata, spec }: HelmReleaseProxy): NamedIn {
  return { namespace: spec.clusterRef.namespace ?? metadata.namespace ?? '', name: spec.clusterRef.name ?? '' };
}

/** By its owner; an orphan by annotation or label. */
function chartProxyNameOf(proxy: HelmReleaseProxy): string {
  const { annotations, labels } = proxy.metadata;
  return ownerOfProxy(proxy)?.name ?? annotations?.[HCP_NAME_ANNOTATION] ?? labels?.[HCP_NAME_LABEL] ?? '';
}

function namespaceOf(object: KubeObject): string {
  return object.metadata.namespace ?? '';
}

function keyText({ namespace, name }: NamedIn): string {
  return `${namespace}/${name}`;
}

function ownerKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

function placementKey(chartProxy: NamedIn, cluster: NamedIn): string {
  return `${keyText(chartProxy)} ${keyText(cluster)}`;
}

/** Of a reference that names no cluster: ''. */
function fleetNameText(key: NamedIn): string {
  return key.name === '' || key.namespace === '' ? '' : fleetNameOf(key);
}
