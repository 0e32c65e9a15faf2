import { readFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import type { Environment } from './options.ts';

/** Where Kubernetes mounts a Pod's identity (Kubernetes docs, "Accessing the API from a Pod"). */
const SERVICE_ACCOUNT_NAMESPACE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** The one place that reads process.env. Who calls: main. */
export function readEnvironment(env: NodeJS.ProcessEnv, isTerminal: boolean): Environment {
  return {
    kubeconfig: env['KUBECONFIG'] ?? '',
    podNamespace: env['POD_NAMESPACE'] ?? serviceAccountNamespace(),
    hostname: env['HOSTNAME'] ?? hostname(),
    isTerminal,
    temporaryDirectory: tmpdir(),
    path: env['PATH'] ?? '',
    httpProxy: env['HTTP_PROXY'] ?? env['http_proxy'] ?? '',
    httpsProxy: env['HTTPS_PROXY'] ?? env['https_proxy'] ?? '',
    noProxy: env['NO_PROXY'] ?? env['no_proxy'] ?? '',
    serviceHost: env['KUBERNETES_SERVICE_HOST'] ?? '',
    servicePort: env['KUBERNETES_SERVICE_PORT'] ?? '',
  };
}

function serviceAccountNamespace(): string {
  try {
    return readFileSync(SERVICE_ACCOUNT_NAMESPACE, 'utf8').trim();
  } catch {
    return '';
  }
}
