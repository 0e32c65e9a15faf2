import { ApiDiscovery, Connection, RestClient, SharedWatchSet } from '../kube/index.ts';
import type { ConnectionOptions, WatchProblem } from '../kube/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import type { ClusterConnection, ConnectionFactory, ConnectionHooks } from './connection.ts';
import type { ClusterName, ConnectionSpec } from './types.ts';

export interface KubeConnectionOptions extends Pick<
  ConnectionOptions,
  'allowExec' | 'allowFiles' | 'http2' | 'userAgent' | 'requestTimeoutMs'
> {
  readonly telemetry: Telemetry;
}

/** The real factory: connections of the room `kube`. */
export function kubeConnectionFactory(options: KubeConnectionOptions): ConnectionFactory {
  return {
    open: (name, spec, hooks) => {
      const connection = Connection.fromKubeconfig(spec.kubeconfig, {
        ...options,
        clusterName: name,
        ...(spec.context === undefined ? {} : { context: spec.context }),
      });
      return clusterConnection(name, connection, options.telemetry, hooks);
    },
  };
}

/** What the runtime needs of a connection that exists already, e.g. to the management cluster. */
export function clusterConnection(
  name: ClusterName,
  connection: Connection,
  telemetry: Telemetry,
  hooks?: ConnectionHooks,
): ClusterConnection {
  const log = telemetry.log.with({ cluster: name });
  const client = new RestClient(connection);
  const watches = new SharedWatchSet(connection, { onProblem: (problem) => log.debug(...problemLine(problem)) });
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
    reset: (why) => connection.reset(why),
    close: async () => {
      await watches.close();
      await connection.close();
    },
  };
}

function problemLine({ target, error, retryInMs }: WatchProblem): [string, Record<string, unknown>] {
  const { group, plural } = target.resource;
  return ['a watch does not get on', { resource: group === '' ? plural : `${plural}.${group}`, err: error, retryInMs }];
}
