import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import PQueue from 'p-queue';
import type { Binaries, BinaryName } from '../../hack/binaries.ts';
import { binaries } from '../../hack/binaries.ts';
import type { ClusterOptions } from './cluster.ts';
import { TestCluster } from './cluster.ts';
import { startEtcd } from './etcd.ts';
import { Ports } from './ports.ts';
import { Processes } from './process.ts';

/** What to start. Workload clusters are called workload-1, workload-2 and so on; ClusterOptions are theirs. */
export interface EnvironmentOptions extends ClusterOptions {
  /** Number of workload clusters. Default 1. */
  clusters?: number;
  /** Whether to start a management cluster, with kube-controller-manager. Default true. */
  management?: boolean;
  /** What must be there; default all that `npm run binaries` obtains. */
  programs?: readonly BinaryName[];
  /** Leave the directory with logs and data behind. Default false. */
  keep?: boolean;
  signal?: AbortSignal;
}

/** A starting API server uses a core for two seconds; more than this many at once only wait for each other. */
const STARTING_AT_ONCE = 3;

/** N independent clusters and what they need, all owned here and ended by `stop`. */
export class Environment {
  readonly binaries: Binaries;
  /** Scratch directory of this environment; `stop` removes it. */
  readonly directory: string;
  /** Free ports of 127.0.0.1. */
  readonly ports: Ports;
  /** Owner of child processes; a test may start its own here, and they end with the rest. */
  readonly processes: Processes;
  /** The workload clusters, in the order in which they were asked for. */
  readonly clusters: TestCluster[] = [];
  readonly #keep: boolean;
  #etcdEndpoint = '';
  #management: TestCluster | undefined;

  private constructor(parts: { binaries: Binaries; directory: string; keep: boolean }) {
    this.binaries = parts.binaries;
    this.directory = parts.directory;
    this.#keep = parts.keep;
    this.ports = new Ports();
    this.processes = new Processes();
  }

  /** As `startEnvironment`. */
  static async start(options: EnvironmentOptions): Promise<Environment> {
    const directory = await mkdtemp(join(tmpdir(), 'capstan-test-'));
    const environment = new Environment({
      binaries: await binaries(process.env, options.programs),
      directory,
      keep: options.keep ?? false,
    });
    try {
      await environment.#startAll(options);
      return environment;
    } catch (error) {
      await environment.stop();
      throw error;
    }
  }

  /** The management cluster. @throws Error where none was asked for. */
  get management(): TestCluster {
    if (!this.#management) throw new Error('this environment was started with management: false');
    return this.#management;
  }

  /** Starts one more workload cluster. Names are etcd prefixes: one name, one cluster, for as long as this runs. */
  async addCluster(name: string, options: ClusterOptions & { signal?: AbortSignal } = {}): Promise<TestCluster> {
    const cluster = await this.#startCluster(name, options, options.signal);
    this.clusters.push(cluster);
    return cluster;
  }

  /** Ends every process that this environment owns and removes its files. May be called twice. */
  async stop(): Promise<void> {
    await this.processes.stopAll('kill');
    for (const cluster of [this.#management, ...this.clusters]) await cluster?.api.close();
    if (!this.#keep) await rm(this.directory, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #startAll(options: EnvironmentOptions): Promise<void> {
    const { signal, kwok, controllers, credentials } = options;
    const { directory, processes, ports } = this;
    const etcd = await startEtcd({ command: this.binaries.etcd, directory, processes, ports, signal });
    this.#etcdEndpoint = etcd.endpoint;
    const queue = new PQueue({ concurrency: STARTING_AT_ONCE });
    const plans: [string, ClusterOptions][] = Array.from({ length: options.clusters ?? 1 }, (_, index) => [
      `workload-${index + 1}`,
      { kwok, controllers, credentials },
    ]);
    if (options.management ?? true) plans.unshift(['management', { controllers: true }]);
    const started = await Promise.all(
      plans.map(([name, plan]) => queue.add(() => this.#startCluster(name, plan, signal))),
    );
    if (options.management ?? true) this.#management = started.shift();
    this.clusters.push(...started);
  }

  async #startCluster(name: string, options: ClusterOptions, signal?: AbortSignal): Promise<TestCluster> {
    const { binaries, directory, processes } = this;
    const port = await this.ports.take();
    const surroundings = { binaries, directory, processes, etcdEndpoint: this.#etcdEndpoint, port };
    return TestCluster.start(name, options, surroundings, signal);
  }
}

/**
 * Starts an etcd, a management cluster and workload clusters, three at a time; 5 to 8 s for three clusters.
 * @throws BinariesError when the programs are not there yet; Error with a log's end when one does not start.
 */
export async function startEnvironment(options: EnvironmentOptions = {}): Promise<Environment> {
  return Environment.start(options);
}
