import { describe, expect, it } from 'vitest';
import { insertAt, placeFor, removalOrder, removeAt, setAt } from './edits.ts';
import type { JsonObject, Path } from './types.ts';

function edited(document: JsonObject, edit: (document: JsonObject) => unknown): JsonObject {
  const copy = structuredClone(document);
  edit(copy);
  return copy;
}

describe('edits of a document', () => {
  const document: JsonObject = { map: { a: 1 }, list: [{ name: 'a' }, { name: 'b' }], text: 'x' };

  it('sets a value and makes the maps that lead to it', () => {
    expect(edited({}, (copy) => setAt(copy, ['a', 'b', 'c'], 1))).toEqual({ a: { b: { c: 1 } } });
    expect(edited(document, (copy) => setAt(copy, ['list', 1, 'name'], 'z'))).toMatchObject({
      list: [{}, { name: 'z' }],
    });
  });

  it('does not set a value through something that is no map', () => {
    expect(setAt(structuredClone(document), ['text', 'a'], 1)).toBe(false);
    expect(setAt(structuredClone(document), ['list', 7, 'a'], 1)).toBe(false);
    expect(setAt(structuredClone(document), ['map', 0], 1)).toBe(false);
    expect(setAt(structuredClone(document), [], 1)).toBe(false);
  });

  it('inserts into a list, and makes one that is missing', () => {
    expect(edited(document, (copy) => insertAt(copy, ['list', 1], { name: 'new' }))['list']).toEqual([
      { name: 'a' },
      { name: 'new' },
      { name: 'b' },
    ]);
    expect(edited({}, (copy) => insertAt(copy, ['a', 'list', 3], 'x'))).toEqual({ a: { list: ['x'] } });
  });

  it('removes many in an order that keeps their paths valid', () => {
    const paths: Path[] = [
      ['list', 0],
      ['map', 'a'],
      ['list', 1],
    ];
    expect(
      edited({ ...document, list: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] }, (copy) => {
        for (const path of removalOrder([...paths, ['list', 10], ['list', 9]])) removeAt(copy, path);
      }),
    ).toEqual({ map: {}, list: [3, 4, 5, 6, 7, 8, 9], text: 'x' });
    expect(removeAt(structuredClone(document), ['none', 'a'])).toBe(false);
  });

  it('finds the place of an element that is missing after the last one', () => {
    expect(placeFor({ list: [{ name: 'x' }] }, document, ['list', 0])).toEqual(['list', 2]);
    expect(placeFor({ other: [{ name: 'x' }] }, document, ['other', 0])).toEqual(['other', 0]);
    expect(placeFor(document, document, ['list', 1])).toEqual(['list', 1]);
  });
});
