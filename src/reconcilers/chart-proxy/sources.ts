/**
 * Which event asks for which work. One Cluster event costs one selector match per HelmChartProxy of its namespace and one
 * placement per match, whatever the size of the fleet (caaph W26). Handlers only enqueue.
 */
import type { HelmChartProxy, HelmReleaseProxy } from '../../api/index.ts';
import { matchesSelector } from '../../kube/index.ts';
import type { KubeObject } from '../../kube/index.ts';
import type { Aware, Enqueuer, Priority } from '../../runtime/index.ts';
import { within } from '../../telemetry/index.ts';
import { READY, RELEASE_IN_SYNC, getCondition } from '../conditions.ts';
import { deepEqual } from '../merge-patch.ts';
import type { Caches, CapiCluster } from '../shared.ts';
import { causeOf } from '../trace-context.ts';
import type { Builtins } from './builtins.ts';
import type { ChangeTraces } from './change-traces.ts';
import {
  chartProxyOf,
  chartProxyRequest,
  clusterKeyOf,
  keyOf,
  placementRequest,
  selectorProblem,
} from './fleet-view.ts';
import type { FleetView } from './fleet-view.ts';
import type { NamedIn } from './naming.ts';
import type { Outcomes } from './outcomes.ts';
import type { RateGate } from './rate-gate.ts';

export interface SourceParts {
  readonly caches: Caches;
  readonly view: FleetView;
  /** Queue of the controller of HelmChartProxies. */
  readonly chartProxies: Enqueuer;
  readonly placements: Enqueuer;
  readonly gate: RateGate;
  readonly outcomes: Outcomes;
  readonly builtins: Builtins;
  readonly traces: ChangeTraces;
}

export class Sources {
  readonly #parts: SourceParts;

  constructor(parts: SourceParts) {
    this.#parts = parts;
  }

