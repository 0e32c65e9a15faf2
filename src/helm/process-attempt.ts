import type { ChildProcess } from 'node:child_process';
import { HelmError } from './errors.ts';
import type { HelmProcessOptions } from './options.ts';
import { watchMemory } from './process-memory.ts';
import { HeadAndTail, WholeOutput } from './process-output.ts';
import type { OutputSink } from './process-output.ts';
import type { HelmExit, HelmRun } from './process-run.ts';

/** What is kept of a stream that is only read for its error. */
const KEPT_BYTES = 64 * 1024;

/** A process that has exited is waited for this long while something that it started still holds its output open. Milliseconds. */
const LINGER_MS = 500;

type End = HelmExit['end'];

/** One child process from its start to the end of its output. */
export class Attempt {
  readonly finished: Promise<HelmExit>;
  readonly #child: ChildProcess;
  readonly #stdout: OutputSink;
  readonly #stderr = new HeadAndTail(KEPT_BYTES);
  readonly #graceMs: number;
  #why: End | undefined;
  #kill: NodeJS.Timeout | undefined;

  constructor(child: ChildProcess, run: HelmRun, options: HelmProcessOptions) {
    this.#child = child;
    this.#graceMs = run.graceMs ?? options.graceMs;
    this.#stdout = run.wholeOutput === undefined ? new HeadAndTail(KEPT_BYTES) : new WholeOutput(run.wholeOutput);
    const limit = setTimeout(() => {
      this.end('limit', this.#graceMs);
    }, run.limitMs);
    const unwatch = this.#watchMemory(run.memoryLimit);
    this.finished = this.#watch(options.helmPath, performance.now()).finally(() => {
      clearTimeout(limit);
      unwatch();
      clearTimeout(this.#kill);
    });
    this.#feed(run.stdin);
  }

  /** SIGTERM to the whole group, SIGKILL when that has not ended it within `graceMs`. The first reason stays. */
  end(why: End, graceMs: number): void {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#why ??= why;
    this.#signalGroup('SIGTERM');
    clearTimeout(this.#kill);
    this.#kill = setTimeout(() => {
      this.#signalGroup('SIGKILL');
    }, graceMs);
  }

  async #watch(helmPath: string, started: number): Promise<HelmExit> {
    const child = this.#child;
    child.stdout?.on('data', (chunk: Buffer) => {
      this.#stdout.push(chunk);
      if (this.#stdout.overflowed) this.end('overflow', 0);
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#stderr.push(chunk);
    });
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', (error) => {
        reject(cannotRun(helmPath, error));
      });
      child.once('exit', () => {
        this.#releaseOutput();
      });
      child.once('close', (status) => {
        resolve(status);
      });
    });
    return this.#exit(code, performance.now() - started);
  }

  #exit(code: number | null, tookMs: number): HelmExit {
    const output = { stdout: this.#stdout.text(), stderr: this.#stderr.text(), tookMs: Math.round(tookMs) };
    // What was done in time is done, even when it was asked to stop.
    if (code === 0 && !this.#stdout.overflowed) return { end: 'exited', code, ...output };
    if (this.#why !== undefined) return { end: this.#why, code: -1, ...output };
    return code === null ? { end: 'killed', code: -1, ...output } : { end: 'exited', code, ...output };
  }

  /** What helm started may outlive it and hold its output open: it goes with it. The group cannot be another's while a member lives. */
  #releaseOutput(): void {
    const linger = setTimeout(() => {
      this.#signalGroup('SIGKILL');
      this.#child.stdout?.destroy();
      this.#child.stderr?.destroy();
    }, LINGER_MS);
    this.#child.once('close', () => {
      clearTimeout(linger);
    });
  }

  #watchMemory(limit: number | undefined): () => void {
    const { pid } = this.#child;
    if (pid === undefined || limit === undefined) return () => undefined;
    return watchMemory(pid, limit, () => {
      this.end('killed', 0);
    });
  }

  #feed(stdin: string | undefined): void {
    const stream = this.#child.stdin;
    if (stream === null) return;
    // A process that ends before it has read everything says why on stderr; the broken pipe itself is no news.
    stream.on('error', () => undefined);
    stream.end(stdin);
  }

  #signalGroup(signal: NodeJS.Signals): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, signal);
    } catch {
      // The group is gone: that is what was wanted.
    }
  }
}

function cannotRun(helmPath: string, error: NodeJS.ErrnoException): HelmError {
  if (error.code === 'ENOENT' || error.code === 'EACCES') {
    return new HelmError('HelmMissing', `cannot run helm at ${helmPath}: ${error.code}. Install Helm 3.17 or newer`, {
      cause: error,
    });
  }
  return new HelmError('Failed', `cannot start helm: ${error.message}`, { cause: error });
}
