import type { ClusterName, Priority } from './types.ts';

/** Highest first. */
export const PRIORITIES: readonly Priority[] = ['user', 'drift', 'resync'];

/** One take in this many starts with a lower priority: a steady stream of users' changes must not stop resyncs for good. */
const LOWER_FIRST_EVERY = 16;

const LOWER_FIRST: readonly (readonly Priority[])[] = [
  ['resync', 'drift', 'user'],
  ['drift', 'resync', 'user'],
];

export interface FairItem {
  readonly key: string;
  readonly cluster: ClusterName;
  priority: Priority;
}

/** Whether a cluster may have a worker now: `front` before `back`, `out` not at all. */
export type Rank = 'front' | 'back' | 'out';

/** Clusters in the order of their turns, each with its items in the order they came. */
type Ring<T> = Map<ClusterName, Map<string, T>>;

/**
 * Waiting items, fair across clusters. `take` looks at the highest priority that any cluster has to offer and takes one
 * item of the cluster whose turn it is; that cluster then goes to the end of the row. So 10,000 items of one cluster
 * delay another's first by one item, and a resync of everything delays a user's change by none.
 */
export class FairQueue<T extends FairItem> {
  readonly #rings: Record<Priority, Ring<T>> = { user: new Map(), drift: new Map(), resync: new Map() };
  #takes = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(item: T): void {
    const ring = this.#rings[item.priority];
    let items = ring.get(item.cluster);
    if (items === undefined) ring.set(item.cluster, (items = new Map<string, T>()));
    if (!items.has(item.key)) this.#size += 1;
    items.set(item.key, item);
  }

  /** True when it was waiting here. */
  remove(item: T): boolean {
    const ring = this.#rings[item.priority];
    const items = ring.get(item.cluster);
    if (items?.get(item.key) !== item) return false;
    items.delete(item.key);
    if (items.size === 0) ring.delete(item.cluster);
    this.#size -= 1;
    return true;
  }

  /** The next item, or undefined: among the clusters that `rank` admits, those in the `front` before those in the `back`. */
  take(rank: (cluster: ClusterName) => Rank): T | undefined {
    if (this.#size === 0) return undefined;
    for (const priority of this.#order()) {
      const item = takeFrom(this.#rings[priority], rank);
      if (item === undefined) continue;
      this.#takes += 1;
      this.#size -= 1;
      return item;
    }
    return undefined;
  }

  #order(): readonly Priority[] {
    if (this.#takes % LOWER_FIRST_EVERY !== LOWER_FIRST_EVERY - 1) return PRIORITIES;
    return LOWER_FIRST[Math.floor(this.#takes / LOWER_FIRST_EVERY) % LOWER_FIRST.length] ?? PRIORITIES;
  }
}

function takeFrom<T>(ring: Ring<T>, rank: (cluster: ClusterName) => Rank): T | undefined {
  const cluster = nextCluster(ring.keys(), rank);
  const items = cluster === undefined ? undefined : ring.get(cluster);
  if (cluster === undefined || items === undefined) return undefined;
  ring.delete(cluster);
  for (const [key, item] of items) {
    items.delete(key);
    if (items.size > 0) ring.set(cluster, items);
    return item;
  }
  return undefined;
}

function nextCluster(clusters: Iterable<ClusterName>, rank: (cluster: ClusterName) => Rank): ClusterName | undefined {
  let back: ClusterName | undefined;
  for (const cluster of clusters) {
    const is = rank(cluster);
    if (is === 'front') return cluster;
    if (is === 'back') back ??= cluster;
  }
  return back;
}
