import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** V8's CPU profile, as far as it is read here (Chrome DevTools protocol, Profiler.Profile). */
interface Profile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  samples: number[];
  timeDeltas: number[];
}

const SHOWN = 25;
/** Not the controller's doing. */
const IDLE = new Set(['(idle)', '(root)']);

/** The functions in which the controller's own time went, from the profile that Node left in the folder. */
export async function profileSummary(directory: string): Promise<string> {
  const file = (await readdir(directory)).find((name) => name.endsWith('.cpuprofile'));
  if (file === undefined) return `no profile was written to ${directory}`;
  const profile = JSON.parse(await readFile(join(directory, file), 'utf8')) as Profile;
  const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const spent = new Map<string, number>();
  for (const [index, sample] of profile.samples.entries()) {
    const name = names.get(sample) ?? '?';
    if (!IDLE.has(name)) spent.set(name, (spent.get(name) ?? 0) + (profile.timeDeltas[index] ?? 0));
  }
  const all = [...spent.values()].reduce((sum, time) => sum + time, 0);
  const top = [...spent].sort(([, a], [, b]) => b - a).slice(0, SHOWN);
  const lines = top.map(
    ([name, time]) => `${((100 * time) / all).toFixed(1).padStart(6)} %  ${(time / 1e6).toFixed(2)} s  ${name}`,
  );
  return [`${(all / 1e6).toFixed(1)} s not idle, by function (${join(directory, file)})`, ...lines].join('\n');
}

function nameOf({ functionName, url, lineNumber }: Profile['nodes'][number]['callFrame']): string {
  if (url === '') return functionName || '(anonymous)';
  const place = url.replace(/^.*\/(node_modules|dist|src)\//, '$1/');
  return `${functionName || '(anonymous)'} ${place}:${lineNumber + 1}`;
}
