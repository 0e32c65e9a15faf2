import { ApiDiscovery, Connection, RestClient, SharedWatchSet } from '../kube/index.ts';
import type { ConnectionOptions, WriteGuard } from '../kube/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import type { ClusterConnection, ConnectionFactory, ConnectionHooks } from './connection.ts';
import type { ClusterName, ConnectionSpec } from './types.ts';

export interface KubeConnectionOptions extends Pick<
  ConnectionOptions,
  'allowExec' | 'allowFiles' | 'http2' | 'userAgent' | 'requestTimeoutMs'
> {
  readonly telemetry: Telemetry;
  /** Of each cluster's connection. */
  readonly guardOf?: (name: ClusterName) => WriteGuard;
}

/** The real factory: connections of the room `kube`. */
export function kubeConnectionFactory(options: KubeConnectionOptions): ConnectionFactory {
  const { guardOf, ...common } = options;
  return {
    open: (name, spec, hooks) => {
      const connection = Connection.fromKubeconfig(spec.kubeconfig, {
        ...common,
        clusterName: name,
        ...(guardOf === undefined ? {} : { guard: guardOf(name) }),
        ...(spec.context === undefined ? {} : { context: spec.context }),
      });
      return clusterConnection(connection, hooks);
    },
  };
}

/** What the runtime needs of a connection that exists already, e.g. to the management cluster. */
export function clusterConnection(connection: Connection, hooks?: ConnectionHooks): ClusterConnection {
  const client = new RestClient(connection);
  const watches = new SharedWatchSet(connection);
  if (hooks !== undefined) connection.setUnauthorizedHook(async (signal) => hooks.onUnauthorized(signal));
  return {
    identity: connection.identity,
    client,
    discovery: new ApiDiscovery(client),
    watches,
    swap: (spec: ConnectionSpec) => {
      connection.swap(spec.kubeconfig, spec.context);
    },
    kubeconfig: () => connection.kubeconfig(),
    forward: async (request) => connection.forward(request),
    reset: (why) => connection.reset(why),
    close: async () => {
      await watches.close();
      await connection.close();
    },
  };
}
