import { describe, expect, it, vi } from 'vitest';
import { RateGate } from './rate-gate.ts';
import { Resync } from './resync.ts';

describe('Resync', () => {
  it('gives every object one turn per period, spread over it', async () => {
    vi.useFakeTimers();
    const uids = Array.from({ length: 600 }, (_, index) => `uid-${index}`);
    const turns = new Map<string, number>();
    let largest = 0;
    const stop = new AbortController();
    const resync = new Resync(60_000, (isDue) => {
      const due = uids.filter(isDue);
      largest = Math.max(largest, due.length);
      for (const uid of due) turns.set(uid, (turns.get(uid) ?? 0) + 1);
    });
    const running = resync.run(stop.signal);
    await vi.advanceTimersByTimeAsync(60_000);
    stop.abort();
    await running;
    vi.useRealTimers();
    expect(uids.map((uid) => turns.get(uid))).toEqual(uids.map(() => 1));
    expect(largest).toBeLessThan(60);
  });
});

describe('RateGate', () => {
  it('lets three passes through at once, then one per second on average', () => {
    const gate = new RateGate();
    let passes = 0;
    for (let now = 0; now < 60_000; now += 10) {
      if (gate.delay('a', now) > 0) continue;
      gate.pass('a', now);
      passes++;
    }
    expect(passes).toBe(60);
    expect(gate.delay('b', 0)).toBe(0);
    gate.forget('a');
    expect(gate.delay('a', 60_000)).toBe(0);
  });
});
