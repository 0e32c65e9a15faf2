import { readFile } from 'node:fs/promises';

/** How often a process's memory is looked at, milliseconds: Go can take a few gigabytes in a second. */
const INTERVAL_MS = 25;

/**
 * Calls `exceeded` once when a process holds more than `limit` bytes of memory (VmRSS, proc(5)). Returns the end of the
 * watch. A look instead of a limit of the kernel's: a limit on address space (RLIMIT_AS) says little about a program in
 * Go, which reserves more than it uses. Where the system keeps no /proc, nothing is seen.
 */
export function watchMemory(pid: number, limit: number, exceeded: () => void): () => void {
  let ended = false;
  let looking = false;
  const look = async (): Promise<void> => {
    const resident = await residentBytes(pid);
    if (!ended && resident !== undefined && resident > limit) {
      stop();
      exceeded();
    }
  };
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    look().then(
      () => (looking = false),
      () => (looking = false),
    );
  }, INTERVAL_MS);
  const stop = (): void => {
    ended = true;
    clearInterval(timer);
  };
  return stop;
}

async function residentBytes(pid: number): Promise<number | undefined> {
  try {
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'));
    return match === null ? undefined : Number(match[1]) * 1024;
  } catch {
    return undefined;
  }
}
