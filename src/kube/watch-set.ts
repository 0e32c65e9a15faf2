import type { Counter, Gauge } from 'prom-client';
import { counter, gauge, untraced } from '../telemetry/index.ts';
import type { Logger, Telemetry } from '../telemetry/index.ts';
import type { WatchConnection } from './list-watch.ts';
import type { ListWatchOptions, WatchProblem } from './list-watch-options.ts';
import { WatchInformer } from './informer.ts';
import { FollowedWatch } from './watch-follow.ts';
import { watchKey } from './watch-key.ts';
import type { Follower, Informer, KubeObject, WatchSet, WatchTarget } from './types.ts';

/** What a watch set needs of its connection. */
export type WatchSetConnection = WatchConnection & { readonly clusterName: string; readonly telemetry: Telemetry };

export interface WatchSetOptions extends ListWatchOptions {
  /** Ends all watches, as `close` does. */
  readonly signal?: AbortSignal;
}

/** One running watch and who holds it. */
interface Watch {
  readonly informer: WatchInformer<KubeObject>;
  readonly owners: Set<object>;
  readonly stop: AbortController;
}

/** One watch that stores nothing; its owner is its key in the map. */
interface Followed {
  readonly watch: FollowedWatch;
  readonly stop: AbortController;
}

/** The watches of one connection, shared by key (see WatchSet). Owns the informers it starts: `close` ends them all. */
export class SharedWatchSet implements WatchSet {
  readonly #connection: WatchSetConnection;
  readonly #options: WatchSetOptions;
  readonly #log: Logger;
  readonly #starts: Counter<'cluster'>;
  readonly #stops: Counter<'cluster'>;
  readonly #open: Gauge<'cluster'>;
  readonly #watches = new Map<string, Watch>();
  readonly #held = new Map<object, Set<string>>();
  readonly #followed = new Map<object, Map<string, Followed>>();
  readonly #running = new Set<Promise<void>>();
  readonly #onAbort = (): void => {
    this.#stopAll();
  };
  #closed = false;

  constructor(connection: WatchSetConnection, options: WatchSetOptions = {}) {
    const { metrics } = connection.telemetry;
    this.#connection = connection;
    this.#options = options;
    this.#log = connection.telemetry.log.with({ cluster: connection.clusterName });
    this.#starts = counter(
      metrics,
      'capstan_watch_starts_total',
      'Watches that began because nobody held them before',
      ['cluster'],
    );
    this.#stops = counter(
      metrics,
      'capstan_watch_stops_total',
      'Watches that ended because nobody held them any more',
      ['cluster'],
    );
    this.#open = gauge(metrics, 'capstan_watches', 'Watches held now', ['cluster']);
    if (options.signal?.aborted === true) this.#closed = true;
    else options.signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  get size(): number {
    return [...this.#followed.values()].reduce((sum, { size }) => sum + size, this.#watches.size);
  }

  set(owner: object, targets: readonly WatchTarget[]): void {
    const before = this.#held.get(owner) ?? new Set<string>();
    const after = new Map(targets.map((target) => [watchKey(target), target]));
    // Start before stop: a target that moves from one key to another is watched all the time.
    const followed = this.#followed.get(owner) ?? new Map<string, Followed>();
    for (const [key, target] of after) if (!followed.has(key)) this.#take(owner, key, target);
    for (const key of [...before]) if (!after.has(key)) this.#drop(owner, key);
    for (const key of [...followed.keys()]) if (!after.has(key)) this.#unfollow(owner, key);
  }

  hold<T extends KubeObject>(owner: object, target: WatchTarget): Informer<T> {
    return typed<T>(this.#take(owner, watchKey(target), target).informer);
  }

  get<T extends KubeObject>(target: WatchTarget): Informer<T> | undefined {
    const watch = this.#watches.get(watchKey(target));
    return watch === undefined ? undefined : typed<T>(watch.informer);
  }

  follow(owner: object, target: WatchTarget, follower: Follower): void {
    if (this.#closed) return;
    const key = watchKey(target);
    const known = this.#followed.get(owner)?.get(key);
    if (known !== undefined) {
      known.watch.replace(follower);
      return;
    }
    const log = this.#log.with({ watch: describe(target) });
    const watch = new FollowedWatch(this.#connection, target, follower, {
      ...this.#options,
      onProblem: (problem) => {
        this.#tell(problem, log);
      },
      onFollowerError: (error) => {
        log.error('the follower of a watch threw', { err: error });
      },
    });
    const followed = { watch, stop: new AbortController() };
    const own = this.#followed.get(owner);
    if (own === undefined) this.#followed.set(owner, new Map([[key, followed]]));
    else own.set(key, followed);
    this.#countStart();
    this.#run(async () => watch.run(followed.stop.signal), log);
  }

  unfollow(owner: object, target: WatchTarget): void {
    this.#unfollow(owner, watchKey(target));
  }

  release(owner: object): void {
    this.set(owner, []);
  }

  /** Stops every watch; resolves when all have stopped. Nothing starts afterwards. */
  async close(): Promise<void> {
    this.#stopAll();
    await Promise.all(this.#running);
  }

  #take(owner: object, key: string, target: WatchTarget): Watch {
    const watch = this.#watches.get(key) ?? this.#start(key, target);
    watch.owners.add(owner);
    const held = this.#held.get(owner);
    if (held === undefined) this.#held.set(owner, new Set([key]));
    else held.add(key);
    return watch;
  }

  #drop(owner: object, key: string): void {
    const held = this.#held.get(owner);
    held?.delete(key);
    if (held?.size === 0) this.#held.delete(owner);
    const watch = this.#watches.get(key);
    if (watch === undefined) return;
    watch.owners.delete(owner);
    if (watch.owners.size === 0) this.#stop(key, watch);
  }

  #start(key: string, target: WatchTarget): Watch {
    const log = this.#log.with({ watch: describe(target) });
    const informer = new WatchInformer<KubeObject>(this.#connection, target, {
      ...this.#options,
      onProblem: (problem) => {
        this.#tell(problem, log);
      },
      onHandlerError: (error) => {
        log.error('a handler of a watch threw', { err: error });
      },
    });
    const watch: Watch = { informer, owners: new Set(), stop: new AbortController() };
    this.#watches.set(key, watch);
    if (this.#closed) {
      watch.stop.abort();
      this.#watches.delete(key);
    } else {
      this.#countStart();
    }
    this.#run(async () => informer.run(watch.stop.signal), log);
    return watch;
  }

  #unfollow(owner: object, key: string): void {
    const own = this.#followed.get(owner);
    const followed = own?.get(key);
    if (own === undefined || followed === undefined) return;
    own.delete(key);
    if (own.size === 0) this.#followed.delete(owner);
    followed.stop.abort();
    this.#countStop();
  }

  #countStart(): void {
    this.#starts.inc({ cluster: this.#connection.clusterName });
    this.#open.inc({ cluster: this.#connection.clusterName });
  }

  #countStop(): void {
    this.#stops.inc({ cluster: this.#connection.clusterName });
    this.#open.dec({ cluster: this.#connection.clusterName });
  }

  /** The background task: its end and its failure are heard here. */
  /** A watch outlives whatever happens to be the first to need it. */
  #run(run: () => Promise<void>, log: Logger): void {
    const running = untraced(run)
      .catch((error: unknown) => {
        log.error('a watch ended by itself; that is a defect', { err: error });
      })
      .finally(() => {
        this.#running.delete(running);
      });
    this.#running.add(running);
  }

  #stop(key: string, watch: Watch): void {
    if (this.#watches.get(key) !== watch) return;
    this.#watches.delete(key);
    watch.stop.abort();
    this.#countStop();
  }

  #stopAll(): void {
    this.#closed = true;
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    for (const [key, watch] of [...this.#watches]) this.#stop(key, watch);
    for (const [owner, own] of [...this.#followed]) for (const key of [...own.keys()]) this.#unfollow(owner, key);
    this.#held.clear();
  }

  #tell(problem: WatchProblem, log: Logger): void {
    const { error, retryInMs, failures } = problem;
    const level = error.code !== 'Gone' && isPowerOfTwo(failures) ? 'warn' : 'debug';
    log[level]('a watch failed and is tried again', { err: error, retryInMs, failures });
    this.#options.onProblem?.(problem);
  }
}

/** A cluster that is away for days fails fifteen watches twice a minute: the log has the first ones, then ever fewer. */
function isPowerOfTwo(count: number): boolean {
  return (count & (count - 1)) === 0;
}

/** A key belongs to one resource, and its caller says what that resource's objects are. */
function typed<T extends KubeObject>(informer: Informer<KubeObject>): Informer<T> {
  return informer as Informer<T>;
}

function describe({ resource, namespace, form }: WatchTarget): string {
  const name = resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`;
  return `${name}${namespace === undefined ? '' : ` in ${namespace}`}${form === 'metadata' ? ' (metadata)' : ''}`;
}
