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
}

const ROOT = join(import.meta.dirname, '../..');
const START_LIMIT_MS = 30_000;

/** `capstan manager`, run from the sources as a process of its own, as a user's Deployment would. */
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
    const process = await environment.processes.start({
      name: options.name ?? `manager-${String(health)}`,
      command: join(ROOT, 'node_modules/node/bin/node'),
      args: [
        join(ROOT, 'src/main.ts'),
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
      directory: environment.directory,
      env: options.env,
    });
    const manager = new Manager({
      process,
      health: `http://127.0.0.1:${String(health)}`,
      metrics: `http://127.0.0.1:${String(metrics)}/metrics`,
    });
    await manager.ready();
    return manager;
  }

  get pid(): number {
    if (this.#process.pid === undefined) throw new Error('the manager has no process');
    return this.#process.pid;
  }

  get running(): boolean {
    return this.#process.running;
  }

  async ready(): Promise<void> {
    await eventually(
      async (signal) => {
        if (!this.running) return;
        const answer = await fetch(`${this.#health}/readyz`, { signal });
        if (!answer.ok) throw new Error(await answer.text());
      },
      { timeoutMs: START_LIMIT_MS, what: 'the manager is ready' },
    );
    if (!this.running) throw new Error(`the manager ended:\n${this.#process.logTail()}`);
  }

  /** The log so far: one JSON object per line. */
  log(): string {
    return readFileSync(this.#process.logFile, 'utf8');
  }

  /** Sum of a metric over all label sets that contain `labels`; 0 when there is none. */
  async metric(name: string, labels: Record<string, string> = {}): Promise<number> {
    const text = await (await fetch(this.#metrics)).text();
    let sum = 0;
    for (const line of text.split('\n')) {
      const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
      if (match?.[1] !== name) continue;
      const set = match[2] ?? '';
      if (Object.entries(labels).every(([key, value]) => set.includes(`${key}="${value}"`))) sum += Number(match[3]);
    }
    return sum;
  }

  /** SIGTERM, and waits: what a Deployment's rollout does. */
  async stop(): Promise<void> {
    await this.#process.stop();
  }

  /** SIGKILL: a node that dies. */
  async kill(): Promise<void> {
    await this.#process.stop('kill');
  }
}
