/** A management cluster, workload clusters with Helm's storage, and a Helm, all in memory: for the tests of this folder. */
import { API_GROUP, API_VERSION, HRP_KIND } from '../../api/index.ts';
import type { HelmReleaseProxy, HelmReleaseProxySpec, HelmReleaseProxyStatus } from '../../api/index.ts';
import { HelmError } from '../../helm/index.ts';
import type { ReleaseKey, ReleaseReader } from '../../helm/index.ts';
import type { Resource } from '../../kube/index.ts';
import { ClusterNotConnectedError, ClusterNotFoundError, clusterName } from '../../runtime/index.ts';
import type {
  Aware,
  Cluster,
  ClusterName,
  EventRecorder,
  Fleet,
  NotConnectedReason,
  Sharding,
} from '../../runtime/index.ts';
import { createTelemetry, silentLogger } from '../../telemetry/index.ts';
import { continuousStrategy } from '../install/index.ts';
import { installOnceStrategy } from '../install-once/index.ts';
import { ReleaseLocks } from '../release-locks.ts';
import { HRP, SECRETS } from '../resources.ts';
import { allKnown } from '../clusters.test-support.ts';
import type { CapiCluster } from '../shared.ts';
import { StatusWriter } from '../status-writer.ts';
import type { Strategy } from '../types.ts';
import { FakeApi, FakeInformer } from './fake-api.test-support.ts';
import { FakeCharts, FakeEngine, FakeStorage } from './fake-helm.test-support.ts';
import { ReleaseMemories } from './memory.ts';
import type { Parts } from './parts.ts';
import { BY_CLUSTER, BY_RELEASE, byCluster, byRelease, requestFor } from './proxy.ts';
import { ReleaseReaders } from './readers.ts';
import { ReleaseProxyReconciler } from './reconciler.ts';
import { ReleaseNames } from './release-name.ts';
import { RepositoryAccess } from './repository-access.ts';
import { StrategyRegistry } from './strategies.ts';

export const CLUSTER_RESOURCE: Resource = {
  group: 'cluster.x-k8s.io',
  version: 'v1beta2',
  plural: 'clusters',
  namespaced: true,
};

export class FakeFleet implements Fleet {
  readonly engaged = new Map<ClusterName, Cluster>();
  readonly waiting = new Map<ClusterName, NotConnectedReason>();
  readonly awares = new Set<Aware>();

  get(name: ClusterName): Cluster {
    const reason = this.waiting.get(name);
    if (reason !== undefined) throw new ClusterNotConnectedError(name, reason);
    const cluster = this.engaged.get(name);
    if (cluster === undefined) throw new ClusterNotFoundError(name);
    return cluster;
  }

  state(): undefined {
    return undefined;
  }

  states(): ReadonlyMap<ClusterName, never> {
    return new Map<ClusterName, never>();
  }

  register(aware: Aware): () => void {
    this.awares.add(aware);
    for (const cluster of this.engaged.values()) aware.engaged?.(cluster);
    return () => this.awares.delete(aware);
  }
}

export interface WorldOptions {
  readonly strategies?: readonly Strategy[];
  readonly allowCrossNamespaceSecrets?: boolean;
  readonly watchFilter?: string;
  readonly sharding?: Sharding;
}

const NAMESPACE = 'fleet';

/** All of it. The clock stands at `nowMs` until a test moves it. */
export class World {
  nowMs = Date.parse('2026-12-01T00:00:00Z');
  readonly api = new FakeApi();
  readonly proxies = new FakeInformer<HelmReleaseProxy>();
  readonly clusters = allKnown(new FakeInformer<CapiCluster>());
  readonly fleet = new FakeFleet();
  readonly storages = new Map<string, FakeStorage>();
  readonly engine = new FakeEngine((cluster) => this.storage(cluster));
  readonly charts = new FakeCharts();
  readonly events: { reason: string; message: string }[] = [];
  readonly changes: { cluster: Cluster; reader: ReleaseReader; key: ReleaseKey }[] = [];
  readonly parts: Parts;
  readonly reconciler: ReleaseProxyReconciler;
  readonly halt = new AbortController();
  /** What the log at info was told. */
  readonly logged: string[] = [];
  readonly #controllers = new Map<string, AbortController>();

