/** Told when what `tell` is given differs from the last time. */
export class ChangeListeners {
  readonly #listeners = new Set<{ readonly call: () => void }>();
  readonly #onError: (error: unknown) => void;
  #last = '';

  /** `onError` is told what a listener threw. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  /** Returns the removal, by identity: the same function may be added twice. */
  add(listener: () => void): () => void {
    const entry = { call: listener };
    this.#listeners.add(entry);
    return () => {
      this.#listeners.delete(entry);
    };
  }

  tell(state: string): void {
    if (state === this.#last) return;
    this.#last = state;
    for (const { call } of [...this.#listeners]) {
      try {
        call();
      } catch (error) {
        this.#onError(error);
      }
    }
  }
}
