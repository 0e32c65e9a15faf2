import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CHECKS, doctorExitCode, Findings, reportOf } from './finding.ts';
import type { Finding } from './finding.ts';

const PAGE = join(import.meta.dirname, '../../../docs/cli.md');

function report(...levels: Finding['level'][]): ReturnType<typeof reportOf> {
  return reportOf(levels.map((level) => ({ check: 'crds', level, subject: '', message: '', advice: '' })));
}

it('every check has its row in docs/cli.md, and no other is there', () => {
  const page = readFileSync(PAGE, 'utf8');
  const section = page.slice(page.indexOf('## capstan doctor'));
  const rows = [...section.matchAll(/^\| `([a-z-]+)` +\|/gm)].map(([, name]) => name);
  expect(rows).toEqual([...CHECKS]);
});

describe('the exit code of doctor', () => {
  it.each([
    [['ok'], 0],
    [['ok', 'warn'], 1],
    [['ok', 'skip', 'fail'], 1],
    [['ok', 'skip'], 2],
  ] as const)('of %j is %i', (levels, code) => {
    expect(doctorExitCode(report(...levels))).toBe(code);
  });
});

it('findings carry their check, and advice only where something is to be done', () => {
  const found = new Findings('helm');
  found.ok('helm', 'Helm 4');
  found.warn('helm', 'old', 'get a newer one');
  expect(found.all.map(({ check, level, advice }) => [check, level, advice])).toEqual([
    ['helm', 'ok', ''],
    ['helm', 'warn', 'get a newer one'],
  ]);
});
