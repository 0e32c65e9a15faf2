/**
 * `npm run bench`: what a rollout costs. 5 charts of 26 objects onto 8 clusters: install, a change of values, two
 * minutes of rest, delete; beside what CAAPH was measured to cost and what helm alone costs on this machine.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Bench } from '../run.ts';
import { count, runBench, say } from '../run.ts';
import { Bed } from './bed.ts';
import { helmByHand } from './helm-by-hand.ts';
import { REFERENCE_RELEASES } from './limits.ts';
import { cpuTimes } from './process-tree.ts';
import { profileSummary } from './profile.ts';
import type { Results } from './report.ts';
import { isGood, rows, table, whereTimeGoes } from './report.ts';

const USAGE = `npm run bench -- [flags]

  --clusters N    workload clusters (default 8)
  --charts N      charts, each on every cluster (default 5)
  --rest SECONDS  how long nothing is done (default 120)
  --json FILE     write every figure there
  --check         exit code 1 when a limit is missed
  --profile DIR   let Node profile the controller, and say where its time went; the profile costs time itself
  --sync-period D the manager's resync (default 60s, as CAAPH was measured)
  --node-options  NODE_OPTIONS for the manager, to try what they do
  --traces        with tracing on: the manager sends every span to a collector of this bench
  --sources       run the manager from src/, not what npm ci built`;

interface Options {
  clusters: number;
  charts: number;
  rest: number;
  json?: string;
  check: boolean;
  profile?: string;
  syncPeriod: string;
  nodeOptions?: string;
  fromSources: boolean;
  traces: boolean;
}

/** After the rollouts, before the rest is measured (ms): what is still under way ends. */
const SETTLE_MS = 10_000;

async function main(args: string[], env: NodeJS.ProcessEnv): Promise<number> {
  const bench: Bench<Options, Bed, Results> = {
    usage: USAGE,
    read: () => readOptions(args, env['INIT_CWD'] ?? process.cwd()),
    setUp: async (options, signal) => {
      if (options.profile !== undefined) await mkdir(options.profile, { recursive: true });
      say(`starting ${options.clusters + 1} API servers`);
      return Bed.setUp({ ...options, signal });
    },
    measure,
    report: async (results, options, bed) => {
      const { requests, bytes } = bed.traces;
      if (options.traces) say(`\ntraces: ${requests} requests, ${(bytes / 1024).toFixed(0)} KiB`);
      return report(results, options);
    },
  };
  return runBench(bench, env);
}

async function measure(bed: Bed, options: Options, signal: AbortSignal): Promise<Results> {
  say('helm by hand: what the same operations cost without a manager');
  const byHand = await helmByHand(bed);
  const helm = (await bed.fleet.cluster(1).helm(['version', '--template', '{{.Version}}'])).trim();
  const started = performance.now();
  await bed.startManager();
  const { pid } = bed.fleet.manager;
  const used = await cpuTimes(pid);
  const start = { wall: (performance.now() - started) / 1000, cpu: used.own + used.children };
  say(
    `the manager has engaged ${options.clusters} clusters after ${start.wall.toFixed(1)} s, ${start.cpu.toFixed(1)} CPU-s`,
  );
  say(`install: ${bed.releases} releases`);
  const install = await bed.roll('first', 1);
  say(`change of values: ${bed.releases} upgrades (install took ${install.wall.toFixed(1)} s)`);
  const change = await bed.roll('second', 2);
  say(`rest: ${options.rest} s (the change took ${change.wall.toFixed(1)} s)`);
  await sleep(SETTLE_MS, undefined, { signal });
  const rest = await bed.rest(options.rest);
  say(`delete: ${bed.releases} releases`);
  const removed = await bed.remove();
  const { clusters, charts } = options;
  return { clusters, charts, restSeconds: options.rest, helm, byHand, start, install, change, rest, delete: removed };
}

async function report(results: Results, options: Options): Promise<number> {
  const all = rows(results);
  const releases = results.clusters * results.charts;
  const scaled =
    releases === REFERENCE_RELEASES ? '' : `; limits and CAAPH's figures are for ${REFERENCE_RELEASES} and scaled`;
  say(
    `\n${results.charts} charts of 26 objects on ${results.clusters} clusters: ${releases} releases, helm ${results.helm}${scaled}\n`,
  );
  say(table(all));
  say(`\nWhere the time goes\n\n${whereTimeGoes(results)}`);
  if (options.profile !== undefined) {
    const { install, change, rest, delete: removed } = results;
    const spans = { install: install.span, change: change.span, rest: rest.span, delete: removed.span };
    say(`\n${await profileSummary(options.profile, spans)}`);
  }
  const judged = all.map((row) => ({ ...row, good: isGood(row) }));
  if (options.json !== undefined) {
    await writeFile(options.json, `${JSON.stringify({ rows: judged, results }, null, 2)}\n`);
    say(`\nwritten: ${options.json}`);
  }
  const missed = judged.filter(({ good }) => good === false);
  const limits = judged.filter(({ good }) => good !== undefined).length;
  say(`\n${limits - missed.length} of ${limits} limits are kept`);
  return options.check && missed.length > 0 ? 1 : 0;
}

function readOptions(args: string[], workingDirectory: string): Options | undefined {
  const { values } = parseArgs({
    args,
    options: {
      clusters: { type: 'string', default: '8' },
      charts: { type: 'string', default: '5' },
      rest: { type: 'string', default: '120' },
      json: { type: 'string' },
      check: { type: 'boolean', default: false },
      profile: { type: 'string' },
      'sync-period': { type: 'string', default: '60s' },
      'node-options': { type: 'string' },
      sources: { type: 'boolean', default: false },
      traces: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  return {
    clusters: count('clusters', values.clusters, 1),
    charts: count('charts', values.charts, 1),
    rest: count('rest', values.rest, 0),
    json: values.json && resolve(workingDirectory, values.json),
    check: values.check,
    profile: values.profile && resolve(workingDirectory, values.profile),
    syncPeriod: values['sync-period'],
    nodeOptions: values['node-options'],
    fromSources: values.sources,
    traces: values.traces,
  };
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2), process.env);
