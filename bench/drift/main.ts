/**
 * `npm run bench:drift`: how long drift lives, and what noticing it costs. 200 objects on each of 8 clusters; edits and
 * deletes by hand, events that are no drift, and rest; beside a detector that asks for every object again and again.
 */
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Bench } from '../run.ts';
import { count, runBench, say } from '../run.ts';
import { Bed } from './bed.ts';
import { annotateAll, editAll } from './edits.ts';
import { bytesPerObject } from './bytes-per-object.ts';
import { pollEverything } from './poll.ts';
import type { Results } from './report.ts';
import { isGood, rows, table } from './report.ts';

const USAGE = `npm run bench:drift -- [flags]

  --clusters N    workload clusters (default 8)
  --objects N     tracked objects on each of them (default 200)
  --charts N      releases that they belong to, on each (default 4)
  --edits N       edits and deletes by hand, one at a time on each cluster (default 400)
  --events N      changes that are no drift (default 500)
  --rest SECONDS  how long nothing is done (default 120)
  --poll SECONDS  the interval of the detector that asks for everything (default 30; 0: none)
  --json FILE     write every figure there
  --check         exit code 1 when a limit is missed
  --sources       run the manager from src/, not what npm ci built`;

interface Options {
  clusters: number;
  objects: number;
  charts: number;
  edits: number;
  events: number;
  rest: number;
  poll: number;
  json?: string;
  check: boolean;
  fromSources: boolean;
}

/** Between the phases (ms): what is still under way ends. */
const SETTLE_MS = 5_000;

async function main(args: string[], env: NodeJS.ProcessEnv): Promise<number> {
  const bench: Bench<Options, Bed, Results> = {
    usage: USAGE,
    read: () => readOptions(args, env['INIT_CWD'] ?? process.cwd()),
    setUp: async (options, signal) => {
      say(`starting ${options.clusters + 1} API servers and ${options.clusters * options.charts} releases`);
      return Bed.setUp({ ...options, mode: 'Correct', signal });
    },
    measure,
    report,
  };
  return runBench(bench, env);
}

async function measure(bed: Bed, options: Options, signal: AbortSignal): Promise<Results> {
  const pause = async (): Promise<void> => sleep(SETTLE_MS, undefined, { signal });
  const helm = (await bed.fleet.cluster(1).helm(['version', '--template', '{{.Version}}'])).trim();
  // What runs for the first time is compiled then: a controller that has run for a while is what is measured.
  await editAll(bed, 8 * options.clusters);
  await pause();
  say(`${options.edits} edits`);
  const before = await bed.reading();
  const corrections = await editAll(bed, options.edits);
  await pause();
  const after = await bed.reading();
  say(`${options.events} events that are no drift`);
  await annotateAll(bed, options.events);
  await pause();
  const quiet = await bed.reading();
  say(`rest: ${options.rest} s`);
  await pause();
  const resting = await bed.reading();
  await sleep(1000 * options.rest, undefined, { signal });
  const rested = await bed.reading();
  const { clusters, objects, events, rest: seconds } = options;
  return {
    clusters,
    objects,
    helm,
    corrections,
    correcting: { before, after },
    noise: { events, before: after, after: quiet },
    rest: { seconds, before: resting, after: rested },
    bytesPerObject: await bytesPerObject(),
    ...(options.poll > 0 && { poll: await pollEverything(bed, options.poll) }),
  };
}

async function report(results: Results, options: Options): Promise<number> {
  const all = rows(results);
  say(`\n${results.objects} objects on each of ${results.clusters} clusters, helm ${results.helm}\n${table(all)}`);
  const judged = all.map((row) => ({ ...row, good: isGood(row) }));
  if (options.json !== undefined) {
    await writeFile(options.json, `${JSON.stringify({ rows: judged, results }, null, 2)}\n`);
    say(`\nwritten: ${options.json}`);
  }
  const limits = judged.filter(({ good }) => good !== undefined);
  const missed = limits.filter(({ good }) => good === false);
  say(`\n${limits.length - missed.length} of ${limits.length} limits are kept`);
  return options.check && missed.length > 0 ? 1 : 0;
}

function readOptions(args: string[], workingDirectory: string): Options | undefined {
  const { values } = parseArgs({
    args,
    options: {
      clusters: { type: 'string', default: '8' },
      objects: { type: 'string', default: '200' },
      charts: { type: 'string', default: '4' },
      edits: { type: 'string', default: '400' },
      events: { type: 'string', default: '500' },
      rest: { type: 'string', default: '120' },
      poll: { type: 'string', default: '30' },
      json: { type: 'string' },
      check: { type: 'boolean', default: false },
      sources: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  return {
    clusters: count('clusters', values.clusters, 1),
    objects: count('objects', values.objects, 10),
    charts: count('charts', values.charts, 1),
    edits: count('edits', values.edits, 1),
    events: count('events', values.events, 1),
    rest: count('rest', values.rest, 0),
    poll: count('poll', values.poll, 0),
    json: values.json && resolve(workingDirectory, values.json),
    check: values.check,
    fromSources: values.sources,
  };
}

process.exitCode = await main(process.argv.slice(2), process.env);
