/**
 * The caches of the management cluster that both halves read. One Runnable keeps them; controllers wait for `ready`
 * before they look at anything: a list that is not complete must never be taken for an empty one.
 */
import type { HelmChartProxy, HelmReleaseProxy, ObjectReference } from '../api/index.ts';
import { raceAbort, sleep } from '../kube/index.ts';
import type { Informer, KubeObject, Resource, WatchTarget } from '../kube/index.ts';
import type { Cluster, ClusterRecords, Runnable } from '../runtime/index.ts';
import type { Logger } from '../telemetry/index.ts';
import { ClustersTogether } from './cluster-view.ts';
import type { ClusterView } from './cluster-view.ts';
import { HCP, HRP, clusterResource } from './resources.ts';

/** What the reconcilers read of a Cluster of Cluster API; values templates see all of it. */
export interface CapiCluster extends KubeObject {
  spec?: { paused?: boolean; controlPlaneRef?: CapiReference; infrastructureRef?: CapiReference };
}

/** v1beta2 has `apiGroup`, v1beta1 `apiVersion`. */
export type CapiReference = ObjectReference & { apiGroup?: string };

export interface Caches {
  readonly chartProxies: Informer<HelmChartProxy>;
  readonly releaseProxies: Informer<HelmReleaseProxy>;
  readonly clusters: ClusterView;
  /** The version of Cluster that is served and watched; undefined while Cluster API is not installed. */
  readonly clusterResource: Resource | undefined;
}

/** How often we look whether Cluster API has been installed meanwhile. */
const CAPI_RETRY_MS = 10_000;
/** Lists of a large fleet take seconds; one that takes longer is said in the log and waited for again. */
const SYNC_LIMIT_MS = 60_000;

/** Owner of the watches on HelmChartProxies, HelmReleaseProxies and Clusters. Watches begin in `run`, not before. */
export class ManagementCaches implements Runnable {
  readonly name = 'management-caches';
  readonly #management: Cluster;
  readonly #namespace: string | undefined;
  readonly #records: ClusterRecords | undefined;
  readonly #log: Logger;
  readonly #ready = Promise.withResolvers<Caches>();

  /** `records`: where other providers than Cluster API's declare clusters. Then nobody waits for Cluster API. */
  constructor(
    management: Cluster,
    options: { readonly namespace?: string; readonly log: Logger; readonly records?: ClusterRecords },
  ) {
    this.#management = management;
    this.#namespace = options.namespace;
    this.#records = options.records;
    this.#log = options.log.with({ cluster: management.name });
  }

  /** The caches, once all have been listed. Rejects only with the signal's reason: what is missing is waited for, and said in the log. */
  async ready(signal: AbortSignal): Promise<Caches> {
    return raceAbort(this.#ready.promise, signal);
  }

  async run(signal: AbortSignal): Promise<void> {
    const clusters = new ClustersTogether(this.#records);
    try {
      await this.#open(clusters, signal);
      await raceAbort(new Promise<never>(() => undefined), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      clusters.close();
      this.#management.watches.release(this);
    }
  }

  async #open(clusters: ClustersTogether, signal: AbortSignal): Promise<void> {
    const chartProxies = this.#hold<HelmChartProxy>(HCP);
    const releaseProxies = this.#hold<HelmReleaseProxy>(HRP);
    const caches = { chartProxies, releaseProxies, clusters, clusterResource: undefined as Resource | undefined };
    const attach = async (resource: Resource): Promise<void> => {
      const informer = this.#hold<CapiCluster>(resource);
      await this.#synced(informer, signal);
      caches.clusterResource = resource;
      clusters.attach(informer);
    };
    const served =
      this.#records === undefined ? await this.#clusterResource(signal) : await this.#findClusterResource(signal);
    for (const informer of [chartProxies, releaseProxies]) await this.#synced(informer, signal);
    if (served !== undefined) await attach(served);
    this.#ready.resolve(caches);
    if (served === undefined) await attach(await this.#clusterResource(signal));
  }

  #hold<T extends KubeObject>(resource: Resource): Informer<T> {
    const target: WatchTarget = { resource, form: 'full', namespace: this.#namespace };
    return this.#management.watches.hold<T>(this, target);
  }

  async #clusterResource(signal: AbortSignal): Promise<Resource> {
    for (let attempt = 0; ; attempt++) {
      const found = await this.#findClusterResource(signal);
      if (found !== undefined) return found;
      // The first look and then once in ten minutes: it is no news every ten seconds.
      if (attempt % 60 === 0) {
        this.#log.warn('Cluster API is not installed: no kind Cluster in cluster.x-k8s.io is served; waiting for it');
      }
      await sleep(CAPI_RETRY_MS, signal);
    }
  }

  async #findClusterResource(signal: AbortSignal): Promise<Resource | undefined> {
    try {
      this.#management.discovery.invalidate();
      return await clusterResource(this.#management.discovery, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#log.warn('cannot ask what the management cluster serves; trying again', { err: error });
      return undefined;
    }
  }

  async #synced(informer: Informer<KubeObject>, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await informer.synced(signal, SYNC_LIMIT_MS);
        return;
      } catch (error) {
        signal.throwIfAborted();
        const { plural, group } = informer.target.resource;
        this.#log.warn('a list of the management cluster is not complete yet; still waiting', {
          resource: `${plural}.${group}`,
          err: error,
        });
      }
    }
  }
}
