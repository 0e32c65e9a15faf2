import { describe, expect, it } from 'vitest';
import { documentFor, leaves, matching } from './document.ts';
import { asObject } from './dry-run.ts';
import type { JsonObject, Path } from './types.ts';

const wanted: JsonObject = {
  metadata: { name: 'x' },
  spec: { replicas: 2, template: { containers: [{ name: 'app', image: 'a:1', cpu: '1' }] }, list: [{ v: 1 }] },
};
const live = asObject({
  metadata: { name: 'x' },
  spec: {
    replicas: 5,
    extra: 'kept',
    template: {
      containers: [
        { name: 'sidecar', image: 's' },
        { name: 'app', image: 'a:2', cpu: '2' },
      ],
    },
    list: [{ v: 9 }],
  },
});

function document(untouched: { patterns?: string[][]; paths?: Path[]; applied?: (path: Path) => boolean }): JsonObject {
  const { patterns = [], paths = [], applied = () => false } = untouched;
  return documentFor(wanted, live, { patterns, paths, applied });
}

describe('the document of an apply', () => {
  it('is the manifest, and not the very same object', () => {
    expect(document({})).toEqual(wanted);
    expect(document({})).not.toBe(wanted);
  });

  it('leaves out what is ignored and was never applied: its owner keeps it', () => {
    expect(document({ patterns: [['spec', 'replicas']] })['spec']).not.toHaveProperty('replicas');
  });

  it('sends the live value of what is ignored and was applied: leaving it out would remove it', () => {
    const applied = (path: Path): boolean => path.at(-1) === 'replicas' || path.at(-1) === 'extra';
    expect(document({ patterns: [['spec', 'replicas']], applied })).toMatchObject({ spec: { replicas: 5 } });
    expect(document({ patterns: [['spec', 'extra']], applied })).toMatchObject({ spec: { extra: 'kept' } });
    expect(document({ patterns: [['spec', 'extra']] })).not.toMatchObject({ spec: { extra: 'kept' } });
  });

  it('sends the live value within lists, of the element of the same name', () => {
    const { spec } = document({ patterns: [['spec', 'template', 'containers', '*', 'image']] });
    expect(spec).toMatchObject({ template: { containers: [{ name: 'app', image: 'a:2', cpu: '1' }] } });
    expect(document({ paths: [['spec', 'list', 0]] })).toMatchObject({ spec: { list: [{ v: 9 }] } });
  });

  it('leaves out what is skipped and is missing', () => {
    const gone = asObject({ metadata: { name: 'x' }, spec: { template: { containers: [] } } });
    const untouched = { patterns: [], paths: [['spec', 'template', 'containers', 0]], applied: () => false };
    expect(documentFor(wanted, gone, untouched)).toMatchObject({ spec: { template: { containers: [] } } });
  });
});

describe('paths of a document', () => {
  it('are found by a pattern', () => {
    expect(matching(wanted, ['spec', 'template', 'containers', '*', 'image'])).toEqual([
      ['spec', 'template', 'containers', 0, 'image'],
    ]);
    expect(matching(wanted, ['spec', 'none', '*'])).toEqual([]);
    expect(matching(wanted, [])).toEqual([[]]);
  });

  it('lead to every leaf, empty maps and lists among them', () => {
    expect(leaves({ a: { b: 1, c: {} }, d: [1, []] })).toEqual([
      ['a', 'b'],
      ['a', 'c'],
      ['d', 0],
      ['d', 1],
    ]);
  });
});
