import { mkdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BinariesError } from './errors.ts';

/** The holder touches its lock this often (ms); a heartbeat, since a pid means nothing in another container. */
const HEARTBEAT_MS = 2_000;
/** A lock untouched for this long (ms) belongs to a run that died. Ten heartbeats, for a machine that swaps. */
const STALE_MS = 20_000;
/** Longest wait for another run (ms): more than every build together takes on a slow machine. */
const PATIENCE_MS = 60 * 60_000;

/**
 * Runs `work` while no other run on this machine does the same. Two runs that both find a dead holder could slip in
 * together; that costs time and nothing else, since every program is put in place by one rename.
 */
export async function withLock<T>(
  file: string,
  options: { signal: AbortSignal; onWait: () => void },
  work: () => Promise<T>,
): Promise<T> {
  await mkdir(dirname(file), { recursive: true });
  await acquire(file, options);
  const heartbeat = setInterval(() => {
    const now = new Date();
    utimes(file, now, now).catch(() => undefined);
  }, HEARTBEAT_MS);
  try {
    return await work();
  } finally {
    clearInterval(heartbeat);
    await rm(file, { force: true });
  }
}

async function acquire(file: string, options: { signal: AbortSignal; onWait: () => void }): Promise<void> {
  const until = Date.now() + PATIENCE_MS;
  let told = false;
  while (!(await tryCreate(file))) {
    if (await isStale(file)) {
      await rm(file, { force: true });
      continue;
    }
    if (!told) options.onWait();
    told = true;
    if (Date.now() > until) throw new BinariesError(`another run has held ${file} for an hour; end it and try again`);
    await sleep(500, undefined, { signal: options.signal });
  }
}

async function tryCreate(file: string): Promise<boolean> {
  try {
    await writeFile(file, `${process.pid}\n`, { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function isStale(file: string): Promise<boolean> {
  try {
    return Date.now() - (await stat(file)).mtimeMs > STALE_MS;
  } catch {
    return false; // Gone in between: the next attempt will create it.
  }
}
