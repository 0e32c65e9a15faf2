import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Binaries } from '../../hack/binaries.ts';
import { ApiServer } from './api-server.ts';
import type { CommandOptions } from './commands.ts';
import { runProgram } from './commands.ts';
import { KWOK_API_SERVER_ARGS, startControllerManager, startKwok } from './controllers.ts';
import type { CredentialKind } from './credentials.ts';
import { Credentials } from './credentials.ts';
import { kubeconfigFor } from './kubeconfig.ts';
import type { OwnedProcess, Processes } from './process.ts';
import type { RestOptions } from './rest.ts';
import { RestClient } from './rest.ts';

/** What kind of cluster to start. */
export interface ClusterOptions {
  /** kube-controller-manager: garbage collection, namespace deletion, service accounts. Default false. */
  controllers?: boolean;
  /** Pods become Ready and Jobs end (implies controllers, those of Deployments and the like too). Default false. */
  kwok?: boolean;
  /** The same cluster as the one of this name, behind another API server: other address, CA, and credentials. */
  dataOf?: string;
  /** What `kubeconfig` holds. Default 'token'. */
  credentials?: CredentialKind;
}

/** What a cluster takes from its environment. */
export interface ClusterSurroundings {
  binaries: Binaries;
  /** The environment's directory; the cluster makes its own below it. */
  directory: string;
  processes: Processes;
  etcdEndpoint: string;
  port: number;
}

/** A Kubernetes cluster made of a real API server, and of controllers where they were asked for. */
export class TestCluster {
  readonly name: string;
  readonly directory: string;
  /** A client with a token that no rotation touches; for the test itself. */
  readonly api: RestClient;
  /** The same administrator as a kubeconfig file, which `kubectl`, `helm` and `helm3` use. */
  readonly adminKubeconfigPath: string;
  /** File with what `kubeconfig` says. */
  readonly kubeconfigPath: string;
  readonly #options: ClusterOptions;
  readonly #surroundings: ClusterSurroundings;
  readonly #apiServer: ApiServer;
  readonly #credentials: Credentials;
  #current: RestOptions;
  #controllers: OwnedProcess[] = [];

