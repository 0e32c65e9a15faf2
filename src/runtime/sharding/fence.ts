/** A moment on both clocks of this machine, milliseconds. */
export interface Instant {
  /** Does not jump, but may stand still while a machine is suspended. */
  readonly mono: number;
  /** Goes on while a machine is suspended, but may be set. */
  readonly wall: number;
}

/** Read by the fence and nothing else, so that a test can stop a process's time. */
export function now(): Instant {
  return { mono: performance.now(), wall: Date.now() };
}

/**
 * How long this process may believe what it published. Others wait longer than that before they act, so the answer must
 * be of the clock at the moment of asking: no timer fires in a process that is stopped. The clock that says more has
 * passed is believed; one that was set back is thereby harmless, and one set forward costs a needless lapse.
 */
export class Fence {
  readonly #limitMs: number;
  readonly #clock: () => Instant;
  #since: Instant | undefined;

  constructor(limitMs: number, clock: () => Instant = now) {
    this.#limitMs = limitMs;
    this.#clock = clock;
  }

  get valid(): boolean {
    return this.#since !== undefined && this.#elapsed(this.#since) < this.#limitMs;
  }

  /** Milliseconds until it lapses; 0 when it has. */
  get leftMs(): number {
    return this.#since === undefined ? 0 : Math.max(0, this.#limitMs - this.#elapsed(this.#since));
  }

  /** For `begin` and `extend`: the moment before a renewal is sent, as it may be stored at any time after that. */
  mark(): Instant {
    return this.#clock();
  }

  /** After a lapse (or at first), once it is published that this process claims nothing. */
  begin(at: Instant): void {
    this.#since = at;
  }

  /** False, and nothing is extended, when it lapsed meanwhile: what was claimed may be another's by now. */
  extend(at: Instant): boolean {
    if (!this.valid) return false;
    this.#since = at;
    return true;
  }

  drop(): void {
    this.#since = undefined;
  }

  #elapsed(since: Instant): number {
    const at = this.#clock();
    return Math.max(at.mono - since.mono, at.wall - since.wall);
  }
}
