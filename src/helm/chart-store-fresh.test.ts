import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HelmError } from './errors.ts';
import { FreshCache } from './chart-store-fresh.ts';
import type { FreshnessOptions } from './chart-store-fresh.ts';

interface Answer {
  readonly has: readonly string[];
}

const OPTIONS: FreshnessOptions = {
  freshMs: 100_000,
  minRevalidateMs: 10_000,
  failureMs: 5_000,
  staleMs: 1_000_000,
  limitMs: 60_000,
  maxEntries: 10,
  maxSize: 1000,
};

let cache: FreshCache<Answer>;
let fetches: number;
let next: Answer | Error;

beforeEach(() => {
  vi.useFakeTimers();
  cache = new FreshCache<Answer>(OPTIONS, () => 1);
  fetches = 0;
  next = { has: ['a'] };
});

afterEach(async () => {
  await cache.close();
  vi.useRealTimers();
});

async function get(wanted = 'a', signal = new AbortController().signal): Promise<Answer> {
  return cache.get({
    key: 'k',
    signal,
    suffices: ({ has }) => has.includes(wanted),
    fetch: async (known) => {
      fetches += 1;
      await Promise.resolve();
      if (next instanceof Error) throw next;
      return known?.has.join() === next.has.join() ? known : next;
    },
  });
}

describe('what a repository said', () => {
  it('is not asked for again while it is fresh', async () => {
    await get();
    vi.advanceTimersByTime(99_999);
    await get();
    expect(fetches).toBe(1);
    vi.advanceTimersByTime(1);
    await get();
    expect(fetches).toBe(2);
  });

  it('is asked for at once when something is missing, then at a bounded rate', async () => {
    await get();
    next = { has: ['a', 'b'] };
    expect((await get('b')).has).toContain('b');
    expect(fetches).toBe(2);
    await get('c');
    await get('d');
    expect(fetches).toBe(2);
    vi.advanceTimersByTime(10_000);
    await get('c');
    expect(fetches).toBe(3);
  });

  it('is not asked for twice when the very first answer lacks something', async () => {
    await get('z');
    expect(fetches).toBe(1);
  });

  it('is used on when the repository fails for a time, which is tried at a bounded rate', async () => {
    await get();
    vi.advanceTimersByTime(100_000);
    next = new HelmError('RepositoryUnreachable', 'down');
    expect((await get()).has).toEqual(['a']);
    expect((await get()).has).toEqual(['a']);
    expect(fetches).toBe(2);
    vi.advanceTimersByTime(5_000);
    next = { has: ['b'] };
    expect((await get()).has).toEqual(['b']);
  });

  it('is not used on for ever, nor after a refusal', async () => {
    await get();
    vi.advanceTimersByTime(1_000_001);
    next = new HelmError('RepositoryUnreachable', 'down');
    await expect(get()).rejects.toThrow('down');
    vi.advanceTimersByTime(5_000);
    next = { has: ['a'] };
    await get();
    vi.advanceTimersByTime(100_000);
    next = new HelmError('RepositoryUnauthorized', 'no');
    await expect(get()).rejects.toThrow('no');
  });

  it('or a failure is told to all who ask soon', async () => {
    next = new HelmError('RepositoryUnauthorized', 'no');
    await expect(Promise.allSettled([get(), get()])).resolves.toMatchObject([
      { status: 'rejected' },
      { status: 'rejected' },
    ]);
    await expect(get()).rejects.toThrow('no');
    expect(fetches).toBe(1);
    vi.advanceTimersByTime(5_000);
    next = { has: ['a'] };
    await get();
    expect(fetches).toBe(2);
  });

  it('is no failure when the only one who asked left', async () => {
    const leaving = new AbortController();
    const gone = cache.get({
      key: 'k',
      signal: leaving.signal,
      suffices: () => true,
      fetch: async (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(signal.reason as Error);
          });
        }),
    });
    leaving.abort(new Error('left'));
    await expect(gone).rejects.toThrow('left');
    expect((await get()).has).toEqual(['a']);
  });
});
