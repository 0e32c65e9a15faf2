import type { CallOptions, Informer, KubeObject, ObjectKey, Resource } from '../../kube/index.ts';
import {
  clusterName,
  Controller,
  LOCAL_CLUSTER,
  namespacedClusterName,
  splitClusterName,
} from '../../runtime/index.ts';
import type {
  Cluster,
  ClusterAbout,
  ClusterName,
  ClusterSink,
  Provider,
  Request,
  Result,
} from '../../runtime/index.ts';
import type { Telemetry } from '../../telemetry/index.ts';
import { FirstRound } from './first-round.ts';

export interface KubeconfigSecretProviderOptions {
  /** Where the Secrets live. */
  readonly management: Cluster;
  readonly telemetry: Telemetry;
  /** Stands in logs and before the names of clusters; `kubeconfig`. */
  readonly name?: string;
  /** Where to look; everywhere when absent. With exactly one, a cluster has the name of its Secret, otherwise `namespace/name`. */
  readonly namespaces?: readonly string[];
  /** A Secret that one of these label selectors matches is a cluster; KUBECONFIG_LABEL and multicluster-runtime's label. */
  readonly labelSelectors?: readonly string[];
  /** Keys of the Secret that may hold the kubeconfig, in order; `kubeconfig`, then `value`. */
  readonly keys?: readonly string[];
}

export const KUBECONFIG_LABEL = 'capstan.dev/kubeconfig';
/** Secrets made for multicluster-runtime's kubeconfig provider are taken as they are. */
export const MULTICLUSTER_RUNTIME_LABEL = 'sigs.k8s.io/multicluster-runtime-kubeconfig';

const SECRETS: Resource = { group: '', version: 'v1', plural: 'secrets', namespaced: true };
const DEFAULT_SELECTORS = [KUBECONFIG_LABEL, MULTICLUSTER_RUNTIME_LABEL].map((label) => `${label}=true`);
const DEFAULT_KEYS = ['kubeconfig', 'value'];
const RETRY_CAP_MS = 30_000;
const SYNC_LIMIT_MS = 300_000;
const READ_LIMIT_MS = 10_000;
const READS_AT_A_TIME = 10;

interface Secret extends KubeObject {
  data?: Record<string, string>;
}

/**
 * Discovers the clusters whose kubeconfigs lie in labelled Secrets: one per Secret, the kubeconfig's current context. The
 * Secret's labels are the cluster's, and its namespace is where the cluster can be selected. Secrets are watched without
 * their bodies; a body is read when its Secret changed. What the kubeconfig may do (exec plugins, files) is for the
 * connection factory to say. A Secret that is gone, or has lost its label, disengages its cluster; no error does.
 */
export class KubeconfigSecretProvider implements Provider {
  readonly name: string;
  readonly #options: KubeconfigSecretProviderOptions;
  readonly #onlyNamespace: string | undefined;
  /** The version of its Secret that was declared. Outlives a failed run: the next one disengages what vanished meanwhile. */
  readonly #known = new Map<ClusterName, string>();
  #controller: Controller | undefined;

  constructor(options: KubeconfigSecretProviderOptions) {
    this.name = options.name ?? 'kubeconfig';
    this.#options = options;
    this.#onlyNamespace = options.namespaces?.length === 1 ? options.namespaces[0] : undefined;
  }

