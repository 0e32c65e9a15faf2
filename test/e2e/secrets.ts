import type { Fleet } from '../support/index.ts';

/** What a Secret is to hold; values are given as text. */
export type SecretData = Record<string, string>;

/** Creates a Secret beside the HelmChartProxies, or in another namespace. */
export async function createSecret(fleet: Fleet, name: string, data: SecretData, namespace?: string): Promise<void> {
  await fleet.api.create(`/api/v1/namespaces/${namespace ?? fleet.namespace}/secrets`, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    stringData: data,
  });
}

/** Changes keys of a Secret beside the HelmChartProxies. */
export async function patchSecret(fleet: Fleet, name: string, data: SecretData): Promise<void> {
  await fleet.api.patch(`/api/v1/namespaces/${fleet.namespace}/secrets/${name}`, { stringData: data });
}

/** A docker config file with a login for the host of a URL. */
export function dockerConfig(url: string, auth: { username: string; password: string }): string {
  const encoded = Buffer.from(`${auth.username}:${auth.password}`).toString('base64');
  return JSON.stringify({ auths: { [new URL(url.replace(/^oci:/, 'https:')).host]: { auth: encoded } } });
}
