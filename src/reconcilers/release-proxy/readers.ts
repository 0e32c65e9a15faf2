/** One reader of Helm's storage per engaged cluster, shared by all objects of that cluster. */
import type { ReleaseKey, ReleaseReader } from '../../helm/index.ts';
import type { Cluster, ClusterName } from '../../runtime/index.ts';

export interface ReleaseReadersOptions {
  /** Makes a reader; called for a cluster's first object that is not handed off. */
  readonly create: (cluster: Cluster) => ReleaseReader;
  /** Told the release whose records changed on a cluster. */
  readonly onChange: (cluster: Cluster, reader: ReleaseReader, key: ReleaseKey) => void;
}

interface Held {
  readonly cluster: Cluster;
  readonly reader: ReleaseReader;
  readonly stop: () => void;
}

/** Made lazily, so that a cluster on which nothing is to be done is not watched (caaph W12); closed by identity. */
export class ReleaseReaders {
  readonly #options: ReleaseReadersOptions;
  readonly #held = new Map<ClusterName, Held>();

  constructor(options: ReleaseReadersOptions) {
    this.#options = options;
  }

  /** The reader of this engagement. One of an earlier engagement is closed. */
  of(cluster: Cluster): ReleaseReader {
    const held = this.#held.get(cluster.name);
    if (held?.cluster === cluster) return held.reader;
    held?.stop();
    const reader = this.#options.create(cluster);
    const removeHandler = reader.onChange((key) => this.#options.onChange(cluster, reader, key));
    const stop = (): void => {
      removeHandler();
      reader.close();
    };
    this.#held.set(cluster.name, { cluster, reader, stop });
    return reader;
  }

  /** The engagement ended: closes its reader and no successor's. */
  disengaged(cluster: Cluster): void {
    if (this.#held.get(cluster.name)?.cluster === cluster) this.release(cluster.name);
  }

  /** Nothing is left to be watched on the cluster. */
  release(name: ClusterName): void {
    this.#held.get(name)?.stop();
    this.#held.delete(name);
  }

  close(): void {
    for (const name of [...this.#held.keys()]) this.release(name);
  }
}
