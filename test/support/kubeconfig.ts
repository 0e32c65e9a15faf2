import { stringify } from 'yaml';
import type { RestOptions } from './rest.ts';

/** A kubeconfig with one context; the same facts a RestClient takes. `name` is that of cluster, user and context. */
export function kubeconfigFor(name: string, options: RestOptions): string {
  const { server, ca, token, clientCertificate } = options;
  const user = {
    ...(token === undefined ? {} : { token }),
    ...(clientCertificate === undefined
      ? {}
      : {
          'client-certificate-data': base64(clientCertificate.certificate),
          'client-key-data': base64(clientCertificate.key),
        }),
  };
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, 'certificate-authority-data': base64(ca) } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  });
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
