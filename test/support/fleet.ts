import type { EnvironmentOptions } from './environment.ts';
import { startEnvironment } from './environment.ts';
import type { Environment } from './environment.ts';
import { createCluster, ensureNamespace, installCapi } from './capi.ts';
import type { ClusterDeclaration } from './capi.ts';
import { ChartRepository } from './chart-repository.ts';
import type { ChartRepositoryOptions } from './chart-repository.ts';
import type { TestCluster } from './cluster.ts';
import { installCrds } from './crds.ts';
import { Manager } from './manager.ts';
import type { ManagerOptions } from './manager.ts';
import type { KubeObject, RestClient } from './rest.ts';
import { join } from 'node:path';
import { eventually } from './wait.ts';

/** A condition as tests read it. */
export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
}

/** A HelmChartProxy or HelmReleaseProxy as tests read it. */
export interface Proxy extends KubeObject {
  spec: Record<string, unknown> & { values?: string; releaseName?: string; clusterRef?: { name: string } };
  status?: {
    conditions?: Condition[];
    status?: string;
    revision?: number;
    observedGeneration?: number;
    matchingClusters?: { name: string; namespace: string }[];
  };
}

export interface FleetOptions extends EnvironmentOptions {
  /** Namespace of Clusters and HelmChartProxies. Default 'fleet'. */
  namespace?: string;
  /** Declared for cluster number i besides its kubeconfig; labels default to { fleet: 'yes', idx: '<i>' }. */
  declare?: (index: number) => Partial<ClusterDeclaration>;
  /** Which of the clusters get a Cluster object at the start. Default all. */
  declared?: number;
  manager?: ManagerOptions | false;
  repository?: ChartRepositoryOptions;
}

const CRD_FOLDER = join(import.meta.dirname, '../../src/api/crds');
const ADDONS = '/apis/addons.cluster.x-k8s.io/v1alpha1';
const HCP_LABEL = 'helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name';

/**
 * A whole scene: management cluster with Cluster API's and Capstan's CRDs, workload clusters declared as Clusters `c1`,
 * `c2`, …, an HTTPS chart repository (Secret `repo-ca` holds its CA), and the manager. Release names: CAAPH's users'.
 */
export class Fleet {
  readonly environment: Environment;
  readonly charts: ChartRepository;
  readonly namespace: string;
  #manager: Manager | undefined;

  private constructor(parts: { environment: Environment; charts: ChartRepository; namespace: string }) {
    this.environment = parts.environment;
    this.charts = parts.charts;
    this.namespace = parts.namespace;
  }

  static async start(options: FleetOptions = {}): Promise<Fleet> {
    const environment = await startEnvironment(options);
    try {
      const charts = await ChartRepository.start(options.repository);
      const fleet = new Fleet({ environment, charts, namespace: options.namespace ?? 'fleet' });
      await fleet.#prepare(options);
      return fleet;
    } catch (error) {
      await environment.stop();
      throw error;
    }
  }

  get api(): RestClient {
    return this.environment.management.api;
  }

