/** A signal that aborts when one of several others does, with its links taken down by `dispose`. */
export interface LinkedSignal extends Disposable {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
}

/**
 * As AbortSignal.any plus an abort of its own, but the listeners on the parents are removed on dispose: a parent here
 * lives as long as a cluster or the process, and a fleet makes millions of children.
 */
export function linkSignals(...parents: readonly (AbortSignal | undefined)[]): LinkedSignal {
  const controller = new AbortController();
  const links: [AbortSignal, () => void][] = [];
  for (const parent of parents) {
    if (parent === undefined) continue;
    if (parent.aborted) {
      controller.abort(parent.reason);
      break;
    }
    const onAbort = (): void => controller.abort(parent.reason);
    parent.addEventListener('abort', onAbort, { once: true });
    links.push([parent, onAbort]);
  }
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    [Symbol.dispose]: () => {
      for (const [parent, onAbort] of links) parent.removeEventListener('abort', onAbort);
    },
  };
}

/** Resolves after `ms`, or at once when `signal` aborts; never rejects: callers look at the signal. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, Math.max(0, ms));
    signal.addEventListener('abort', done, { once: true });
  });
}

/** Asked anew after every await: TypeScript takes the answer before it for granted. */
export function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

/** Resolves when `signal` aborts. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** True when `work` settled within `ms`; its failure counts as settled and is the business of whoever owns `work`. */
export async function settledWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([
      work.then(
        () => true,
        () => true,
      ),
      late,
    ]);
  } finally {
    clearTimeout(timer);
  }
}
