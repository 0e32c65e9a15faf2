/**
 * `npm run soak`: one manager, and clusters that come, go and fail for half an hour. What must be flat: heap, sockets,
 * timers, open files, processes, watches, metric series. What must be right in the end: every release and every object.
 */
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Bench } from '../../bench/run.ts';
import { count, runBench, say } from '../../bench/run.ts';
import { eventually, Fleet, INSTALLED, simpleChart } from '../../test/support/index.ts';
import { reviewLog } from './log-review.ts';
import type { LogReview } from './log-review.ts';
import { sample, slopePerHour } from './samples.ts';
import type { Sample } from './samples.ts';
import { Schedule } from './schedule.ts';
import { CHART, Site } from './sites.ts';

const USAGE = `npm run soak -- [flags]

  --minutes N   how long clusters come, go and fail (default 30)
  --sites N     Clusters that there may be (default 12)
  --servers N   real API servers behind them (default 3)
  --seed N      of what happens (default 1)
  --json FILE   write every sample and figure there
  --sources     run the manager from src/, not what npm ci built

Exit code 1 when something grows, is left behind, is not right in the end, or failed for no reason of the run's.`;

interface Options {
  minutes: number;
  sites: number;
  servers: number;
  seed: number;
  json?: string;
  fromSources: boolean;
}

interface Bed {
  fleet: Fleet;
  sites: Site[];
  probeFile: string;
  stop(): Promise<void>;
}

interface Results {
  samples: Sample[];
  /** Before the first Cluster, and after the last one has gone. */
  before: Sample;
  after: Sample;
  deeds: Record<string, number>;
  /** What was not right after the faults had ended; empty: everything was. */
  wrong: string;
  log: LogReview;
}

const SAMPLE_MS = 15_000;
/** A stalled connection is found out within two probes; then releases are brought up to date. Milliseconds. */
const RIGHT_LIMIT_MS = 300_000;
/** After the last Cluster has gone, sockets close and metrics are forgotten. Milliseconds. */
const SETTLE_MS = 20_000;
/** What noise on samples after a collection may look like, per hour. */
const LIMITS = { heapMiB: 12, commonSeries: 60 };
/** A shorter run is all warm-up: code is compiled and caches fill, and slopes say nothing. Minutes. */
const LEAST_MINUTES = 15;
/** Of what is left when everything has gone, beyond what was there before: keep-alive sockets to the management cluster and the repository, V8's own code caches. */
const LEFT = { heapMiB: 12, sockets: 4, timers: 6, openFiles: 8 };

async function setUp(options: Options, signal: AbortSignal): Promise<Bed> {
  const fleet = await Fleet.start({
    clusters: options.servers,
    declared: 0,
    manager: false,
    controllers: true,
    signal,
  });
  const probeFile = join(fleet.environment.directory, 'probe.json');
  fleet.charts.publish(simpleChart({ name: CHART, version: '1.0.0', objects: 5 }));
  await fleet.startManager({
    ...(options.fromSources ? {} : { command: INSTALLED }),
    flags: ['--sync-period=5m'],
    env: { NODE_OPTIONS: `--import=${join(import.meta.dirname, 'probe.ts')}`, SOAK_PROBE: probeFile },
  });
  const sites: Site[] = [];
  for (let index = 0; index < options.sites; index++) sites.push(await Site.prepare(fleet, index, options.servers));
  const stop = async (): Promise<void> => {
    await fleet.stop();
    for (const { relay } of sites) await relay.stop();
  };
  return { fleet, sites, probeFile, stop };
}

async function measure(bed: Bed, options: Options, signal: AbortSignal): Promise<Results> {
  const { fleet, sites, probeFile } = bed;
  const startedAt = performance.now();
  const take = async (): Promise<Sample> => sample(fleet.manager, probeFile, startedAt);
  await sleep(SETTLE_MS, undefined, { signal });
  const before = await take();
  const schedule = new Schedule(fleet, sites, options.seed);
  const samples = await soak(schedule, { minutes: options.minutes, take, signal });
  schedule.heal();
  say('the faults have ended; waiting for every release and object to be right');
  const wrong = await rightInTheEnd(sites, signal);
  for (const site of sites) if (site.declared) await site.go();
  await eventually(
    async () => {
      const left = await fleet.releaseProxies();
      if (left.length > 0) throw new Error(`${left.length} HelmReleaseProxies are left`);
    },
    { timeoutMs: RIGHT_LIMIT_MS, what: 'every HelmReleaseProxy goes with its Cluster', signal },
  );
  await sleep(SETTLE_MS, undefined, { signal });
  const after = await take();
  return { samples, before, after, deeds: schedule.counts, wrong, log: reviewLog(fleet.manager.log()) };
}

