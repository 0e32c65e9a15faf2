import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onPath } from '../../hack/binaries/cache.ts';
import type { EventuallyOptions } from './wait.ts';
import { eventually } from './wait.ts';

/** A program to run. Its output goes to `<directory>/<name>.log`. */
export interface ProcessOptions {
  name: string;
  command: string;
  args: string[];
  directory: string;
  env?: Record<string, string>;
}

/** Time (ms) that a program gets between SIGTERM and SIGKILL. */
const GRACE_MS = 5_000;
/** Time (ms) in which the kernel reaps a killed program, on a machine that is busy. */
const REAP_MS = 10_000;
const TAIL_BYTES = 4_000;

/** One child process. It ends when its owner says so, and at the latest when this process ends. */
export class OwnedProcess {
  readonly name: string;
  readonly logFile: string;
  readonly #child: ChildProcess;
  readonly #ended = new AbortController();

  constructor(child: ChildProcess, name: string, logFile: string) {
    this.#child = child;
    this.name = name;
    this.logFile = logFile;
    child.once('error', (error) => {
      this.#ended.abort(error);
    });
    child.once('exit', (code, killedBy) => {
      this.#ended.abort(new Error(`${name} ended (${code ?? killedBy ?? 'unknown'}):\n${this.logTail()}`));
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get running(): boolean {
    return !this.#ended.signal.aborted;
  }

  /** Aborted when the process has ended; the reason is an error with the end of its log. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  logTail(): string {
    try {
      return readFileSync(this.logFile, 'utf8').slice(-TAIL_BYTES).trimEnd();
    } catch {
      return '(no log)';
    }
  }

  /** Calls `check` until it does not throw; fails at once, with the log, when the process ends. */
  async ready(check: (signal: AbortSignal) => Promise<void>, options: EventuallyOptions = {}): Promise<void> {
    const signal = options.signal ? AbortSignal.any([options.signal, this.ended]) : this.ended;
    await eventually(check, { timeoutMs: 90_000, intervalMs: 50, what: `${this.name} is ready`, ...options, signal });
  }

  /** Freezes the process: its sockets stay open and nothing answers. */
  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /** Ends the process and resolves when it is gone. `kill` leaves out the polite part. */
  async stop(how: 'terminate' | 'kill' = 'terminate'): Promise<void> {
    if (how === 'terminate' && this.running) {
      this.#child.kill('SIGTERM');
      this.#child.kill('SIGCONT'); // A frozen process hears SIGTERM only once it runs again.
      await this.#untilEnded(GRACE_MS);
    }
    if (this.running) this.killNow();
    await this.#untilEnded(REAP_MS);
    if (this.running) throw new Error(`${this.name} (pid ${this.pid ?? 'none'}) outlived SIGKILL`);
  }

  /** SIGKILL without waiting; for an exit handler, which cannot wait. */
  killNow(): void {
    this.#child.kill('SIGKILL');
  }

  async #untilEnded(limitMs: number): Promise<void> {
    if (!this.running) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.ended.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

/**
 * Owns child processes. On Linux the kernel kills them when this process dies, however it dies (PR_SET_PDEATHSIG
 * through setpriv of util-linux); elsewhere at least an orderly exit takes them along.
 */
export class Processes {
  readonly #all = new Set<OwnedProcess>();
  #closed = false;
  readonly #onExit = () => {
    for (const child of this.#all) child.killNow();
  };

  constructor() {
    process.on('exit', this.#onExit);
  }

  /** @throws Error after stopAll, so that nothing is born while the rest is being ended. */
  start(options: ProcessOptions): OwnedProcess {
    if (this.#closed) throw new Error(`${options.name}: its environment has been stopped`);
    const logFile = join(options.directory, `${options.name}.log`);
    const log = openSync(logFile, 'a');
    try {
      const [command, args] = tiedToParent(options.command, options.args);
      const env = { PATH: process.env.PATH, HOME: options.directory, TMPDIR: options.directory, ...options.env };
      // Own process group: Ctrl-C in a terminal reaches the owner, which then stops its children in order.
      const child = spawn(command, args, { cwd: options.directory, env, stdio: ['ignore', log, log], detached: true });
      const owned = new OwnedProcess(child, options.name, logFile);
      this.#all.add(owned);
      owned.ended.addEventListener('abort', () => this.#all.delete(owned));
      return owned;
    } finally {
      closeSync(log);
    }
  }

  get running(): OwnedProcess[] {
    return [...this.#all];
  }

  /** Ends everything at once and resolves when all of it is gone. */
  async stopAll(how: 'terminate' | 'kill' = 'terminate'): Promise<void> {
    this.#closed = true;
    const outcomes = await Promise.allSettled([...this.#all].map((child) => child.stop(how)));
    process.off('exit', this.#onExit);
    const failures = outcomes.filter((outcome) => outcome.status === 'rejected');
    if (failures.length > 0) throw new AggregateError(failures.map((failure) => failure.reason as unknown));
  }
}

function tiedToParent(command: string, args: string[]): [string, string[]] {
  if (process.platform !== 'linux' || !onPath('setpriv', process.env)) return [command, args];
  return ['setpriv', ['--pdeathsig', 'KILL', '--', command, ...args]];
}
