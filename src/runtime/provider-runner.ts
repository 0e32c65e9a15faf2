import { Backoff } from '../kube/index.ts';
import type { Logger } from '../telemetry/index.ts';
import { isAborted, pause } from './abort.ts';
import type { ClusterSink, Provider, Runnable } from './types.ts';

const BACKOFF = { baseMs: 1_000, capMs: 30_000 };
/** No restart sooner, whatever the jitter says. */
const MIN_RESTART_MS = 200;
/** A provider that ran so long was healthy: its next failure is a first one. */
const HEALTHY_AFTER_MS = 60_000;

/** A provider as a Runnable: when it fails or ends it is started again with back-off. Its clusters stay as they are meanwhile. */
export class ProviderRunner implements Runnable {
  readonly name: string;
  readonly #provider: Provider;
  readonly #sink: ClusterSink;
  readonly #log: Logger;

  constructor(provider: Provider, sink: ClusterSink, log: Logger) {
    this.name = `provider ${provider.name}`;
    this.#provider = provider;
    this.#sink = sink;
    this.#log = log.with({ provider: provider.name });
  }

  async run(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(BACKOFF);
    while (!signal.aborted) {
      const startedAt = performance.now();
      const failure = await this.#once(signal);
      if (isAborted(signal)) return;
      if (performance.now() - startedAt > HEALTHY_AFTER_MS) backoff.reset();
      const waitMs = Math.max(MIN_RESTART_MS, backoff.next());
      this.#log.warn('the provider ended and is started again; its clusters stay engaged', { ...failure, waitMs });
      await pause(waitMs, signal);
    }
  }

  async #once(signal: AbortSignal): Promise<{ err?: unknown }> {
    try {
      await this.#provider.run(this.#sink, signal);
      return {};
    } catch (err) {
      return { err };
    }
  }
}
