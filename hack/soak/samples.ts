import { readFile, stat } from 'node:fs/promises';
import { residentBytes } from '../../bench/rollout/process-tree.ts';
import type { Manager, MetricSample } from '../../test/support/index.ts';
import { eventually } from '../../test/support/index.ts';

/** The manager at one moment, after a garbage collection. */
export interface Sample {
  /** Minutes since the start. */
  readonly minute: number;
  readonly heapMiB: number;
  readonly residentMiB: number;
  readonly sockets: number;
  readonly timers: number;
  /** Processes below the manager: helm. */
  readonly children: number;
  readonly openFiles: number;
  readonly watches: number;
  readonly clusters: number;
  /** Lines of /metrics: those of workload clusters, and all others. */
  readonly clusterSeries: number;
  readonly commonSeries: number;
}

interface Probe {
  readonly heapUsed: number;
  readonly resources: Readonly<Record<string, number>>;
}

const MIB = 1024 ** 2;

export async function sample(manager: Manager, probeFile: string, startedAt: number): Promise<Sample> {
  const { heapUsed, resources } = await probe(manager.pid, probeFile);
  const resident = await residentBytes(manager.pid);
  const metrics = await manager.metrics();
  const sum = (name: string): number =>
    metrics.filter((one) => one.name === name).reduce((total, { value }) => total + value, 0);
  return {
    minute: round((performance.now() - startedAt) / 60_000),
    heapMiB: round(heapUsed / MIB),
    residentMiB: round(resident.own / MIB),
    sockets: (resources['TCPSocketWrap'] ?? 0) + (resources['TLSWrap'] ?? 0),
    timers: resources['Timeout'] ?? 0,
    children: resident.processes - 1,
    openFiles: sum('process_open_fds'),
    watches: sum('capstan_watches'),
    clusters: sum('capstan_clusters'),
    clusterSeries: metrics.filter(isOfCluster).length,
    commonSeries: metrics.filter((one) => !isOfCluster(one)).length,
  };
}

function isOfCluster({ labels }: MetricSample): boolean {
  return labels['cluster']?.includes('/') === true;
}

/** Asks the probe in the manager, and waits for its answer. */
async function probe(pid: number, file: string): Promise<Probe> {
  const before = await modified(file);
  process.kill(pid, 'SIGUSR2');
  return eventually(
    async () => {
      if ((await modified(file)) === before) throw new Error('no answer yet');
      return JSON.parse(await readFile(file, 'utf8')) as Probe;
    },
    { what: 'the probe in the manager answers', intervalMs: 20 },
  );
}

async function modified(file: string): Promise<number> {
  return stat(file).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** The median slope of all pairs (Theil and Sen), per hour: single peaks do not bend it. */
export function slopePerHour(samples: readonly Sample[], field: 'heapMiB' | 'commonSeries'): number {
  const slopes = samples.flatMap((a, i) =>
    samples.slice(i + 1).map((b) => ((b[field] - a[field]) / (b.minute - a.minute)) * 60),
  );
  slopes.sort((a, b) => a - b);
  return round(slopes[Math.floor(slopes.length / 2)] ?? 0);
}
