import { API_GROUP, API_VERSION } from '../../api/index.ts';
import type { HelmChartProxy, HelmReleaseProxy } from '../../api/index.ts';
import { isKubeError } from '../../kube/index.ts';
import type { CallOptions, KubeClient, KubeObject, Resource } from '../../kube/index.ts';

/** What is read of a Cluster of Cluster API. */
export interface ClusterObject extends KubeObject {
  status?: { phase?: string };
}

/** What the management cluster holds. */
export interface FleetObjects {
  readonly chartProxies: readonly HelmChartProxy[];
  readonly releaseProxies: readonly HelmReleaseProxy[];
  readonly clusters: readonly ClusterObject[];
}

const CAPI_GROUP = 'cluster.x-k8s.io';

function ours(plural: string): Resource {
  return { group: API_GROUP, version: API_VERSION, plural, namespaced: true };
}

/** Reads it all. Rejects with a KubeError; without Cluster API there are no Clusters. */
export async function readFleet(
  client: KubeClient,
  namespace: string | undefined,
  call: CallOptions,
): Promise<FleetObjects> {
  const scope = namespace === undefined ? {} : { namespace };
  const version = await servedVersion(client, CAPI_GROUP, call);
  const clusters: Resource = { group: CAPI_GROUP, version: version ?? '', plural: 'clusters', namespaced: true };
  const [chartProxies, releaseProxies, found] = await Promise.all([
    client.list<HelmChartProxy>(ours('helmchartproxies'), scope, call),
    client.list<HelmReleaseProxy>(ours('helmreleaseproxies'), scope, call),
    version === undefined ? { items: [] } : client.list<ClusterObject>(clusters, scope, call),
  ]);
  return { chartProxies: chartProxies.items, releaseProxies: releaseProxies.items, clusters: found.items };
}

/** The version of a group that the server prefers; undefined when it does not serve the group. */
export async function servedVersion(client: KubeClient, group: string, call: CallOptions): Promise<string | undefined> {
  try {
    const path = `/apis/${group}`;
    const found = await client.raw<{ preferredVersion?: { version?: string } }>('GET', path, call);
    return found.preferredVersion?.version;
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return undefined;
    throw error;
  }
}

export function spelledKey({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}
