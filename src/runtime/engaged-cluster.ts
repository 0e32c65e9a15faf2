import type { Discovery, KubeClient, WatchSet, ForwardedAnswer, ForwardRequest } from '../kube/index.ts';
import type { ClusterConnection } from './connection.ts';
import { ClusterGoneError } from './errors.ts';
import type { Cluster, ClusterName } from './types.ts';

/** One engagement: a cluster's connection, and the signal that ends with it. Made by supervisors, and once for the management cluster. */
export class EngagedCluster implements Cluster {
  readonly name: ClusterName;
  readonly connection: ClusterConnection;
  readonly #end = new AbortController();
  #uid: string | undefined;
  #degraded = false;

  constructor(name: ClusterName, connection: ClusterConnection, uid?: string) {
    this.name = name;
    this.connection = connection;
    this.#uid = uid;
  }

  get uid(): string | undefined {
    return this.#uid;
  }

  get client(): KubeClient {
    return this.connection.client;
  }

  get discovery(): Discovery {
    return this.connection.discovery;
  }

  get watches(): WatchSet {
    return this.connection.watches;
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  get degraded(): boolean {
    return this.#degraded;
  }

  kubeconfig(): string {
    return this.connection.kubeconfig();
  }

  async forward(request: ForwardRequest): Promise<ForwardedAnswer> {
    if (this.connection.forward === undefined) throw new TypeError('this connection forwards nothing');
    return this.connection.forward(request);
  }

  /** False when another cluster answers than the one engaged. A UID seen for the first time is kept. */
  confirm(uid: string | undefined): boolean {
    this.#uid ??= uid;
    return uid === undefined || uid === this.#uid;
  }

  setDegraded(degraded: boolean): void {
    this.#degraded = degraded;
  }

  /** Aborts the signal. The connection is its owner's to close, after a grace for what runs. */
  end(reason: string): void {
    this.#end.abort(new ClusterGoneError(this.name, reason));
  }
}

/** A cluster object outside a fleet, e.g. the management cluster under LOCAL_CLUSTER. `close` ends it. */
export function createCluster(
  name: ClusterName,
  connection: ClusterConnection,
  uid?: string,
): { readonly cluster: Cluster; close(reason: string): Promise<void> } {
  const cluster = new EngagedCluster(name, connection, uid);
  return {
    cluster,
    close: async (reason) => {
      cluster.end(reason);
      await connection.close();
    },
  };
}
