/** The resources that the reconcilers read and write on the management cluster. */
import { API_GROUP, API_VERSION } from '../api/index.ts';
import type { Discovery, Resource } from '../kube/index.ts';

export const HCP: Resource = { group: API_GROUP, version: API_VERSION, plural: 'helmchartproxies', namespaced: true };
export const HRP: Resource = { group: API_GROUP, version: API_VERSION, plural: 'helmreleaseproxies', namespaced: true };
export const SECRETS: Resource = { group: '', version: 'v1', plural: 'secrets', namespaced: true };
export const CRDS: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  namespaced: false,
};

export const CAPI_GROUP = 'cluster.x-k8s.io';
export const CLUSTER_KIND = 'Cluster';
/** Newest first: values templates are written for the v1beta2 layout (caaph §1.10). */
const CAPI_VERSIONS = ['v1beta2', 'v1beta1'] as const;

/** `group/version` as objects and references spell it. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/**
 * The Cluster resource of Cluster API, in the newest version that is served and that we know; undefined while Cluster
 * API is not installed. Rejects when discovery does.
 */
export async function clusterResource(discovery: Discovery, signal?: AbortSignal): Promise<Resource | undefined> {
  for (const version of CAPI_VERSIONS) {
    const found = await discovery.find({ group: CAPI_GROUP, version, kind: CLUSTER_KIND }, { signal });
    if (found !== undefined) return found;
  }
  return undefined;
}
