import type { CallOptions, KubeClient, KubeObject, ObjectKey, Resource } from '../../kube/index.ts';

interface Secret extends KubeObject {
  data?: Record<string, string>;
}

export const SECRETS: Resource = { group: '', version: 'v1', plural: 'secrets', namespaced: true };

/** CAPI names the Secret after its Cluster (contract "Cluster kubeconfig secret"). */
export const SUFFIX = '-kubeconfig';

/**
 * The kubeconfig of a Cluster, from the Secret that CAPI makes for it; '' while there is none, or none in it. `version`
 * changes with the Secret. Rejects with a KubeError.
 */
export async function readKubeconfigSecret(
  client: Pick<KubeClient, 'find'>,
  cluster: ObjectKey,
  options: CallOptions,
): Promise<{ readonly kubeconfig: string; readonly version: string | undefined }> {
  const key = { namespace: cluster.namespace, name: cluster.name + SUFFIX };
  const secret = await client.find<Secret>(SECRETS, key, options);
  return { kubeconfig: Buffer.from(secret?.data?.value ?? '', 'base64').toString(), version: versionOf(secret) };
}

/** Changes with every write, and with the object's replacement by another of its name. */
export function versionOf(object: KubeObject | undefined): string | undefined {
  return object && `${object.metadata.uid ?? ''}/${object.metadata.resourceVersion ?? ''}`;
}
