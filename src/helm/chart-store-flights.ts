import { linkAbort, raceAbort } from '../kube/abort.ts';
import { HelmError } from './errors.ts';
import type { OperationControl } from './types.ts';

interface Flight<T> {
  readonly outcome: Promise<T>;
  readonly abort: AbortController;
  waiters: number;
}

/**
 * Work that many ask for and that is done once: callers that come with the same key while it goes on share its outcome.
 * It is nobody's own: it ends early only when everybody who waited has left, or at its own limit.
 */
export class SharedFlights<T> {
  readonly #flights = new Map<string, Flight<T>>();
  readonly #limitMs: number;

  /** `limitMs`: of one piece of work, milliseconds. */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** The outcome of the work under way for `key`, or of `start`. Rejects with `signal`'s reason as soon as that aborts. */
  async join(key: string, signal: AbortSignal, start: (signal: AbortSignal) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const flight = this.#flights.get(key) ?? this.#begin(key, start);
    flight.waiters += 1;
    try {
      return await raceAbort(flight.outcome, signal);
    } finally {
      flight.waiters -= 1;
      if (flight.waiters === 0) {
        this.#forget(key, flight);
        flight.abort.abort(new HelmError('Cancelled', 'nobody waits for it any more'));
      }
    }
  }

  /** Ends what is under way; resolves when all of it has ended. */
  async close(): Promise<void> {
    const flights = [...this.#flights.values()];
    for (const { abort } of flights) abort.abort(new HelmError('Cancelled', 'the chart store is closing'));
    await Promise.allSettled(flights.map(async ({ outcome }) => outcome));
  }

  #begin(key: string, start: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      abort.abort(new HelmError('Timeout', `not done within ${this.#limitMs} ms`));
    }, this.#limitMs);
    const outcome = start(abort.signal).finally(() => {
      clearTimeout(timer);
      this.#forget(key, flight);
    });
    // Heard by those who joined; when they all have left there is nobody to tell.
    outcome.catch(() => undefined);
    const flight: Flight<T> = { outcome, abort, waiters: 0 };
    this.#flights.set(key, flight);
    return flight;
  }

  /** By identity: a flight that everybody left must not take its successor away. */
  #forget(key: string, flight: Flight<T>): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
  }
}

/** Runs `fn` under a caller's signal and limit, whose ends are HelmErrors Cancelled and Timeout. */
export async function underControl<T>(
  control: OperationControl,
  defaultLimitMs: number,
  fn: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  rejectAborted(control.signal);
  const limitMs = control.limitMs ?? defaultLimitMs;
  const linked = linkAbort(control.signal);
  const timer = setTimeout(() => {
    linked.abort(new HelmError('Timeout', `not done within ${limitMs} ms`));
  }, limitMs);
  try {
    return await raceAbort(fn(linked.signal), linked.signal);
  } catch (error) {
    rejectAborted(control.signal);
    throw error;
  } finally {
    clearTimeout(timer);
    linked.unlink();
  }
}

function rejectAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new HelmError('Cancelled', 'the operation was cancelled', { cause: signal.reason });
}
