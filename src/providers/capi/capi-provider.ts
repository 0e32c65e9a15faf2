import { sleep } from '../../kube/index.ts';
import type { Informer, KubeObject, Resource } from '../../kube/index.ts';
import { Controller, LOCAL_CLUSTER, namespacedClusterName, splitClusterName } from '../../runtime/index.ts';
import type { Cluster, ClusterName, ClusterSink, Provider, Request, Result } from '../../runtime/index.ts';
import type { Telemetry } from '../../telemetry/index.ts';
import { controlPlaneInitialized } from './capi-cluster.ts';
import type { CapiCluster } from './capi-cluster.ts';
import { readKubeconfigSecret, SECRETS, SUFFIX, versionOf } from './kubeconfig-secret.ts';

export interface CapiProviderOptions {
  /** Where the Cluster objects live. */
  readonly management: Cluster;
  readonly telemetry: Telemetry;
  /** Only Clusters of this namespace; all when absent. */
  readonly namespace?: string;
}

const GROUP = 'cluster.x-k8s.io';
/** Newest first: versions that are understood here, not whatever the server prefers. */
const VERSIONS = ['v1beta2', 'v1beta1'];
/** CAPI labels the Secrets that it makes with the Cluster's name. */
const LABEL = `${GROUP}/cluster-name`;
const CRD_RETRY_MS = 10_000;
/** A Secret without the label, made by hand, is not watched: it is read again so often. */
const UNLABELLED_RETRY_MS = 30_000;
const SYNC_LIMIT_MS = 300_000;
const READ_LIMIT_MS = 10_000;
const READS_AT_A_TIME = 10;

/** One Cluster object; `secret` is the version of its Secret that was declared. */
interface Known {
  readonly uid: string | undefined;
  secret?: string;
}

interface Caches {
  readonly clusters: Informer<CapiCluster>;
  readonly secrets: Informer<KubeObject>;
}

/**
 * Discovers Cluster API's Clusters: one per Cluster object, named `namespace/name`, reached by the kubeconfig in its
 * Secret. Secrets are watched by label and without their bodies; a body is read when its Secret changed. A Cluster that
 * is paused or being deleted stays engaged (clean-up needs it); only an object that is gone, and no error, disengages.
 */
export class CapiProvider implements Provider {
  readonly name = 'capi';
  /** HelmChartProxies and HelmReleaseProxies name these clusters `namespace/name`, whoever else declares some. */
  readonly bare = true;
  readonly #options: CapiProviderOptions;
  /** Outlives a failed run: the next one disengages what vanished meanwhile. */
  readonly #known = new Map<ClusterName, Known>();
  #controller: Controller | undefined;

  constructor(options: CapiProviderOptions) {
    this.#options = options;
  }

  async run(sink: ClusterSink, signal: AbortSignal): Promise<void> {
    const { management, telemetry, namespace } = this.#options;
    const scope = namespace === undefined ? {} : { namespace };
    const resource = await this.#clusterResource(signal);
    const owner = {};
    const caches: Caches = {
      clusters: management.watches.hold(owner, { resource, form: 'full', ...scope }),
      secrets: management.watches.hold(owner, { resource: SECRETS, form: 'metadata', labelSelector: LABEL, ...scope }),
    };
    this.#controller = new Controller({
      name: 'capi-provider',
      telemetry,
      lanes: { default: { concurrency: READS_AT_A_TIME } },
      reconciler: { reconcile: async (request, context) => this.#declare(request, caches, sink, context.signal) },
      backoffCapMs: UNLABELLED_RETRY_MS,
      syncTimeoutMs: SYNC_LIMIT_MS,
      // What runs is a read: nothing is lost by ending it at once.
      graceMs: 0,
      sources: [async (_queue, until) => this.#feed(caches, until)],
    });
    try {
      await this.#controller.run(signal);
    } finally {
      this.#controller = undefined;
      management.watches.release(owner);
    }
  }

  /** After a 401: the Secret is read again whatever its version. */
  refresh(name: ClusterName): void {
    delete this.#known.get(name)?.secret;
    this.#look(splitClusterName(name));
  }

