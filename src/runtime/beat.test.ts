import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { nearBeat, upToBeat } from './beat.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** Where a delay of a minute ends that is asked for at four moments within two seconds. */
async function ends(delay: (ms: number) => number): Promise<Set<number>> {
  await vi.advanceTimersByTimeAsync(5_100 - (performance.now() % 5_000));
  const found = new Set<number>();
  for (const wait of [0, 130, 670, 1_200]) {
    await vi.advanceTimersByTimeAsync(wait);
    found.add(Math.round(performance.now() + delay(60_000)));
  }
  return found;
}

describe('the beat', () => {
  it('lets long delays that are asked for at different moments end together', async () => {
    expect((await ends(upToBeat)).size).toBe(1);
    expect((await ends((ms) => nearBeat(ms, 60_000))).size).toBe(1);
  });

  it('never ends a delay early with upToBeat, and late by less than a beat', async () => {
    for (const wait of [1, 1_700, 2_500, 4_999]) {
      await vi.advanceTimersByTimeAsync(wait);
      expect(upToBeat(31_234)).toBeGreaterThanOrEqual(31_234);
      expect(upToBeat(31_234)).toBeLessThan(36_234);
    }
  });

  it('keeps a period of 10 s however its jitter falls', async () => {
    await vi.advanceTimersByTimeAsync(5_000 - (performance.now() % 5_000));
    for (const jittered of [9_000, 9_700, 10_000, 11_000]) expect(nearBeat(jittered, 10_000)).toBeCloseTo(10_000, 6);
  });

  it('leaves short delays alone', () => {
    expect(upToBeat(9_999)).toBe(9_999);
    expect(nearBeat(1_100, 1_000)).toBe(1_100);
  });
});
