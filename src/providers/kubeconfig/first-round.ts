/** Tells when everything that was there at the start has been dealt with once. */
export class FirstRound {
  readonly #onOver: () => void;
  #left: Set<string> | undefined;

  /** `onOver` is called once. */
  constructor(onOver: () => void) {
    this.#onOver = onOver;
  }

  /** What was there at the start; nothing: it is over at once. */
  begin(keys: Iterable<string>): void {
    this.#left = new Set(keys);
    this.#check();
  }

  /** Also of what came later, or again. */
  done(key: string): void {
    this.#left?.delete(key);
    this.#check();
  }

  #check(): void {
    if (this.#left?.size !== 0) return;
    this.#left = undefined;
    this.#onOver();
  }
}
