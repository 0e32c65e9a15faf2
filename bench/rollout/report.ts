import type { Measurement } from './bed.ts';
import { total, writes } from './counters.ts';
import type { ByHand } from './helm-by-hand.ts';
import { CAAPH, LIMITS, REFERENCE_RELEASES, REFERENCE_REST_SECONDS } from './limits.ts';

/** The phases in the order in which they were measured. */
export interface Results {
  clusters: number;
  charts: number;
  restSeconds: number;
  helm: string;
  byHand: ByHand;
  start: { wall: number; cpu: number };
  install: Measurement;
  change: Measurement;
  rest: Measurement;
  delete: Measurement;
}

export type Phase = 'install' | 'change' | 'rest' | 'delete';

/** One figure of the table. `limit` is the most that is good; `below` makes it a strict one. */
export interface Row {
  phase: Phase;
  figure: string;
  unit: string;
  value: number;
  limit?: number;
  below?: boolean;
  caaph?: number;
  byHand?: number;
}

const MIB = 1024 * 1024;

/** The figures with their limits; both limits and CAAPH's figures are scaled where the run was not of 40 releases. */
export function rows(results: Results): Row[] {
  const scale = (results.clusters * results.charts) / REFERENCE_RELEASES;
  const rest = (scale * results.restSeconds) / REFERENCE_REST_SECONDS;
  return [
    ...rolloutRows('install', results.install, { scale, hand: results.byHand.install, results }),
    ...rolloutRows('change', results.change, { scale, hand: results.byHand.upgrade, results }),
    ...restRows(results.rest, rest),
    ...deleteRows(results),
  ];
}

/** Whether a figure is within its limit; undefined where it has none. */
export function isGood({ value, limit, below }: Row): boolean | undefined {
  if (limit === undefined) return undefined;
  return below ? value < limit : value <= limit;
}

interface Rollout {
  scale: number;
  hand: { wall: number; cpu: number };
  results: Results;
}

function rolloutRows(phase: 'install' | 'change', measured: Measurement, { scale, hand, results }: Rollout): Row[] {
  const [caaph, limits] = [CAAPH[phase], LIMITS[phase]];
  const releases = results.clusters * results.charts;
  return [
    {
      phase,
      figure: 'wall',
      unit: 's',
      value: measured.wall,
      limit: caaph.wall * scale,
      below: true,
      caaph: caaph.wall * scale,
      byHand: hand.wall * releases,
    },
    {
      phase,
      figure: 'CPU',
      unit: 's',
      value: cpu(measured),
      limit: limits.cpu * scale,
      caaph: caaph.cpu * scale,
      byHand: hand.cpu * releases,
    },
    { phase, figure: "  the controller's own", unit: 's', value: measured.cpu.own },
    { phase, figure: '  helm', unit: 's', value: measured.cpu.children },
    ...memoryRows(phase, measured, caaph.memory),
    ...repositoryRows(phase, measured, caaph.requests * scale),
    { phase, figure: 'helm processes', unit: '', value: total(measured.counters.helm) },
    { phase, figure: 'writes to the management API', unit: '', value: total(writes(measured.counters.management)) },
  ];
}

function restRows(measured: Measurement, scale: number): Row[] {
  const phase = 'rest';
  const caaph = CAAPH.rest;
  return [
    { phase, figure: 'CPU', unit: 's', value: cpu(measured), limit: LIMITS.rest.cpu * scale, caaph: caaph.cpu * scale },
    ...memoryRows(phase, measured, caaph.memory),
    { phase, figure: 'chart downloads', unit: '', value: measured.repository.downloads, limit: 0 },
    { phase, figure: 'requests to the repository', unit: '', value: requests(measured), caaph: caaph.requests * scale },
    { phase, figure: 'helm processes', unit: '', value: total(measured.counters.helm), limit: 0 },
    {
      phase,
      figure: 'writes to the management API',
      unit: '',
      value: total(writes(measured.counters.management)),
      limit: 0,
    },
    {
      phase,
      figure: 'writes to workload clusters',
      unit: '',
      value: total(writes(measured.counters.workload)),
      limit: 0,
    },
    { phase, figure: 'changes of HelmReleaseProxies seen', unit: '', value: measured.changes, limit: 0 },
  ];
}

