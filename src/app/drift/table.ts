import type { ReportedField } from '../../drift/index.ts';
import { NOT_REACHED } from './cluster-look.ts';
import type { DriftReport, DriftSummary, ObjectReport, ReleaseReport } from './report.ts';
import { harmless } from './terminal.ts';
import type { Palette } from './terminal.ts';

const COLUMNS = ['CLUSTER', 'NAMESPACE', 'RELEASE', 'REVISION', 'OBJECT', 'FIELD', 'CHANGE', 'BY', 'WHEN'] as const;

const GAP = '   ';

/** What one cell shows of a value; --diff and -o json show more. */
const MAX_VALUE_CHARS = 40;

/** In a cell about which nothing is known. */
const NOTHING = '-';

/** A row per field that differs, as kubectl's tables look. '' when nothing differs. */
export function driftTable(report: DriftReport, { bold }: Palette): string {
  const rows = report.releases.flatMap((release) => release.details.flatMap((object) => rowsOf(release, object)));
  if (rows.length === 0) return '';
  const cells = [[...COLUMNS], ...rows].map((row) => row.map((cell) => harmless(cell)));
  const widths = COLUMNS.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const lines = cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
  return lines.map((line, index) => `${index === 0 ? bold(line) : line}\n`).join('');
}

function rowsOf(release: ReleaseReport, object: ObjectReport): string[][] {
  const { cluster, namespace, name, revision } = release;
  const first = [cluster, namespace, name, String(revision ?? NOTHING), nameOf(object, namespace)];
  if (object.fields === undefined || object.fields.length === 0) {
    return [[...first, NOTHING, stateOf(object), NOTHING, NOTHING]];
  }
  const more = object.moreFields ?? 0;
  return [
    ...object.fields.map((field) => [...first, field.path, changeOf(field), byOf(field), field.time ?? NOTHING]),
    ...(more > 0 ? [[...first, `and ${more} more`, NOTHING, NOTHING, NOTHING]] : []),
  ];
}

/** With its namespace when that is not the release's. */
export function nameOf({ kind, namespace, name }: ObjectReport, releaseNamespace: string): string {
  return namespace === undefined || namespace === releaseNamespace ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}

function stateOf({ state, message }: ObjectReport): string {
  return message === undefined ? state.toLowerCase() : `${state.toLowerCase()}: ${message}`;
}

function changeOf({ change, wanted, live }: ReportedField): string {
  switch (change) {
    case 'changed':
      return `${short(wanted)} -> ${short(live)}`;
    case 'removed':
      return `removed, was ${short(wanted)}`;
    default:
      return `added: ${short(live)}`;
  }
}

function short(value = ''): string {
  return value.length <= MAX_VALUE_CHARS ? value : `${value.slice(0, MAX_VALUE_CHARS - 1)}…`;
}

/** The subresource's or the applying manager is as good a name as any; how it wrote tells `kubectl edit` from `kubectl apply`. */
function byOf({ manager, operation }: ReportedField): string {
  if (manager === undefined) return NOTHING;
  return operation === undefined ? manager : `${manager} (${operation})`;
}

/** "3 of 12 releases on 2 of 8 clusters drift; 1 cluster could not be read: …". */
export function summaryLine({ summary, clusters }: DriftReport): string {
  const failed = clusters.filter(({ error }) => error !== undefined).map(({ name }) => harmless(name));
  return [
    whatDrifts(summary),
    ...(failed.length === 0 ? [] : [`${count(failed.length, 'cluster')} could not be read: ${failed.join(', ')}`]),
  ].join('; ');
}

function whatDrifts(summary: DriftSummary): string {
  const { releases, releasesDrifted, clusters, clustersDrifted, objects, objectsDrifted } = summary;
  if (releasesDrifted === 0) {
    return `no drift in ${count(objects, 'object')} of ${count(releases, 'release')} on ${count(clusters, 'cluster')}`;
  }
  const where = `on ${clustersDrifted} of ${count(clusters, 'cluster')}`;
  const what = `${objectsDrifted} of ${count(objects, 'object')}`;
  return `${releasesDrifted} of ${count(releases, 'release')} ${where} ${verb(releasesDrifted)} (${what})`;
}

function verb(subjects: number): string {
  return subjects === 1 ? 'drifts' : 'drift';
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** What could not be compared, and what is to be known about what was: one line each. */
export function troubleLines({ clusters, releases, problems }: DriftReport): string[] {
  const lines = [
    ...problems,
    ...clusters.flatMap(({ name, error }) =>
      error === undefined ? [] : [`cluster ${name} could not be read: ${error}`],
    ),
    ...releases.flatMap(releaseTrouble),
  ];
  return lines.map(harmless);
}

function releaseTrouble(release: ReleaseReport): string[] {
  const { cluster, namespace, name, helmReleaseProxy, error, details } = release;
  const what = name === '' ? `HelmReleaseProxy ${helmReleaseProxy?.name ?? ''}` : `release ${namespace}/${name}`;
  const where = `${what} on ${cluster} could not be compared`;
  const objects = details
    .filter(({ state }) => state === 'Unverified')
    .map((object) => `${nameOf(object, namespace)} of ${where}: ${object.message ?? ''}`);
  return error === undefined || error === NOT_REACHED ? objects : [...objects, `${where}: ${error}`];
}

/** Notes that no error is: about releases, and about objects of them. */
export function noteLines({ releases }: DriftReport): string[] {
  const lines = releases.flatMap(({ cluster, namespace, name, notes, details }) => {
    const release = `${namespace}/${name} on ${cluster}`;
    const ofObjects = details.flatMap((object) =>
      (object.notes ?? []).map((note) => `${release}: ${nameOf(object, namespace)}: ${note}`),
    );
    return [...notes.map((note) => `${release}: ${note}`), ...ofObjects];
  });
  return lines.map(harmless);
}
