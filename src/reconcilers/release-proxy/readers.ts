/** One reader of Helm's storage per engaged cluster, shared by all objects of that cluster and by all who look at them. */
import type { ReleaseKey, ReleaseReader } from '../../helm/index.ts';
import type { Cluster, ClusterName } from '../../runtime/index.ts';

/** Told the release whose records changed on a cluster. Must not throw. */
export type StorageListener = (cluster: Cluster, reader: ReleaseReader, key: ReleaseKey) => void;

interface Held {
  readonly cluster: Cluster;
  readonly reader: ReleaseReader;
  readonly stop: () => void;
}

/**
 * Made lazily, so that a cluster on which nothing is to be done is not watched (caaph W12); closed by identity. Who reads
 * asks `of` each time and keeps no reader: one that was closed for another's sake is made anew then.
 */
export class ReleaseReaders {
  readonly #create: (cluster: Cluster) => ReleaseReader;
  readonly #held = new Map<ClusterName, Held>();
  readonly #listeners = new Set<{ readonly tell: StorageListener }>();

  /** `create` makes a reader; called for a cluster's first object that is not handed off. */
  constructor(create: (cluster: Cluster) => ReleaseReader) {
    this.#create = create;
  }

  /** Returns the removal, by identity. */
  onChange(tell: StorageListener): () => void {
    const listener = { tell };
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** The reader of this engagement. One of an earlier engagement is closed. */
  of(cluster: Cluster): ReleaseReader {
    const held = this.#held.get(cluster.name);
    if (held?.cluster === cluster) return held.reader;
    held?.stop();
    const reader = this.#create(cluster);
    const removeHandler = reader.onChange((key) => {
      for (const { tell } of [...this.#listeners]) tell(cluster, reader, key);
    });
    const stop = (): void => {
      removeHandler();
      reader.close();
    };
    this.#held.set(cluster.name, { cluster, reader, stop });
    return reader;
  }

  /**
   * Waits for the reader's first list, `limitMs` milliseconds at most. False: it was closed meanwhile, as nothing is left
   * to be looked at on the cluster; whoever waited has nothing to look at either, and what comes later is an event.
   */
  async ready(cluster: Cluster, signal: AbortSignal, limitMs: number): Promise<boolean> {
    const reader = this.of(cluster);
    try {
      await reader.synced(signal, limitMs);
      return true;
    } catch (error) {
      if (signal.aborted || this.#held.get(cluster.name)?.reader === reader) throw error;
      return false;
    }
  }

  /** The engagement ended: closes its reader and no successor's. */
  disengaged(cluster: Cluster): void {
    if (this.#held.get(cluster.name)?.cluster === cluster) this.release(cluster.name);
  }

  /** Nothing is left to be watched on the cluster: all its objects are handed off or gone. */
  release(name: ClusterName): void {
    this.#held.get(name)?.stop();
    this.#held.delete(name);
  }

  close(): void {
    for (const name of [...this.#held.keys()]) this.release(name);
  }
}
