import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { asError, linkAbort, raceAbort, sleep, withTimeout } from './abort.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

function listeners(signal: AbortSignal): number {
  return getEventListeners(signal, 'abort').length;
}

describe('sleep', () => {
  it('ends after its time and leaves no listener', async () => {
    const { signal } = new AbortController();
    const done = sleep(1_000, signal);
    expect(listeners(signal)).toBe(1);
    await vi.advanceTimersByTimeAsync(1_000);
    await done;
    expect(listeners(signal)).toBe(0);
  });

  it('rejects with the reason of its signal, at once', async () => {
    const controller = new AbortController();
    const done = sleep(1_000, controller.signal);
    controller.abort(new Error('enough'));
    await expect(done).rejects.toThrow('enough');
    await expect(sleep(1_000, controller.signal)).rejects.toThrow('enough');
  });
});

describe('withTimeout', () => {
  it('gives the value, and leaves neither timer nor listener', async () => {
    const { signal } = new AbortController();
    await expect(withTimeout(signal, 1_000, async () => 'value')).resolves.toBe('value');
    expect(listeners(signal)).toBe(0);
  });

  it('rejects at its limit, naming the work, and tells the work', async () => {
    let inner: AbortSignal | undefined;
    const done = withTimeout(
      undefined,
      1_000,
      async (signal) => {
        inner = signal;
        return forever();
      },
      'reading',
    );
    const refused = expect(done).rejects.toMatchObject({
      code: 'TimedOut',
      message: 'reading: not done within 1000 ms',
    });
    await vi.advanceTimersByTimeAsync(1_000);
    await refused;
    expect(inner?.aborted).toBe(true);
  });

  it('rejects with the reason of its parent, also when that has aborted before', async () => {
    const controller = new AbortController();
    const run = vi.fn(forever);
    const done = withTimeout(controller.signal, 1_000, run);
    controller.abort(new Error('enough'));
    await expect(done).rejects.toThrow('enough');
    await expect(withTimeout(controller.signal, 1_000, run)).rejects.toThrow('enough');
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('passes on what the work throws', async () => {
    const failing = async (): Promise<never> => Promise.reject(new Error('broken'));
    await expect(withTimeout(undefined, 1_000, failing)).rejects.toThrow('broken');
  });
});

describe('raceAbort', () => {
  it('drops a late failure of what it no longer waits for', async () => {
    const controller = new AbortController();
    const late = Promise.withResolvers<string>();
    const race = raceAbort(late.promise, controller.signal);
    controller.abort(new Error('enough'));
    await expect(race).rejects.toThrow('enough');
    late.reject(new Error('nobody hears this'));
    await Promise.resolve();
  });
});

describe('linkAbort', () => {
  it('follows its parent until it is unlinked', () => {
    const parent = new AbortController();
    const linked = linkAbort(parent.signal);
    const other = linkAbort(parent.signal);
    other.unlink();
    parent.abort(new Error('enough'));
    expect(linked.signal.reason).toEqual(new Error('enough'));
    expect(other.signal.aborted).toBe(false);
    expect(linkAbort(parent.signal).signal.aborted).toBe(true);
  });
});

it('makes an Error of anything that was thrown', () => {
  expect(asError('text')).toEqual(new Error('text'));
  const error = new TypeError('x');
  expect(asError(error)).toBe(error);
});

async function forever(): Promise<never> {
  return new Promise<never>(() => undefined);
}
