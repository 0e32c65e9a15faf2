import { spawn } from 'node:child_process';

/** One run of a command-line program. `timeoutMs` defaults to two minutes. */
export interface CommandOptions {
  stdin?: string;
  env?: Record<string, string>;
  cwd?: string;
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** A program that ended with an error; `stdout` and `stderr` are what it said until then. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;

  constructor(what: string, outcome: { code: number | null; stdout: string; stderr: string }) {
    super(`${what} (${outcome.code ?? 'killed'}): ${outcome.stderr.trim() || outcome.stdout.trim()}`);
    this.code = outcome.code;
    this.stdout = outcome.stdout;
    this.stderr = outcome.stderr;
  }
}

/**
 * Runs a program to its end in a bare environment (PATH and what `env` adds) and resolves with its standard output.
 * @throws CommandError when it fails, is aborted or takes too long.
 */
export async function runProgram(command: string, args: string[], options: CommandOptions = {}): Promise<string> {
  const limit = AbortSignal.timeout(options.timeoutMs ?? 120_000);
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { PATH: process.env.PATH, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    signal: options.signal ? AbortSignal.any([options.signal, limit]) : limit,
    killSignal: 'SIGKILL',
  });
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
  // A program that ends before it has read its input closes the pipe; its exit code says why.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.stdin ?? '');
  const failure = await new Promise<Error | number | null>((resolve) => {
    child.once('error', resolve);
    child.once('close', resolve);
  });
  const outcome = { stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() };
  if (failure === 0) return outcome.stdout;
  const what = `${command} ${args.join(' ')}`;
  if (!(failure instanceof Error)) throw new CommandError(what, { ...outcome, code: failure });
  const reason = limit.aborted ? `${what}: over its time limit` : `${what}: ${failure.message}`;
  throw new CommandError(reason, { ...outcome, code: null });
}
