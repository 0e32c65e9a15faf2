import PQueue from 'p-queue';
import { LOCAL_CLUSTER } from './cluster-name.ts';
import { FairQueue } from './fair-queue.ts';
import type { FairItem, Rank } from './fair-queue.ts';
import type { ClusterName } from './types.ts';

/** A pool of places. Work of one lane never takes a place of another. */
export interface LaneOptions {
  /** Requests worked on at a time. */
  readonly concurrency: number;
  /** Of these, for one cluster. A quarter of `concurrency` when absent, at least 1. */
  readonly perCluster?: number;
  /** After so many milliseconds work no longer holds its place (it still counts for its cluster); 5 s when absent. */
  readonly lendAfterMs?: number;
}

/** What runs longer than this waits for something outside; others may have its place meanwhile. */
const LEND_AFTER_MS = 5_000;
/** Places lent at a time, as a multiple of the lane's own: bounds what hangs, and leaves ten sick clusters room to hang in. */
const LENT_PER_PLACE = 4;

/** Waiting items and the places to work on them. p-queue executes; which item comes next is decided only when a place is free. */
export class Lane<T extends FairItem> {
  readonly waiting = new FairQueue<T>();
  readonly #executor: PQueue;
  readonly #concurrency: number;
  readonly #perCluster: number;
  readonly #lendAfterMs: number;
  readonly #running = new Map<ClusterName, number>();
  /** Of these, the work that takes long and has lent its place. */
  readonly #slow = new Map<ClusterName, number>();
  /** Told when a place was lent: another item may have it. */
  readonly #onLent: () => void;
  #held = 0;
  #lent = 0;

  constructor(options: LaneOptions, onLent: () => void) {
    this.#concurrency = options.concurrency;
    this.#perCluster = options.perCluster ?? Math.max(1, Math.floor(options.concurrency / 4));
    this.#lendAfterMs = options.lendAfterMs ?? LEND_AFTER_MS;
    this.#executor = new PQueue({ concurrency: options.concurrency * (1 + LENT_PER_PLACE) });
    this.#onLent = onLent;
  }

  /** Items worked on now. */
  get active(): number {
    let sum = 0;
    for (const running of this.#running.values()) sum += running;
    return sum;
  }

  /** The next item, if a place is free and an item may have it. It must be run then. */
  take(): T | undefined {
    if (this.#held >= this.#concurrency) return undefined;
    const item = this.waiting.take((cluster) => this.#rank(cluster));
    if (item === undefined) return undefined;
    this.#held += 1;
    count(this.#running, item.cluster, 1);
    return item;
  }

  /** Executes the work for an item that was taken, and gives the place back. Settles with the work. */
  async run(item: T, work: () => Promise<void>): Promise<void> {
    await this.#executor.add(async () => {
      const giveBack = this.#holdPlace(item.cluster);
      try {
        await work();
      } finally {
        giveBack();
        count(this.#running, item.cluster, -1);
      }
    });
  }

  async idle(): Promise<void> {
    await this.#executor.onIdle();
  }

  /** A cluster with work that takes long stands behind those without: what it begins next will likely take long as well. */
  #rank(cluster: ClusterName): Rank {
    // The management cluster is not one of many: the lane's own bound is its bound.
    if (cluster === LOCAL_CLUSTER) return 'front';
    if ((this.#running.get(cluster) ?? 0) >= this.#perCluster) return 'out';
    return this.#slow.has(cluster) ? 'back' : 'front';
  }

  /** The place is held until the returned function is called, or, once the work takes long, until it can be lent. */
  #holdPlace(cluster: ClusterName): () => void {
    let lent = false;
    const timer = setInterval(() => {
      if (this.#lent >= this.#concurrency * LENT_PER_PLACE) return;
      clearInterval(timer);
      lent = true;
      this.#lent += 1;
      this.#held -= 1;
      count(this.#slow, cluster, 1);
      this.#onLent();
    }, this.#lendAfterMs);
    return () => {
      clearInterval(timer);
      if (!lent) {
        this.#held -= 1;
        return;
      }
      this.#lent -= 1;
      count(this.#slow, cluster, -1);
    };
  }
}

function count(counts: Map<ClusterName, number>, cluster: ClusterName, by: 1 | -1): void {
  const now = (counts.get(cluster) ?? 0) + by;
  if (now === 0) counts.delete(cluster);
  else counts.set(cluster, now);
}
