import type { Discovery, ForwardedAnswer, ForwardRequest, KubeClient, WatchSet } from '../kube/index.ts';
import type { ClusterName, ConnectionSpec } from './types.ts';

/**
 * A connection to one API server and all that hangs on it, as the fleet needs it. kube-connection.ts makes them from
 * the room `kube`; tests make fakes.
 */
export interface ClusterConnection {
  /** Equal for equal server and CA: what may be swapped in place. */
  readonly identity: string;
  readonly client: KubeClient;
  readonly discovery: Discovery;
  readonly watches: WatchSet;
  /** Puts newer credentials for the same identity in place: running watches go on, later calls use them. */
  swap(spec: ConnectionSpec): void;
  /** A self-contained kubeconfig with the newest credentials. */
  kubeconfig(): string;
  /** Another program's request with these credentials; see Connection.forward. */
  forward?(request: ForwardRequest): Promise<ForwardedAnswer>;
  /** Drops all sockets, e.g. half-open ones; later calls open new ones. */
  reset(why: string): void;
  /** Stops watches, drops sockets. Idempotent. */
  close(): Promise<void>;
}

export interface ConnectionHooks {
  /** Called after a 401 on any call. Resolves true when newer credentials are in place, within `signal`. */
  onUnauthorized(signal: AbortSignal): Promise<boolean>;
}

/** Makes connections without talking to anybody: throws at once on a spec that cannot be used. */
export interface ConnectionFactory {
  open(name: ClusterName, spec: ConnectionSpec, hooks?: ConnectionHooks): ClusterConnection;
}
