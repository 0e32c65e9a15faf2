import { describe, expect, it } from 'vitest';
import { describeFields } from './describe.ts';
import type { FieldDrift, ObjectId } from './types.ts';

const SECRET: ObjectId = { group: '', version: 'v1', kind: 'Secret', namespace: 'web', name: 's' };
const CONFIG_MAP: ObjectId = { ...SECRET, kind: 'ConfigMap' };

function changed(path: (string | number)[], wanted: FieldDrift['wanted'], live: FieldDrift['live']): FieldDrift {
  return { change: 'changed', path, wanted, live };
}

describe('described fields', () => {
  it('show what a Secret’s values are not, wherever they stand', () => {
    const fields = [
      changed(['data', 'password'], 'Z2VoZWlt', 'YW5kZXJz'),
      changed(['data'], { password: 'Z2VoZWlt' }, {}),
      changed(['metadata', 'annotations', 'note'], 'geheim', 'anders'),
      changed(['metadata', 'annotations'], { note: 'geheim' }, {}),
      changed(['metadata'], { annotations: { note: 'geheim' } }, {}),
    ];
    const text = JSON.stringify(describeFields(SECRET, fields, 10));
    expect(text).not.toMatch(/Z2VoZWlt|YW5kZXJz|geheim|anders/);
    expect(text).toContain('***');
  });

  it('mask the annotation that repeats the whole object, of every kind', () => {
    const last = 'kubectl.kubernetes.io/last-applied-configuration';
    const fields = [
      changed(['metadata', 'annotations', last], 'geheim', 'anders'),
      changed(['metadata', 'annotations'], { [last]: 'geheim', a: '1' }, {}),
    ];
    const text = JSON.stringify(describeFields(CONFIG_MAP, fields, 10));
    expect(text).not.toMatch(/geheim|anders/);
  });

  it('say who and when where that is known, are sorted, and no more than asked for', () => {
    const author = { manager: 'kubectl-edit', operation: 'Update', time: '2026-01-01T00:00:00Z' } as const;
    const fields: FieldDrift[] = [
      { ...changed(['data', 'b/c'], '1', '2'), author },
      { change: 'removed', path: ['data', 'a'], wanted: '1', live: undefined },
      changed(['data', 'd'], '1', '2'),
    ];
    expect(describeFields(CONFIG_MAP, fields, 2)).toEqual({
      fields: [
        { path: '/data/a', change: 'removed', wanted: '"1"' },
        {
          path: '/data/b~1c',
          change: 'changed',
          wanted: '"1"',
          live: '"2"',
          manager: 'kubectl-edit',
          operation: 'Update',
          time: author.time,
        },
      ],
      more: 1,
    });
  });

  it('are bounded', () => {
    const [field] = describeFields(CONFIG_MAP, [changed(['data', 'a'], 'x'.repeat(1e6), '')], 1).fields;
    expect(field?.wanted).toHaveLength(256);
  });
});
