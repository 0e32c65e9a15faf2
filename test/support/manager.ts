import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from './environment.ts';
import type { OwnedProcess } from './process.ts';
import { eventually } from './wait.ts';

/** How the manager under test is started. */
export interface ManagerOptions {
  /** Path of the helm binary; the environment's helm 4 by default. */
  helm?: string;
  /** More flags. Default resync is an hour, so that a test which passes did not need one. */
  flags?: string[];
  /** Kubeconfig of the management cluster; its admin's by default. */
  kubeconfig?: string;
  /** Name of the log file and process. */
  name?: string;
  env?: Record<string, string>;
  /** What is run, before the argument `manager`. Default: the sources, on the project's Node. `INSTALLED` is the built one. */
  command?: readonly [string, ...string[]];
  /** Where the log file goes; the environment's directory by default. */
  directory?: string;
  /** Ends the wait for /readyz. */
  signal?: AbortSignal;
}

/** One line of /metrics. */
export interface MetricSample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const ROOT = join(import.meta.dirname, '../..');
const START_LIMIT_MS = 30_000;
const SOURCES = [join(ROOT, 'node_modules/node/bin/node'), join(ROOT, 'src/main.ts')] as const;
/** What `npm ci` builds, as a user runs it. */
export const INSTALLED = [join(ROOT, 'bin/capstan')] as const;

/** `capstan manager` as a process of its own, as in a user's Deployment. */
export class Manager {
  readonly #process: OwnedProcess;
  readonly #health: string;
  readonly #metrics: string;

  private constructor(parts: { process: OwnedProcess; health: string; metrics: string }) {
    this.#process = parts.process;
    this.#health = parts.health;
    this.#metrics = parts.metrics;
  }

  /** Starts and waits until /readyz says ok. Stopped with the environment at the latest. */
  static async start(environment: Environment, options: ManagerOptions = {}): Promise<Manager> {
    const [health, metrics] = [await environment.ports.take(), await environment.ports.take()];
    const [command, ...before] = options.command ?? SOURCES;
    const process = environment.processes.start({
      name: options.name ?? `manager-${String(health)}`,
      command,
      args: [
        ...before,
        'manager',
        `--kubeconfig=${options.kubeconfig ?? environment.management.adminKubeconfigPath}`,
        `--helm=${options.helm ?? environment.binaries.helm}`,
        `--health-addr=127.0.0.1:${String(health)}`,
        `--diagnostics-address=127.0.0.1:${String(metrics)}`,
        '--insecure-diagnostics',
        '--sync-period=1h',
        '--log-format=json',
        ...(options.flags ?? []),
      ],
      directory: options.directory ?? environment.directory,
      env: options.env,
    });
    const manager = new Manager({
      process,
      health: `http://127.0.0.1:${String(health)}`,
      metrics: `http://127.0.0.1:${String(metrics)}/metrics`,
    });
    await manager.ready(options.signal);
    return manager;
  }

  get pid(): number {
    if (this.#process.pid === undefined) throw new Error('the manager has no process');
    return this.#process.pid;
  }

  get running(): boolean {
    return this.#process.running;
  }

  /** Aborted when the process has ended; the reason is an error with the end of its log. */
  get ended(): AbortSignal {
    return this.#process.ended;
  }

  get logFile(): string {
    return this.#process.logFile;
  }

  async ready(signal?: AbortSignal): Promise<void> {
    await eventually(
      async (limited) => {
        if (!this.running) return;
        const answer = await fetch(`${this.#health}/readyz`, { signal: limited });
        if (!answer.ok) throw new Error(await answer.text());
      },
      { timeoutMs: START_LIMIT_MS, what: 'the manager is ready', signal },
    );
    if (!this.running) throw new Error(`the manager ended:\n${this.#process.logTail()}`);
  }

  /** The log so far: one JSON object per line. */
  log(): string {
    return readFileSync(this.#process.logFile, 'utf8');
  }

  /** Sum of a metric over all label sets that contain `labels`; 0 when there is none. */
  async metric(name: string, labels: Record<string, string> = {}): Promise<number> {
    const wanted = Object.entries(labels);
    return (await this.metrics())
      .filter((sample) => sample.name === name && wanted.every(([key, value]) => sample.labels[key] === value))
      .reduce((sum, sample) => sum + sample.value, 0);
  }

  /** All that /metrics tells now. */
  async metrics(): Promise<MetricSample[]> {
    const text = await (await fetch(this.#metrics)).text();
    return text.split('\n').flatMap((line) => {
      const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
      if (!match) return [];
      const pairs = [...(match[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
      const labels = Object.fromEntries(pairs.map(([, key = '', value = '']) => [key, value]));
      return [{ name: match[1] ?? '', labels, value: Number(match[3]) }];
    });
  }

  /** SIGTERM, and waits: what a Deployment's rollout does. */
  async stop(): Promise<void> {
    await this.#process.stop();
  }

  /** SIGSTOP: a machine that is suspended, or a process that is not scheduled. Its helm processes are not stopped. */
  pause(): void {
    this.#process.pause();
  }

  resume(): void {
    this.#process.resume();
  }

  /** SIGTERM alone: `ended` tells when it has drained. */
  terminate(): void {
    process.kill(this.pid, 'SIGTERM');
  }

  /** SIGKILL: a node that dies. */
  async kill(): Promise<void> {
    await this.#process.stop('kill');
  }
}
