import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deepEqual, isRecord, mergePatch } from './merge-patch.ts';

/** RFC 7386, section 2. */
function apply(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const result = new Map<string, unknown>(isRecord(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key);
    else result.set(key, apply(result.get(key), value));
  }
  return Object.fromEntries(result);
}

describe('mergePatch', () => {
  it.each([
    [{ a: 1 }, { a: 1 }, undefined],
    [{ a: 1 }, { a: 2 }, { a: 2 }],
    [{ a: 1, b: 1 }, { a: 1 }, { b: null }],
    [{ a: 1, b: 1 }, { a: 1, b: undefined }, { b: null }],
    [{ a: { b: 1, c: 1 } }, { a: { b: 1, c: 2 } }, { a: { c: 2 } }],
    [{ a: [1, 2] }, { a: [1] }, { a: [1] }],
    [{}, { a: {} }, { a: {} }],
    [{ a: false }, { a: true }, { a: true }],
  ])('%j to %j', (from, to, patch) => {
    expect(mergePatch(from, to)).toEqual(patch);
  });

  it('turns any object into any other (no nulls, as Kubernetes objects have none)', () => {
    const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }));
    const { object } = fc.letrec((tie) => ({
      object: fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.oneof({ maxDepth: 3 }, leaf, tie('object'))),
    }));
    fc.assert(
      fc.property(object, object, (from, to) => {
        const patch = mergePatch(from, to);
        expect(patch === undefined).toBe(deepEqual(from, to));
        expect(deepEqual(patch === undefined ? from : apply(from, patch), to)).toBe(true);
      }),
    );
  });
});
