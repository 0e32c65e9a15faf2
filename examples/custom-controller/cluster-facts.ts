import type { Cluster, Enqueuer, Fleet, kube, Reconciler, Request, Result, Source } from 'capstan';

/** One ConfigMap on every cluster, by this name, with what the fleet knows of the cluster. */
export const KEY = { namespace: 'kube-public', name: 'fleet-facts' } as const;
export const CONFIG_MAPS: kube.Resource = { group: '', version: 'v1', plural: 'configmaps', namespaced: true };
const FIELD_MANAGER = 'cluster-facts';
/** Resync: nothing is polled in between, as the watch tells of changes. Milliseconds. */
const RESYNC_MS = 600_000;

interface ConfigMap extends kube.KubeObject {
  data?: Record<string, string>;
}

/**
 * Keeps the ConfigMap as it should be. Level-based: it is told which cluster to look at, never what happened there, so
 * events may be lost, doubled or late. What it throws is retried with back-off; `fleet.get` throws when the cluster is
 * gone (the request ends) or not connected (it waits for the cluster, not for a timer).
 */
export class ClusterFacts implements Reconciler {
  readonly #fleet: Fleet;
  readonly #fleetName: string;

  constructor(fleet: Fleet, fleetName: string) {
    this.#fleet = fleet;
    this.#fleetName = fleetName;
  }

  async reconcile(
    request: Request,
    { signal, log }: { signal: AbortSignal; log: { info(text: string): void } },
  ): Promise<Result> {
    const cluster = this.#fleet.get(request.cluster);
    const wanted = { cluster: request.cluster, fleet: this.#fleetName };
    const found = cluster.watches.get<ConfigMap>(target())?.get(KEY.namespace, KEY.name);
    if (Object.entries(wanted).every(([key, value]) => found?.data?.[key] === value))
      return { requeueAfterMs: RESYNC_MS };
    // Server-side apply: what others put beside our keys is theirs and stays.
    await cluster.client.apply<ConfigMap>(
      CONFIG_MAPS,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: KEY, data: wanted },
      { fieldManager: FIELD_MANAGER, force: true, signal },
    );
    log.info(found === undefined ? 'facts written' : 'facts put back');
    return { requeueAfterMs: RESYNC_MS };
  }
}

/** Asks for work: when a cluster comes into service, and whenever the ConfigMap changes there. */
export function clusterFactsSource(fleet: Fleet): Source {
  return (queue: Enqueuer, signal: AbortSignal) => {
    // Who holds the watches: they end with the cluster, or when nobody holds them.
    const owner = {};
    const watched = new Set<Cluster>();
    const unregister = fleet.register({
      // Also told of clusters that are in service already, and of one that comes back from being degraded.
      engaged: (cluster) => {
        const enqueue = (): void => queue.enqueue({ cluster: cluster.name, ...KEY });
        if (!watched.has(cluster)) {
          watched.add(cluster);
          cluster.watches.hold(owner, target()).addHandler({ add: enqueue, update: enqueue, delete: enqueue });
        }
        enqueue();
      },
      disengaged: (cluster) => watched.delete(cluster),
    });
    signal.addEventListener(
      'abort',
      () => {
        unregister();
        for (const cluster of watched) cluster.watches.release(owner);
      },
      { once: true },
    );
    return undefined;
  };
}

/** The watch: one object by its name, so that a large cluster costs no more than a small one. */
function target(): kube.WatchTarget {
  return {
    resource: CONFIG_MAPS,
    form: 'full',
    namespace: KEY.namespace,
    fieldSelector: `metadata.name=${KEY.name}`,
  };
}
