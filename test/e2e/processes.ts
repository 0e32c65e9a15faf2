import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, runProgram } from '../support/index.ts';

interface Row {
  pid: number;
  parent: number;
  state: string;
  command: string;
}

/** The pids of helm processes that a manager runs now, those of short reads included. */
export async function helmProcesses(managerPid: number, helm: string): Promise<number[]> {
  const all = await rows();
  return all.filter((row) => row.parent === managerPid && row.command.startsWith(`${helm} `)).map((row) => row.pid);
}

/** Waits until a manager's helm is at work on `operation` (install, upgrade …); resolves with its pid. */
export async function helmAtWork(managerPid: number, helm: string, operation: string): Promise<number> {
  return eventually(
    async () => {
      const found = (await rows()).find(
        (row) => row.parent === managerPid && row.command.startsWith(`${helm} ${operation} `),
      );
      if (!found) throw new Error('no such process');
      return found.pid;
    },
    { timeoutMs: 60_000, what: `helm ${operation} runs` },
  );
}

/** Waits until none of the processes is left. A zombie is gone: it does nothing and holds nothing. */
export async function allGone(pids: readonly number[], timeoutMs = 30_000): Promise<void> {
  await eventually(
    async () => {
      const left = (await rows()).filter((row) => pids.includes(row.pid) && !row.state.startsWith('Z'));
      if (left.length > 0) throw new Error(`still running: ${left.map((row) => row.command).join('; ')}`);
    },
    { timeoutMs, what: `processes ${pids.join(', ')} are gone` },
  );
}

/** Waits for a process that is to end by itself; rejects when it does not within the limit. */
export async function ended(signal: AbortSignal, limitMs: number): Promise<string> {
  if (!signal.aborted) await sleep(limitMs, undefined, { signal }).catch(() => undefined);
  if (!signal.aborted) throw new Error(`the process still runs after ${limitMs} ms`);
  return signal.reason instanceof Error ? signal.reason.message : String(signal.reason);
}

async function rows(): Promise<Row[]> {
  const text = await runProgram('ps', ['-eo', 'pid=,ppid=,stat=,args=', '-ww']);
  return text.split('\n').flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line);
    const [, pid, parent, state = '', command = ''] = match ?? [];
    return match ? [{ pid: Number(pid), parent: Number(parent), state, command }] : [];
  });
}
