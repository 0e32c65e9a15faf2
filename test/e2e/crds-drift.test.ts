import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { DriftDetectionSpec, DriftRule, DriftStatus } from '../../src/api/index.ts';
import { parsePointer } from '../../src/drift/pointer.ts';
import type { Environment, KubeObject, RestClient, TestCluster } from '../support/index.ts';
import { ensureNamespace, eventually, installCrds, startEnvironment } from '../support/index.ts';
import type { ChartProxyObject, ReleaseProxyObject } from './crds-objects.ts';
import { change, chartProxy, CRD_FILES, HCPS, HRPS, NAMESPACE, pathOf, refusal, releaseProxy } from './crds-objects.ts';

// What a real API server makes of driftDetection and status.drift.

let environment: Environment;
let cluster: TestCluster;
let api: RestClient;

beforeAll(async () => {
  environment = await startEnvironment({ clusters: 1, management: false });
  [cluster] = environment.clusters as [TestCluster];
  api = cluster.api;
  await ensureNamespace(api, NAMESPACE);
  await installCrds(api, CRD_FILES);
}, 120_000);

afterAll(async () => {
  await environment.stop();
});

const FULL: DriftDetectionSpec = {
  mode: 'Correct',
  correction: 'Upgrade',
  extraFields: 'Remove',
  includeCRDs: true,
  ignore: [
    { paths: [''], target: { kind: 'Secret', name: 'generated-.*', labelSelector: 'a in (b, c)', group: '^$' } },
    { paths: ['/spec/replicas', '/metadata/annotations/example.com~1owner', '/spec/template/spec/containers/*/image'] },
  ],
  quantities: [{ paths: ['/spec/size'], target: { group: 'example.com', version: 'v1', annotationSelector: 'a=b' } }],
};

const KINDS = [
  {
    kind: 'HelmChartProxy',
    make: (drift: unknown) => api.create<ChartProxyObject>(HCPS, withDrift(chartProxy, drift)),
  },
  {
    kind: 'HelmReleaseProxy',
    make: (drift: unknown) => api.create<ReleaseProxyObject>(HRPS, withDrift(releaseProxy, drift)),
  },
];

/** Also what is wrong on purpose, hence unknown. */
function withDrift(make: typeof chartProxy | typeof releaseProxy, driftDetection: unknown): KubeObject {
  return make({ driftDetection: driftDetection as DriftDetectionSpec });
}

function rules(count: number, paths: string[]): DriftRule[] {
  return Array.from({ length: count }, () => ({ paths }));
}

describe.each(KINDS)('driftDetection of a $kind', ({ make }) => {
  it('is kept as it was written, without defaults', async () => {
    expect((await make(FULL)).spec.driftDetection).toEqual(FULL);
    expect((await make({})).spec.driftDetection).toEqual({});
    expect((await make(undefined)).spec.driftDetection).toBeUndefined();
  });

  it('may come, change and go', async () => {
    const object = await make(undefined);
    const drift = async (driftDetection: unknown): Promise<unknown> =>
      (await change(api, object, { driftDetection })).spec.driftDetection;
    expect(await drift({ mode: 'Warn' })).toEqual({ mode: 'Warn' });
    expect(await drift(FULL)).toEqual(FULL);
    expect(await drift(null)).toBeUndefined();
  });

  it.each([
    [
      { mode: 'correct' },
      'spec.driftDetection.mode: Unsupported value: "correct": supported values: "Disabled", "Warn"',
    ],
    [{ mode: '' }, 'spec.driftDetection.mode: Unsupported value: ""'],
    [{ correction: 'Rollback' }, 'supported values: "Apply", "Upgrade"'],
    [{ extraFields: 'Keep' }, 'supported values: "Ignore", "Report", "Remove"'],
    [{ includeCRDs: 'yes' }, 'spec.driftDetection.includeCRDs'],
    [{ ignore: [{}] }, 'spec.driftDetection.ignore[0].paths: Required value'],
    [{ ignore: [{ paths: [] }] }, 'spec.driftDetection.ignore[0].paths'],
    [{ ignore: rules(51, ['/a']) }, 'spec.driftDetection.ignore: Too many: 51: must have at most 50 items'],
    [{ quantities: rules(51, ['/a']) }, 'spec.driftDetection.quantities: Too many'],
    [
      {
        ignore: rules(
          1,
          Array.from({ length: 51 }, () => '/a'),
        ),
      },
      'spec.driftDetection.ignore[0].paths: Too many',
    ],
    [{ ignore: [{ paths: [`/${'a'.repeat(1024)}`] }] }, 'spec.driftDetection.ignore[0].paths[0]: Too long'],
    [{ ignore: [{ paths: ['/a'], target: { kind: 'K'.repeat(254) } }] }, 'ignore[0].target.kind: Too long'],
  ])('%j is refused', async (drift, message) => {
    expect(await refusal(make(drift))).toContain(message);
  });

  // What the server lets in is what the manager can read: the same question to both.
  it.each([
    ['', true],
    ['/', true],
    ['/spec/replicas', true],
    ['/spec/containers/*/image', true],
    ['/metadata/annotations/a~1b~0c', true],
    ['/a//b/', true],
    ['/data/ä b.c', true],
    ['/two\nlines', true],
    ['spec/replicas', false],
    ['.spec.replicas', false],
    [' /spec', false],
    ['/spec/~', false],
    ['/spec/a~2b', false],
    ['/spec/a~/b', false],
    ['~1spec', false],
  ])('takes the path %j: %s', async (path, good) => {
    const expected = good ? '' : 'must be a JSON pointer';
    for (const field of ['ignore', 'quantities']) {
      const said = await refusal(make({ [field]: [{ paths: ['/a', path] }] }));
      if (good) expect(said).toBe(expected);
      else expect(said).toContain(expected);
      if (!good) expect(said).toContain(`spec.driftDetection.${field}[0].paths[1]: Invalid value`);
    }
    if (good) expect(parsePointer(path)).toHaveLength(path.split('/').length - 1);
    else expect(() => parsePointer(path)).toThrow(TypeError);
  });

  it('may be as large as its bounds and etcd allow', async () => {
    // 50 rules of 50 paths twice, and nearly a megabyte: what the rules of the schema cost is paid at every write.
    const paths = Array.from({ length: 50 }, (_, index) => `/${'a'.repeat(180)}/${index}`);
    const object = await make({ ignore: rules(50, paths), quantities: rules(50, paths) });
    const changed = await change(api, object, { version: '2' });
    expect(changed.spec.driftDetection?.quantities).toHaveLength(50);
    // The same bytes in a few of the longest.
    const long = Array.from({ length: 18 }, (_, index) => `/${'b'.repeat(1000)}/${index}`);
    expect(await refusal(make({ ignore: rules(50, long) }))).toBe('');
  });
});

