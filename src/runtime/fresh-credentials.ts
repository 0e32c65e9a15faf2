/** Calls that met a 401 and wait for the outcome of reading the credentials again. */
export class FreshCredentials {
  readonly #waiting = new Set<(fresh: boolean) => void>();

  /** Resolves with what `settle` is told next, or false when `signal` aborts or `limitMs` is over. */
  async wait(signal: AbortSignal, limitMs: number): Promise<boolean> {
    if (signal.aborted) return false;
    return new Promise<boolean>((resolve) => {
      const done = (fresh: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        signal.removeEventListener('abort', onAbort);
        resolve(fresh);
      };
      const onAbort = (): void => done(false);
      const timer = setTimeout(onAbort, limitMs);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(done);
    });
  }

  settle(fresh: boolean): void {
    for (const done of [...this.#waiting]) done(fresh);
  }
}
