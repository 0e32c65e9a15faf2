import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { counter, gauge, histogram } from '../telemetry/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { HelmError } from './errors.ts';
import type { HelmProcessOptions } from './options.ts';
import { PrivateDirectories } from './process-directory.ts';
import { Launcher, bareEnvironment } from './process-launcher.ts';
import { watchMemory } from './process-memory.ts';
import { HeadAndTail, WholeOutput } from './process-output.ts';
import type { OutputSink } from './process-output.ts';
import { ProcessSlots } from './process-slots.ts';
import type { Pool } from './process-slots.ts';

type Files = Readonly<Record<string, string | Uint8Array>>;

/** One run of helm. */
export interface HelmRun {
  /** For metrics and logs: install, upgrade, template … */
  readonly operation: string;
  /** For metrics and logs; absent where no cluster is concerned. */
  readonly cluster?: string;
  readonly args: readonly string[];
  /**
   * Put into the private directory, which is the working directory: name them relatively. `KUBECONFIG_FILE` is what
   * KUBECONFIG names. A function is called when there is a slot, for what may have changed by then.
   */
  readonly files?: Files | (() => Files);
  /** Fed to standard input, which is closed otherwise. */
  readonly stdin?: string;
  /** Milliseconds that the process may run, not counting the wait for a slot. */
  readonly limitMs: number;
  /** Milliseconds from SIGTERM to SIGKILL; the options' when absent. 0 for a run that has nothing to tidy up. */
  readonly graceMs?: number;
  /** Bytes of memory beyond which the run is ended, as `killed`. */
  readonly memoryLimit?: number;
  /** 'short' when absent. */
  readonly pool?: Pool;
  /** Bytes of standard output that are kept whole, for when it is the result; beyond them the run is ended. Absent: its head and tail are kept. */
  readonly wholeOutput?: number;
  readonly signal: AbortSignal;
}

/** How a run ended. Output may hold values and Secret contents: it is for parsing, never for a log. */
export interface HelmExit {
  /**
   * `exited` by itself with `code`; `limit`: ended at `limitMs`; `aborted`: by the signal or by `close`; `overflow`: it
   * wrote more than `wholeOutput`; `killed`: for want of memory, by its `memoryLimit` or from outside.
   */
  readonly end: 'exited' | 'limit' | 'aborted' | 'overflow' | 'killed';
  /** -1 unless it exited. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Milliseconds that the process ran. */
  readonly tookMs: number;
}

/** What is kept of a stream that is only read for its error. */
const KEPT_BYTES = 64 * 1024;

/** A process that has exited is waited for this long while something that it started still holds its output open. Milliseconds. */
const LINGER_MS = 500;

/**
 * Runs helm processes, each in a private directory with a bare environment, and owns them: each has a limit, each is
 * ended with its process group when its signal aborts or `close` is called, and leaves nothing on disk.
 */
export class HelmProcesses {
  readonly #options: HelmProcessOptions;
  readonly #telemetry: Telemetry;
  readonly #directories: PrivateDirectories;
  readonly #launcher: Launcher;
  readonly #slots: ProcessSlots;
  readonly #live = new Set<Attempt>();
  readonly #metrics: ReturnType<typeof metricsOf>;
  readonly #runs = new Map<AbortController, Promise<HelmExit>>();
  readonly #operations = new Set<string>();
  #closed = false;

  constructor(options: HelmProcessOptions, telemetry: Telemetry) {
    this.#options = options;
    this.#telemetry = telemetry;
    this.#directories = new PrivateDirectories(options.workDir);
    this.#launcher = new Launcher(options);
    this.#slots = new ProcessSlots({ short: options.maxProcesses, wait: options.maxWaitingProcesses });
    this.#metrics = metricsOf(telemetry);
  }

  /** Processes running now. */
  get running(): number {
    return this.#live.size;
  }

  /** Forgets a cluster's series: for when it has left the fleet. */
  forget(cluster: string): void {
    for (const operation of this.#operations) {
      for (const result of RESULTS) this.#metrics.operations.remove({ cluster, operation, result });
    }
  }

  /**
   * Runs helm once. Resolves however the process ended; rejects with HelmMissing when it cannot be run, and with
   * Cancelled when the signal aborted or `close` was called before it started.
   */
  async run(run: HelmRun): Promise<HelmExit> {
    const stop = new AbortController();
    const onAbort = (): void => {
      stop.abort(run.signal.reason);
    };
    if (this.#closed) stop.abort(shuttingDown());
    else if (run.signal.aborted) onAbort();
    run.signal.addEventListener('abort', onAbort, { once: true });
    const finished = this.#measured(run, stop.signal);
    this.#runs.set(stop, finished);
    try {
      return await finished;
    } finally {
      this.#runs.delete(stop);
      run.signal.removeEventListener('abort', onAbort);
    }
  }

  async #measured(run: HelmRun, signal: AbortSignal): Promise<HelmExit> {
    try {
      const exit = await this.#slots.run(run.pool ?? 'short', signal, async () => this.#runInDirectory(run, signal));
      this.#count(run, resultOf(exit));
      this.#metrics.seconds.observe({ operation: run.operation }, exit.tookMs / 1000);
      this.#telemetry.log.debug('helm ended', { ...about(run), end: exit.end, code: exit.code, tookMs: exit.tookMs });
      return exit;
    } catch (error) {
      this.#count(run, error instanceof HelmError && error.code === 'Cancelled' ? 'cancelled' : 'error');
      throw error;
    }
  }

