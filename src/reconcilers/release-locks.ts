/** One at a time on a release: Helm's operation and a correction of drift never run together (DESIGN §5.4). */
import { raceAbort } from '../kube/index.ts';
import type { ReleaseKey } from '../helm/index.ts';
import type { ClusterName } from '../runtime/index.ts';

export type Unlock = () => void;

/** Of one process: two never act on one cluster (leader election, sharding). Locks end with their holders, so none is ever stale. */
export class ReleaseLocks {
  /** The end of whoever holds the lock or waits for it last. */
  readonly #tails = new Map<string, Promise<void>>();
  readonly #handlers = new Set<{ readonly tell: (cluster: ClusterName, key: ReleaseKey) => void }>();

  isLocked(cluster: ClusterName, key: ReleaseKey): boolean {
    return this.#tails.has(lockKey(cluster, key));
  }

  /** The lock when nobody has it and nobody waits for it, else undefined: `onFree` tells when to try again. */
  tryLock(cluster: ClusterName, key: ReleaseKey): Unlock | undefined {
    return this.isLocked(cluster, key) ? undefined : this.#hold(cluster, key, { tells: false });
  }

  /** Waits for the lock, in turn. Rejects with the signal's reason. */
  async lock(cluster: ClusterName, key: ReleaseKey, signal: AbortSignal): Promise<Unlock> {
    const before = this.#tails.get(lockKey(cluster, key));
    const unlock = this.#hold(cluster, key, { before, tells: true });
    try {
      if (before !== undefined) await raceAbort(before, signal);
      return unlock;
    } catch (error) {
      unlock();
      throw error;
    }
  }

  /** Told when whoever waited for a lock, or would have waited, has let go of it and nobody holds it. Must not throw. Returns the removal, by identity. */
  onFree(tell: (cluster: ClusterName, key: ReleaseKey) => void): () => void {
    const handler = { tell };
    this.#handlers.add(handler);
    return () => {
      this.#handlers.delete(handler);
    };
  }

  /** Who comes next waits for this holder and for all before it. */
  #hold(cluster: ClusterName, key: ReleaseKey, how: { before?: Promise<void>; tells: boolean }): Unlock {
    const name = lockKey(cluster, key);
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const tail = Promise.all([how.before, promise]).then(() => undefined);
    this.#tails.set(name, tail);
    const last = async (): Promise<void> => {
      await tail;
      if (this.#tails.get(name) !== tail) return;
      this.#tails.delete(name);
      if (!how.tells) return;
      for (const { tell } of [...this.#handlers]) tell(cluster, key);
    };
    const done = last();
    return () => {
      resolve(undefined);
      // Never rejects: handlers must not throw.
      done.catch(() => undefined);
    };
  }
}

function lockKey(cluster: ClusterName, key: ReleaseKey): string {
  return `${cluster} ${key.namespace} ${key.name}`;
}