function deleteRows(results: Results): Row[] {
  const phase = 'delete';
  const measured = results.delete;
  const releases = results.clusters * results.charts;
  const hand = results.byHand.uninstall;
  return [
    { phase, figure: 'wall', unit: 's', value: measured.wall, byHand: hand.wall * releases },
    { phase, figure: 'CPU', unit: 's', value: cpu(measured), byHand: hand.cpu * releases },
    ...memoryRows(phase, measured),
    { phase, figure: 'requests to the repository', unit: '', value: requests(measured) },
    { phase, figure: 'helm processes', unit: '', value: total(measured.counters.helm) },
    { phase, figure: 'writes to the management API', unit: '', value: total(writes(measured.counters.management)) },
  ];
}

function memoryRows(phase: Phase, measured: Measurement, caaph?: number): Row[] {
  return [
    {
      phase,
      figure: "peak memory, the controller's own",
      unit: 'MiB',
      value: measured.memory.own / MIB,
      limit: LIMITS.ownMemory,
      caaph,
    },
    { phase, figure: 'peak memory, with helm', unit: 'MiB', value: measured.memory.tree / MIB, caaph },
  ];
}

function repositoryRows(phase: Phase, measured: Measurement, caaph: number): Row[] {
  return [
    {
      phase,
      figure: 'most downloads of a chart and version',
      unit: '',
      value: measured.repository.mostPerChart,
      limit: 1,
    },
    { phase, figure: 'requests to the repository', unit: '', value: requests(measured), caaph },
  ];
}

function cpu(measured: Measurement): number {
  return measured.cpu.own + measured.cpu.children;
}

function requests(measured: Measurement): number {
  return measured.repository.index + measured.repository.downloads;
}

const COLUMNS = [38, 12, 12, 12, 10, 12, 10, 0] as const;

/** The table as text. */
export function table(all: readonly Row[]): string {
  const lines = [line(['', 'Capstan', 'limit', 'CAAPH', 'ratio', 'by hand', 'ratio', ''])];
  let phase = '';
  for (const row of all) {
    if (row.phase !== phase) lines.push('', row.phase);
    phase = row.phase;
    const good = isGood(row);
    lines.push(
      line([
        `  ${row.figure}`,
        shown(row.value, row.unit),
        row.limit === undefined ? '' : `${row.below ? '<' : '≤'} ${shown(row.limit, row.unit)}`,
        row.caaph === undefined ? '' : shown(row.caaph, row.unit),
        ratio(row.value, row.caaph),
        row.byHand === undefined ? '' : shown(row.byHand, row.unit),
        ratio(row.value, row.byHand),
        good === undefined ? '' : good ? 'ok' : 'MISSED',
      ]),
    );
  }
  return lines.join('\n');
}

/** Where the time went: what helm did, what was asked of API servers, what was reconciled. */
export function whereTimeGoes(results: Results): string {
  const lines: string[] = [];
  for (const phase of ['install', 'change', 'rest', 'delete'] as const) {
    const { counters, cpu: used, memory } = results[phase];
    const processes = total(counters.helm);
    const releases = results.clusters * results.charts;
    const perHelm = processes === 0 ? '' : `, ${milliseconds(used.children / processes)} CPU each`;
    lines.push(
      phase,
      `  helm: ${processes} processes${perHelm}, at most ${memory.processes - 1} at a time: ${list(counters.helm)}`,
      `  helm, seconds that they ran: ${list(counters.helmSeconds)}`,
      `  controller: ${milliseconds(used.own / releases)} CPU a release; reconciles: ${list(counters.reconciles)}`,
      `  management API: ${list(counters.management)}`,
      `  workload APIs: ${list(counters.workload)}`,
    );
  }
  return lines.join('\n');
}

function line(cells: string[]): string {
  return cells
    .map((cell, column) => {
      const width = COLUMNS[column] ?? 0;
      return column === 0 ? cell.padEnd(width) : column === COLUMNS.length - 1 ? `  ${cell}` : cell.padStart(width);
    })
    .join('')
    .trimEnd();
}

function shown(value: number, unit: string): string {
  if (unit === '') return String(Math.round(value));
  return `${unit === 's' ? value.toFixed(2) : value.toFixed(0)} ${unit}`;
}

function ratio(value: number, other: number | undefined): string {
  return other === undefined || other === 0 ? '' : (value / other).toFixed(2);
}

function milliseconds(seconds: number): string {
  return `${Math.round(seconds * 1000)} ms`;
}

function list(counts: Record<string, number>): string {
  const entries = Object.entries(counts).map(([key, count]) => `${key} ${Number(count.toFixed(1))}`);
  return entries.length === 0 ? 'none' : entries.join(', ');
}
