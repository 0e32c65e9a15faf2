import { Document, stringify } from 'yaml';
import { driftDiff } from './diff.ts';
import { ignoreRules } from './ignore-rules.ts';
import type { DriftOptions } from './options.ts';
import type { ComparedRelease, DriftReport } from './report.ts';
import { driftTable, noteLines, summaryLine, troubleLines } from './table.ts';
import { harmless, paletteFor } from './terminal.ts';
import type { Palette, Terminal } from './terminal.ts';

/** All that is printed at the end. */
export interface Outcome {
  readonly report: DriftReport;
  readonly releases: readonly ComparedRelease[];
  readonly hints: readonly string[];
}

/** What spec.driftDetection.ignore takes (the CRD's limit). */
const MAX_RULES = 50;

const TOO_MANY = `These are more rules than an object takes (${MAX_RULES}): make some of them wider, e.g. by a pattern in "name".`;

/** Prints what was asked for on `out`, and trouble and hints on `err`. */
export function print(outcome: Outcome, options: DriftOptions, to: { terminal: Terminal; noColor: boolean }): void {
  const { terminal, noColor } = to;
  const auto = terminal.isTerminal && !noColor;
  const palette = paletteFor(options.color === 'always' || (options.color === 'auto' && auto));
  const { report } = outcome;
  terminal.out(textOf(outcome, options, palette));
  const notes = options.output === 'text' ? [...noteLines(report), ...outcome.hints] : outcome.hints;
  for (const line of notes) terminal.err(`note: ${line}\n`);
  for (const line of troubleLines(report)) terminal.err(`error: ${line}\n`);
}

function textOf(outcome: Outcome, options: DriftOptions, palette: Palette): string {
  if (options.view === 'ignore-rules') return rulesText(outcome, options.output === 'json');
  if (options.output === 'json') return `${JSON.stringify(outcome.report, undefined, 2)}\n`;
  if (options.output === 'yaml') return stringify(outcome.report, { lineWidth: 0, aliasDuplicateObjects: false });
  const body = options.view === 'diff' ? driftDiff(outcome.releases, palette) : driftTable(outcome.report, palette);
  const summary = `${summaryLine(outcome.report)}\n`;
  return body === '' ? summary : `${body}\n${summary}`;
}

function rulesText({ releases }: Outcome, json: boolean): string {
  const groups = ignoreRules(releases);
  if (json) return `${JSON.stringify(groups, undefined, 2)}\n`;
  return groups
    .map(({ target, ignore }) => {
      const document = new Document({ driftDetection: { ignore } }, { aliasDuplicateObjects: false });
      document.commentBefore = [target, ...(ignore.length > MAX_RULES ? [TOO_MANY] : [])]
        .map((line) => harmless(` ${line}`))
        .join('\n');
      return document.toString({ lineWidth: 0 });
    })
    .join('---\n');
}
