import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { delimiter } from 'node:path';
import { Connection } from '../kube/index.ts';
import type { WriteGuard } from '../kube/index.ts';
import { LOCAL_CLUSTER } from '../runtime/index.ts';
import { errorText } from '../telemetry/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { AppError } from './errors.ts';
import type { Environment, ManagerOptions } from './options.ts';

const ADVICE = 'name a kubeconfig of the management cluster with --kubeconfig, or run inside the cluster';

/**
 * The connection to the management cluster: --kubeconfig, then $KUBECONFIG, then the Pod's service account. The
 * operator's own kubeconfig may run programs and name files, unlike those that come from Secrets. Throws AppError
 * (KUBECONFIG).
 */
export function connectManagement(
  options: ManagerOptions,
  env: Environment,
  telemetry: Telemetry,
  guard?: WriteGuard,
): Connection {
  const { http2, userAgent } = options;
  const common = { clusterName: LOCAL_CLUSTER, http2, userAgent, telemetry, ...(guard === undefined ? {} : { guard }) };
  try {
    if (options.kubeconfig === '') {
      if (env.serviceHost === '') throw new AppError('KUBECONFIG', 'there is no kubeconfig', { advice: ADVICE });
      const { serviceHost, servicePort } = env;
      return Connection.inCluster({
        ...common,
        env: { KUBERNETES_SERVICE_HOST: serviceHost, KUBERNETES_SERVICE_PORT: servicePort || undefined },
      });
    }
    const file = firstFile(options.kubeconfig);
    return Connection.fromKubeconfig(file.text, { ...common, allowExec: true, baseDir: dirname(file.path) });
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('KUBECONFIG', `the kubeconfig ${options.kubeconfig} cannot be used: ${errorText(error)}`, {
      advice: ADVICE,
      cause: error,
    });
  }
}

/** $KUBECONFIG may be a list: the first file that is there counts, as a manager works on one cluster. */
function firstFile(list: string): { path: string; text: string } {
  let failure: unknown;
  for (const path of list.split(delimiter).filter(Boolean)) {
    try {
      return { path, text: readFileSync(path, 'utf8') };
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}
