export interface BackoffOptions {
  /** Upper bound of the first wait, milliseconds. */
  readonly baseMs: number;
  /** Upper bound of any wait, milliseconds. */
  readonly capMs: number;
  /** A number in [0, 1); Math.random by default. */
  readonly random?: () => number;
}

/**
 * Full jitter: the n-th wait is anywhere between 0 and min(cap, base × 2ⁿ) (Brooker, "Exponential Backoff And Jitter",
 * AWS Architecture Blog), so that a fleet that lost its network does not come back in step.
 */
export class Backoff {
  readonly #options: BackoffOptions;
  #attempts = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Waits handed out since the last reset. */
  get attempts(): number {
    return this.#attempts;
  }

  /** The next wait, milliseconds. */
  next(): number {
    const wait = fullJitter(this.#attempts, this.#options);
    this.#attempts += 1;
    return wait;
  }

  reset(): void {
    this.#attempts = 0;
  }
}

/** The wait after `attempt` earlier ones, milliseconds. */
export function fullJitter(attempt: number, options: BackoffOptions): number {
  const random = options.random ?? Math.random;
  // 2 ** 1024 is Infinity, which Math.min takes care of.
  return Math.round(random() * Math.min(options.capMs, options.baseMs * 2 ** attempt));
}
