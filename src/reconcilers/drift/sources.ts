/** What makes a release's objects be looked at: only what can change what is found. */
import type { HelmReleaseProxy } from '../../api/index.ts';
import { DRIFT_RETRY_ANNOTATION, INSTALLED_ANNOTATION } from '../../api/index.ts';
import type { ReleaseKey } from '../../helm/index.ts';
import { fleetNameOf } from '../cluster-names.ts';
import type { Aware, Cluster, ClusterName, Enqueuer, Priority } from '../../runtime/index.ts';
import { deepEqual } from '../merge-patch.ts';
import { claimsOf, proxiesOf } from '../release-proxy/parts.ts';
import {
  isDeleting,
  isPaused,
  namesCluster,
  passesFilter,
  releaseKeyOf,
  requestFor,
  uidOf,
} from '../release-proxy/proxy.ts';
import type { CapiCluster } from '../shared.ts';
import type { DriftParts } from './parts.ts';
import { isReported } from './report.ts';
import { standingOf } from './standing.ts';

/** When many releases are to be looked at together, their beginnings are spread over so much for each, and so much in all. Milliseconds. */
const SPREAD_EACH_MS = 20;
const SPREAD_MOST_MS = 30_000;

export class DriftSources implements Aware {
  readonly #parts: DriftParts;
  readonly #queue: Enqueuer;

  constructor(parts: DriftParts, queue: Enqueuer) {
    this.#parts = parts;
    this.#queue = queue;
  }

  /** Begins to listen. Returns what ends it. */
  listen(): () => void {
    const { caches, deps, readers, locks } = this.#parts;
    const initial: HelmReleaseProxy[] = [];
    const removals = [
      caches.releaseProxies.addHandler({
        add: (proxy, isInitial) => {
          if (isInitial) initial.push(proxy);
          else this.#enqueue(proxy, 'drift');
        },
        update: (before, proxy) => this.#updated(before, proxy),
        delete: (proxy) => this.#deleted(proxy),
      }),
      caches.clusters.addHandler({
        add: (cluster, isInitial) => {
          if (!isInitial) this.#enqueueAll(nameOf(cluster));
        },
        update: (before, cluster) => {
          if ((before.spec?.paused === true) !== (cluster.spec?.paused === true)) this.#enqueueAll(nameOf(cluster));
        },
      }),
      deps.fleet.register(this),
      readers.onChange((cluster, _reader, key) => this.#releaseChanged(cluster.name, key)),
      locks.onFree((cluster, key) => this.#releaseChanged(cluster, key)),
    ];
    this.#spread(initial);
    return () => {
      for (const remove of removals) remove();
    };
  }

  engaged(cluster: Cluster): void {
    this.#enqueueAll(cluster.name);
  }

  disengaged(cluster: Cluster): void {
    this.#parts.sessions.disengaged(cluster);
    this.#parts.readers.disengaged(cluster);
    this.#parts.gate.forget(cluster.name);
  }

  /** A tracker has something to look at. */
  stirred(uid: string): void {
    const request = this.#parts.sessions.stirred(uid, this.#parts.tools.now());
    if (request !== undefined) this.#queue.enqueue(request, { priority: 'drift' });
  }

  #updated(before: HelmReleaseProxy, proxy: HelmReleaseProxy): void {
    if (matters(before, proxy)) this.#enqueue(proxy, 'drift');
    if (releaseOf(before) !== releaseOf(proxy)) this.#freed(before);
  }

  #deleted(proxy: HelmReleaseProxy): void {
    this.#parts.sessions.close(uidOf(proxy));
    this.#freed(proxy);
  }

  /** Another object may have the release now. */
  #freed(proxy: HelmReleaseProxy): void {
    const key = releaseKeyOf(proxy);
    if (key === undefined || !namesCluster(proxy)) return;
    this.#releaseChanged(requestFor(proxy).cluster, key);
  }

  /** Its records changed, or an operation on it has ended. */
  #releaseChanged(cluster: ClusterName, key: ReleaseKey): void {
    for (const proxy of claimsOf(this.#parts.caches, cluster, key)) this.#enqueue(proxy, 'drift');
  }

  #enqueueAll(name: ClusterName): void {
    this.#spread(proxiesOf(this.#parts.caches, name));
  }

  #spread(proxies: readonly HelmReleaseProxy[]): void {
    const concerned = proxies.filter((proxy) => this.#concerns(proxy));
    const spreadMs = concerned.length > 1 ? Math.min(concerned.length * SPREAD_EACH_MS, SPREAD_MOST_MS) : 0;
    for (const proxy of concerned) this.#enqueue(proxy, 'resync', this.#parts.tools.random() * spreadMs);
  }

  #enqueue(proxy: HelmReleaseProxy, priority: Priority, afterMs = 0): void {
    if (this.#concerns(proxy)) this.#queue.enqueue(requestFor(proxy), { priority, afterMs });
  }

  /** While drift detection is off, and nothing is to be taken back that was said or watched, an object costs nothing. */
  #concerns(proxy: HelmReleaseProxy): boolean {
    if (!namesCluster(proxy) || !passesFilter(proxy, this.#parts.deps.options.watchFilter)) return false;
    if (standingOf(this.#parts, proxy) === 'watched' || isReported(proxy)) return true;
    return this.#parts.sessions.find(uidOf(proxy)) !== undefined;
  }
}

/** Status, and annotations that concern others, change nothing that a pass looks at. */
function matters(before: HelmReleaseProxy, proxy: HelmReleaseProxy): boolean {
  return (
    before.metadata.uid !== proxy.metadata.uid ||
    before.metadata.generation !== proxy.metadata.generation ||
    isDeleting(before) !== isDeleting(proxy) ||
    isPaused(before) !== isPaused(proxy) ||
    !deepEqual(before.metadata.labels, proxy.metadata.labels) ||
    [DRIFT_RETRY_ANNOTATION, INSTALLED_ANNOTATION].some((name) => annotation(before, name) !== annotation(proxy, name))
  );
}

function annotation(proxy: HelmReleaseProxy, name: string): string | undefined {
  return proxy.metadata.annotations?.[name];
}

function releaseOf(proxy: HelmReleaseProxy): string | undefined {
  const key = releaseKeyOf(proxy);
  return key === undefined ? undefined : `${key.namespace}/${key.name}`;
}

function nameOf(cluster: CapiCluster): ClusterName {
  return fleetNameOf({ namespace: cluster.metadata.namespace ?? '', name: cluster.metadata.name });
}
