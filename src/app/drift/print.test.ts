import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { InventoryObject } from '../../drift/index.ts';
import type { DriftOptions } from './options.ts';
import { print } from './print.ts';
import type { Outcome } from './print.ts';
import { objectReport, summaryOf } from './report.ts';
import type { Finding } from './report.ts';

/** A release of which so many ConfigMaps are missing. */
function outcome(missing: number, hints: string[] = []): Outcome {
  const findings = Array.from({ length: missing }, (_, index): Finding => {
    const id = { group: '', version: 'v1', kind: 'ConfigMap', namespace: 'a', name: `c${index}` };
    const object: InventoryObject = { id, resource: undefined, wanted: {}, nulls: [], order: 0, fromCrds: false };
    return { object, verification: { verdict: { state: 'Missing' }, notes: ['compared by structure'] } };
  });
  const report = {
    cluster: 'c',
    namespace: 'a',
    name: 'r',
    revision: 1,
    objects: missing,
    drifted: missing,
    excluded: 0,
    details: findings.map(objectReport),
    notes: [],
  };
  const clusters = [{ name: 'c' }, { name: 'd', error: 'refused' }];
  const summary = summaryOf(clusters, [report]);
  return {
    report: { kind: 'DriftReport', version: 1, summary, clusters, releases: [report], problems: [] },
    releases: [{ report, findings }],
    hints,
  };
}

function printed(
  what: Outcome,
  options: Partial<DriftOptions> = {},
  to: { isTerminal?: boolean; noColor?: boolean } = {},
): { out: string; err: string } {
  const all: DriftOptions = {
    kubeconfig: '',
    context: '',
    namespace: '',
    allNamespaces: false,
    cluster: undefined,
    direct: false,
    names: [],
    extraFields: undefined,
    includeCRDs: false,
    dryRun: true,
    view: 'table',
    output: 'text',
    color: 'auto',
    timeoutMs: 1,
    concurrency: 1,
    allowExecPlugins: false,
    userAgent: '',
    ...options,
  };
  const written = { out: '', err: '' };
  const terminal = {
    out: (text: string) => void (written.out += text),
    err: (text: string) => void (written.err += text),
    isTerminal: to.isTerminal ?? false,
  };
  print(what, all, { terminal, noColor: to.noColor ?? false });
  return written;
}

describe('print', () => {
  it('has the report on out, notes and trouble on err', () => {
    const { out, err } = printed(outcome(1, ['a hint']));
    expect(out).toMatch(/^CLUSTER .*\nc .*missing.*\n\n1 of 1 release .*\n$/);
    expect(err).toBe(
      'note: a/r on c: ConfigMap c0: compared by structure\nnote: a hint\nerror: cluster d could not be read: refused\n',
    );
  });

  it('has JSON and YAML alone on out', () => {
    const what = outcome(2);
    expect(JSON.parse(printed(what, { output: 'json' }).out)).toEqual(what.report);
    expect(parse(printed(what, { output: 'yaml' }).out)).toEqual(what.report);
    expect(printed(what, { output: 'json' }).err).toBe('error: cluster d could not be read: refused\n');
  });

  it.each([
    ['auto', false, false, false],
    ['auto', true, false, true],
    ['auto', true, true, false],
    ['always', false, true, true],
    ['never', true, false, false],
  ] as const)(
    'with --color %s, terminal %s and NO_COLOR %s: coloured is %s',
    (color, isTerminal, noColor, coloured) => {
      expect(printed(outcome(1), { color }, { isTerminal, noColor }).out.includes('\u001b[')).toBe(coloured);
    },
  );

  it('says when there are more rules than an object takes', () => {
    const few = printed(outcome(50), { view: 'ignore-rules' }).out;
    expect(few).toMatch(/^# release a\/r on c\n\ndriftDetection:\n {2}ignore:\n/);
    expect(few).not.toContain('more rules');
    expect(printed(outcome(51), { view: 'ignore-rules' }).out).toContain('more rules than an object takes (50)');
  });
});
