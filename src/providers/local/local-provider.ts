import { sleep } from '../../kube/index.ts';
import { clusterName } from '../../runtime/index.ts';
import type { Cluster, ClusterAbout, ClusterName, ClusterSink, Provider } from '../../runtime/index.ts';
import { errorText } from '../../telemetry/index.ts';

export interface LocalProviderOptions extends Pick<ClusterAbout, 'labels' | 'namespace'> {
  /** The management cluster. */
  readonly management: Cluster;
  /** Stands in logs and before the name of the cluster; `local`. */
  readonly name?: string;
  /** The cluster's name in the fleet; LOCAL_TARGET. */
  readonly clusterName?: string;
  /** How often its credentials are looked at, milliseconds; 30 s. */
  readonly pollMs?: number;
}

/** The runtime's own name of the management cluster (`local`) is never in the fleet: work with it and work on it stay apart in logs and metrics. */
export const LOCAL_TARGET = 'in-cluster';

/** Service accounts' tokens are renewed at 80 % of an hour, and a refusal asks at once: this only keeps the fleet's copy young. */
const DEFAULT_POLL_MS = 30_000;

/**
 * Declares the management cluster as a cluster of the fleet, for those who have one cluster and want add-ons on it. The
 * fleet opens a connection of its own with the manager's credentials and supervises it like any other.
 */
export class LocalProvider implements Provider {
  readonly name: string;
  readonly #options: LocalProviderOptions;
  readonly #cluster: ClusterName;
  #wake: AbortController | undefined;

  constructor(options: LocalProviderOptions) {
    this.name = options.name ?? 'local';
    this.#options = options;
    this.#cluster = clusterName(options.clusterName ?? LOCAL_TARGET);
  }

  async run(sink: ClusterSink, signal: AbortSignal): Promise<void> {
    const onAbort = (): void => this.#wake?.abort();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      while (!signal.aborted) {
        this.#wake = new AbortController();
        this.#declare(sink);
        sink.synced?.();
        await sleep(this.#options.pollMs ?? DEFAULT_POLL_MS, this.#wake.signal).catch(() => undefined);
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#wake = undefined;
    }
  }

  /** After a 401: whatever the manager itself uses by now is declared. */
  refresh(name: ClusterName): void {
    if (name === this.#cluster) this.#wake?.abort();
  }

  /** The same again: the fleet does nothing. */
  #declare(sink: ClusterSink): void {
    const { management, labels, namespace } = this.#options;
    const about = { labels, namespace };
    try {
      sink.engage(this.#cluster, { kubeconfig: management.kubeconfig() }, about);
    } catch (error) {
      const message = `the manager's own credentials cannot be read: ${errorText(error)}`;
      sink.discover(this.#cluster, { code: 'KubeconfigUnavailable', message }, about);
    }
  }
}