  async run(sink: ClusterSink, signal: AbortSignal): Promise<void> {
    const { management, telemetry } = this.#options;
    const owner = {};
    const secrets = this.#hold(owner);
    const first = new FirstRound(() => sink.synced?.());
    this.#controller = new Controller({
      name: `${this.name}-provider`,
      telemetry,
      lanes: { default: { concurrency: READS_AT_A_TIME } },
      reconciler: {
        reconcile: async (request, context) => {
          const result = await this.#declare(request, secrets, sink, context.signal);
          first.done(keyOf(request));
          return result;
        },
      },
      backoffCapMs: RETRY_CAP_MS,
      syncTimeoutMs: SYNC_LIMIT_MS,
      // What runs is a read: nothing is lost by ending it at once.
      graceMs: 0,
      sources: [async (_queue, until) => this.#feed(secrets, first, until)],
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
    // Known, but of no version: the cluster stays declared until its Secret is seen to be gone.
    if (this.#known.has(name)) this.#known.set(name, '');
    this.#look(this.#secretOf(name));
  }

  /** A Secret that two selectors match is in two informers, and in one queue. */
  #hold(owner: object): Informer<KubeObject>[] {
    const { management, namespaces = [undefined], labelSelectors = DEFAULT_SELECTORS } = this.#options;
    return namespaces.flatMap((namespace) =>
      labelSelectors.map((labelSelector) =>
        management.watches.hold(owner, {
          resource: SECRETS,
          form: 'metadata',
          labelSelector,
          ...(namespace === undefined ? {} : { namespace }),
        }),
      ),
    );
  }

  async #feed(secrets: readonly Informer<KubeObject>[], first: FirstRound, until: AbortSignal): Promise<void> {
    const look = ({ metadata }: KubeObject): void => this.#look(metadata);
    const removals = secrets.map((informer) =>
      informer.addHandler({ add: look, update: (_before, now) => look(now), delete: look }),
    );
    until.addEventListener('abort', () => removals.forEach((remove) => remove()), { once: true });
    await Promise.all(secrets.map(async (informer) => informer.synced(until, SYNC_LIMIT_MS)));
    for (const name of this.#known.keys()) this.#look(this.#secretOf(name));
    first.begin(secrets.flatMap((informer) => informer.list().map(({ metadata }) => keyOf(metadata))));
  }

  #look(secret: ObjectKey | undefined): void {
    if (secret?.namespace === undefined) return;
    this.#controller?.enqueue({ cluster: LOCAL_CLUSTER, namespace: secret.namespace, name: secret.name });
  }

  async #declare(
    { namespace, name }: Request,
    secrets: readonly Informer<KubeObject>[],
    sink: ClusterSink,
    signal: AbortSignal,
  ): Promise<Result> {
    const cluster = this.#clusterOf(namespace, name);
    const seen = secrets.map((informer) => informer.get(namespace, name)).find((secret) => secret !== undefined);
    if (seen === undefined) {
      if (this.#known.delete(cluster)) sink.disengage(cluster, `Secret ${namespace}/${name} is gone or not labelled`);
      return {};
    }
    if (this.#known.get(cluster) === versionOf(seen)) return {};
    const options: CallOptions = { signal, timeoutMs: READ_LIMIT_MS };
    const secret = await this.#options.management.client.find<Secret>(SECRETS, { namespace, name }, options);
    // Gone since: the watch tells of it.
    if (secret === undefined || signal.aborted) return {};
    const { keys = DEFAULT_KEYS } = this.#options;
    const kubeconfig = keys.map((key) => decoded(secret, key)).find((text) => text !== '');
    this.#known.set(cluster, versionOf(secret));
    if (kubeconfig !== undefined) sink.engage(cluster, { kubeconfig }, aboutOf(secret));
    else {
      const message = `Secret ${namespace}/${name} has none of the keys ${keys.join(', ')}`;
      sink.discover(cluster, { code: 'KubeconfigUnavailable', message }, aboutOf(secret));
    }
    return {};
  }

  #clusterOf(namespace: string, name: string): ClusterName {
    return this.#onlyNamespace === undefined ? namespacedClusterName(namespace, name) : clusterName(name);
  }

  #secretOf(name: ClusterName): ObjectKey | undefined {
    return this.#onlyNamespace === undefined ? splitClusterName(name) : { namespace: this.#onlyNamespace, name };
  }
}

function decoded(secret: Secret, key: string): string {
  return Buffer.from(secret.data?.[key] ?? '', 'base64').toString();
}

function keyOf({ namespace, name }: ObjectKey): string {
  return `${namespace ?? ''}/${name}`;
}

/** No annotations: kubectl's last-applied-configuration repeats the Secret's body. */
function aboutOf({ metadata }: Secret): ClusterAbout {
  const { name, namespace, uid, labels } = metadata;
  return { labels, namespace, source: { apiVersion: 'v1', kind: 'Secret', namespace, name, uid } };
}

/** Changes with every write, and with the object's replacement by another of its name. */
function versionOf({ metadata }: KubeObject): string {
  return `${metadata.uid ?? ''}/${metadata.resourceVersion ?? ''}`;
}