  /** Ends all processes, those that do not heed SIGTERM after `graceMs` by SIGKILL, and waits for them. No run starts afterwards. */
  async close(graceMs: number = this.#options.graceMs): Promise<void> {
    this.#closed = true;
    const runs = [...this.#runs];
    for (const [stop] of runs) stop.abort(shuttingDown());
    for (const attempt of this.#live) attempt.end('aborted', graceMs);
    await Promise.allSettled(runs.map(async ([, finished]) => finished));
    await this.#directories.close();
  }

  async #runInDirectory(run: HelmRun, signal: AbortSignal): Promise<HelmExit> {
    const files = typeof run.files === 'function' ? run.files() : run.files;
    const directory = await this.#directories.make(files ?? {});
    try {
      const { file, args } = await this.#launcher.launch(run.args);
      // Between the slot and here the signal may have aborted.
      if (signal.aborted) throw cancelled(signal);
      const child = spawn(file, args, {
        cwd: directory,
        env: bareEnvironment(directory, this.#options),
        stdio: [run.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
        // A process group of its own, to be ended as a whole.
        detached: true,
      });
      return await this.#own(new Attempt(child, run, this.#options), run, signal);
    } finally {
      await this.#remove(directory, run);
    }
  }

  async #own(attempt: Attempt, run: HelmRun, signal: AbortSignal): Promise<HelmExit> {
    const pool = run.pool ?? 'short';
    const onAbort = (): void => {
      attempt.end('aborted', run.graceMs ?? this.#options.graceMs);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    this.#live.add(attempt);
    this.#metrics.processes.inc({ pool });
    try {
      return await attempt.finished;
    } finally {
      this.#metrics.processes.dec({ pool });
      this.#live.delete(attempt);
      signal.removeEventListener('abort', onAbort);
    }
  }

  async #remove(directory: string, run: HelmRun): Promise<void> {
    try {
      await this.#directories.remove(directory);
    } catch (error) {
      this.#telemetry.log.warn('cannot remove the private directory of a helm process', { ...about(run), err: error });
    }
  }

  #count(run: HelmRun, result: OperationResult): void {
    this.#operations.add(run.operation);
    this.#metrics.operations.inc({ cluster: run.cluster ?? '', operation: run.operation, result });
  }
}

type End = HelmExit['end'];

/** One child process from its start to the end of its output. */
class Attempt {
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

function cancelled(signal: AbortSignal): HelmError {
  return new HelmError('Cancelled', 'the operation was cancelled before helm started', { cause: signal.reason });
}

function shuttingDown(): HelmError {
  return new HelmError('Cancelled', 'Capstan is shutting down');
}

function cannotRun(helmPath: string, error: NodeJS.ErrnoException): HelmError {
  if (error.code === 'ENOENT' || error.code === 'EACCES') {
    return new HelmError('HelmMissing', `cannot run helm at ${helmPath}: ${error.code}. Install Helm 3.17 or newer`, {
      cause: error,
    });
  }
  return new HelmError('Failed', `cannot start helm: ${error.message}`, { cause: error });
}

const RESULTS = ['success', 'error', 'timeout', 'cancelled'] as const;
type OperationResult = (typeof RESULTS)[number];

function resultOf(exit: HelmExit): OperationResult {
  if (exit.end === 'limit') return 'timeout';
  if (exit.end === 'aborted') return 'cancelled';
  return exit.code === 0 ? 'success' : 'error';
}

function about(run: HelmRun): Record<string, unknown> {
  return { operation: run.operation, ...(run.cluster === undefined ? {} : { cluster: run.cluster }) };
}

/** Bucket bounds in seconds: a template takes 0.05, an install 0.3, one that waits up to its timeout. */
const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600];

function metricsOf(telemetry: Telemetry) {
  const { metrics } = telemetry;
  return {
    operations: counter(
      metrics,
      'capstan_helm_operations_total',
      'Helm processes ended, by what they did and how it went',
      ['cluster', 'operation', 'result'],
    ),
    processes: gauge(metrics, 'capstan_helm_processes', 'Helm processes running', ['pool']),
    seconds: histogram(
      metrics,
      'capstan_helm_operation_seconds',
      'Time that helm processes ran',
      ['operation'],
      SECONDS,
    ),
  };
}
