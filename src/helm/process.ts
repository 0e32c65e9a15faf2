import { spawn } from 'node:child_process';
import { CLUSTER_ATTRIBUTE, counter, gauge, histogram, inClientSpan } from '../telemetry/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { HelmError } from './errors.ts';
import type { HelmProcessOptions } from './options.ts';
import { Attempt } from './process-attempt.ts';
import { PrivateDirectories } from './process-directory.ts';
import { Launcher, bareEnvironment } from './process-launcher.ts';
import type { HelmExit, HelmRun } from './process-run.ts';
import { ProcessSlots } from './process-slots.ts';

export type { HelmExit, HelmRun } from './process-run.ts';

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
      const exit = await this.#slots.run(run.pool ?? 'short', signal, async () => this.#traced(run, signal));
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

  /** The process alone, without the wait for a slot (semantic conventions, "CLI programs"). Neither arguments nor output: values are in them. */
  async #traced(run: HelmRun, signal: AbortSignal): Promise<HelmExit> {
    const attributes = {
      ...(run.cluster === undefined ? {} : { [CLUSTER_ATTRIBUTE]: run.cluster }),
      'process.executable.name': 'helm',
      'capstan.helm.operation': run.operation,
    };
    return inClientSpan(this.#telemetry.tracer, 'helm process', attributes, async (span) => {
      const exit = await this.#runInDirectory(run, signal);
      span.setAttribute('capstan.helm.end', exit.end);
      if (typeof exit.code === 'number') span.setAttribute('process.exit.code', exit.code);
      return exit;
    });
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

function cancelled(signal: AbortSignal): HelmError {
  return new HelmError('Cancelled', 'the operation was cancelled before helm started', { cause: signal.reason });
}

function shuttingDown(): HelmError {
  return new HelmError('Cancelled', 'Capstan is shutting down');
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