  private constructor(name: string, options: ClusterOptions, parts: ClusterParts) {
    this.name = name;
    this.#options = options;
    this.#surroundings = parts.surroundings;
    this.#apiServer = parts.apiServer;
    this.directory = parts.directory;
    this.adminKubeconfigPath = join(this.directory, 'admin.kubeconfig');
    this.kubeconfigPath = join(this.directory, 'kubeconfig');
    const { server, ca, masterToken } = parts.apiServer;
    this.#current = { server, ca, token: masterToken };
    this.api = new RestClient(this.#current);
    this.#credentials = new Credentials(parts.apiServer, this.api, options.credentials ?? 'token');
  }

  /** Starts a cluster and resolves when it serves. */
  static async start(
    name: string,
    options: ClusterOptions,
    surroundings: ClusterSurroundings,
    signal?: AbortSignal,
  ): Promise<TestCluster> {
    const directory = join(surroundings.directory, name);
    const apiServer = await ApiServer.create({
      name,
      dataOf: options.dataOf,
      command: surroundings.binaries.kubeApiserver,
      directory,
      port: surroundings.port,
      etcdEndpoint: surroundings.etcdEndpoint,
      processes: surroundings.processes,
      extraArgs: options.kwok ? [...KWOK_API_SERVER_ARGS] : [],
    });
    const cluster = new TestCluster(name, options, { directory, apiServer, surroundings });
    await mkdir(join(directory, 'home'), { recursive: true });
    await cluster.#writeFile(cluster.adminKubeconfigPath, kubeconfigFor(name, cluster.#current));
    await apiServer.start(signal);
    await cluster.#adopt(await cluster.#credentials.issue());
    await cluster.#startControllers();
    return cluster;
  }

  /** The URL of the API server. */
  get server(): string {
    return this.#apiServer.server;
  }

  /** The certificate authority of the API server, PEM. */
  get ca(): string {
    return this.#apiServer.ca;
  }

  get running(): boolean {
    return this.#apiServer.running;
  }

  /** The process id of the API server, for measurements. */
  get pid(): number | undefined {
    return this.#apiServer.pid;
  }

  /** An administrator's kubeconfig, as Cluster API would hand out; `rotateCredentials` replaces it. */
  get kubeconfig(): string {
    return kubeconfigFor(this.name, this.#current);
  }

  /** A kubeconfig with a client certificate, whatever kind the cluster's own is. */
  async certificateKubeconfig(): Promise<string> {
    const clientCertificate = await this.#apiServer.issueClientCertificate();
    return kubeconfigFor(this.name, { server: this.server, ca: this.ca, clientCertificate });
  }

  /** Kills the API server (and its controllers): connections break, new ones are refused. */
  async stop(): Promise<void> {
    await this.stopControllers();
    await this.#apiServer.stop();
  }

  /** Starts a stopped cluster again: same address, same certificates, same data. */
  async start(): Promise<void> {
    await this.#apiServer.start();
    await this.#startControllers();
  }

  /** stop, then start. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Freezes the API server: connections stay open, new ones are accepted by the kernel, nothing answers. */
  pause(): void {
    this.#apiServer.pause();
  }

  resume(): void {
    this.#apiServer.resume();
  }

  /** Ends kube-controller-manager and kwok; nothing is garbage-collected any more. */
  async stopControllers(): Promise<void> {
    const running = this.#controllers;
    this.#controllers = [];
    await Promise.all(running.map((controller) => controller.stop('kill')));
  }

  /** Restarts kube-controller-manager and kwok: the garbage collector learns of new CRDs at once, not within 30 s. */
  async restartControllers(): Promise<void> {
    await this.stopControllers();
    await this.#startControllers();
  }

  /**
   * Replaces `kubeconfig` (and its file) without a restart, and resolves with it when the server accepts the new
   * credentials and refuses the old ones with 401: after up to 10 s for tokens, 1 to 2 s for certificates.
   */
  async rotateCredentials(): Promise<string> {
    await this.#adopt(await this.#credentials.rotate(this.#current));
    return this.kubeconfig;
  }

  /** Runs kubectl as administrator; resolves with its output. */
  async kubectl(args: string[], options: CommandOptions = {}): Promise<string> {
    return this.#run(this.#surroundings.binaries.kubectl, args, options);
  }

  /** Runs helm 4 as administrator. */
  async helm(args: string[], options: CommandOptions = {}): Promise<string> {
    return this.#run(this.#surroundings.binaries.helm, args, options);
  }

  /** Runs helm 3 as administrator. */
  async helm3(args: string[], options: CommandOptions = {}): Promise<string> {
    return this.#run(this.#surroundings.binaries.helm3, args, options);
  }

  /** Ends everything and removes the files. */
  async dispose(): Promise<void> {
    await this.stop();
    await this.api.close();
    await rm(this.directory, { recursive: true, force: true });
  }

  async #run(command: string, args: string[], options: CommandOptions): Promise<string> {
    const home = join(this.directory, 'home');
    const env = {
      HOME: home,
      KUBECONFIG: this.adminKubeconfigPath,
      HELM_CACHE_HOME: join(home, 'helm-cache'),
      HELM_CONFIG_HOME: join(home, 'helm-config'),
      HELM_DATA_HOME: join(home, 'helm-data'),
      ...options.env,
    };
    return runProgram(command, args, { cwd: home, ...options, env });
  }

  async #adopt(credentials: RestOptions): Promise<void> {
    this.#current = credentials;
    await this.#writeFile(this.kubeconfigPath, this.kubeconfig);
  }

  async #startControllers(): Promise<void> {
    const { controllers, kwok } = this.#options;
    if (!controllers && !kwok) return;
    const { binaries, processes } = this.#surroundings;
    const common = { directory: this.directory, kubeconfigPath: this.adminKubeconfigPath, processes };
    const workloads = kwok ?? false;
    this.#controllers.push(startControllerManager({ ...common, command: binaries.kubeControllerManager, workloads }));
    if (kwok) this.#controllers.push(await startKwok({ ...common, command: binaries.kwok, client: this.api }));
  }

  async #writeFile(file: string, content: string): Promise<void> {
    await writeFile(file, content, { mode: 0o600 });
  }
}

interface ClusterParts {
  directory: string;
  apiServer: ApiServer;
  surroundings: ClusterSurroundings;
}
