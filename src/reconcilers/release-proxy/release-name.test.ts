import { describe, expect, it } from 'vitest';
import { ReleaseNames } from './release-name.ts';

const NOW = 1_796_076_040_000;

describe('ReleaseNames', () => {
  it.each([
    ['nginx', 'nginx-1796076040'],
    ['team/nginx', 'nginx-1796076040'],
    ['nginx.tgz', 'nginx-1796076040'],
    ['ingress-nginx.v1', 'ingress-nginx-1796076040'],
    ['', 'chart-1796076040'],
    ['.', 'chart-1796076040'],
    ['My_Chart', 'my-chart-1796076040'],
    ['a'.repeat(80), `${'a'.repeat(42)}-1796076040`],
  ])('%s → %s', (chart, expected) => {
    expect(new ReleaseNames().generate(chart, NOW)).toBe(expected);
  });

  it('never makes a name twice within one second, nor when the clock goes back', () => {
    const names = new ReleaseNames();
    const made = [NOW, NOW, NOW + 1, NOW - 5_000, NOW].map((now) => names.generate('app', now));
    expect(new Set(made).size).toBe(made.length);
  });
});
