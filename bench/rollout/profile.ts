import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** V8's CPU profile, as far as it is read here (Chrome DevTools protocol, Profiler.Profile). */
interface Profile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  /** µs on the monotonic clock. */
  startTime: number;
  samples: number[];
  timeDeltas: number[];
}

const SHOWN = 15;
/** Not the controller's doing. */
const IDLE = new Set(['(idle)', '(root)']);

/** A phase by name, with its begin and end (µs) on the clock that the profile uses. */
export type Spans = Record<string, { from: number; to: number }>;

/** The functions in which the controller's own time went in each phase, from the profile that Node left in the folder. */
export async function profileSummary(directory: string, spans: Spans): Promise<string> {
  const file = (await readdir(directory)).find((name) => name.endsWith('.cpuprofile'));
  if (file === undefined) return `no profile was written to ${directory}`;
  const profile = JSON.parse(await readFile(join(directory, file), 'utf8')) as Profile;
  const phases = Object.entries(spans).map(([phase, span]) => `${phase}\n${summary(spentIn(profile, span))}`);
  return [`The controller's own time by function (${join(directory, file)})`, ...phases].join('\n\n');
}

/** Microseconds by function between two moments. */
function spentIn(profile: Profile, { from, to }: Spans[string]): Map<string, number> {
  const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const spent = new Map<string, number>();
  let at = profile.startTime;
  for (const [index, sample] of profile.samples.entries()) {
    const time = profile.timeDeltas[index] ?? 0;
    at += time;
    const name = names.get(sample) ?? '?';
    if (at >= from && at <= to && !IDLE.has(name)) spent.set(name, (spent.get(name) ?? 0) + time);
  }
  return spent;
}

function summary(spent: Map<string, number>): string {
  const all = [...spent.values()].reduce((sum, time) => sum + time, 0);
  const top = [...spent].sort(([, a], [, b]) => b - a).slice(0, SHOWN);
  const lines = top.map(([name, time]) => {
    const share = ((100 * time) / all).toFixed(1).padStart(6);
    return `${share} %  ${(time / 1000).toFixed(0).padStart(5)} ms  ${name}`;
  });
  return [`  ${(all / 1e6).toFixed(2)} s not idle`, ...lines].join('\n');
}

function nameOf({ functionName, url, lineNumber }: Profile['nodes'][number]['callFrame']): string {
  if (url === '') return functionName || '(anonymous)';
  const place = url.replace(/^.*\/(node_modules|dist|src)\//, '$1/');
  return `${functionName || '(anonymous)'} ${place}:${lineNumber + 1}`;
}
