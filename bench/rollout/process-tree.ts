import { readFile, readdir, writeFile } from 'node:fs/promises';

/** CPU time in seconds: of a process itself, and of its children, those that have ended and those that live. */
export interface CpuTimes {
  own: number;
  children: number;
}

/** Linux tells times in these (USER_HZ, 100 on every architecture that Node runs on). */
const TICKS_PER_SECOND = 100;

/**
 * CPU that a process and all that it started have used so far. Children that have ended are in the parent's cutime and
 * cstime once it has waited for them (proc_pid_stat(5)), and take their own ended children along; `ended` counts only
 * those.
 */
export async function cpuTimes(pid: number, which: 'all' | 'ended' = 'all'): Promise<CpuTimes> {
  const self = await readStat(pid);
  if (!self) throw new Error(`process ${pid} is gone`);
  const living = which === 'ended' ? [] : await Promise.all((await descendants(pid)).map(readStat));
  const children = living.reduce((sum, stat) => sum + (stat ? stat.own + stat.reaped : 0), self.reaped);
  return { own: self.own / TICKS_PER_SECOND, children: children / TICKS_PER_SECOND };
}

/** Resident memory (bytes) of a process and of everything below it; pages that processes share count in each. */
export async function residentBytes(pid: number): Promise<{ own: number; tree: number; processes: number }> {
  const own = await status(pid, 'VmRSS');
  const below = await Promise.all((await descendants(pid)).map(async (child) => status(child, 'VmRSS')));
  return { own, tree: below.reduce((sum, bytes) => sum + bytes, own), processes: 1 + below.length };
}

/** The most memory (bytes) that the process had resident since its start, or since resetPeak. */
export async function peakBytes(pid: number): Promise<number> {
  return status(pid, 'VmHWM');
}

/** Lets VmHWM begin anew (proc_pid_clear_refs(5)); false where the kernel does not allow it. */
export async function resetPeak(pid: number): Promise<boolean> {
  return writeFile(`/proc/${pid}/clear_refs`, '5').then(
    () => true,
    () => false,
  );
}

async function descendants(pid: number): Promise<number[]> {
  const found: number[] = [];
  for (const queue = [pid]; queue.length > 0;) {
    const children = await childrenOf(queue.shift() ?? 0);
    found.push(...children);
    queue.push(...children);
  }
  return found;
}

/** Children hang on the thread that made them. A process or thread that has gone meanwhile has none. */
async function childrenOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(
    threads.map(async (thread) => readFile(`/proc/${pid}/task/${thread}/children`, 'utf8').catch(() => '')),
  );
  return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number));
}

/** In ticks; undefined when the process has gone. */
async function readStat(pid: number): Promise<{ own: number; reaped: number } | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  // The second field is the name in parentheses and may hold anything; the third follows the last parenthesis.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const field = (number: number) => Number(fields[number - 3]);
  return { own: field(14) + field(15), reaped: field(16) + field(17) };
}

/** A line of /proc/<pid>/status in bytes; 0 when the process has gone. */
async function status(pid: number, key: 'VmRSS' | 'VmHWM'): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024;
}
