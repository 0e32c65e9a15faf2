import { describe, expect, it } from 'vitest';
import { Fence } from './fence.ts';

describe('a fence', () => {
  const clock = { mono: 1_000, wall: 500_000 };
  const fence = (): Fence => {
    const made = new Fence(5_000, () => ({ ...clock }));
    made.begin(made.mark());
    return made;
  };

  it('is not valid before it has begun', () => {
    const never = new Fence(5_000, () => ({ ...clock }));
    expect([never.valid, never.leftMs, never.extend(never.mark())]).toEqual([false, 0, false]);
  });

  it('lapses by the clock, without a timer', () => {
    const made = fence();
    clock.mono += 4_999;
    expect([made.valid, made.leftMs]).toEqual([true, 1]);
    clock.mono += 1;
    expect([made.valid, made.leftMs]).toEqual([false, 0]);
  });

  it('lapses when only the wall clock went on: the machine was suspended', () => {
    const made = fence();
    clock.wall += 3_600_000;
    expect(made.valid).toBe(false);
  });

  it('is not kept alive by a wall clock that is set back', () => {
    const made = fence();
    clock.wall -= 3_600_000;
    expect(made.valid).toBe(true);
    clock.mono += 5_000;
    expect(made.valid).toBe(false);
  });

  it('counts an extension from before its request was sent', () => {
    const made = fence();
    const sent = made.mark();
    clock.mono += 2_000;
    expect([made.extend(sent), made.leftMs]).toEqual([true, 3_000]);
  });

  it('is not revived by an answer that came after it lapsed', () => {
    const made = fence();
    clock.mono += 4_900;
    const sent = made.mark();
    clock.mono += 200;
    expect([made.extend(sent), made.valid]).toEqual([false, false]);
  });
});
