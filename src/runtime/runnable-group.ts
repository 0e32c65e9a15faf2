import type { Logger } from '../telemetry/index.ts';
import { settledWithin } from './abort.ts';
import { RunnableEndedError } from './errors.ts';
import type { Runnable } from './types.ts';

/** Runnables that start and stop together. One that ends by itself is told to `onEnd`, once per runnable. */
export class RunnableGroup {
  readonly name: string;
  readonly #abort = new AbortController();
  readonly #running = new Map<Runnable, Promise<void>>();
  readonly #log: Logger;
  readonly #onEnd: (error: Error) => void;

  constructor(name: string, log: Logger, onEnd: (error: Error) => void) {
    this.name = name;
    this.#log = log;
    this.#onEnd = onEnd;
  }

  start(runnables: readonly Runnable[]): void {
    for (const runnable of runnables) this.#running.set(runnable, this.#run(runnable));
  }

  /** Aborts all and waits for them, but not longer than the limit: then it says who is left, and goes on. */
  async stop(reason: Error, limitMs: number): Promise<void> {
    this.#abort.abort(reason);
    if (await settledWithin(Promise.all(this.#running.values()), limitMs)) return;
    const left = [...this.#running.keys()].map((runnable) => runnable.name);
    this.#log.error('parts did not stop in time and are left behind', { group: this.name, left });
  }

  async #run(runnable: Runnable): Promise<void> {
    try {
      await runnable.run(this.#abort.signal);
      if (!this.#abort.signal.aborted) this.#onEnd(new RunnableEndedError(runnable.name));
    } catch (error) {
      if (!this.#abort.signal.aborted) this.#onEnd(new RunnableEndedError(runnable.name, error));
      else this.#log.warn('a part failed while it stopped', { part: runnable.name, err: error });
    } finally {
      this.#running.delete(runnable);
    }
  }
}
