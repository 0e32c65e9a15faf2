import { isDeepStrictEqual } from 'node:util';
import type { ClusterAbout, ClusterName, ClusterRecord } from './types.ts';

/** Told after each change; `record` is undefined when the cluster is no longer declared. Must not throw. */
export type RecordListener = (name: ClusterName, record: ClusterRecord | undefined) => void;

/** What is declared of the fleet's clusters besides how to reach them. Who calls: controllers that select clusters by label. */
export interface ClusterRecords {
  get(name: ClusterName): ClusterRecord | undefined;
  list(): ClusterRecord[];
  /** A listener that comes late is told what is there at once. Returns the removal, by identity. */
  listen(listener: RecordListener): () => void;
  /** That provider has declared all its clusters once: one of it that has no record is gone. False also for a provider that nobody has. */
  isSynced(provider: string): boolean;
  /** Told the provider's name once it has. Returns the removal, by identity. */
  onSynced(listener: (provider: string) => void): () => void;
}

/** The records of one fleet, which alone writes here. Whatever a listener throws goes to `onError`; the others are told. */
export class RecordBook implements ClusterRecords {
  readonly #records = new Map<ClusterName, ClusterRecord>();
  readonly #listeners = new Set<{ readonly tell: RecordListener }>();
  readonly #synced = new Set<string>();
  readonly #syncListeners = new Set<{ readonly tell: (provider: string) => void }>();
  readonly #onError: (name: ClusterName, error: unknown) => void;

  constructor(onError: (name: ClusterName, error: unknown) => void) {
    this.#onError = onError;
  }

  get(name: ClusterName): ClusterRecord | undefined {
    return this.#records.get(name);
  }

  list(): ClusterRecord[] {
    return [...this.#records.values()];
  }

  listen(listener: RecordListener): () => void {
    const entry = { tell: listener };
    this.#listeners.add(entry);
    for (const record of this.list()) this.#tell(entry.tell, record.name, record);
    return () => {
      this.#listeners.delete(entry);
    };
  }

  isSynced(provider: string): boolean {
    return this.#synced.has(provider);
  }

  onSynced(listener: (provider: string) => void): () => void {
    const entry = { tell: listener };
    this.#syncListeners.add(entry);
    return () => {
      this.#syncListeners.delete(entry);
    };
  }

  /** Who calls: the fleet, for the provider's sink. */
  synced(provider: string): void {
    if (this.#synced.has(provider)) return;
    this.#synced.add(provider);
    for (const { tell } of [...this.#syncListeners]) tell(provider);
  }

  /** A declaration that says nothing about the cluster leaves what was said before. */
  put(name: ClusterName, provider: string, about: ClusterAbout | undefined): void {
    const before = this.#records.get(name);
    if (about === undefined && before !== undefined) return;
    const record: ClusterRecord = { labels: {}, ...about, name, provider };
    if (isDeepStrictEqual(before, record)) return;
    this.#records.set(name, record);
    this.#tellAll(name, record);
  }

  remove(name: ClusterName): void {
    if (this.#records.delete(name)) this.#tellAll(name, undefined);
  }

  #tellAll(name: ClusterName, record: ClusterRecord | undefined): void {
    for (const { tell } of [...this.#listeners]) this.#tell(tell, name, record);
  }

  #tell(listener: RecordListener, name: ClusterName, record: ClusterRecord | undefined): void {
    try {
      listener(name, record);
    } catch (error) {
      this.#onError(name, error);
    }
  }
}
