/** What makes a HelmReleaseProxy be looked at: only what can change something (caaph §1.7 "Watches", W26, W27). */
import {
  INSTALLED_ANNOTATION,
  RELEASE_NAME_GENERATED_ANNOTATION,
  TRACEPARENT_ANNOTATION,
  VALUES_INPUTS_ANNOTATION,
  WORKLOAD_CLUSTER_UID_ANNOTATION,
} from '../../api/index.ts';
import type { HelmReleaseProxy } from '../../api/index.ts';
import type { ReleaseKey, ReleaseReader } from '../../helm/index.ts';
import { fleetNameOf } from '../cluster-names.ts';
import type {
  Aware,
  Cluster,
  ClusterName,
  ClusterState,
  Enqueuer,
  NotConnectedReason,
  Priority,
} from '../../runtime/index.ts';
import { within } from '../../telemetry/index.ts';
import { READY, getCondition } from '../conditions.ts';
import { deepEqual } from '../merge-patch.ts';
import type { CapiCluster } from '../shared.ts';
import { causeOf } from '../trace-context.ts';
import { ObjectChanged } from './interruption.ts';
import { claimsOf, proxiesOf, settleReader } from './parts.ts';
import type { Parts } from './parts.ts';
import {
  clusterKeyOf,
  clusterNameOf,
  isDeleting,
  isForced,
  namesCluster,
  passesFilter,
  releaseKeyOf,
  requestFor,
  uidOf,
} from './proxy.ts';

/** The reconcilers' own notes, this side's and the chart-proxy side's: they ask for nothing. */
const OWN_ANNOTATIONS: readonly string[] = [
  INSTALLED_ANNOTATION,
  RELEASE_NAME_GENERATED_ANNOTATION,
  TRACEPARENT_ANNOTATION,
  VALUES_INPUTS_ANNOTATION,
  WORKLOAD_CLUSTER_UID_ANNOTATION,
];

export class ReleaseProxySources implements Aware {
  readonly #parts: Parts;
  readonly #queue: Enqueuer;
  /** Code of the last reason for which a cluster had no connection: one attempt more with the same result is no news. */
  readonly #told = new Map<ClusterName, string>();

  constructor(parts: Parts, queue: Enqueuer) {
    this.#parts = parts;
    this.#queue = queue;
  }