  async #clusterResource(signal: AbortSignal): Promise<Resource> {
    const { management, telemetry } = this.#options;
    for (let first = true; ; first = false) {
      const served = await management.discovery.versions(GROUP, { signal });
      const version = VERSIONS.find((candidate) => served.includes(candidate)) ?? '';
      const resource =
        version && (await management.discovery.find({ group: GROUP, version, kind: 'Cluster' }, { signal }));
      if (resource) return resource;
      if (first) telemetry.log.warn(`no cluster is discovered: kind Cluster of ${GROUP} is not served; waiting for it`);
      await sleep(CRD_RETRY_MS, signal);
      management.discovery.invalidate();
    }
  }

  async #feed({ clusters, secrets }: Caches, until: AbortSignal): Promise<void> {
    const look = ({ metadata }: KubeObject): void => this.#look(metadata);
    const lookAtOwner = ({ metadata: { name, namespace } }: KubeObject): void => {
      if (name.endsWith(SUFFIX)) this.#look({ name: name.slice(0, -SUFFIX.length), namespace });
    };
    const becameReady = (before: CapiCluster, now: CapiCluster): void => {
      if (controlPlaneInitialized(before) !== controlPlaneInitialized(now)) look(now);
    };
    const removals = [
      clusters.addHandler({ add: look, update: becameReady, delete: look }),
      secrets.addHandler({ add: lookAtOwner, update: (_before, now) => lookAtOwner(now), delete: lookAtOwner }),
    ];
    until.addEventListener('abort', () => removals.forEach((remove) => remove()), { once: true });
    await Promise.all([clusters.synced(until, SYNC_LIMIT_MS), secrets.synced(until, SYNC_LIMIT_MS)]);
    for (const name of this.#known.keys()) this.#look(splitClusterName(name));
  }

  #look(of: { namespace?: string; name: string } | undefined): void {
    if (of?.namespace === undefined) return;
    this.#controller?.enqueue({ cluster: LOCAL_CLUSTER, namespace: of.namespace, name: of.name });
  }

  async #declare(request: Request, caches: Caches, sink: ClusterSink, signal: AbortSignal): Promise<Result> {
    const { namespace, name } = request;
    const fleetName = namespacedClusterName(namespace, name);
    const cluster = caches.clusters.get(namespace, name);
    const known = this.#identify(fleetName, cluster, sink);
    if (cluster === undefined || known === undefined) return {};
    const discover = (code: string, message: string): void => sink.discover(fleetName, { code, message });
    if (!controlPlaneInitialized(cluster)) {
      discover('ControlPlaneNotReady', `the control plane of Cluster ${fleetName} is not initialized yet`);
      return {};
    }
    const watched = versionOf(caches.secrets.get(namespace, name + SUFFIX));
    if (watched !== undefined && watched === known.secret) return {};
    const { client } = this.#options.management;
    const secret = await readKubeconfigSecret(client, { namespace, name }, { signal, timeoutMs: READ_LIMIT_MS });
    if (secret.kubeconfig !== '') sink.engage(fleetName, { kubeconfig: secret.kubeconfig });
    else discover('KubeconfigUnavailable', `Secret ${fleetName}${SUFFIX} is missing or has no key "value"`);
    known.secret = secret.version;
    // Without the label no event will tell of it; with it, the watch does.
    return watched === undefined ? { requeueAfterMs: UNLABELLED_RETRY_MS } : {};
  }

  /** Disengages what is gone, and what another object of the same name has replaced. */
  #identify(name: ClusterName, cluster: CapiCluster | undefined, sink: ClusterSink): Known | undefined {
    const known = this.#known.get(name);
    if (known !== undefined && known.uid === cluster?.metadata.uid) return known;
    if (known !== undefined) sink.disengage(name, `its Cluster object was ${cluster ? 'replaced' : 'deleted'}`);
    this.#known.delete(name);
    if (cluster !== undefined) this.#known.set(name, { uid: cluster.metadata.uid });
    return this.#known.get(name);
  }
}
