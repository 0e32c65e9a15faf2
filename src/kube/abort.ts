import { TimedOutError } from './errors.ts';

/** Resolves after `ms` milliseconds; rejects with the signal's reason as soon as it aborts. Leaves neither timer nor listener behind. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    if (signal.aborted) {
      reject(reasonOf(signal));
      return;
    }
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

/**
 * Runs `run` with a signal that aborts with `parent` or after `ms` milliseconds, whichever is first. Rejects at once
 * with the parent's reason or TimedOutError, also when `run` pays no heed to its signal; its later outcome is then
 * dropped. `what` names the work in the error.
 */
export async function withTimeout<T>(
  parent: AbortSignal | undefined,
  ms: number,
  run: (signal: AbortSignal) => Promise<T>,
  what = 'operation',
): Promise<T> {
  parent?.throwIfAborted();
  const linked = linkAbort(parent);
  const timer = setTimeout(() => {
    linked.abort(new TimedOutError(`${what}: not done within ${ms} ms`));
  }, ms);
  try {
    return await raceAbort(run(linked.signal), linked.signal);
  } finally {
    clearTimeout(timer);
    linked.unlink();
  }
}

/** `promise`, unless `signal` aborts first: then rejects with its reason. */
export async function raceAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => {
      reject(reasonOf(signal));
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    const done = (): void => {
      signal.removeEventListener('abort', onAbort);
    };
    promise.then(
      (value) => {
        done();
        resolve(value);
      },
      (error: unknown) => {
        done();
        reject(asError(error));
      },
    );
  });
}

/**
 * A controller that also aborts when `parent` does. `unlink` takes its listener off the parent: AbortSignal.any keeps
 * its sources referenced for as long as it lives, which on a signal as old as the process adds up.
 */
export interface LinkedAbort {
  readonly signal: AbortSignal;
  abort(reason: Error): void;
  unlink(): void;
}

export function linkAbort(parent: AbortSignal | undefined): LinkedAbort {
  const controller = new AbortController();
  const follow = (): void => {
    controller.abort(parent?.reason);
  };
  if (parent?.aborted) follow();
  else parent?.addEventListener('abort', follow, { once: true });
  return {
    signal: controller.signal,
    abort: (reason) => {
      controller.abort(reason);
    },
    unlink: () => {
      parent?.removeEventListener('abort', follow);
    },
  };
}

/** An aborted signal's reason, always an Error. */
export function reasonOf(signal: AbortSignal): Error {
  return asError(signal.reason);
}

/** Anything thrown, as an Error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown), { cause: thrown });
}
