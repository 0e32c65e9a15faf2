import { describe, expect, it } from 'vitest';
import { formatDuration, parseDuration } from './duration.ts';

describe('Go durations', () => {
  it.each([
    ['10m0s', 600_000],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['250ms', 250],
    ['0', 0],
    ['-5s', -5_000],
    ['.5s', 500],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(['', '10', '5 m', 'm', '1d', '10mm', '1h-5m', 's10'])('%j is none', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  it.each([
    [600_000, '10m'],
    [5_400_000, '1h30m'],
    [1_250, '1s250ms'],
    [0, '0s'],
  ])('%d ms is written %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
    expect(parseDuration(text)).toBe(ms);
  });
});
