import { describe, expect, it } from 'vitest';
import type { FieldDrift, InventoryObject, JsonObject, LiveObject, Verdict } from '../../drift/index.ts';
import { driftDiff } from './diff.ts';
import { ignoreRules } from './ignore-rules.ts';
import { exitCodeOf, isDrift, objectReport, summaryOf } from './report.ts';
import type { ClusterReport, ComparedRelease, DriftReport, Finding, ReleaseReport } from './report.ts';
import { driftTable, noteLines, summaryLine, troubleLines } from './table.ts';
import { harmless, paletteFor } from './terminal.ts';

const PLAIN = paletteFor(false);

function inventoryObject(id: Partial<InventoryObject['id']>, wanted: JsonObject = {}): InventoryObject {
  const full = { group: '', version: 'v1', kind: 'ConfigMap', namespace: 'shop', name: 'settings', ...id };
  return { id: full, resource: undefined, wanted, nulls: [], order: 0, fromCrds: false };
}

function live(): LiveObject {
  return { metadata: { name: 'settings' } };
}

function modified(object: InventoryObject, fields: FieldDrift[]): Finding {
  const verdict: Verdict = { state: 'Modified', live: live(), watch: [], fields, applicable: true };
  return { object, verification: { verdict, notes: [] } };
}

function changed(path: FieldDrift['path'], wanted: FieldDrift['wanted'], now: FieldDrift['live']): FieldDrift {
  const author = { manager: 'kubectl-edit', operation: 'Update', time: '2026-01-02T03:04:05Z' } as const;
  return { change: 'changed', path, wanted, live: now, author };
}

function missing(object: InventoryObject): Finding {
  return { object, verification: { verdict: { state: 'Missing' }, notes: [] } };
}

function release(findings: Finding[], parts: Partial<ReleaseReport> = {}): ComparedRelease {
  const report: ReleaseReport = {
    cluster: 'fleet/c1',
    namespace: 'shop',
    name: 'shop',
    revision: 3,
    objects: 5,
    drifted: findings.filter(isDrift).length,
    excluded: 0,
    details: findings.map(objectReport),
    notes: [],
    ...parts,
  };
  return { report, findings };
}

function reportOf(releases: ComparedRelease[], clusters: ClusterReport[] = [{ name: 'fleet/c1' }]): DriftReport {
  const reports = releases.map(({ report }) => report);
  return {
    kind: 'DriftReport',
    version: 1,
    summary: summaryOf(clusters, reports),
    clusters,
    releases: reports,
    problems: [],
  };
}

const NO_VERDICT: Finding = { object: inventoryObject({}), error: 'no permission' };
const DEPLOYMENT = inventoryObject({ group: 'apps', kind: 'Deployment', name: 'web.v2' });

describe('the table', () => {
  it('has a row per field, aligned, and one for an object without any', () => {
    const findings = [
      modified(DEPLOYMENT, [
        changed(['spec', 'replicas'], 2, 5),
        { ...changed(['spec', 'x/y'], 'a', undefined), change: 'removed', author: undefined },
      ]),
      missing(inventoryObject({ namespace: 'other' })),
    ];
    expect(driftTable(reportOf([release(findings)]), PLAIN).split('\n')).toEqual([
      'CLUSTER    NAMESPACE   RELEASE   REVISION   OBJECT                     FIELD            CHANGE             BY                      WHEN',
      'fleet/c1   shop        shop      3          Deployment web.v2          /spec/replicas   2 -> 5             kubectl-edit (Update)   2026-01-02T03:04:05Z',
      'fleet/c1   shop        shop      3          Deployment web.v2          /spec/x~1y       removed, was "a"   -                       -',
      'fleet/c1   shop        shop      3          ConfigMap other/settings   -                missing            -                       -',
      '',
    ]);
  });

  it('is empty when nothing differs', () => {
    expect(driftTable(reportOf([release([])]), PLAIN)).toBe('');
  });

  it('shortens long values', () => {
    const finding = modified(DEPLOYMENT, [changed(['a'], 'x'.repeat(100), 'y'.repeat(100))]);
    expect(driftTable(reportOf([release([finding])]), PLAIN)).toContain(`"${'x'.repeat(38)}… -> "${'y'.repeat(38)}…`);
  });
});

