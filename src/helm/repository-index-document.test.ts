import { stringify } from 'yaml';
import { describe, expect, it } from 'vitest';
import { IndexDocument } from './repository-index-document.ts';

const DIGEST = 'a'.repeat(64);

/** As sigs.k8s.io/yaml writes it, with everything in it that could be mistaken for something else. */
const GO_INDEX = `apiVersion: v1
entries:
  cert-manager:
  - annotations:
      images: |
        - name: x
        version: not this one
      note: 'multi
        version: nor this'
    apiVersion: v1
    appVersion: v1.2.0
    created: "2026-01-01T00:00:00.000000000Z"
    dependencies:
    - name: common
      repository: oci://x.test/y
      version: 2.x.x
    description: 'Note: *bold* & more'
    digest: ${DIGEST}
    name: cert-manager
    urls:
    - https://x.test/charts/cert-manager-v1.2.0.tgz
    version: v1.2.0
  - apiVersion: v1
    digest: sha256:${DIGEST.toUpperCase()}
    name: cert-manager
    # a comment
    urls:
    - a.tgz
    - "b.tgz"

    version: "1.10"
  - apiVersion: v1
    name: cert-manager
    urls: []
    version: 1.10
  "quoted name":
  - urls:
    - c.tgz
    version: 1.0.0
  empty: []
  none:
generated: "2026-01-01T00:00:00Z"
serverInfo: {}
`;

describe('an index', () => {
  it('as Go writes it gives what matters of it', async () => {
    const index = await IndexDocument.read(GO_INDEX);
    expect(index.names).toEqual(['cert-manager', 'quoted name', 'empty', 'none']);
    expect(index.entries('cert-manager')).toEqual([
      {
        version: 'v1.2.0',
        appVersion: 'v1.2.0',
        digest: DIGEST,
        urls: ['https://x.test/charts/cert-manager-v1.2.0.tgz'],
      },
      { version: '1.10', digest: DIGEST, urls: ['a.tgz', 'b.tgz'] },
      { version: '1.10', urls: [] },
    ]);
    expect(index.entries('quoted name')).toEqual([{ version: '1.0.0', urls: ['c.tgz'] }]);
    expect(index.entries('empty')).toEqual([]);
    expect(index.entries('none')).toEqual([]);
    expect(index.entries('other')).toBeUndefined();
  });

  const charts = {
    a: [
      {
        version: '1.0.0',
        urls: ['a-1.0.0.tgz'],
        digest: DIGEST,
        keywords: ['version: 9'],
        maintainers: [{ name: 'x' }],
      },
      { version: '0.9.0', urls: ['a-0.9.0.tgz'], description: 'a\n\nversion: 7\n - b\n' },
    ],
    b: [{ urls: ['b.tgz'], version: '2.0.0', appVersion: '3' }],
  };

  it.each([
    ['indented lists', stringify({ apiVersion: 'v1', entries: charts, generated: 'x' })],
    ['lists at the margin of their keys', stringify({ entries: charts }, { indentSeq: false })],
    ['four columns', stringify({ entries: charts, apiVersion: 'v1' }, { indent: 4 })],
    ['lines of Windows', stringify({ apiVersion: 'v1', entries: charts }).replaceAll('\n', '\r\n')],
    ['JSON', JSON.stringify({ apiVersion: 'v1', entries: charts })],
    ['one line', stringify({ entries: charts }, { collectionStyle: 'flow' })],
    ['entries in braces', `apiVersion: v1\nentries: ${JSON.stringify(charts)}\n`],
    ['a document marker', `---\n${stringify({ entries: charts })}`],
    [
      'anchors',
      `entries:\n  a:\n  - &v\n    version: 1.0.0\n    urls: [a-1.0.0.tgz]\n    digest: ${DIGEST}\n  - <<: *v\n    version: 0.9.0\n    urls: &u\n    - a-0.9.0.tgz\n  b:\n  - urls: [b.tgz]\n    version: 2.0.0\n    appVersion: "3"\n`,
    ],
  ])('laid out with %s says the same', async (_, text) => {
    const index = await IndexDocument.read(text);
    expect(index.names).toEqual(['a', 'b']);
    expect(index.entries('a')?.map(({ version, urls }) => [version, ...urls])).toEqual([
      ['1.0.0', 'a-1.0.0.tgz'],
      ['0.9.0', 'a-0.9.0.tgz'],
    ]);
    expect(index.entries('a')?.[0]?.digest).toBe(DIGEST);
    expect(index.entries('b')).toEqual([{ version: '2.0.0', appVersion: '3', urls: ['b.tgz'] }]);
  });

  it('may be empty', async () => {
    for (const text of ['entries: {}\n', 'apiVersion: v1\nentries:\n', 'apiVersion: v1\n', '{}']) {
      expect((await IndexDocument.read(text)).names).toEqual([]);
    }
  });

  it('keeps little of much', async () => {
    const noise = () => ({ description: 'x'.repeat(5000), version: '1.0.0', urls: ['a.tgz'] });
    const index = await IndexDocument.read(stringify({ entries: { a: Array.from({ length: 200 }, noise) } }));
    expect(index.size).toBeLessThan(20_000);
    expect(index.entries('a')).toHaveLength(200);
  });

  it.each([
    '<html>\n</html>',
    'just text',
    '- a\n- b',
    'entries: [1]\n',
    '{"entries": 5}',
    '{broken',
    'entries: {a: [',
    '\tentries:\n',
  ])('that is %j is refused', async (text) => {
    await expect(IndexDocument.read(text)).rejects.toMatchObject({ code: 'RepositoryInvalid' });
  });
});
