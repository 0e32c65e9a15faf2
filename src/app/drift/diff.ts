import { structuredPatch } from 'diff';
import { stringify } from 'yaml';
import { isMasked, MASK, pointerOf } from '../../drift/index.ts';
import type { FieldDrift, JsonObject, JsonValue, ObjectId, Path } from '../../drift/index.ts';
import type { ComparedRelease, Finding, ObjectReport, ReleaseReport } from './report.ts';
import { nameOf } from './table.ts';
import { harmless } from './terminal.ts';
import type { Palette } from './terminal.ts';

/** Lines around a change within a longer text, as `diff -u`. */
const CONTEXT = 3;

/** A missing object's manifest may be a CRD's thousands of lines. */
const MAX_LINES = 2_000;

/** A diff per object, from what the release wants (-) to what is there (+). '' when nothing differs. */
export function driftDiff(releases: readonly ComparedRelease[], palette: Palette): string {
  return releases
    .flatMap(({ report, findings }) =>
      report.details.flatMap((object, index) => {
        const finding = findings[index];
        return finding === undefined ? [] : [objectDiff(report, object, { finding, palette })];
      }),
    )
    .join('\n');
}

function objectDiff(
  release: ReleaseReport,
  object: ObjectReport,
  { finding, palette }: { readonly finding: Finding; readonly palette: Palette },
): string {
  const name = nameOf(object, release.namespace);
  const wanted = `${name} of ${release.namespace}/${release.name} revision ${release.revision ?? '?'}`;
  const lines = [
    palette.bold(harmless(`--- ${wanted}`)),
    palette.bold(harmless(`+++ ${name} on ${release.cluster}: ${object.state.toLowerCase()}`)),
    ...bodyOf(finding, object, palette),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function bodyOf({ object, verification }: Finding, report: ObjectReport, palette: Palette): string[] {
  const verdict = verification?.verdict;
  if (verdict?.state === 'Modified') {
    return sorted(verdict.fields).flatMap((field) => fieldLines(object.id, field, palette));
  }
  const why = report.message === undefined ? [] : [palette.cyan(harmless(`@@ ${report.message} @@`))];
  if (verdict?.state !== 'Missing') return why;
  return [...why, ...bounded(yamlLines(masked(object.id, object.wanted))).map((line) => removed(line, palette))];
}

function sorted(fields: readonly FieldDrift[]): FieldDrift[] {
  const key = ({ path }: FieldDrift): string => pointerOf(path);
  return fields.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
}

function fieldLines(id: ObjectId, field: FieldDrift, palette: Palette): string[] {
  const { change, path, author } = field;
  const who = author === undefined ? '' : ` by ${author.manager} (${author.operation})`;
  const when = author?.time === undefined ? '' : `, ${author.time}`;
  const head = palette.cyan(harmless(`@@ ${pointerOf(path)}: ${change}${who}${when} @@`));
  return [head, ...bounded(valueLines(id, field)).map((line) => painted(line, palette))];
}

/** Lines with their sign. */
function valueLines(id: ObjectId, { path, wanted, live }: FieldDrift): string[] {
  if (isMasked(id, path)) {
    return [...(wanted === undefined ? [] : [`-${MASK}`]), ...(live === undefined ? [] : [`+${MASK}`])];
  }
  if (typeof wanted === 'string' && typeof live === 'string' && (isLong(wanted) || isLong(live))) {
    return textDiff(wanted, live);
  }
  return yamlDiff(
    wanted === undefined ? undefined : masked(id, wanted, path),
    live === undefined ? undefined : masked(id, live, path),
  );
}

function isLong(text: string): boolean {
  return text.includes('\n');
}

function yamlDiff(wanted: JsonValue | undefined, live: JsonValue | undefined): string[] {
  if (wanted === undefined || live === undefined || isScalar(wanted) || isScalar(live)) {
    return [
      ...(wanted === undefined ? [] : yamlLines(wanted).map((line) => `-${line}`)),
      ...(live === undefined ? [] : yamlLines(live).map((line) => `+${line}`)),
    ];
  }
  return textDiff(yamlText(wanted), yamlText(live));
}

function textDiff(wanted: string, live: string): string[] {
  const { hunks } = structuredPatch('', '', wanted, live, undefined, undefined, { context: CONTEXT });
  return hunks.flatMap(({ lines }, index) => [...(index === 0 ? [] : [' …']), ...lines]);
}

function isScalar(value: JsonValue): boolean {
  return typeof value !== 'object' || value === null;
}

function yamlText(value: JsonValue): string {
  return stringify(value, { lineWidth: 0 });
}

function yamlLines(value: JsonValue): string[] {
  return yamlText(value).trimEnd().split('\n');
}

/** A copy without values that are not to be seen; keys stay. */
function masked(id: ObjectId, value: JsonValue, path: Path = []): JsonValue {
  if (Array.isArray(value)) return value.map((inner, index) => masked(id, inner, [...path, index]));
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([key, inner]) => [key, masked(id, inner, [...path, key])] as const);
    return Object.fromEntries(entries) satisfies JsonObject;
  }
  return isMasked(id, path) ? MASK : value;
}

function bounded(lines: readonly string[]): string[] {
  if (lines.length <= MAX_LINES) return [...lines];
  return [...lines.slice(0, MAX_LINES), ` … and ${lines.length - MAX_LINES} more lines`];
}

function removed(line: string, { red }: Palette): string {
  return red(harmless(`-${line}`));
}

function painted(line: string, { red, green }: Palette): string {
  const text = harmless(line);
  if (text.startsWith('-')) return red(text);
  return text.startsWith('+') ? green(text) : text;
}