  /** Asks for everything there is once, and from then on for what events concern. Returns what undoes it. */
  start(): () => void {
    const { caches } = this.#parts;
    // What is stored is told at once to a new handler; everything is asked for below, in one go.
    let started = false;
    const whenStarted = (act: () => void): void => {
      if (started) act();
    };
    const removals = [
      caches.chartProxies.addHandler({
        add: (object) => whenStarted(() => this.#chartProxyChanged(undefined, object)),
        update: (previous, object) => this.#chartProxyChanged(previous, object),
        delete: (object) => this.#chartProxyGone(object),
      }),
      caches.clusters.addHandler({
        add: (object) => whenStarted(() => this.#clusterChanged(object, undefined, object)),
        update: (previous, object) => this.#clusterChanged(object, previous, object),
        delete: (object) => this.#clusterChanged(object, object, undefined),
      }),
      caches.clusters.onKnown(() => this.#askLost()),
      caches.releaseProxies.addHandler({
        add: (object) => whenStarted(() => this.#releaseProxyWritten(undefined, object)),
        update: (previous, object) => this.#releaseProxyWritten(previous, object),
        delete: (object) => this.#releaseProxyChanged(object, undefined),
      }),
    ];
    started = true;
    for (const chartProxy of this.#parts.view.chartProxies()) this.ask(chartProxy, 'user');
    return () => removals.forEach((remove) => remove());
  }

  /** A cluster whose HelmReleaseProxies waited for it to say who it is. */
  readonly aware: Aware = {
    engaged: (cluster) => {
      for (const proxy of this.#parts.view.onFleetCluster(cluster.name)) {
        const key = clusterKeyOf(proxy);
        const uid = this.#parts.view.cluster(key)?.metadata.uid;
        const noted = proxy.spec.clusterRef.uid;
        if (noted !== undefined && noted !== uid) this.#askPlacement(chartProxyOf(proxy), key, 'user');
      }
    },
  };

  /** The object and all its placements: those that are, and those that should be. */
  ask(chartProxy: HelmChartProxy, priority: Priority): void {
    this.#parts.chartProxies.enqueue(chartProxyRequest(keyOf(chartProxy)), { priority });
    this.askPlacements(chartProxy, priority);
  }

  askPlacements(chartProxy: HelmChartProxy, priority: Priority): void {
    const key = keyOf(chartProxy);
    for (const cluster of this.#parts.view.selected(chartProxy).clusters)
      this.#askPlacement(key, keyOf(cluster), priority);
    for (const proxy of this.#parts.view.ownedBy(chartProxy)) this.#askPlacement(key, clusterKeyOf(proxy), priority);
  }

  /** What is due of everything, behind all other work. */
  resync(isDue: (uid: string) => boolean): void {
    const { view } = this.#parts;
    for (const chartProxy of view.chartProxies()) {
      if (isDue(chartProxy.metadata.uid ?? '')) this.#resyncChartProxy(chartProxy);
    }
    for (const proxy of view.releaseProxies()) {
      if (isDue(proxy.metadata.uid ?? '')) this.#askPlacement(chartProxyOf(proxy), clusterKeyOf(proxy), 'resync');
    }
  }

  /** Itself, and the placements that have no HelmReleaseProxy to be due by. */
  #resyncChartProxy(chartProxy: HelmChartProxy): void {
    const key = keyOf(chartProxy);
    this.#parts.chartProxies.enqueue(chartProxyRequest(key), { priority: 'resync' });
    for (const cluster of this.#parts.view.selected(chartProxy).clusters) {
      const bare = this.#parts.view.placed(chartProxy, keyOf(cluster)).length === 0;
      if (bare) this.#askPlacement(key, keyOf(cluster), 'resync');
    }
  }

  /** The status of a HelmChartProxy may have changed: looked at now, or when its rate allows. */
  touch(key: NamedIn, now = false): void {
    const request = chartProxyRequest(key);
    const afterMs = now ? 0 : this.#parts.gate.delay(`${key.namespace}/${key.name}`);
    this.#parts.chartProxies.enqueue(request, { priority: 'user', afterMs });
  }

  #chartProxyChanged(previous: HelmChartProxy | undefined, object: HelmChartProxy): void {
    if (previous?.metadata.uid !== undefined && previous.metadata.uid !== object.metadata.uid)
      this.#chartProxyGone(previous);
    if (previous !== undefined && deepEqual(facets(previous), facets(object))) return;
    this.#parts.traces.run(object, () => this.ask(object, 'user'));
  }

  #chartProxyGone(object: HelmChartProxy): void {
    const key = keyOf(object);
    this.#parts.outcomes.forget(object.metadata.uid ?? '');
    this.#parts.gate.forget(`${key.namespace}/${key.name}`);
    this.#parts.builtins.releaseAll(key.namespace, key.name);
  }

  #clusterChanged(either: CapiCluster, previous: CapiCluster | undefined, object: CapiCluster | undefined): void {
    const key = keyOf(either);
    for (const chartProxy of this.#parts.view.chartProxies(key.namespace)) {
      const [before, after] = [matches(chartProxy, previous), matches(chartProxy, object)];
      if (before || after) this.#askPlacement(keyOf(chartProxy), key, 'user');
      if (before !== after) this.touch(keyOf(chartProxy));
    }
    // Also those that no selector matches any more: InstallOnce keeps them, until the Cluster goes (caaph W12).
    if (previous?.metadata.uid === object?.metadata.uid) return;
    for (const proxy of this.#parts.view.onCluster(key)) this.#askPlacement(chartProxyOf(proxy), key, 'user');
  }

  /** Placements on clusters that were not there when nobody knew yet whether they are gone. */
  #askLost(): void {
    const { view } = this.#parts;
    for (const proxy of view.releaseProxies()) {
      const key = clusterKeyOf(proxy);
      if (view.cluster(key) === undefined) this.#askPlacement(chartProxyOf(proxy), key, 'user');
    }
  }

  /** Mostly an echo of this side's own writes, and then a part of the same trace. */
  #releaseProxyWritten(previous: HelmReleaseProxy | undefined, object: HelmReleaseProxy): void {
    within(causeOf(previous, object), () => this.#releaseProxyChanged(previous, object));
  }

  #releaseProxyChanged(previous: HelmReleaseProxy | undefined, object: HelmReleaseProxy | undefined): void {
    const either = object ?? previous;
    const owner = either === undefined ? undefined : chartProxyOf(either);
    if (either === undefined || owner === undefined) return;
    if (!deepEqual(told(previous), told(object))) this.touch(owner, object === undefined && this.#mayGo(owner));
    if (!deepEqual(facets(previous), facets(object))) this.#askPlacement(owner, clusterKeyOf(either), 'user');
  }

  /** Deleted, and nothing is left that it waits for: that happens once, so no rate need hold it up. */
  #mayGo(key: NamedIn): boolean {
    const chartProxy = this.#parts.view.chartProxy(key);
    if (chartProxy?.metadata.deletionTimestamp === undefined) return false;
    return this.#parts.view.ownedBy(chartProxy).length === 0;
  }

  #askPlacement(chartProxy: NamedIn | undefined, cluster: NamedIn, priority: Priority): void {
    if (chartProxy === undefined || cluster.name === '' || cluster.namespace === '') return;
    this.#parts.placements.enqueue(placementRequest(chartProxy, cluster), { priority });
  }
}

/** Does the selector match the Cluster? An invalid selector matches nothing, and troubles nobody else (caaph W9). */
function matches(chartProxy: HelmChartProxy, cluster: CapiCluster | undefined): boolean {
  if (cluster === undefined) return false;
  return (
    selectorProblem(chartProxy) === undefined &&
    matchesSelector(chartProxy.spec.clusterSelector, cluster.metadata.labels)
  );
}

/** What of an object asks for work when it changes: everything but status. */
function facets(object: KubeObject | undefined): unknown {
  if (object === undefined) return undefined;
  const { uid, generation, deletionTimestamp, labels, annotations, finalizers, ownerReferences } = object.metadata;
  return { uid, generation, deletionTimestamp, labels, annotations, finalizers, ownerReferences };
}

/** What of a HelmReleaseProxy its HelmChartProxy's status tells. */
function told(proxy: HelmReleaseProxy | undefined): unknown {
  if (proxy === undefined) return undefined;
  const { uid, generation, deletionTimestamp } = proxy.metadata;
  const ready = getCondition(proxy.status?.conditions, READY);
  const { status, message } = ready ?? {};
  const inSync = getCondition(proxy.status?.conditions, RELEASE_IN_SYNC);
  const sync = [inSync?.status, inSync?.reason];
  return { uid, generation, deletionTimestamp, observed: proxy.status?.observedGeneration, status, message, sync };
}
