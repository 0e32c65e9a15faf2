/** How often the status of one HelmChartProxy is worked out, however much happens below it (caaph W26). */

/** Milliseconds that three passes share: one per second on average, the first ones at once, so that a short-lived state is seen and a quick success is told quickly. */
const WINDOW_MS = 3000;
const PASSES = 3;

export class RateGate {
  readonly #passes = new Map<string, number[]>();

  /** Milliseconds until the next pass is due; 0: now. */
  delay(key: string, now = Date.now()): number {
    const passes = this.#passes.get(key) ?? [];
    const oldest = passes.at(-PASSES);
    return oldest === undefined ? 0 : Math.max(0, oldest + WINDOW_MS - now);
  }

  /** A pass was made. */
  pass(key: string, now = Date.now()): void {
    this.#passes.set(key, [...(this.#passes.get(key) ?? []), now].slice(-PASSES));
  }

  forget(key: string): void {
    this.#passes.delete(key);
  }
}