  constructor(options: WorldOptions = {}) {
    const events: EventRecorder = {
      record: (_about, event) => {
        this.events.push({ reason: event.reason, message: event.message });
      },
    };
    const allow = options.allowCrossNamespaceSecrets ?? false;
    const management = this.#cluster('local');
    this.parts = {
      deps: {
        management,
        fleet: this.fleet,
        engine: this.engine,
        charts: this.charts,
        events,
        telemetry: createTelemetry(),
        ...(options.sharding && { sharding: options.sharding }),
        options: {
          watchFilter: options.watchFilter,
          chartProxyConcurrency: 1,
          releaseProxyConcurrency: 1,
          waitConcurrency: 1,
          syncPeriodMs: 600_000,
          allowCrossNamespaceSecrets: allow,
          driftDefault: 'Disabled',
          driftConcurrency: 10,
          driftRetryDelaysMs: [0, 2_000],
          helmManagers: ['helm', 'manager'],
        },
      },
      caches: { releaseProxies: this.proxies, clusters: this.clusters, clusterResource: CLUSTER_RESOURCE },
      writer: new StatusWriter<HelmReleaseProxy>(management.client, HRP),
      strategies: new StrategyRegistry(options.strategies ?? [continuousStrategy, installOnceStrategy]),
      access: new RepositoryAccess(management.client, { allowCrossNamespaceSecrets: allow }),
      names: new ReleaseNames(),
      memories: new ReleaseMemories(),
      locks: new ReleaseLocks(),
      readers: new ReleaseReaders((cluster) => this.storage(cluster.name).reader()),
      tools: {
        createReader: (cluster) => this.storage(cluster.name).reader(),
        valuesDigest: (values) => {
          if (values === 'invalid') throw new HelmError('ValuesInvalid', 'values: line 1: no map');
          return `digest of ${values}`;
        },
        now: () => this.nowMs,
        random: () => 0.5,
      },
    };
    this.parts.readers.onChange((cluster, reader, key) => {
      this.changes.push({ cluster, reader, key });
    });
    this.proxies.addIndex(BY_CLUSTER, byCluster);
    this.proxies.addIndex(BY_RELEASE, byRelease);
    this.api.onWrite = (object, resource) => {
      if (resource.plural !== HRP.plural) return;
      if (this.api.peek(resource, object.metadata) === undefined) {
        this.proxies.remove(object.metadata.namespace, object.metadata.name);
      } else this.proxies.put(object as HelmReleaseProxy);
    };
    this.reconciler = new ReleaseProxyReconciler(this.parts);
  }

  storage(cluster: string): FakeStorage {
    let storage = this.storages.get(cluster);
    if (storage === undefined) this.storages.set(cluster, (storage = new FakeStorage()));
    return storage;
  }

  /** A Cluster object and its engaged cluster. */
  addCluster(name: string, parts: { uid?: string; paused?: boolean; engaged?: boolean } = {}): Cluster {
    const object: CapiCluster = {
      metadata: { namespace: NAMESPACE, name, uid: `capi-${name}` },
      spec: { paused: parts.paused },
    };
    this.clusters.put(this.api.put(CLUSTER_RESOURCE, object));
    const cluster = this.#cluster(`${NAMESPACE}/${name}`, parts.uid ?? `uid-${name}`);
    if (parts.engaged !== false) this.fleet.engaged.set(cluster.name, cluster);
    return cluster;
  }

  removeCluster(name: string): void {
    this.api.delete(CLUSTER_RESOURCE, { namespace: NAMESPACE, name });
    this.clusters.remove(NAMESPACE, name);
    this.fleet.engaged.delete(clusterName(`${NAMESPACE}/${name}`));
  }

