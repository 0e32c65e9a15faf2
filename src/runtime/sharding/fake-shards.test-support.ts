import { ShardLostError } from '../errors.ts';
import type { ClusterName } from '../types.ts';
import type { Permit, Shards } from './types.ts';

interface FakePermit extends Permit {
  readonly controller: AbortController;
}

/** Shards that a test says. */
export class FakeShards implements Shards {
  readonly name = 'fake shards';
  readonly identity = 'me';
  readonly permits = new Set<FakePermit>();
  readonly #held = new Set<ClusterName>();
  readonly #leaving = new Set<ClusterName>();
  readonly #listeners = new Set<{ tell: () => void }>();
  /** False: the clock says that the fence is lost, and nobody has been told yet. */
  fence = true;

  constructor(...held: ClusterName[]) {
    for (const name of held) this.#held.add(name);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  holds(cluster: ClusterName): boolean {
    return this.fence && this.#held.has(cluster);
  }

  serves(cluster: ClusterName): boolean {
    return this.fence && (this.#held.has(cluster) || this.#leaving.has(cluster));
  }

  enter(cluster: ClusterName): Permit | undefined {
    if (!this.holds(cluster)) return undefined;
    const controller = new AbortController();
    const fenced = (): boolean => this.fence;
    const permit: FakePermit = {
      cluster,
      controller,
      signal: controller.signal,
      get valid() {
        return fenced() && !controller.signal.aborted;
      },
      [Symbol.dispose]: () => void this.permits.delete(permit),
    };
    this.permits.add(permit);
    return permit;
  }

  onChange(listener: () => void): () => void {
    const entry = { tell: listener };
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }

  run = async (): Promise<void> => Promise.resolve();

  take(...names: ClusterName[]): void {
    for (const name of names) {
      this.#held.add(name);
      this.#leaving.delete(name);
    }
    this.tell();
  }

  /** A hand-over begins: nothing new. */
  leave(name: ClusterName): void {
    if (this.#held.delete(name)) this.#leaving.add(name);
    this.tell();
  }

  /** It is another's; what still runs for it is aborted. */
  lose(...names: ClusterName[]): void {
    for (const name of names) {
      this.#held.delete(name);
      this.#leaving.delete(name);
      for (const { cluster, controller } of this.permits)
        if (cluster === name) controller.abort(new ShardLostError(name, 'a test says so'));
    }
    this.tell();
  }

  tell(): void {
    for (const { tell } of [...this.#listeners]) tell();
  }
}
