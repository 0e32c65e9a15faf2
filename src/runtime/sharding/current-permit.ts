import { AsyncLocalStorage } from 'node:async_hooks';
import type { WriteGuard } from '../../kube/index.ts';
import { ShardLostError } from '../errors.ts';
import type { ClusterName } from '../types.ts';
import type { Permit, Shards } from './types.ts';

/**
 * The permit of the work that is running, wherever in that work one asks: controllers set it when they begin, the guards
 * of connections read it. What others begin on behalf of such work (a callback, a queue other than p-queue, which does so
 * itself) must be bound to where it comes from (AsyncLocalStorage.bind), or it is told another's permit.
 */
export class CurrentPermit {
  readonly #storage = new AsyncLocalStorage<Permit>();

  run<T>(permit: Permit, work: () => T): T {
    return this.#storage.run(permit, work);
  }

  get(): Permit | undefined {
    return this.#storage.getStore();
  }
}

/** What one installation with several replicas has beside a single one. Who makes it: the composition root. */
export interface Sharding {
  readonly shards: Shards;
  readonly current: CurrentPermit;
}

/** What a process writes on its own account, whoever's the clusters are: its membership, leadership, and Events. */
const OWN_BUSINESS =
  /^\/(apis\/coordination\.k8s\.io\/v1\/namespaces\/[^/]+\/leases|api\/v1\/namespaces\/[^/]+\/events)(\/|$)/;

/**
 * For the connection to the management cluster: a write belongs to the work that sends it, and goes only while that
 * work's permit is valid. Throws ShardLostError.
 */
export function managementGuard(current: CurrentPermit, local: ClusterName): WriteGuard {
  return ({ path }) => {
    if (OWN_BUSINESS.test(path)) return;
    const permit = current.get();
    if (permit === undefined) throw new ShardLostError(local, 'no permit covers this write');
    if (!permit.valid) throw new ShardLostError(permit.cluster, LAPSED);
  };
}

/**
 * For a connection to a workload cluster: nothing is written there unless this replica serves it, nor on behalf of work
 * whose permit is void. Throws ShardLostError.
 */
export function workloadGuard(cluster: ClusterName, { shards, current }: Sharding): WriteGuard {
  return () => {
    const permit = current.get();
    if (permit?.valid === false) throw new ShardLostError(permit.cluster, LAPSED);
    if (!shards.serves(cluster)) throw new ShardLostError(cluster, LAPSED);
  };
}

const LAPSED = 'its fence is lost, and another replica may be at work';
