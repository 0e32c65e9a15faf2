import { clusterName } from 'capstan';
import type { ClusterName, ClusterSink, Logger, Provider } from 'capstan';
import { readInventory } from './inventory.ts';
import type { InventoryEntry } from './inventory.ts';

export interface InventoryProviderOptions {
  /** Answers GET with a list of clusters; see inventory.ts. */
  readonly url: string;
  readonly log: Logger;
  /** Between polls, milliseconds; 30 s. */
  readonly pollMs?: number;
  /** Limit of one request, milliseconds; 10 s. */
  readonly timeoutMs?: number;
  /** Of the management cluster: HelmChartProxies of this namespace may select the clusters. */
  readonly namespace: string;
  /** Sent as `Authorization: Bearer …`, where the inventory asks for it. */
  readonly token?: string;
}

const DEFAULT_POLL_MS = 30_000;
const DEFAULT_TIMEOUT_MS = 10_000;

/**
 * Clusters from an HTTP inventory. It only says which clusters there are and how to reach them; connecting, probing and
 * retrying is the fleet's work. An inventory that cannot be read changes nothing: clusters go only when an answer that
 * could be read whole does not name them.
 */
export class InventoryProvider implements Provider {
  readonly name = 'inventory';
  readonly #options: InventoryProviderOptions;
  /** Outlives a failed run, so that the next one disengages what vanished meanwhile. */
  readonly #declared = new Set<ClusterName>();
  #etag: string | undefined;
  #wake = new AbortController();

  constructor(options: InventoryProviderOptions) {
    this.#options = options;
  }

  async run(sink: ClusterSink, signal: AbortSignal): Promise<void> {
    // A fleet that starts this provider anew has to hear everything again.
    this.#etag = undefined;
    while (!signal.aborted) {
      this.#wake = new AbortController();
      try {
        await this.#poll(sink, signal);
      } catch (err) {
        if (isAborted(signal)) return;
        this.#options.log.warn('the inventory cannot be read; its clusters stay', { err });
      }
      await pause(this.#options.pollMs ?? DEFAULT_POLL_MS, AbortSignal.any([signal, this.#wake.signal]));
    }
  }

  /** A cluster refused its credentials: perhaps the inventory has newer ones. Called by the fleet; returns at once. */
  refresh(): void {
    this.#etag = undefined;
    this.#wake.abort();
  }

  async #poll(sink: ClusterSink, signal: AbortSignal): Promise<void> {
    const { url, token, timeoutMs = DEFAULT_TIMEOUT_MS } = this.#options;
    const answer = await fetch(url, {
      headers: {
        accept: 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(this.#etag === undefined ? {} : { 'if-none-match': this.#etag }),
      },
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    if (answer.status === 304) return;
    if (!answer.ok) throw new Error(`GET ${url}: HTTP ${String(answer.status)}`);
    const { entries, problems } = readInventory(await answer.json());
    for (const problem of problems) this.#options.log.warn('an entry of the inventory is left out', { problem });
    this.#declare(sink, entries, problems.length === 0);
    this.#etag = answer.headers.get('etag') ?? undefined;
  }

  /** `complete`: what is not among the entries is gone. Otherwise it may be one of those that could not be read. */
  #declare(sink: ClusterSink, entries: readonly InventoryEntry[], complete: boolean): void {
    const { namespace } = this.#options;
    const named = new Set<ClusterName>();
    for (const { name: text, kubeconfig, labels } of entries) {
      const name = clusterName(text);
      named.add(name);
      this.#declared.add(name);
      // The fleet compares: the same again is nothing, other credentials are swapped in place, another server engages anew.
      if (kubeconfig !== undefined) sink.engage(name, { kubeconfig }, { labels, namespace });
      else
        sink.discover(
          name,
          { code: 'NotReady', message: 'the inventory has no kubeconfig for it yet' },
          { labels, namespace },
        );
    }
    if (!complete) return;
    for (const name of this.#declared) {
      if (named.has(name)) continue;
      this.#declared.delete(name);
      sink.disengage(name, 'it is no longer in the inventory');
    }
    // From here on a cluster that is not there is gone; before, nobody could know.
    sink.synced?.();
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });
}

/** Asked anew after an await: TypeScript takes the answer before it for granted. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
