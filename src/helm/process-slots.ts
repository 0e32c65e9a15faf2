import PQueue from 'p-queue';
import { HelmError } from './errors.ts';

/** Which pool a process counts in. `wait`: it waits for workloads, and must not hold up those that compute. */
export type Pool = 'short' | 'wait';

/** Bounds how many processes run at a time; callers beyond that wait in turn. */
export class ProcessSlots {
  readonly #queues: Readonly<Record<Pool, PQueue>>;

  constructor(limits: Readonly<Record<Pool, number>>) {
    this.#queues = {
      short: new PQueue({ concurrency: limits.short }),
      wait: new PQueue({ concurrency: limits.wait }),
    };
  }

  /** Runs `fn` in a slot. Rejects with Cancelled when `signal` aborts before there was one; `fn` looks after the signal itself. */
  async run<T>(pool: Pool, signal: AbortSignal, fn: () => Promise<T>): Promise<T> {
    // The queue drops a task at its signal even when it runs: a process must be seen to its end instead.
    const waiting = new AbortController();
    const giveUp = (): void => {
      const details = { cause: signal.reason as unknown };
      waiting.abort(new HelmError('Cancelled', 'the operation was cancelled before helm started', details));
    };
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp, { once: true });
    const task = async (): Promise<T> => {
      signal.removeEventListener('abort', giveUp);
      return fn();
    };
    return this.#queues[pool].add(task, { signal: waiting.signal });
  }
}
