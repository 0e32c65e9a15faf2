import { API_GROUP, API_VERSION, HCP_NAME_ANNOTATION, HCP_NAME_LABEL, HRP_KIND } from '../../api/index.ts';
import type { DriftDetectionSpec, HelmReleaseProxy } from '../../api/index.ts';
import { NotFoundError } from '../../kube/index.ts';
import type { CallOptions, KubeClient, Resource } from '../../kube/index.ts';
import { clusterKeyOf, isDeleting, releaseNamespaceOf } from '../../reconcilers/release-proxy/proxy.ts';
import type { DriftOptions } from './options.ts';

/** A release that a HelmReleaseProxy stands for. */
export interface ReleaseTarget {
  readonly namespace: string;
  /** '' while the name is still to be generated. */
  readonly name: string;
  readonly proxy: { readonly namespace: string; readonly name: string };
  readonly chartProxy: string | undefined;
  readonly drift: DriftDetectionSpec;
}

/** The releases that are to be looked at on one Cluster. */
export interface FleetTarget {
  readonly cluster: { readonly namespace: string; readonly name: string };
  readonly releases: readonly ReleaseTarget[];
}

export interface FleetTargets {
  readonly targets: readonly FleetTarget[];
  /** Releases that are installed once and then the cluster's own: left out unless they are named. */
  readonly installOnce: number;
  /** Names that nothing has. */
  readonly unknown: readonly string[];
}

const INSTALL_ONCE = 'InstallOnce';

export const RELEASE_PROXIES: Resource = {
  group: API_GROUP,
  version: API_VERSION,
  plural: 'helmreleaseproxies',
  namespaced: true,
};

/** Is this a management cluster, i.e. one that serves HelmReleaseProxies? Rejects with a KubeError. */
export async function servesReleaseProxies(client: KubeClient, call: CallOptions): Promise<boolean> {
  try {
    const path = `/apis/${API_GROUP}/${API_VERSION}`;
    const { resources = [] } = await client.raw<{ resources?: readonly { kind?: string }[] }>('GET', path, call);
    return resources.some(({ kind }) => kind === HRP_KIND);
  } catch (error) {
    if (error instanceof NotFoundError) return false;
    throw error;
  }
}

/** The releases of all HelmReleaseProxies in scope, by Cluster. Rejects with a KubeError. */
export async function findFleetTargets(
  client: KubeClient,
  namespace: string | undefined,
  options: DriftOptions,
  call: CallOptions,
): Promise<FleetTargets> {
  const scope = namespace === undefined ? {} : { namespace };
  const { items } = await client.list<HelmReleaseProxy>(RELEASE_PROXIES, scope, call);
  const all = items.filter((proxy) => !isDeleting(proxy) && isOn(proxy, options.cluster));
  const names = new Set(options.names);
  const named = names.size === 0 ? all : all.filter((proxy) => namesOf(proxy).some((name) => names.has(name)));
  const known = new Set(named.flatMap(namesOf));
  const chosen = named.filter((proxy) => names.size > 0 || proxy.spec.reconcileStrategy !== INSTALL_ONCE);
  return {
    targets: byCluster(chosen),
    installOnce: named.length - chosen.length,
    unknown: options.names.filter((name) => !known.has(name)),
  };
}

function isOn(proxy: HelmReleaseProxy, cluster: DriftOptions['cluster']): boolean {
  if (cluster === undefined) return true;
  const { namespace, name } = clusterKeyOf(proxy);
  return namespace === cluster.namespace && name === cluster.name;
}

function namesOf(proxy: HelmReleaseProxy): string[] {
  return [proxy.metadata.name, proxy.spec.releaseName, chartProxyOf(proxy)].filter((name) => name !== undefined);
}

function chartProxyOf({ metadata: { annotations, labels } }: HelmReleaseProxy): string | undefined {
  return annotations?.[HCP_NAME_ANNOTATION] ?? labels?.[HCP_NAME_LABEL];
}

function byCluster(proxies: readonly HelmReleaseProxy[]): FleetTarget[] {
  const clusters = Map.groupBy(proxies, (proxy) => {
    const { namespace, name } = clusterKeyOf(proxy);
    return `${namespace}/${name}`;
  });
  return [...clusters]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, of]) => {
      const [first] = of;
      return first === undefined
        ? []
        : [{ cluster: clusterKeyOf(first), releases: of.map(releaseTarget).sort(byName) }];
    });
}

function releaseTarget(proxy: HelmReleaseProxy): ReleaseTarget {
  return {
    namespace: releaseNamespaceOf(proxy),
    name: proxy.spec.releaseName ?? '',
    proxy: { namespace: proxy.metadata.namespace ?? '', name: proxy.metadata.name },
    chartProxy: chartProxyOf(proxy),
    drift: proxy.spec.driftDetection ?? {},
  };
}

function byName(a: ReleaseTarget, b: ReleaseTarget): number {
  return `${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1;
}
