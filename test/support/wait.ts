import { setTimeout as sleep } from 'node:timers/promises';

/** How long to try (ms), how often (ms), and what the thing awaited is called in the error. */
export interface EventuallyOptions {
  timeoutMs?: number;
  intervalMs?: number;
  what?: string;
  signal?: AbortSignal;
}

const DEFAULTS = { timeoutMs: 30_000, intervalMs: 100, what: 'the expected state' };

/**
 * Calls `attempt` until it returns without throwing, and resolves with what it returned.
 * @throws Error with the last attempt's message (and as `cause` its error) when the time is over;
 *   the signal's reason when it is aborted.
 */
export async function eventually<T>(
  attempt: (signal: AbortSignal) => Promise<T> | T,
  options: EventuallyOptions = {},
): Promise<T> {
  const { timeoutMs, intervalMs, what } = { ...DEFAULTS, ...options };
  const limit = AbortSignal.timeout(timeoutMs);
  const signal = options.signal ? AbortSignal.any([options.signal, limit]) : limit;
  const isOver = () => signal.aborted;
  let last: unknown;
  while (!isOver()) {
    try {
      return await attempt(signal);
    } catch (error) {
      // An attempt cut short by the limit would hide the reason of the one before it.
      if (!isOver() || last === undefined) last = error;
    }
    await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
  }
  options.signal?.throwIfAborted();
  throw new Error(`${what}: not within ${timeoutMs} ms; last: ${messageOf(last)}`, { cause: last });
}

/** The text of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