  /** Begins to listen: to the objects, their Clusters, and the fleet. Returns what ends it. */
  listen(): () => void {
    const { caches, deps, memories, readers } = this.#parts;
    const removals = [
      caches.releaseProxies.addHandler({
        add: (proxy, initial) => this.#added(proxy, initial),
        update: (before, proxy) => within(causeOf(before, proxy), () => this.#updated(before, proxy)),
        delete: (proxy) => this.#deleted(proxy),
      }),
      caches.clusters.addHandler({
        add: (cluster, initial) => {
          if (!initial) this.#enqueueAll(nameOf(cluster));
        },
        update: (before, cluster) => {
          if (before.spec?.paused === true && cluster.spec?.paused !== true) this.#enqueueAll(nameOf(cluster));
        },
        delete: (cluster) => this.#enqueueAll(nameOf(cluster)),
      }),
      caches.clusters.onKnown(() => this.#enqueueLost()),
      deps.fleet.register(this),
      readers.onChange((cluster, reader, key) => this.storageChanged(cluster, reader, key)),
      memories.onWanted((proxy) => this.#enqueue(proxy, 'drift')),
    ];
    return () => {
      for (const remove of removals) remove();
    };
  }

  engaged(cluster: Cluster): void {
    this.#told.delete(cluster.name);
    this.#enqueueAll(cluster.name);
  }

  disengaged(cluster: Cluster): void {
    this.#parts.readers.disengaged(cluster);
  }

  changed(name: ClusterName, state: ClusterState): void {
    if (state.phase === 'degraded') this.#tellOperations(name, state.reason);
    if (state.phase === 'engaged') this.#tellOperations(name, undefined);
    if (state.phase === 'disengaged') this.#forgetAnothers(name);
    const code = codeOf(state);
    if (code === undefined || this.#told.get(name) === code) return;
    if (state.phase === 'disengaged') this.#told.delete(name);
    else this.#told.set(name, code);
    this.#enqueueAll(name);
  }

  /** A release's records changed on a cluster, and not by the pass that is under way or was the last. */
  storageChanged(cluster: Cluster, reader: ReleaseReader, key: ReleaseKey): void {
    for (const proxy of claimsOf(this.#parts.caches, cluster.name, key)) {
      if (this.#parts.strategies.find(proxy)?.handedOff(proxy) === true) continue;
      if (this.#parts.memories.of(uidOf(proxy)).isNews(reader, key)) this.#enqueue(proxy, 'drift');
    }
  }

  /** What stood there before this process began is not looked at on account of an old trace. */
  #added(proxy: HelmReleaseProxy, initial: boolean): void {
    if (initial) this.#enqueue(proxy, quiet(proxy));
    else within(causeOf(undefined, proxy), () => this.#enqueue(proxy, 'user'));
  }

  #updated(before: HelmReleaseProxy, proxy: HelmReleaseProxy): void {
    if (this.#isUnwanted(before, proxy)) this.#parts.memories.of(uidOf(proxy)).interrupt(new ObjectChanged());
    if (matters(before, proxy)) this.#enqueue(proxy, 'user');
    if (!deepEqual(before.spec.clusterRef, proxy.spec.clusterRef) || releaseOf(before) !== releaseOf(proxy)) {
      this.#freed(before);
    }
  }

  /** Who deletes an object, or gives its release up, does not wait for workloads that never become ready. */
  #isUnwanted(before: HelmReleaseProxy, proxy: HelmReleaseProxy): boolean {
    if (!isDeleting(proxy)) return false;
    if (isForced(proxy)) return !isForced(before);
    return !isDeleting(before) && this.#parts.strategies.find(proxy)?.uninstallsOnDelete === true;
  }

  #deleted(proxy: HelmReleaseProxy): void {
    this.#parts.memories.forget(uidOf(proxy));
    this.#freed(proxy);
  }

  /** The object has let go of a release: others may have waited for that name, and perhaps nothing is left to be watched. */
  #freed(proxy: HelmReleaseProxy): void {
    if (!namesCluster(proxy)) return;
    const cluster = clusterNameOf(proxy);
    const key = releaseKeyOf(proxy);
    if (key !== undefined) {
      for (const other of claimsOf(this.#parts.caches, cluster, key)) this.#enqueue(other, 'user');
    }
    settleReader(this.#parts, cluster);
  }

  /** What is remembered of a cluster that another replica serves may be untrue when it comes back. */
  #forgetAnothers(name: ClusterName): void {
    const { caches, deps, memories } = this.#parts;
    if (deps.sharding === undefined || deps.sharding.shards.serves(name)) return;
    for (const proxy of proxiesOf(caches, name)) memories.forget(uidOf(proxy));
  }

  /** A request that is being worked on is not looked at before that ends, and Helm may wait for long. */
  #tellOperations(name: ClusterName, reason: NotConnectedReason | undefined): void {
    for (const proxy of proxiesOf(this.#parts.caches, name))
      this.#parts.memories.of(uidOf(proxy)).clusterChanged(reason);
  }

  /** Those whose clusters were not there when nobody knew yet whether they are gone. */
  #enqueueLost(): void {
    const { caches } = this.#parts;
    for (const proxy of caches.releaseProxies.list()) {
      const { namespace, name } = clusterKeyOf(proxy);
      if (caches.clusters.get(namespace, name) === undefined) this.#enqueue(proxy, quiet(proxy));
    }
  }

  #enqueueAll(name: ClusterName): void {
    for (const proxy of proxiesOf(this.#parts.caches, name)) this.#enqueue(proxy, quiet(proxy));
  }

  #enqueue(proxy: HelmReleaseProxy, priority: Priority): void {
    if (!namesCluster(proxy) || !passesFilter(proxy, this.#parts.deps.options.watchFilter)) return;
    this.#queue.enqueue(requestFor(proxy), { priority });
  }
}

/** A healthy object can wait; one that is to be installed, mended or removed is what somebody waits for. */
function quiet(proxy: HelmReleaseProxy): Priority {
  const ready = getCondition(proxy.status?.conditions, READY)?.status === 'True';
  return ready && !isDeleting(proxy) && proxy.status?.observedGeneration === proxy.metadata.generation
    ? 'resync'
    : 'user';
}

/** Our own writes of status and of our annotations change nothing that a pass would look at. */
function matters(before: HelmReleaseProxy, proxy: HelmReleaseProxy): boolean {
  return (
    before.metadata.uid !== proxy.metadata.uid ||
    before.metadata.generation !== proxy.metadata.generation ||
    isDeleting(before) !== isDeleting(proxy) ||
    !deepEqual(before.metadata.labels, proxy.metadata.labels) ||
    isInstalledRemoved(before, proxy) ||
    !deepEqual(foreignAnnotations(before), foreignAnnotations(proxy))
  );
}

function isInstalledRemoved(before: HelmReleaseProxy, proxy: HelmReleaseProxy): boolean {
  return (
    before.metadata.annotations?.[INSTALLED_ANNOTATION] !== undefined &&
    proxy.metadata.annotations?.[INSTALLED_ANNOTATION] === undefined
  );
}

function foreignAnnotations(proxy: HelmReleaseProxy): Record<string, string> {
  const entries = Object.entries(proxy.metadata.annotations ?? {});
  return Object.fromEntries(entries.filter(([name]) => !OWN_ANNOTATIONS.includes(name)));
}

function releaseOf(proxy: HelmReleaseProxy): string | undefined {
  const key = releaseKeyOf(proxy);
  return key === undefined ? undefined : `${key.namespace}/${key.name}`;
}

function codeOf(state: ClusterState): string | undefined {
  switch (state.phase) {
    case 'discovered':
    case 'degraded':
      return state.reason.code;
    case 'connecting':
      return state.lastError?.code;
    case 'engaged':
      return undefined;
    case 'disengaged':
      return 'disengaged';
  }
}

function nameOf(cluster: CapiCluster): ClusterName {
  return fleetNameOf({ namespace: cluster.metadata.namespace ?? '', name: cluster.metadata.name });
}
