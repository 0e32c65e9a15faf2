import { ParkingLot } from '../parking-lot.ts';
import type { Parked } from '../parking-lot.ts';
import type { ClusterName, Request } from '../types.ts';
import type { CurrentPermit, Sharding } from './current-permit.ts';
import type { Permit, Shards } from './types.ts';

/** Of a controller whose work is shared among replicas. */
export interface ShardedWork extends Sharding {
  /** Under which name a request's permit is taken; the request's own cluster when absent. */
  readonly shardOf?: (request: Request) => ClusterName;
  /** What a request is about is gone for good: it need not be kept until this replica holds its cluster. */
  readonly isMoot?: (request: Request) => boolean;
}

/** Below this many no time is spent on looking for moot ones. */
const SWEEP_FROM = 1_000;

/** What of a controller's work this replica may do now. The rest is kept, one entry each, until it may. */
export class ShardDispatch {
  readonly #shards: Shards;
  readonly #current: CurrentPermit;
  readonly #shardOf: (request: Request) => ClusterName;
  readonly #isMoot: (request: Request) => boolean;
  readonly #resume: (parked: Parked) => void;
  readonly #elsewhere = new ParkingLot(() => undefined);
  #sweepAt = SWEEP_FROM;

  /** `resume` is given each kept request once this replica holds its cluster. */
  constructor(work: ShardedWork, resume: (parked: Parked) => void) {
    this.#shards = work.shards;
    this.#current = work.current;
    this.#shardOf = work.shardOf ?? (({ cluster }) => cluster);
    this.#isMoot = work.isMoot ?? (() => false);
    this.#resume = resume;
  }

  /** Requests that are kept. */
  get size(): number {
    return this.#elsewhere.size;
  }

  /** Returns the removal, by identity. */
  listen(): () => void {
    return this.#shards.onChange(() => {
      for (const cluster of this.#elsewhere.clusters()) if (this.#shards.holds(cluster)) this.#release(cluster);
    });
  }

  /** True when the request is another replica's: it is kept. */
  keeps(request: Request): boolean {
    if (this.#shards.holds(this.#shardOf(request))) return false;
    this.#keep(request);
    return true;
  }

  /** The right to begin, or undefined: the request is kept. */
  enter(request: Request): Permit | undefined {
    const cluster = this.#shardOf(request);
    const permit = this.#shards.enter(cluster);
    if (permit === undefined) this.#keep(request);
    // A clock that was set and set back makes a change that nobody is told of.
    else this.#release(cluster);
    return permit;
  }

  /** `work` and all that it begins knows its permit. */
  run<T>(permit: Permit, work: () => T): T {
    return this.#current.run(permit, work);
  }

  #keep(request: Request): void {
    if (this.#isMoot(request)) return;
    this.#elsewhere.put(this.#shardOf(request), request);
    if (this.#elsewhere.size < this.#sweepAt) return;
    this.#elsewhere.drop(this.#isMoot);
    this.#sweepAt = Math.max(SWEEP_FROM, 2 * this.#elsewhere.size);
  }

  #release(cluster: ClusterName): void {
    for (const parked of this.#elsewhere.takeAll(cluster)) this.#resume(parked);
  }
}