it('the examples of docs/drift.md are taken, and nothing of them is dropped', async () => {
  const page = await readFile(join(import.meta.dirname, '../../docs/drift.md'), 'utf8');
  const blocks = [...page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, text]) => parse(text ?? '') as object);
  let seen = 0;
  for (const block of blocks) {
    if ('driftDetection' in block) {
      const made = await api.create<ChartProxyObject>(HCPS, withDrift(chartProxy, block.driftDetection));
      expect(made.spec.driftDetection).toEqual(block.driftDetection);
      seen += 1;
    } else if ('drift' in block) {
      const made = await api.create<ReleaseProxyObject>(HRPS, releaseProxy({}));
      const { drift } = block;
      expect(await api.patch(`${pathOf(made)}/status`, { status: { drift } })).toMatchObject({ status: { drift } });
      seen += 1;
    }
  }
  expect(seen).toBeGreaterThan(5);
});

describe('status.drift of a HelmReleaseProxy', () => {
  const object = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    namespace: 'apps',
    name: 'web',
    state: 'Modified',
    action: 'Stopped',
    message: 'changed again by kubectl-edit 7 times',
    fields: Array.from({ length: 10 }, (_, index) => ({
      path: `/spec/template/spec/containers/${index}/image`,
      change: 'changed',
      wanted: '"web:1"',
      live: '"web:2"',
      manager: 'kubectl-edit',
      operation: 'Update',
      time: '2026-01-01T00:00:00Z',
    })),
    moreFields: 3,
  };
  const drift: DriftStatus = {
    revision: 3,
    objects: 40,
    drifted: 12,
    lastDetectedTime: '2026-01-01T00:00:00Z',
    lastCorrectedTime: '2026-01-01T00:00:01Z',
    corrections: 7,
    details: Array.from({ length: 10 }, () => object),
    more: 2,
  };

  async function written(status: unknown): Promise<KubeObject & { status?: { drift?: unknown } }> {
    const made = await api.create<ReleaseProxyObject>(HRPS, releaseProxy({}));
    return api.patch(`${pathOf(made)}/status`, { status });
  }

  it('keeps everything that the manager tells', async () => {
    expect((await written({ drift })).status?.drift).toEqual(drift);
  });

  it('may tell as little as it knows', async () => {
    const bare = { apiVersion: 'v1', kind: 'Namespace', name: 'n', state: 'Missing' };
    expect((await written({ drift: { details: [bare] } })).status?.drift).toEqual({ details: [bare] });
  });

  it('is bounded', async () => {
    const details = Array.from({ length: 11 }, () => object);
    expect(await refusal(written({ drift: { details } }))).toContain('status.drift.details: Too many');
    const fields = [...object.fields, { path: '/a', change: 'added' }];
    const said = await refusal(written({ drift: { details: [{ ...object, fields }] } }));
    expect(said).toContain('status.drift.details[0].fields: Too many');
  });
});

describe('kubectl', () => {
  it('prints whether a release is in sync, with -o wide', async () => {
    const condition = { type: 'ReleaseInSync', status: 'False', reason: 'DriftDetected', message: 'm' };
    const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
    for (const { kind, make } of KINDS) {
      const object = await make(undefined);
      await api.patch(`${pathOf(object)}/status`, { status: { conditions } });
      const name = `${kind.toLowerCase()}/${object.metadata.name ?? ''}`;
      const [head = '', row = ''] = (
        await cluster.kubectl(['get', name, '-n', NAMESPACE, '-o', 'wide', '--sort-by=.metadata.name'])
      ).split('\n');
      const column = head.indexOf('INSYNC');
      expect(column).toBeGreaterThan(0);
      expect(row.slice(column).trim()).toBe('False');
    }
  });

  it.each([
    ['hcp.spec.driftDetection', 'Changing it upgrades nothing'],
    ['hrp.spec.driftDetection.ignore.paths', 'JSON pointers (RFC 6901)'],
    ['hcp.spec.driftDetection.ignore.target', 'must match the whole text'],
    ['hrp.status.drift.details.fields', 'Fields that differ'],
  ])('explains %s', async (field, expected) => {
    // The server publishes a changed schema a little after it goes by it.
    await eventually(async () => {
      expect((await cluster.kubectl(['explain', field])).replaceAll(/\s+/g, ' ')).toContain(expected);
    });
  });
});
