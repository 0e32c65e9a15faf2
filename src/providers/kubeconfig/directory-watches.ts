import { statSync, watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';

interface Watched {
  readonly watcher: FSWatcher;
  /** Device and inode: a directory that was replaced is another, and its old watch is silent for ever. */
  readonly identity: string;
}

/**
 * Watches of directories (inotify and its like). They only make it quick: what they cannot see (network mounts, a limit
 * that is used up, a directory that is not there yet) the caller's poll sees, so no failure here is anybody's business.
 */
export class DirectoryWatches {
  readonly #onChange: () => void;
  readonly #watched = new Map<string, Watched>();

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get size(): number {
    return this.#watched.size;
  }

  /** Watches these and no others. */
  set(directories: ReadonlySet<string>): void {
    for (const directory of [...this.#watched.keys()]) if (!directories.has(directory)) this.#drop(directory);
    for (const directory of directories) this.#take(directory);
  }

  close(): void {
    for (const directory of [...this.#watched.keys()]) this.#drop(directory);
  }

  #take(directory: string): void {
    try {
      const { dev, ino } = statSync(directory);
      const identity = `${dev} ${ino}`;
      if (this.#watched.get(directory)?.identity === identity) return;
      this.#drop(directory);
      const watcher = watch(directory, { persistent: false }, () => this.#onChange());
      watcher.on('error', () => this.#forget(directory, watcher));
      this.#watched.set(directory, { watcher, identity });
    } catch {
      this.#drop(directory);
    }
  }

  #forget(directory: string, watcher: FSWatcher): void {
    if (this.#watched.get(directory)?.watcher === watcher) this.#drop(directory);
  }

  #drop(directory: string): void {
    const watched = this.#watched.get(directory);
    this.#watched.delete(directory);
    watched?.watcher.close();
  }
}