  addSecret(name: string, data: Record<string, string>, namespace = NAMESPACE): void {
    const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]);
    const object = { metadata: { namespace, name }, data: Object.fromEntries(encoded) as Record<string, string> };
    this.api.put(SECRETS, object);
  }

  addProxy(
    name: string,
    spec: Partial<HelmReleaseProxySpec> = {},
    parts: { metadata?: Partial<HelmReleaseProxy['metadata']>; status?: HelmReleaseProxyStatus } = {},
  ): HelmReleaseProxy {
    const stored = this.api.put<HelmReleaseProxy>(HRP, {
      apiVersion: `${API_GROUP}/${API_VERSION}`,
      kind: HRP_KIND,
      metadata: {
        namespace: NAMESPACE,
        name,
        uid: `uid of ${name}`,
        generation: 1,
        creationTimestamp: '2026-01-01T00:00:00Z',
        ...parts.metadata,
      },
      spec: {
        clusterRef: { namespace: NAMESPACE, name: 'c1' },
        chartName: 'app',
        repoURL: 'https://charts.test',
        releaseName: 'app',
        namespace: 'apps',
        version: '1.0.0',
        ...spec,
      },
      status: parts.status,
    });
    this.proxies.put(stored);
    return stored;
  }

  /** Changes the object as a user would. */
  edit(name: string, change: (proxy: HelmReleaseProxy) => HelmReleaseProxy): void {
    const before = this.proxy(name);
    const changed = change(before);
    const generation = (before.metadata.generation ?? 1) + Number(changed.spec !== before.spec);
    this.proxies.put(this.api.put(HRP, { ...changed, metadata: { ...changed.metadata, generation } }));
  }

  delete(name: string): void {
    this.edit(name, (proxy) => ({
      ...proxy,
      metadata: { ...proxy.metadata, deletionTimestamp: '2026-12-01T00:00:00Z' },
    }));
  }

  proxy(name: string): HelmReleaseProxy {
    const found = this.find(name);
    if (found === undefined) throw new Error(`there is no ${name}`);
    return found;
  }

  find(name: string): HelmReleaseProxy | undefined {
    return this.api.peek(HRP, { namespace: NAMESPACE, name }) as HelmReleaseProxy | undefined;
  }

  condition(name: string, type: string): { status: string; reason: string; message: string } | undefined {
    const found = this.proxy(name).status?.conditions?.find((condition) => condition.type === type);
    return found && { status: found.status, reason: found.reason, message: found.message };
  }

  async reconcile(name: string): Promise<number | undefined> {
    const cached = this.proxies.get(NAMESPACE, name);
    if (cached === undefined) throw new Error(`there is no ${name}`);
    const log = {
      ...silentLogger,
      info: (message: string): void => {
        this.logged.push(message);
      },
    };
    const context = { signal: this.halt.signal, log, failures: 0 };
    return (await this.reconciler.reconcile(requestFor(cached), context)).requeueAfterMs;
  }

  /** Ends the engagement, as the fleet does. */
  disengage(name: string, reason: unknown): void {
    const full = `${NAMESPACE}/${name}`;
    this.#controllers.get(full)?.abort(reason);
    this.fleet.engaged.delete(clusterName(full));
  }

  #cluster(name: string, uid?: string): Cluster {
    const controller = new AbortController();
    this.#controllers.set(name, controller);
    const nothing = (): never => {
      throw new Error('not expected in these tests');
    };
    return {
      name: clusterName(name),
      uid,
      client: this.api.client(),
      discovery: { find: nothing, versions: nothing, invalidate: nothing },
      watches: {
        set: nothing,
        hold: nothing,
        get: nothing,
        release: nothing,
        follow: nothing,
        unfollow: nothing,
        size: 0,
      },
      signal: controller.signal,
      degraded: false,
      kubeconfig: () => `kubeconfig of ${name}`,
    };
  }
}
