import { spawn } from 'node:child_process';
import { BinariesError } from './errors.ts';

/** Lines of a failed command's output that are shown; enough for a compiler's or apt's message. */
const SHOWN_LINES = 25;

/** One run of a command: where, with what, how long at most (ms). */
export interface CommandOptions {
  cwd: string;
  env: NodeJS.ProcessEnv;
  limitMs: number;
  signal: AbortSignal;
}

/** Runs a command to its end; rejects with the end of its output. Ended by SIGTERM on abort and at the limit. */
export async function runCommand(command: string, args: string[], options: CommandOptions): Promise<void> {
  const limit = AbortSignal.timeout(options.limitMs);
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env,
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: AbortSignal.any([options.signal, limit]),
  });
  let output = '';
  const keep = (chunk: Buffer) => (output = (output + chunk.toString()).slice(-64 * 1024));
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const code = await new Promise<number | string>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status, killedBy) => {
      resolve(status ?? killedBy ?? 'unknown');
    });
  }).catch((error: unknown) => {
    options.signal.throwIfAborted();
    const reason = limit.aborted ? `did not end within ${options.limitMs / 60_000} min` : String(error);
    throw new BinariesError(`${command} ${args.join(' ')}: ${reason}`, { cause: error });
  });
  if (code === 0) return;
  const tail = output.trimEnd().split('\n').slice(-SHOWN_LINES).join('\n');
  throw new BinariesError(`${command} ${args.join(' ')} failed (${code}):\n${tail}`);
}
