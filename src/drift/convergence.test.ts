import { beforeEach, describe, expect, it } from 'vitest';
import { Convergence } from './convergence.ts';

const DELAYS = [0, 2_000, 6_000, 18_000, 54_000, 162_000, 300_000];
const OBJECT = '/ConfigMap/web/settings';
const FIELD = '/data/mode';

let now = 0;
let convergence = new Convergence({ delaysMs: DELAYS });

beforeEach(() => {
  now = 1_000_000;
  convergence = new Convergence({ delaysMs: DELAYS });
});

/** Somebody changes the field at once after each correction; how long each correction had to wait. */
function fight(rounds: number): (number | 'never')[] {
  const waits: (number | 'never')[] = [];
  for (let round = 0; round < rounds; round++) {
    const turn = convergence.ask(OBJECT, FIELD, now);
    if (turn.when === 'never') {
      waits.push('never');
      continue;
    }
    const at = turn.when === 'now' ? now : turn.atMs;
    waits.push(at - now);
    now = at;
    expect(convergence.ask(OBJECT, FIELD, now).when).toBe('now');
    convergence.corrected(OBJECT, FIELD, now);
  }
  return waits;
}

describe('a field that somebody else writes', () => {
  it('is corrected after ever longer pauses, then no more', () => {
    expect(fight(9)).toEqual([...DELAYS, 'never', 'never']);
    expect(convergence.ask(OBJECT, FIELD, now)).toEqual({ when: 'never', corrections: 7 });
  });

  it('stays stopped however long nobody looks', () => {
    fight(8);
    now += 86_400_000;
    expect(convergence.ask(OBJECT, FIELD, now).when).toBe('never');
  });

  it('begins anew when a correction has held for the cooldown', () => {
    fight(3);
    now += 330_001;
    expect(fight(2)).toEqual([0, 2_000]);
  });

  it('does not begin anew before', () => {
    fight(3);
    now += 330_000;
    expect(fight(1)).toEqual([0]);
    expect(fight(1)).toEqual([54_000]);
  });

  it('begins anew even after the last pause, if that correction held', () => {
    fight(7);
    now += 330_001;
    expect(fight(1)).toEqual([0]);
  });

  it('keeps neither other fields nor other objects from being corrected', () => {
    fight(8);
    expect(convergence.ask(OBJECT, '/data/other', now).when).toBe('now');
    expect(convergence.ask(OBJECT, '', now).when).toBe('now');
    expect(convergence.ask('/ConfigMap/web/other', FIELD, now).when).toBe('now');
  });

  it('begins anew after a reset', () => {
    fight(8);
    convergence.reset();
    expect(fight(2)).toEqual([0, 2_000]);
  });

  it('has a cooldown that is longer than the longest pause', () => {
    convergence = new Convergence({ delaysMs: [0, 1_000_000] });
    expect(fight(3)).toEqual([0, 1_000_000, 'never']);
  });

  it('waits the first pause from when it is seen to differ', () => {
    convergence = new Convergence({ delaysMs: [5_000] });
    const began = now;
    expect(convergence.ask(OBJECT, FIELD, now)).toEqual({ when: 'later', atMs: began + 5_000 });
    now += 3_000;
    expect(convergence.ask(OBJECT, FIELD, now)).toEqual({ when: 'later', atMs: began + 5_000 });
    now += 2_000;
    expect(convergence.ask(OBJECT, FIELD, now).when).toBe('now');
  });

  it('is forgotten among many when it has held', () => {
    for (let index = 0; index < 300; index++) convergence.corrected(OBJECT, `/data/${index}`, now);
    now += 400_000;
    convergence.corrected(OBJECT, FIELD, now);
    expect(convergence.ask(OBJECT, '/data/7', now).when).toBe('now');
  });
});

describe('an object that the server refuses', () => {
  it('is tried again after ever longer pauses, for ever at the longest', () => {
    const waits = Array.from({ length: 9 }, () => {
      const untilMs = convergence.refused(OBJECT, now);
      expect(convergence.waits(OBJECT, now)).toBe(untilMs);
      expect(convergence.waits(OBJECT, untilMs)).toBeUndefined();
      const wait = untilMs - now;
      now = untilMs;
      return wait;
    });
    expect(waits).toEqual([2_000, 6_000, 18_000, 54_000, 162_000, 300_000, 300_000, 300_000, 300_000]);
    expect(convergence.ask(OBJECT, FIELD, now).when).toBe('now');
  });

  it('is not tried in a loop, whatever the pauses are', () => {
    convergence = new Convergence({ delaysMs: [0] });
    expect(convergence.refused(OBJECT, now)).toBe(now + 1_000);
  });

  it.each([
    ['corrected', () => convergence.corrected(OBJECT, FIELD, now)],
    ['in order by itself', () => convergence.settled(OBJECT)],
    ['asked for', () => convergence.reset()],
  ])('begins anew when it is %s', (_what, happens) => {
    convergence.refused(OBJECT, now);
    convergence.refused(OBJECT, now);
    happens();
    expect(convergence.waits(OBJECT, now)).toBeUndefined();
    expect(convergence.refused(OBJECT, now)).toBe(now + 2_000);
  });
});
