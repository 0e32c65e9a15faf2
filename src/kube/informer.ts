import { linkAbort, withTimeout } from './abort.ts';
import { ConnectionClosedError } from './errors.ts';
import { listWatch } from './list-watch.ts';
import type { WatchConnection } from './list-watch.ts';
import type { ListWatchOptions } from './list-watch-options.ts';
import { Store, keyOfObject } from './store.ts';
import type { Change } from './store.ts';
import type { IndexFunction, Informer, InformerHandler, KubeObject, WatchNotice, WatchTarget } from './types.ts';

export interface InformerOptions extends ListWatchOptions {
  /** Told what a handler or an index function threw; the others go on. */
  readonly onHandlerError?: (error: unknown) => void;
}

interface Registration<T extends KubeObject> {
  readonly handler: InformerHandler<T>;
  active: boolean;
}

/**
 * A cache of one watch target. `run` keeps it until its signal aborts; whoever calls `run` owns the informer. Handlers
 * are told after the store has changed, in order, on the event loop's turn of the event.
 */
export class WatchInformer<T extends KubeObject> implements Informer<T> {
  readonly target: WatchTarget;
  readonly #connection: WatchConnection;
  readonly #options: InformerOptions;
  readonly #store = new Store<T>();
  readonly #registrations = new Set<Registration<T>>();
  readonly #sync = Promise.withResolvers<undefined>();
  readonly #stopped = new AbortController();
  #hasSynced = false;
  /** What the list that is under way has told so far; undefined when none is. */
  #incoming: Map<string, T> | undefined;

  constructor(connection: WatchConnection, target: WatchTarget, options: InformerOptions = {}) {
    this.#connection = connection;
    this.target = target;
    this.#options = options;
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  get size(): number {
    return this.#store.size;
  }

  get(namespace: string | undefined, name: string): T | undefined {
    return this.#store.get(namespace, name);
  }

  list(namespace?: string): T[] {
    return this.#store.list(namespace);
  }

  byIndex(index: string, value: string): T[] {
    return this.#store.byIndex(index, value);
  }

  addIndex(name: string, fn: IndexFunction<T>): void {
    this.#store.addIndex(name, (object) => {
      try {
        return fn(object);
      } catch (error) {
        this.#options.onHandlerError?.(error);
        return [];
      }
    });
  }

  addHandler(handler: InformerHandler<T>): () => void {
    const registration: Registration<T> = { handler, active: true };
    this.#registrations.add(registration);
    for (const object of this.#store.list()) this.#tell(registration, { type: 'add', object }, true);
    return () => {
      registration.active = false;
      this.#registrations.delete(registration);
    };
  }

  async synced(signal: AbortSignal, timeoutMs: number): Promise<void> {
    signal.throwIfAborted();
    if (this.#hasSynced) return;
    const linked = linkAbort(this.#stopped.signal);
    const follow = (): void => {
      linked.abort(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
    };
    signal.addEventListener('abort', follow, { once: true });
    try {
      await withTimeout(linked.signal, timeoutMs, async () => this.#sync.promise, `first list of ${this.#name()}`);
    } finally {
      signal.removeEventListener('abort', follow);
      linked.unlink();
    }
  }

  /** Lists and watches until `signal` aborts. Call once. Afterwards `synced` rejects for those who still wait. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      for await (const notice of listWatch<T>(this.#connection, this.target, signal, this.#options)) this.#take(notice);
    } finally {
      this.#stopped.abort(new ConnectionClosedError(`the watch of ${this.#name()} was stopped`));
    }
  }

  #take(notice: WatchNotice<T>): void {
    switch (notice.type) {
      case 'init':
        this.#incoming = new Map();
        return;
      case 'initApply':
        this.#incoming?.set(keyOfObject(notice.object), notice.object);
        return;
      case 'initDone':
        this.#finishList();
        return;
      case 'apply':
        this.#publish(this.#store.put(notice.object), false);
        return;
      case 'delete':
        if (this.#incoming === undefined) this.#publish(this.#store.remove(notice.object), false);
        else this.#incoming.delete(keyOfObject(notice.object));
        return;
    }
  }

  #finishList(): void {
    const changes = this.#store.replace(this.#incoming ?? new Map<string, T>());
    this.#incoming = undefined;
    this.#hasSynced = true;
    this.#publish(changes, true);
    this.#sync.resolve(undefined);
  }

  /** A handler that is added while others are told has been told the store as it is: it is not among those told here. */
  #publish(changes: readonly Change<T>[], initial: boolean): void {
    const told = [...this.#registrations];
    for (const change of changes) for (const registration of told) this.#tell(registration, change, initial);
  }

  #tell({ handler, active }: Registration<T>, change: Change<T>, initial: boolean): void {
    if (!active) return;
    try {
      if (change.type === 'add') handler.add?.(change.object, initial);
      else if (change.type === 'update') handler.update?.(change.previous, change.object);
      else handler.delete?.(change.object);
    } catch (error) {
      this.#options.onHandlerError?.(error);
    }
  }

  #name(): string {
    const { group, plural } = this.target.resource;
    return group === '' ? plural : `${plural}.${group}`;
  }
}
