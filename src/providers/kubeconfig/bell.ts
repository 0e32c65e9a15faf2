/** After a change others often follow (an editor, a kubelet that swaps links): quiet for so long, and it is taken to be over. */
const QUIET_MS = 100;
/** But no longer than this after the first, however much goes on. */
const PATIENCE_MS = 1_000;

/** Wakes a loop; what rings while nobody waits is not lost. */
export class Bell {
  #rung = false;
  #heard: (() => void) | undefined;

  ring(): void {
    this.#rung = true;
    this.#heard?.();
  }

  /** Resolves after `ms` without a ring, soon after a ring, or at once when `signal` aborts. One may wait at a time. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    await this.#next(ms, signal);
    const until = performance.now() + PATIENCE_MS;
    while (this.#rung && !signal.aborted && performance.now() < until) {
      this.#rung = false;
      await this.#next(QUIET_MS, signal);
    }
    this.#rung = false;
  }

  async #next(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#rung || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.#heard = undefined;
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal.addEventListener('abort', done, { once: true });
      this.#heard = done;
    });
  }
}
