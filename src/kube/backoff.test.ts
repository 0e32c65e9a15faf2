import { expect, it } from 'vitest';
import { Backoff, fullJitter } from './backoff.ts';

it('grows to its cap, and begins anew after a reset', () => {
  const backoff = new Backoff({ baseMs: 100, capMs: 1_000, random: () => 1 });
  expect(Array.from({ length: 6 }, () => backoff.next())).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  expect(backoff.attempts).toBe(6);
  backoff.reset();
  expect(backoff.next()).toBe(100);
});

it('is anywhere between nothing and the bound', () => {
  const at = (random: number): number => fullJitter(2, { baseMs: 100, capMs: 1_000, random: () => random });
  expect([at(0), at(0.25), at(0.999)]).toEqual([0, 100, 400]);
});

it('stays at its cap however often it is asked', () => {
  expect(fullJitter(5_000, { baseMs: 800, capMs: 30_000, random: () => 1 })).toBe(30_000);
});
