import { ShardLostError } from '../errors.ts';
import type { ClusterName } from '../types.ts';
import type { Permit } from './types.ts';

/** The work that runs under this member's fence, by permit. */
export class Permits {
  readonly #running = new Set<RunningPermit>();
  readonly #fenceValid: () => boolean;
  readonly #onEnd: () => void;

  /** `onEnd` is told when a permit has been disposed of. */
  constructor(fenceValid: () => boolean, onEnd: () => void) {
    this.#fenceValid = fenceValid;
    this.#onEnd = onEnd;
  }

  issue(cluster: ClusterName): Permit {
    const permit = new RunningPermit(cluster, this.#fenceValid, () => {
      // One that was aborted in a hand-over is waited for a little longer.
      const settles = permit.signal.aborted && permit.leavingSince !== undefined;
      if (!settles && this.#running.delete(permit)) this.#onEnd();
    });
    this.#running.add(permit);
    return permit;
  }

  /** All at once: the fence was lost. Returns how many ran. */
  loseAll(why: string): number {
    let lost = 0;
    for (const permit of this.#running) if (permit.lose(why)) lost += 1;
    return lost;
  }

  /**
   * A hand-over: what runs for clusters that are not `kept` may go on for `limitMs`, and is then aborted. What was
   * aborted counts for `settleMs` longer, whether or not it has ended: a request that it had sent may still arrive.
   * True when nothing counts any more.
   */
  handedOver(kept: (cluster: ClusterName) => boolean, times: HandOverTimes): boolean {
    let left = 0;
    for (const permit of this.#running) {
      if (kept(permit.cluster)) this.#keep(permit);
      else if (!this.#isOver(permit, times)) left += 1;
    }
    return left === 0;
  }

  #keep(permit: RunningPermit): void {
    permit.leavingSince = undefined;
    if (permit.disposed) this.#running.delete(permit);
  }

  #isOver(permit: RunningPermit, times: HandOverTimes): boolean {
    permit.leavingSince ??= times.at;
    const waitedMs = times.at - permit.leavingSince;
    if (waitedMs < times.limitMs) return false;
    if (permit.lose('it is handed over to another replica, and did not end in time')) permit.lostAt = times.at;
    if (times.at - (permit.lostAt ?? permit.leavingSince) < times.settleMs) return false;
    if (permit.disposed) this.#running.delete(permit);
    // Its writes are refused: nothing is gained by waiting for work that does not heed its signal.
    return true;
  }
}

export interface HandOverTimes {
  /** Now, milliseconds. */
  readonly at: number;
  readonly limitMs: number;
  readonly settleMs: number;
}

class RunningPermit implements Permit {
  readonly cluster: ClusterName;
  /** When the hand-over of its cluster began; undefined while there is none. */
  leavingSince: number | undefined;
  /** When it was aborted in a hand-over. */
  lostAt: number | undefined;
  disposed = false;
  readonly #controller = new AbortController();
  readonly #fenceValid: () => boolean;
  readonly #onDispose: () => void;

  constructor(cluster: ClusterName, fenceValid: () => boolean, onDispose: () => void) {
    this.cluster = cluster;
    this.#fenceValid = fenceValid;
    this.#onDispose = onDispose;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get valid(): boolean {
    return !this.#controller.signal.aborted && this.#fenceValid();
  }

  lose(why: string): boolean {
    if (this.#controller.signal.aborted) return false;
    this.#controller.abort(new ShardLostError(this.cluster, why));
    return true;
  }

  [Symbol.dispose](): void {
    this.disposed = true;
    this.#onDispose();
  }
}
