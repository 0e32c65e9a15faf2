import { describe, expect, it } from 'vitest';
import { isQuantityPath, sameQuantity } from './quantity.ts';

describe('quantities', () => {
  it.each([
    ['1000m', '1'],
    ['0.1', '100m'],
    ['3072Mi', '3Gi'],
    ['1000M', '1G'],
    [3072, '3072'],
    [0.5, '500m'],
    ['1e3', '1k'],
    ['1E', '1000P'],
    ['.5', '0.50'],
  ])('%s is %s', (a, b) => {
    expect(sameQuantity(a, b)).toBe(true);
  });

  it.each([
    ['1', '2'],
    ['1M', '1Mi'],
    ['one', 'one'],
    ['1e999999999', '1e999999998'],
    [true, true],
  ])('%s is not %s, or no quantity', (a, b) => {
    expect(sameQuantity(a, b)).toBe(false);
  });

  it('are known by where they stand', () => {
    expect(isQuantityPath(['spec', 'containers', 0, 'resources', 'requests', 'cpu'])).toBe(true);
    expect(isQuantityPath(['spec', 'volumes', 0, 'emptyDir', 'sizeLimit'])).toBe(true);
    expect(isQuantityPath(['spec', 'replicas'])).toBe(false);
  });
});
