import { readFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import type { Environment } from './options.ts';
import { isTracingWanted } from './tracing.ts';

/** Where Kubernetes mounts a Pod's identity (Kubernetes docs, "Accessing the API from a Pod"). */
const SERVICE_ACCOUNT_NAMESPACE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** The one place that reads process.env. Who calls: main. */
export function readEnvironment(env: NodeJS.ProcessEnv, isTerminal: boolean): Environment {
  const first = (...names: string[]): string => names.map((name) => env[name]).find((value) => value) ?? '';
  return {
    kubeconfig: first('KUBECONFIG'),
    home: first('HOME', 'USERPROFILE'),
    // no-color.org: present and not empty.
    noColor: first('NO_COLOR') !== '' || first('TERM') === 'dumb',
    podNamespace: first('POD_NAMESPACE') || serviceAccountNamespace(),
    hostname: first('HOSTNAME') || hostname(),
    isTerminal,
    temporaryDirectory: tmpdir(),
    workingDirectory: process.cwd(),
    path: first('PATH'),
    httpProxy: first('HTTP_PROXY', 'http_proxy'),
    httpsProxy: first('HTTPS_PROXY', 'https_proxy'),
    noProxy: first('NO_PROXY', 'no_proxy'),
    serviceHost: first('KUBERNETES_SERVICE_HOST'),
    servicePort: first('KUBERNETES_SERVICE_PORT'),
    tracing: isTracingWanted(env),
  };
}

function serviceAccountNamespace(): string {
  try {
    return readFileSync(SERVICE_ACCOUNT_NAMESPACE, 'utf8').trim();
  } catch {
    return '';
  }
}
