import { setTimeout as sleep } from 'node:timers/promises';
import { peakBytes, residentBytes, resetPeak } from './process-tree.ts';

/** The most that was seen, in bytes. */
export interface MemoryPeaks {
  /** The process itself, by the kernel's own count. */
  own: number;
  /** It and its children together, sampled. */
  tree: number;
  processes: number;
}

/** A helm process lives 200 ms or more; this often (ms) none is missed, and the sampling costs a hundredth of a core. */
const INTERVAL_MS = 50;

/** Watches the memory of a process tree. */
export class MemorySampler {
  readonly #pid: number;
  readonly #closing = new AbortController();
  readonly #peaks: MemoryPeaks = { own: 0, tree: 0, processes: 0 };
  readonly #running: Promise<void>;

  constructor(pid: number) {
    this.#pid = pid;
    this.#running = this.#sample();
  }

  /** Ends it; resolves with the peaks since the start. */
  async stop(): Promise<MemoryPeaks> {
    this.#closing.abort();
    await this.#running;
    return { ...this.#peaks, own: Math.max(this.#peaks.own, await peakBytes(this.#pid)) };
  }

  async #sample(): Promise<void> {
    const { signal } = this.#closing;
    await resetPeak(this.#pid);
    while (!signal.aborted) {
      const seen = await residentBytes(this.#pid);
      for (const key of ['own', 'tree', 'processes'] as const) {
        this.#peaks[key] = Math.max(this.#peaks[key], seen[key]);
      }
      await sleep(INTERVAL_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}
