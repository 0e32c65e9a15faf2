import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { access, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { errorText } from '../telemetry/index.ts';
import { readChartMetadata } from './chart-cache-archive.ts';
import { HelmError } from './errors.ts';
import { PrivateDirectories } from './process-directory.ts';
import type { ChartArchive } from './types.ts';

export interface ChartCacheOptions {
  /** Where this process's own directory (0700) is made. What dead processes left there is removed: not to be shared with another container. */
  readonly directory: string;
  /** Bytes of archives kept; those in use count, and stay. */
  readonly maxBytes: number;
  /** Bytes of one archive. */
  readonly maxArchiveBytes: number;
}

interface Entry {
  readonly archive: ChartArchive;
  readonly bytes: number;
  holds: number;
}

/** An archive in use: it stays where it is until `release`, which may be called once or often. */
export interface HeldArchive {
  readonly archive: ChartArchive;
  release(): void;
}

/**
 * Chart archives on disk, by the address of their repository and the digest of their bytes: two repositories with a chart
 * of the same name and version never meet, nor do two contents of one. What was used longest ago goes first when room is
 * needed; what somebody holds never goes. It is empty at the start of a process: who may see which archive is known only
 * to the process that checked it.
 */
export class ChartCache {
  readonly #options: ChartCacheOptions;
  /** In the order of use, oldest first. */
  readonly #entries = new Map<string, Entry>();
  readonly #directories: PrivateDirectories;
  #directory: Promise<string> | undefined;
  #bytes = 0;

  constructor(options: ChartCacheOptions) {
    this.#options = options;
    this.#directories = new PrivateDirectories(options.directory);
  }

  /** The archive of this digest (sha256:…) from this repository, if it is here. */
  async hold(address: string, digest: string): Promise<HeldArchive | undefined> {
    const key = keyOf(address, digest);
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const held = this.#take(key, entry);
    try {
      await access(entry.archive.path);
      return held;
    } catch {
      // Somebody cleaned up the disk. It is fetched again.
      held.release();
      this.#drop(key, entry);
      return undefined;
    }
  }

  /** What Chart.yaml of an archive says, without holding it. */
  peek(address: string, digest: string): ChartArchive | undefined {
    return this.#entries.get(keyOf(address, digest))?.archive;
  }

  /**
   * Takes an archive in. `fetch` is given a writer that takes the bytes, from the beginning again each time it is called.
   * Rejects with HelmError DigestMismatch when they are not of digest `expected`, ChartInvalid when they are no chart.
   */
  async put(address: string, expected: string | undefined, fetch: FetchArchive): Promise<HeldArchive> {
    const directory = await this.#ready();
    const temporary = join(directory, `${randomUUID()}.part`);
    try {
      const written: { digest?: string; bytes: number } = { bytes: 0 };
      const signal = await fetch(async (chunks, signal) => {
        Object.assign(written, await this.#write(temporary, chunks, signal));
      });
      const digest = written.digest ?? '';
      if (expected !== undefined && expected !== digest) throw mismatch(expected, digest);
      const metadata = await readChartMetadata(temporary, signal);
      return await this.#adopt(temporary, { address, digest, bytes: written.bytes }, metadata);
    } finally {
      await rm(temporary, { force: true });
    }
  }

  /** Removes this process's directory. */
  async close(): Promise<void> {
    this.#directory = undefined;
    this.#entries.clear();
    this.#bytes = 0;
    await this.#directories.close();
  }

  async #write(
    path: string,
    chunks: AsyncIterable<Buffer>,
    signal: AbortSignal,
  ): Promise<{ digest: string; bytes: number }> {
    const hash = createHash('sha256');
    const limit = this.#options.maxArchiveBytes;
    let bytes = 0;
    async function* count(): AsyncGenerator<Buffer> {
      for await (const chunk of chunks) {
        bytes += chunk.length;
        if (bytes > limit) throw new HelmError('ChartInvalid', `the chart's archive is larger than ${limit} bytes`);
        hash.update(chunk);
        yield chunk;
      }
    }
    await pipeline(Readable.from(count()), createWriteStream(path, { mode: 0o600 }), { signal });
    return { digest: `sha256:${hash.digest('hex')}`, bytes };
  }

  async #adopt(
    temporary: string,
    { address, digest, bytes }: { address: string; digest: string; bytes: number },
    metadata: { name: string; version: string; appVersion?: string },
  ): Promise<HeldArchive> {
    const key = keyOf(address, digest);
    const known = this.#entries.get(key);
    if (known !== undefined) return this.#take(key, known);
    // A name of its own: the removal of an earlier file of this key may still be on its way.
    const path = join(dirname(temporary), `${randomUUID()}.tgz`);
    await rename(temporary, path);
    const entry: Entry = { archive: { path, digest, ...metadata }, bytes, holds: 0 };
    this.#entries.set(key, entry);
    this.#bytes += bytes;
    const held = this.#take(key, entry);
    await this.#evict();
    return held;
  }

  #take(key: string, entry: Entry): HeldArchive {
    entry.holds += 1;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    let held = true;
    return {
      archive: entry.archive,
      release: () => {
        if (held) entry.holds -= 1;
        held = false;
      },
    };
  }

  #drop(key: string, entry: Entry): boolean {
    if (this.#entries.get(key) !== entry) return false;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
    return true;
  }

  async #evict(): Promise<void> {
    for (const [key, entry] of this.#entries) {
      if (this.#bytes <= this.#options.maxBytes) return;
      // Off the books first: from here on nobody can take hold of it.
      if (entry.holds === 0 && this.#drop(key, entry)) await rm(entry.archive.path, { force: true });
    }
  }

  async #ready(): Promise<string> {
    this.#directory ??= this.#directories.make({}).catch((error: unknown) => {
      this.#directory = undefined;
      throw new HelmError('Failed', `the chart cache cannot be made: ${errorText(error)}`, { cause: error });
    });
    return this.#directory;
  }
}

/** Calls `write` with the bytes, once per attempt; resolves with the signal under which the rest is to be done. */
export type FetchArchive = (
  write: (chunks: AsyncIterable<Buffer>, signal: AbortSignal) => Promise<void>,
) => Promise<AbortSignal>;

function keyOf(address: string, digest: string): string {
  return `${digest} ${address}`;
}

function mismatch(expected: string, actual: string): HelmError {
  return new HelmError('DigestMismatch', `the repository announces ${expected} and serves ${actual}`);
}
