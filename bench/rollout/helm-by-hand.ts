import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bed } from './bed.ts';
import { cpuTimes } from './process-tree.ts';

/** What one run of helm costs, in seconds. */
export interface HandCost {
  wall: number;
  cpu: number;
}

/** The same operations, run by hand on the same clusters: what any manager that runs helm must pay at least. */
export interface ByHand {
  install: HandCost;
  upgrade: HandCost;
  uninstall: HandCost;
}

/** Runs of each; the first ones of a process' life are the slow ones, and the median leaves them out. */
const RUNS = 5;
const NAMESPACE = 'by-hand';

/** Installs, upgrades and uninstalls the bench's chart with helm alone, one after another, with the manager's own flags. */
export async function helmByHand(bed: Bed): Promise<ByHand> {
  const cluster = bed.fleet.cluster(1);
  const [chart] = bed.charts;
  if (!chart) throw new Error('the bench has no chart');
  const archive = join(bed.fleet.environment.directory, 'by-hand.tgz');
  await writeFile(archive, chart.archive);
  const costs: Record<keyof ByHand, HandCost[]> = { install: [], upgrade: [], uninstall: [] };
  for (let run = 1; run <= RUNS; run++) {
    const release = `by-hand-${run}`;
    const common = ['-n', NAMESPACE, '--disable-openapi-validation', '--set', `message=${run}`];
    costs.install.push(await cost(() => cluster.helm(['install', release, archive, '--create-namespace', ...common])));
    costs.upgrade.push(await cost(() => cluster.helm(['upgrade', release, archive, ...common])));
    costs.uninstall.push(await cost(() => cluster.helm(['uninstall', release, '-n', NAMESPACE])));
  }
  return { install: median(costs.install), upgrade: median(costs.upgrade), uninstall: median(costs.uninstall) };
}

/** CPU by what this process' ended children used meanwhile; nothing else of its children ends while the bench does this. */
async function cost(work: () => Promise<unknown>): Promise<HandCost> {
  const before = await cpuTimes(process.pid, 'ended');
  const started = performance.now();
  await work();
  const wall = (performance.now() - started) / 1000;
  return { wall, cpu: (await cpuTimes(process.pid, 'ended')).children - before.children };
}

function median(costs: HandCost[]): HandCost {
  const middle = (key: keyof HandCost) => costs.map((each) => each[key]).sort((a, b) => a - b)[costs.length >> 1] ?? 0;
  return { wall: middle('wall'), cpu: middle('cpu') };
}