describe('summary and exit code', () => {
  const clean = release([], { cluster: 'fleet/c2' });
  const drifting = release([missing(DEPLOYMENT)]);
  const clusters = [{ name: 'fleet/c1' }, { name: 'fleet/c2' }];

  interface Case {
    what: string;
    releases: ComparedRelease[];
    of?: ClusterReport[];
    line: string;
    code: number;
  }

  it.each<Case>([
    {
      what: 'nothing differs',
      releases: [clean, clean],
      line: 'no drift in 10 objects of 2 releases on 2 clusters',
      code: 0,
    },
    {
      what: 'one drifts',
      releases: [drifting, clean],
      line: '1 of 2 releases on 1 of 2 clusters drifts (1 of 10 objects)',
      code: 1,
    },
    {
      what: 'a cluster is not reached',
      releases: [drifting, clean],
      of: [...clusters, { name: 'fleet/c3', error: 'refused' }],
      line: '1 of 2 releases on 1 of 3 clusters drifts (1 of 10 objects); 1 cluster could not be read: fleet/c3',
      code: 2,
    },
    {
      what: 'an object cannot be read',
      releases: [release([NO_VERDICT])],
      line: 'no drift in 5 objects of 1 release on 2 clusters',
      code: 2,
    },
    {
      what: 'a release cannot be compared',
      releases: [release([], { error: 'x', objects: 0 })],
      line: 'no drift in 0 objects of 1 release on 2 clusters',
      code: 2,
    },
  ])('$what', ({ releases, of = clusters, line, code }) => {
    const report = reportOf(releases, of);
    expect([summaryLine(report), exitCodeOf(report)]).toEqual([line, code]);
  });

  it('a name that nothing has is trouble', () => {
    expect(exitCodeOf({ ...reportOf([clean]), problems: ['there is no release "x"'] })).toBe(2);
  });

  it('tells trouble of clusters, releases and objects, and notes', () => {
    const broken = release([NO_VERDICT], { notes: ['revision 4 is failed'] });
    const report = reportOf([broken, release([], { error: 'gone' })], [{ name: 'fleet/c9', error: 'refused' }]);
    expect(troubleLines(report)).toEqual([
      'cluster fleet/c9 could not be read: refused',
      'ConfigMap settings of release shop/shop on fleet/c1 could not be compared: no permission',
      'release shop/shop on fleet/c1 could not be compared: gone',
    ]);
    expect(noteLines(report)).toEqual(['shop/shop on fleet/c1: revision 4 is failed']);
  });
});

describe('the diff', () => {
  it('is of YAML for maps, of lines for long texts, and says who and when', () => {
    const finding = modified(DEPLOYMENT, [
      changed(['spec', 'list'], [{ a: 1 }, { b: 2 }], [{ a: 1 }, { b: 3 }]),
      changed(['spec', 'text'], 'one\ntwo\n', 'one\n2\n'),
      { change: 'added', path: ['spec', 'new'], wanted: undefined, live: { k: 'v' } },
    ]);
    expect(driftDiff([release([finding])], PLAIN)).toBe(`--- Deployment web.v2 of shop/shop revision 3
+++ Deployment web.v2 on fleet/c1: modified
@@ /spec/list: changed by kubectl-edit (Update), 2026-01-02T03:04:05Z @@
 - a: 1
-- b: 2
+- b: 3
@@ /spec/new: added @@
+k: v
@@ /spec/text: changed by kubectl-edit (Update), 2026-01-02T03:04:05Z @@
 one
-two
+2
`);
  });

  it('shows keys of a missing Secret, and none of its values', () => {
    const secret = inventoryObject({ kind: 'Secret' }, { kind: 'Secret', data: { password: 'c2VzYW1l' } });
    expect(driftDiff([release([missing(secret)])], PLAIN)).toContain('-kind: Secret\n-data:\n-  password: "***"\n');
  });

  it('masks both sides of a Secret’s field, text or map', () => {
    const secret = inventoryObject({ kind: 'Secret' });
    const fields = [changed(['data', 'a'], 'b25l', 'dHdv'), changed(['data'], { a: 'b25l' }, { a: 'dHdv' })];
    const text = driftDiff([release([modified(secret, fields)])], PLAIN);
    expect(text).not.toMatch(/b25l|dHdv/);
    expect(text).toContain('-***\n+***\n');
  });

  it('colours what goes and what comes', () => {
    const text = driftDiff([release([modified(DEPLOYMENT, [changed(['a'], 1, 2)])])], paletteFor(true));
    expect(text).toContain('\u001b[31m-1\u001b[39m\n\u001b[32m+2\u001b[39m\n');
  });
});

describe('proposed rules', () => {
  const proxies = { helmReleaseProxy: { namespace: 'fleet', name: 'shop-c1' }, helmChartProxy: 'shop' };

  it('are literal patterns of the object, by chart, each once', () => {
    const finding = modified(DEPLOYMENT, [changed(['spec', 'b'], 1, 2), changed(['spec', 'a'], 1, 2)]);
    const [one, two] = [release([finding], proxies), release([finding], { ...proxies, cluster: 'fleet/c2' })];
    expect(ignoreRules([one, two])).toEqual([
      {
        target: 'HelmChartProxy fleet/shop',
        ignore: [
          {
            target: { group: 'apps', kind: 'Deployment', name: 'web\\.v2', namespace: 'shop' },
            paths: ['/spec/a', '/spec/b'],
          },
        ],
      },
    ]);
  });

  it('take a missing object out as a whole, and are no more than a rule may hold', () => {
    const many = Array.from({ length: 60 }, (_, index) => changed([`f${index}`], 1, 2));
    const [group] = ignoreRules([release([missing(inventoryObject({})), modified(DEPLOYMENT, many)])]);
    expect(group?.target).toBe('release shop/shop on fleet/c1');
    expect(group?.ignore.map(({ paths }) => paths.length)).toEqual([1, 50, 10]);
    expect(group?.ignore[0]?.paths).toEqual(['']);
  });

  it('there are none for what no rule can change', () => {
    const foreign: Verdict = { state: 'Foreign', live: live(), owner: 'other/other' };
    const finding: Finding = { object: DEPLOYMENT, verification: { verdict: foreign, notes: [] } };
    expect(ignoreRules([release([finding, NO_VERDICT])])).toEqual([]);
  });
});

describe('harmless', () => {
  it('shows what would move a cursor, and leaves letters alone', () => {
    expect(harmless('a\u001b[2Jb\u009bc\u202ed\r\ne')).toBe('a\\u001b[2Jb\\u009bc\\u202ed\\u000d\\u000ae');
    expect(harmless('grün\tタ')).toBe('grün\tタ');
  });
});
