/** Looks at every HelmChartProxy and placement once per period, spread over it, behind all other work: what an event ought to have told and did not is mended within one period. */
import { sleep } from '../../kube/index.ts';
import type { Runnable } from '../../runtime/index.ts';

/** Slices of a period at most; every object has its own, by its uid. */
const MAX_SLICES = 60;
/** Slices shorter than this are not worth waking up for: most of what an idle pass costs is to wake up for it. Milliseconds. */
const MIN_SLICE_MS = 5_000;

export class Resync implements Runnable {
  readonly name = 'chart-proxy-resync';
  readonly #periodMs: number;
  readonly #slice: (isDue: (uid: string) => boolean) => void;

  /** `slice` is called with the test that says whose turn it is. */
  constructor(periodMs: number, slice: (isDue: (uid: string) => boolean) => void) {
    this.#periodMs = periodMs;
    this.#slice = slice;
  }

  async run(signal: AbortSignal): Promise<void> {
    const slices = Math.max(1, Math.min(MAX_SLICES, Math.floor(this.#periodMs / MIN_SLICE_MS)));
    try {
      for (let turn = 0; ; turn = (turn + 1) % slices) {
        await sleep(this.#periodMs / slices, signal);
        this.#slice((uid) => sliceOf(uid, slices) === turn);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

/** FNV-1a: cheap, and even enough to spread uids. */
export function sliceOf(uid: string, slices: number): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < uid.length; at++) hash = Math.imul(hash ^ uid.charCodeAt(at), 0x01000193) >>> 0;
  return hash % slices;
}
