import { describe, expect, it } from 'vitest';
import { contentOf } from './content.ts';

const OF = { recordUid: 'u', recordVersion: '7' };

function content(manifest: string, chart: object = {}): ReturnType<typeof contentOf> {
  return contentOf({ version: 3, apply_method: 'ssa', manifest, chart: { ...chart } }, OF);
}

describe('what a record says that a release consists of', () => {
  it('is its documents, as Helm’s YAML reads them', () => {
    const { documents, revision, applyMethod } = content(
      '---\n# Source: a/templates/a.yaml\nkind: A\nmode: 0777\non: yes\n--- # another\nkind: B\ntext: |\n  x\n  --- y\n---\n# nothing\n---\nkind: C\n',
    );
    expect(documents).toEqual([{ kind: 'A', mode: 511, true: true }, { kind: 'B', text: 'x\n--- y\n' }, { kind: 'C' }]);
    expect({ revision, applyMethod }).toEqual({ revision: 3, applyMethod: 'server' });
  });

  it('is nothing for an empty manifest', () => {
    expect(content('').documents).toEqual([]);
  });

  it('is told without its text where it cannot be read', () => {
    expect(() => content('kind: A\n---\nkey: [geheim')).toThrow(
      'document 2 of the stored manifest cannot be read as a YAML map',
    );
    expect(() => content('kind: A\n---\nkey: [geheim')).not.toThrow(/geheim/);
  });

  it('has the CRDs of the chart itself', () => {
    const data = Buffer.from('kind: X\n---\nkind: Z\n').toString('base64');
    const files = [
      { name: 'crds/a.yaml', data },
      { name: 'crds/README.md', data },
      { name: 'docs/crds/a.yaml', data },
    ];
    expect(content('', { files }).crds()).toEqual([{ kind: 'X' }, { kind: 'Z' }]);
  });
});