  get manager(): Manager {
    if (!this.#manager) throw new Error('no manager was started');
    return this.#manager;
  }

  /** Workload cluster number i, from 1: the one behind Cluster `c<i>`. */
  cluster(index: number): TestCluster {
    const found = this.environment.clusters[index - 1];
    if (!found) throw new Error(`there is no workload cluster ${String(index)}`);
    return found;
  }

  async startManager(options: ManagerOptions = {}): Promise<Manager> {
    this.#manager = await Manager.start(this.environment, options);
    return this.#manager;
  }

  /** Declares workload cluster number i as Cluster `c<i>`. */
  async declare(index: number, declaration: Partial<ClusterDeclaration> = {}): Promise<void> {
    await createCluster(this.api, {
      name: `c${String(index)}`,
      namespace: this.namespace,
      labels: { fleet: 'yes', idx: String(index) },
      kubeconfig: this.cluster(index).kubeconfig,
      ...declaration,
    });
  }

  /** Creates a HelmChartProxy; the repository's URL and CA, and the selector fleet=yes, are filled in unless given. */
  async createChartProxy(name: string, spec: Record<string, unknown>, metadata: object = {}): Promise<Proxy> {
    return this.api.create<Proxy>(this.path('helmchartproxies'), {
      apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
      kind: 'HelmChartProxy',
      metadata: { name, ...metadata },
      spec: {
        clusterSelector: { matchLabels: { fleet: 'yes' } },
        repoURL: this.charts.url,
        tlsConfig: { caSecret: { name: 'repo-ca' } },
        ...spec,
      },
    });
  }

  async patchChartProxy(name: string, patch: object): Promise<Proxy> {
    return this.api.patch<Proxy>(`${this.path('helmchartproxies')}/${name}`, patch);
  }

  async chartProxy(name: string): Promise<Proxy> {
    return this.api.get<Proxy>(`${this.path('helmchartproxies')}/${name}`);
  }

  async findChartProxy(name: string): Promise<Proxy | undefined> {
    return this.api.find<Proxy>(`${this.path('helmchartproxies')}/${name}`);
  }

  /** Deletes and does not wait. */
  async deleteChartProxy(name: string): Promise<void> {
    await this.api.delete(`${this.path('helmchartproxies')}/${name}`);
  }

  /** Deletes and waits until it is gone. */
  async removeChartProxy(name: string, timeoutMs = 60_000): Promise<void> {
    await this.deleteChartProxy(name);
    await eventually(
      async () => {
        const left = await this.findChartProxy(name);
        if (left) throw new Error(`still there: ${JSON.stringify(left.status?.conditions)}`);
      },
      { timeoutMs, what: `HelmChartProxy ${name} is gone` },
    );
  }

  /** HelmReleaseProxies of a HelmChartProxy, by cluster name. */
  async releaseProxies(chartProxy?: string): Promise<Proxy[]> {
    const list = await this.api.list<Proxy>(this.path('helmreleaseproxies'));
    return list
      .filter((proxy) => chartProxy === undefined || proxy.metadata.labels?.[HCP_LABEL] === chartProxy)
      .sort((a, b) => (a.spec.clusterRef?.name ?? '').localeCompare(b.spec.clusterRef?.name ?? ''));
  }

  /** The one HelmReleaseProxy of a placement. Rejects when there is none or more than one. */
  async releaseProxy(chartProxy: string, index: number): Promise<Proxy> {
    const found = (await this.releaseProxies(chartProxy)).filter(
      (p) => p.spec.clusterRef?.name === `c${String(index)}`,
    );
    const [proxy] = found;
    if (!proxy || found.length > 1)
      throw new Error(`${String(found.length)} HelmReleaseProxies of ${chartProxy} for c${String(index)}`);
    return proxy;
  }

  /** Waits until the placement's HelmReleaseProxy is Ready at that revision; resolves with it. */
  async deployed(
    chartProxy: string,
    index: number,
    expected: { revision?: number; timeoutMs?: number } = {},
  ): Promise<Proxy> {
    const revision = expected.revision ?? 1;
    return eventually(
      async () => {
        const proxy = await this.releaseProxy(chartProxy, index);
        const ready = condition(proxy, 'Ready');
        const current = proxy.status?.observedGeneration === proxy.metadata.generation;
        if (ready?.status !== 'True' || proxy.status?.revision !== revision || !current) {
          throw new Error(`status ${JSON.stringify(proxy.status)}, generation ${String(proxy.metadata.generation)}`);
        }
        return proxy;
      },
      {
        timeoutMs: expected.timeoutMs ?? 60_000,
        what: `${chartProxy} on c${String(index)} is deployed, revision ${String(revision)}`,
      },
    );
  }

  /** Waits until a condition of the HelmChartProxy or of a placement's HelmReleaseProxy is as wanted. */
  async conditionOf(
    subject: { chartProxy: string; index?: number },
    wanted: Partial<Condition> & { type: string },
    timeoutMs = 60_000,
  ): Promise<Condition> {
    return eventually(
      async () => {
        const { chartProxy, index } = subject;
        const proxy = await (index === undefined ? this.chartProxy(chartProxy) : this.releaseProxy(chartProxy, index));
        const found = condition(proxy, wanted.type);
        const good = found && Object.entries(wanted).every(([key, value]) => found[key as keyof Condition] === value);
        if (!good) throw new Error(JSON.stringify(proxy.status?.conditions ?? 'no conditions'));
        return found;
      },
      { timeoutMs, what: `${JSON.stringify(subject)} has ${JSON.stringify(wanted)}` },
    );
  }

  /** Releases on a workload cluster as `helm list --all` tells them. */
  async releases(
    index: number,
  ): Promise<{ name: string; namespace: string; revision: string; status: string; chart: string }[]> {
    const text = await this.cluster(index).helm3(['list', '--all', '-A', '-o', 'json']);
    return JSON.parse(text) as { name: string; namespace: string; revision: string; status: string; chart: string }[];
  }

  path(plural: string): string {
    return `${ADDONS}/namespaces/${this.namespace}/${plural}`;
  }

  /** Ends everything that `start` began. */
  async stop(): Promise<void> {
    if (this.#manager?.running === true) await this.#manager.stop();
    await this.charts.stop();
    await this.environment.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #prepare(options: FleetOptions): Promise<void> {
    await installCapi(this.api);
    await installCrds(this.api, [
      join(CRD_FOLDER, 'helmchartproxies.yaml'),
      join(CRD_FOLDER, 'helmreleaseproxies.yaml'),
    ]);
    await this.environment.management.restartControllers();
    await ensureNamespace(this.api, this.namespace);
    await this.api.create(`/api/v1/namespaces/${this.namespace}/secrets`, {
      metadata: { name: 'repo-ca' },
      data: { 'ca.crt': Buffer.from(this.charts.ca).toString('base64') },
    });
    const declared = options.declared ?? this.environment.clusters.length;
    for (let index = 1; index <= declared; index++) await this.declare(index, options.declare?.(index));
    if (options.manager !== false) await this.startManager(options.manager);
  }
}

/** The condition of a type, or undefined. */
export function condition(proxy: Proxy, type: string): Condition | undefined {
  return proxy.status?.conditions?.find((candidate) => candidate.type === type);
}
