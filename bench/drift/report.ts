import { total } from '../rollout/counters.ts';
import type { Counters } from '../rollout/counters.ts';
import { difference } from '../rollout/counters.ts';
import type { Reading } from './bed.ts';
import type { Correction, Edit } from './edits.ts';

/** Everything that a run measured. Times are seconds unless their name says ms; memory is bytes. */
export interface Results {
  clusters: number;
  /** On each cluster. */
  objects: number;
  helm: string;
  corrections: readonly Correction[];
  correcting: { before: Reading; after: Reading };
  noise: { events: number; before: Reading; after: Reading };
  rest: { seconds: number; before: Reading; after: Reading };
  /** Of one tracked object, alone in a process. */
  bytesPerObject: number;
  poll?: PollCost;
}

/** What a detector costs that asks for every object, again and again. */
export interface PollCost {
  intervalSeconds: number;
  rounds: number;
  requestsPerRound: number;
  cpuPerRound: number;
  secondsPerRound: number;
}

export interface Row {
  phase: string;
  figure: string;
  unit: string;
  value: number;
  limit?: number;
}

/** What is to be reached. */
const LIMITS = {
  p50: 300,
  p99: 1_000,
  bytes: 300,
  /** Of the controller, in two minutes of rest. */
  restCpu: 0.3,
} as const;
const REST_UNIT_SECONDS = 120;

export function rows(results: Results): Row[] {
  return [
    ...latencyRows(results),
    ...costRows(results),
    ...noiseRows(results),
    ...restRows(results),
    {
      phase: 'memory',
      figure: 'bytes per tracked object',
      unit: 'B',
      value: results.bytesPerObject,
      limit: LIMITS.bytes,
    },
    ...pollRows(results),
  ];
}

/** Whether a figure is within its limit; undefined where it has none. */
export function isGood({ value, limit }: Row): boolean | undefined {
  return limit === undefined ? undefined : value <= limit;
}

/** The q-quantile of what is sorted here (nearest rank). */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? 0;
}

function latencyRows({ corrections }: Results): Row[] {
  const phase = 'from the answer to the edit to the corrected object';
  const all = corrections.map(({ ms }) => ms);
  const kinds = [...new Set(corrections.map(({ edit }) => edit))];
  return [
    { phase, figure: 'corrections', unit: '', value: all.length },
    { phase, figure: 'p50', unit: 'ms', value: quantile(all, 0.5), limit: LIMITS.p50 },
    { phase, figure: 'p99', unit: 'ms', value: quantile(all, 0.99), limit: LIMITS.p99 },
    { phase, figure: 'longest', unit: 'ms', value: Math.max(0, ...all) },
    ...kinds.map((edit): Row => ({ phase, figure: `p50 of ${edit}`, unit: 'ms', value: medianOf(corrections, edit) })),
  ];
}

function costRows({ corrections, correcting: { before, after } }: Results): Row[] {
  const phase = 'a correction costs';
  const count = Math.max(1, corrections.length);
  const counters = difference(before.counters, after.counters);
  return [
    { phase, figure: 'requests to the workload cluster', unit: '', value: requests(counters.workload) / count },
    { phase, figure: 'of these dry runs', unit: '', value: (after.dryRuns - before.dryRuns) / count },
    { phase, figure: 'requests to the management cluster', unit: '', value: requests(counters.management) / count },
    { phase, figure: 'CPU of the controller', unit: 'ms', value: (1000 * (after.cpu - before.cpu)) / count },
  ];
}

function noiseRows({ noise: { events, before, after } }: Results): Row[] {
  const phase = `${events} events that are no drift`;
  return [
    { phase, figure: 'objects asked for', unit: '', value: after.asked - before.asked, limit: 0 },
    { phase, figure: 'CPU of the controller, each', unit: 'ms', value: (1000 * (after.cpu - before.cpu)) / events },
  ];
}

function restRows({ rest: { seconds, before, after } }: Results): Row[] {
  const phase = `at rest for ${seconds} s`;
  const counters = difference(before.counters, after.counters);
  const scale = REST_UNIT_SECONDS / Math.max(1, seconds);
  return [
    {
      phase,
      figure: 'CPU of the controller in 120 s',
      unit: 's',
      value: (after.cpu - before.cpu) * scale,
      limit: LIMITS.restCpu,
    },
    { phase, figure: 'objects asked for', unit: '', value: after.asked - before.asked, limit: 0 },
    { phase, figure: 'probes of clusters', unit: '', value: requests(counters.workload) },
    { phase, figure: 'requests to the management cluster', unit: '', value: requests(counters.management) },
    { phase, figure: 'watches renewed', unit: '', value: counters.workload['watch'] ?? 0 },
    { phase, figure: 'tracked objects', unit: '', value: after.tracked },
    { phase, figure: 'resident memory', unit: 'MiB', value: after.memory / 1024 / 1024 },
  ];
}

function pollRows({ poll }: Results): Row[] {
  if (poll === undefined) return [];
  const phase = `the same comparison by asking every ${poll.intervalSeconds} s (for reference)`;
  const perTwoMinutes = REST_UNIT_SECONDS / Math.max(poll.intervalSeconds, poll.secondsPerRound);
  return [
    { phase, figure: 'requests each time', unit: '', value: poll.requestsPerRound },
    { phase, figure: 'time that it takes', unit: 's', value: poll.secondsPerRound },
    { phase, figure: 'CPU in 120 s', unit: 's', value: poll.cpuPerRound * perTwoMinutes },
    { phase, figure: 'requests in 120 s', unit: '', value: poll.requestsPerRound * perTwoMinutes },
    { phase, figure: 'half of all drift is noticed after', unit: 's', value: poll.intervalSeconds / 2 },
  ];
}

/** But the watches: a server ends each of them every five minutes, and each is asked for again. */
function requests(counts: Counters['workload']): number {
  return total(counts) - (counts['watch'] ?? 0);
}

function medianOf(corrections: readonly Correction[], edit: Edit): number {
  return quantile(
    corrections.filter((correction) => correction.edit === edit).map(({ ms }) => ms),
    0.5,
  );
}

/** The table as text. */
export function table(all: readonly Row[]): string {
  const lines: string[] = [];
  let phase = '';
  for (const row of all) {
    if (row.phase !== phase) lines.push('', row.phase);
    phase = row.phase;
    const good = isGood(row);
    const limit = row.limit === undefined ? '' : `≤ ${shown(row.limit, row.unit)}`;
    const verdict = good === undefined ? '' : good ? 'ok' : 'MISSED';
    lines.push(
      `  ${row.figure.padEnd(42)}${shown(row.value, row.unit).padStart(14)}${limit.padStart(14)}  ${verdict}`.trimEnd(),
    );
  }
  return lines.join('\n');
}

function shown(value: number, unit: string): string {
  const text = Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 2 : 0);
  return unit === '' ? text : `${text} ${unit}`;
}
