/** A terminal sends Ctrl-C to npm as well, which passes it on: what comes within this time (ms) is the same key press. */
const SAME_KEY_MS = 1_000;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** That somebody asked the program to end. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/**
 * Ctrl-C, SIGTERM and a closed terminal as an AbortSignal. A later second one calls `force`, for whoever does not want
 * to wait for the clean-up.
 */
export class Interrupt {
  readonly #controller = new AbortController();
  readonly #force: () => void;
  #at = 0;

  constructor(force: () => void) {
    this.#force = force;
    for (const name of SIGNALS) process.on(name, this.#onSignal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Gives the signals back to Node. */
  dispose(): void {
    for (const name of SIGNALS) process.off(name, this.#onSignal);
  }

  readonly #onSignal = (name: NodeJS.Signals): void => {
    const now = performance.now();
    if (!this.signal.aborted) {
      this.#at = now;
      this.#controller.abort(new Interrupted(`ended by ${name}`));
    } else if (now - this.#at > SAME_KEY_MS) {
      this.#force();
    }
  };
}
