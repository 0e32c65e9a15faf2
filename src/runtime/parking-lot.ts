import { requestKey } from './cluster-name.ts';
import type { ClusterName, Priority, Request } from './types.ts';

export interface Parked {
  readonly request: Request;
  readonly priority: Priority;
}

/** Requests that wait for a cluster to be in service: no timer, no retry, one entry each. */
export class ParkingLot {
  readonly #byCluster = new Map<ClusterName, Map<string, Parked>>();
  /** Which cluster a request waits for: mostly, but not necessarily, its own. */
  readonly #waitsFor = new Map<string, ClusterName>();
  readonly #onCount: (cluster: ClusterName, count: number) => void;

  constructor(onCount: (cluster: ClusterName, count: number) => void) {
    this.#onCount = onCount;
  }

  get size(): number {
    return this.#waitsFor.size;
  }

  put(cluster: ClusterName, request: Request, priority: Priority = 'user'): void {
    this.take(request);
    let parked = this.#byCluster.get(cluster);
    if (parked === undefined) this.#byCluster.set(cluster, (parked = new Map<string, Parked>()));
    const key = requestKey(request);
    parked.set(key, { request, priority });
    this.#waitsFor.set(key, cluster);
    this.#onCount(cluster, parked.size);
  }

  /** Takes one out, if it is here. */
  take(request: Request): void {
    const key = requestKey(request);
    const cluster = this.#waitsFor.get(key);
    if (cluster === undefined) return;
    this.#waitsFor.delete(key);
    const parked = this.#byCluster.get(cluster);
    parked?.delete(key);
    if (parked?.size === 0) this.#byCluster.delete(cluster);
    this.#onCount(cluster, parked?.size ?? 0);
  }

  /** Clusters that something waits for. */
  clusters(): ClusterName[] {
    return [...this.#byCluster.keys()];
  }

  /** Takes out those for which `isMoot` says so. */
  drop(isMoot: (request: Request) => boolean): void {
    for (const parked of [...this.#byCluster.values()])
      for (const { request } of [...parked.values()]) if (isMoot(request)) this.take(request);
  }

  /** Takes out all that wait for a cluster. */
  takeAll(cluster: ClusterName): Parked[] {
    const all = [...(this.#byCluster.get(cluster)?.values() ?? [])];
    this.#byCluster.delete(cluster);
    for (const { request } of all) this.#waitsFor.delete(requestKey(request));
    if (all.length > 0) this.#onCount(cluster, 0);
    return all;
  }
}
