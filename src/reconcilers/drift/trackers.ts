/** One tracker of objects per engaged cluster that has releases to watch. */
import type { ClusterTracker } from '../../drift/index.ts';
import type { Cluster, ClusterName } from '../../runtime/index.ts';

/** What this controller asks of a tracker. */
export type Tracker = Pick<
  ClusterTracker,
  'track' | 'forget' | 'synced' | 'take' | 'settle' | 'unsettle' | 'isOutdated' | 'problems' | 'close'
>;

interface Held {
  readonly cluster: Cluster;
  readonly tracker: Tracker;
  /** Uids of the objects whose releases it tracks. */
  readonly users: Set<string>;
}

/** Made lazily, closed by identity; a degraded cluster keeps its own, whose watches then tell what happened meanwhile. */
export class Trackers {
  readonly #create: (cluster: Cluster) => Tracker;
  readonly #held = new Map<ClusterName, Held>();

  constructor(create: (cluster: Cluster) => Tracker) {
    this.#create = create;
  }

  /** The tracker of this engagement, for this user. One of an earlier engagement is closed. */
  of(cluster: Cluster, uid: string): Tracker {
    let held = this.#held.get(cluster.name);
    if (held?.cluster !== cluster) {
      held?.tracker.close();
      held = { cluster, tracker: this.#create(cluster), users: new Set() };
      this.#held.set(cluster.name, held);
    }
    held.users.add(uid);
    return held.tracker;
  }

  /** Tracks nothing more of the user's release; the last one takes the tracker along. */
  leave(cluster: Cluster, uid: string): void {
    const held = this.#held.get(cluster.name);
    if (held?.cluster !== cluster) return;
    held.tracker.forget(uid);
    held.users.delete(uid);
    if (held.users.size > 0) return;
    held.tracker.close();
    this.#held.delete(cluster.name);
  }

  /** The engagement ended: closes its tracker and no successor's. */
  disengaged(cluster: Cluster): void {
    const held = this.#held.get(cluster.name);
    if (held?.cluster !== cluster) return;
    held.tracker.close();
    this.#held.delete(cluster.name);
  }

  close(): void {
    for (const { tracker } of this.#held.values()) tracker.close();
    this.#held.clear();
  }
}
