import { describe, expect, it } from 'vitest';
import { isPositional, isWithin, overlap, twinLeaves, twinPath } from './twin.ts';
import type { JsonObject } from './types.ts';

const one: JsonObject = {
  spec: {
    ports: [{ port: 80 }, { port: 81, name: 'b' }],
    env: [{ name: 'A' }, { name: 'B' }],
    twice: [{ name: 'A' }, { name: 'A' }],
    args: ['x', 'y'],
    map: { a: 1 },
  },
};
const other: JsonObject = {
  spec: {
    ports: [
      { port: 81, protocol: 'TCP', name: 'renamed' },
      { port: 80, protocol: 'TCP' },
    ],
    env: [{ name: 'C' }, { name: 'B' }, { name: 'A' }],
    twice: [{ name: 'B' }, { name: 'A' }],
    args: ['y', 'z'],
    map: {},
  },
};

describe('the same thing in another document', () => {
  it.each([
    [['spec', 'env', 0, 'value'], ['spec', 'env', 2, 'value'], 'an element by its name'],
    [['spec', 'ports', 1, 'name'], ['spec', 'ports', 0, 'name'], 'a port by its number, with the default protocol'],
    [['spec', 'twice', 1, 'name'], ['spec', 'twice', 1, 'name'], 'by position where a name is there twice'],
    [['spec', 'args', 1], ['spec', 'args', 0], 'an equal scalar'],
    [['spec', 'args', 0], ['spec', 'args', 0], 'the position of a scalar that is not there'],
    [['spec', 'map', 'a'], ['spec', 'map', 'a'], 'a key that is missing, in a map that is not'],
  ])('%j is at %j: %s', (path, found) => {
    expect(twinPath(one, other, path)).toEqual(found);
  });

  it.each([[['spec', 'none', 'a']], [['spec', 'map', 'a', 'b']], [['spec', 'args', 5]]])('%j is nowhere', (path) => {
    expect(twinPath(one, other, path)).toBeUndefined();
  });

  it('an element that only one of them has is nowhere in the other', () => {
    expect(twinPath(other, one, ['spec', 'env', 0])).toBeUndefined();
  });
});

describe('paths', () => {
  it('overlap when one leads to the other', () => {
    expect(overlap(['a'], ['a', 'b'])).toBe(true);
    expect(overlap(['a', 'c'], ['a', 'b'])).toBe(false);
    expect(isWithin(['a', 'b'], ['a'])).toBe(true);
    expect(isWithin(['a'], ['a', 'b'])).toBe(false);
  });
});

describe('a list that goes by position', () => {
  it('has one name twice, or no names', () => {
    expect(isPositional(one, other, ['spec', 'twice', 0, 'value'])).toBe(true);
    expect(isPositional(one, other, ['spec', 'args', 0])).toBe(true);
    expect(isPositional(one, other, ['spec', 'env', 0, 'value'])).toBe(false);
    expect(isPositional(one, other, ['spec', 'map', 'a'])).toBe(false);
  });
});

describe('all leaves of a document', () => {
  it('are where each of them is, without those that the other document lacks', () => {
    const pairs = twinLeaves(one, other, { from: [], to: [] });
    expect(pairs).toContainEqual({ from: ['spec', 'env', 0, 'name'], to: ['spec', 'env', 2, 'name'] });
    expect(pairs).not.toContainEqual(expect.objectContaining({ from: ['spec', 'map', 'a'] }));
    for (const { from, to } of pairs) expect(twinPath(one, other, from)).toEqual(to);
  });
});