async function soak(
  schedule: Schedule,
  { minutes, take, signal }: { minutes: number; take: () => Promise<Sample>; signal: AbortSignal },
): Promise<Sample[]> {
  const over = AbortSignal.any([signal, AbortSignal.timeout(minutes * 60_000)]);
  const samples: Sample[] = [];
  const running = schedule.run(over);
  while (!over.aborted) {
    await sleep(SAMPLE_MS, undefined, { signal: over }).catch(() => undefined);
    samples.push(await take());
    if (samples.length % 4 === 0) say(line(samples.at(-1)!));
  }
  await running;
  signal.throwIfAborted();
  return samples;
}

async function rightInTheEnd(sites: readonly Site[], signal: AbortSignal): Promise<string> {
  try {
    for (const site of sites)
      await eventually(async () => site.expectRight(), { timeoutMs: RIGHT_LIMIT_MS, intervalMs: 500, signal });
    return '';
  } catch (error) {
    signal.throwIfAborted();
    return String(error);
  }
}

function line(one: Sample): string {
  return `${one.minute.toFixed(1).padStart(5)} min  ${Object.entries(one)
    .filter(([key]) => key !== 'minute')
    .map(([key, value]) => `${key} ${String(value)}`)
    .join('  ')}`;
}

async function report(results: Results, options: Options): Promise<number> {
  const { samples, before, after, deeds, wrong, log } = results;
  // The first third warms up: code is compiled, caches fill.
  const late = samples.slice(Math.floor(samples.length / 3));
  const slopes = { heapMiB: slopePerHour(late, 'heapMiB'), commonSeries: slopePerHour(late, 'commonSeries') };
  const faults = [
    ...(['heapMiB', 'commonSeries'] as const)
      .filter((field) => options.minutes >= LEAST_MINUTES && slopes[field] > LIMITS[field])
      .map((field) => `${field} grows by ${String(slopes[field])} per hour`),
    ...(['heapMiB', 'sockets', 'timers', 'openFiles'] as const)
      .filter((field) => after[field] > before[field] + LEFT[field])
      .map((field) => `${field}: ${String(before[field])} before, ${String(after[field])} after`),
    ...(['children', 'clusters', 'clusterSeries'] as const)
      .filter((field) => after[field] > 0)
      .map((field) => `${String(after[field])} ${field} are left`),
    ...(after.watches > before.watches ? [`${String(after.watches - before.watches)} watches are left`] : []),
    ...(wrong === '' ? [] : [wrong]),
    ...log.unexplained.map((row) => `unexplained: ${row}`),
  ];
  say(`\nbefore  ${line(before)}\nafter   ${line(after)}`);
  say(
    `slopes per hour, last two thirds: heap ${String(slopes.heapMiB)} MiB, metric series ${String(slopes.commonSeries)}`,
  );
  say(`what happened: ${JSON.stringify(deeds)}`);
  say(
    `warnings and errors of the manager:\n${Object.entries(log.counts)
      .map(([key, n]) => `  ${String(n)} × ${key}`)
      .join('\n')}`,
  );
  if (options.json !== undefined) await writeFile(options.json, JSON.stringify({ options, results, slopes }, null, 2));
  say(faults.length === 0 ? '\nflat, and right in the end' : `\nNOT as it should be:\n${faults.join('\n')}`);
  return faults.length === 0 ? 0 : 1;
}

function readOptions(args: string[], workingDirectory: string): Options | undefined {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string', default: '30' },
      sites: { type: 'string', default: '12' },
      servers: { type: 'string', default: '3' },
      seed: { type: 'string', default: '1' },
      json: { type: 'string' },
      sources: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  return {
    minutes: count('minutes', values.minutes, 1),
    sites: count('sites', values.sites, 1),
    servers: count('servers', values.servers, 1),
    seed: count('seed', values.seed, 0),
    json: values.json && resolve(workingDirectory, values.json),
    fromSources: values.sources,
  };
}

if (import.meta.main) {
  const bench: Bench<Options, Bed, Results> = {
    usage: USAGE,
    read: () => readOptions(process.argv.slice(2), process.env['INIT_CWD'] ?? process.cwd()),
    setUp,
    measure,
    report,
  };
  process.exitCode = await runBench(bench, process.env);
}
