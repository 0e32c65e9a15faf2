import { withTimeout } from '../kube/index.ts';
import type { Logger, Telemetry } from '../telemetry/index.ts';
import { aborted } from './abort.ts';
import { LeadershipLostError, StartupTimeoutError, StoppingError } from './errors.ts';
import type { SupervisedFleet } from './fleet.ts';
import type { LeaderElector } from './leader.ts';
import { ProviderRunner } from './provider-runner.ts';
import { RunnableGroup } from './runnable-group.ts';
import type { Provider, Runnable } from './types.ts';

/** A cache of the management cluster that is filled before leadership is sought, so that a standby takes over warm. */
export interface ManagedCache {
  readonly name: string;
  /** Resolves when filled; rejects when `signal` aborts. */
  synced(signal: AbortSignal): Promise<void>;
}

export interface ManagerOptions {
  readonly telemetry: Telemetry;
  readonly fleet: SupervisedFleet;
  /** Health and metrics. First to start, last to stop. */
  readonly servers?: readonly Runnable[];
  /** What others work through, e.g. the event recorder. Starts after the servers; stops, drained, before them. */
  readonly background?: readonly Runnable[];
  readonly caches?: readonly ManagedCache[];
  /** Absent: this process leads by definition. */
  readonly leader?: LeaderElector;
  /** Membership among replicas that share the clusters. Joins after leadership, leaves when controllers have drained. */
  readonly shards?: Runnable;
  readonly providers: readonly Provider[];
  readonly controllers: readonly Runnable[];
  /** Limit for the caches to fill, milliseconds; 2 min. */
  readonly cacheTimeoutMs?: number;
  /** Limit for the controllers to drain, milliseconds; 30 s. Longer than a controller's own grace. */
  readonly drainMs?: number;
}

/** `starting` (caches) → `standby` (seeking leadership) → `running` → `stopping`. */
export type ManagerPhase = 'starting' | 'standby' | 'running' | 'stopping';

const DEFAULT_CACHE_TIMEOUT_MS = 120_000;
const DEFAULT_DRAIN_MS = 30_000;
/** Limit for each of the other groups to stop. */
const STOP_LIMIT_MS = 8_000;
/** A replica that leaves tells the others in order; what still ran was aborted, and its last requests may be under way. */
const LEAVE_LIMIT_MS = 20_000;
/** After a lost lease: another process may begin as soon as the lease runs out, 5 s after it was given up by default. */
const LOST_LIMIT_MS = 3_000;

/**
 * Starts and stops everything in order. Start: servers (probes must answer while caches fill), background, caches,
 * leadership, shards, fleet, providers, controllers. Stop is the reverse: controllers drain while clusters are still there, the
 * lease is given back when nothing acts any more, metrics and health are up until the end. A part that ends by itself
 * stops all and is the error that `run` rejects with; providers alone are started again.
 */
export class Manager {
  readonly #options: ManagerOptions;
  readonly #log: Logger;
  readonly #fatal = new AbortController();
  readonly #started: { group: RunnableGroup; limitMs: number }[] = [];
  #phase: ManagerPhase = 'starting';

  constructor(options: ManagerOptions) {
    this.#options = options;
    this.#log = options.telemetry.log;
  }

  get phase(): ManagerPhase {
    return this.#phase;
  }

  /** Resolves after `signal` aborted and everything has stopped. Rejects with the first fatal error, after the same. Call once. */
  async run(signal: AbortSignal): Promise<void> {
    const onAbort = (): void => this.#fatal.abort(new StoppingError());
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await this.#start(this.#fatal.signal);
      await aborted(this.#fatal.signal);
    } catch (error) {
      this.#fatal.abort(error);
    } finally {
      signal.removeEventListener('abort', onAbort);
      await this.#stop();
    }
    const reason: unknown = this.#fatal.signal.reason;
    if (!(reason instanceof StoppingError)) throw reason;
  }

  async #start(signal: AbortSignal): Promise<void> {
    const { fleet, telemetry } = this.#options;
    this.#startGroup('servers', this.#options.servers ?? []);
    this.#startGroup('background', this.#options.background ?? []);
    await this.#fillCaches(signal);
    this.#setPhase('standby');
    if (!(await this.#lead(signal))) return;
    this.#setPhase('running');
    if (this.#options.shards !== undefined) this.#startGroup('shards', [this.#options.shards], LEAVE_LIMIT_MS);
    this.#startGroup('fleet', [fleet]);
    const several = this.#options.providers.length > 1;
    const providers = this.#options.providers.map((provider) => {
      const prefix = several && provider.bare !== true;
      return new ProviderRunner(provider, fleet.sink(provider, { prefix }), telemetry.log);
    });
    this.#startGroup('providers', providers);
    this.#startGroup('controllers', this.#options.controllers, this.#options.drainMs ?? DEFAULT_DRAIN_MS);
  }

  async #fillCaches(signal: AbortSignal): Promise<void> {
    const limitMs = this.#options.cacheTimeoutMs ?? DEFAULT_CACHE_TIMEOUT_MS;
    const waiting = new Set(this.#options.caches ?? []);
    try {
      await withTimeout(signal, limitMs, async (inner) =>
        Promise.all(
          [...waiting].map(async (cache) => {
            await cache.synced(inner);
            waiting.delete(cache);
          }),
        ),
      );
    } catch (cause) {
      signal.throwIfAborted();
      const names = [...waiting].map((cache) => cache.name).join(', ');
      throw new StartupTimeoutError(`caches did not fill: ${names}`, { cause });
    }
  }

  /** False when stopped before. */
  async #lead(signal: AbortSignal): Promise<boolean> {
    const { leader } = this.#options;
    if (leader === undefined) return !signal.aborted;
    if (!(await leader.acquire(signal))) return false;
    this.#startGroup('leadership', [{ name: 'leader election', run: async (inner) => leader.hold(inner) }]);
    return !signal.aborted;
  }

  #startGroup(name: string, runnables: readonly Runnable[], limitMs = STOP_LIMIT_MS): void {
    if (this.#fatal.signal.aborted) return;
    const group = new RunnableGroup(name, this.#log, (error) => this.#fail(error));
    group.start(runnables);
    this.#started.push({ group, limitMs });
  }

  #fail(error: Error): void {
    // The lease's loss is an error of its own, not merely a part that ended.
    const cause = error.cause instanceof LeadershipLostError ? error.cause : error;
    this.#fatal.abort(cause);
  }

  async #stop(): Promise<void> {
    this.#setPhase('stopping');
    const reason: unknown = this.#fatal.signal.reason;
    const error = reason instanceof Error ? reason : new StoppingError();
    const hurry = error instanceof LeadershipLostError;
    for (const { group, limitMs } of this.#started.reverse()) await group.stop(error, hurry ? LOST_LIMIT_MS : limitMs);
  }

  #setPhase(phase: ManagerPhase): void {
    this.#phase = phase;
    this.#log.info(`manager ${phase}`);
  }
}
