import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeObject, RestClient } from './rest.ts';

/** What happened to an object; `before` is how it was known, and `object` of a removal is its last state. */
export interface MirrorChange<T> {
  type: 'added' | 'changed' | 'removed';
  object: T;
  before?: T;
}

/** A pause (ms) before the next list after a watch that broke: the server may be restarting. */
const RETRY_MS = 200;

/** A live copy of one collection: a list, then a watch, and the list again whenever the watch ends. */
export class Mirror<T extends KubeObject = KubeObject> {
  readonly #client: RestClient;
  readonly #path: string;
  readonly #onChange: (change: MirrorChange<T>) => void;
  readonly #objects = new Map<string, T>();
  readonly #closing = new AbortController();
  readonly #events = new EventEmitter();
  #running: Promise<void> = Promise.resolve();

  private constructor(client: RestClient, path: string, onChange: (change: MirrorChange<T>) => void) {
    this.#client = client;
    this.#path = path;
    this.#onChange = onChange;
    // Many may wait for the same mirror.
    this.#events.setMaxListeners(0);
  }

  /** Resolves when the first list is in; `onChange` is told its objects, and every change after it. */
  static async start<T extends KubeObject = KubeObject>(
    client: RestClient,
    path: string,
    onChange: (change: MirrorChange<T>) => void = () => undefined,
  ): Promise<Mirror<T>> {
    const mirror = new Mirror<T>(client, path, onChange);
    const resourceVersion = await mirror.#list();
    mirror.#running = mirror.#follow(resourceVersion);
    return mirror;
  }

  /** The objects as they are known now. */
  objects(): T[] {
    return [...this.#objects.values()];
  }

  /**
   * Resolves when `missing` finds nothing missing; asked now and after every change.
   * @throws Error that tells what was missing last, after `timeoutMs` (default 60 s); the signal's reason.
   */
  async until(
    missing: (objects: T[]) => string | undefined,
    options: { timeoutMs?: number; what: string; signal?: AbortSignal },
  ): Promise<void> {
    const { timeoutMs = 60_000, what } = options;
    const limit = AbortSignal.timeout(timeoutMs);
    const signal = AbortSignal.any([limit, this.#closing.signal, ...(options.signal ? [options.signal] : [])]);
    for (let last = missing(this.objects()); last !== undefined; last = missing(this.objects())) {
      try {
        await once(this.#events, 'change', { signal });
      } catch (error) {
        options.signal?.throwIfAborted();
        if (!limit.aborted) throw error;
        throw new Error(`${what}: not within ${timeoutMs} ms; last: ${last}`, { cause: error });
      }
    }
  }

  /** Ends the watch. */
  async stop(): Promise<void> {
    this.#closing.abort(new Error(`the mirror of ${this.#path} was stopped`));
    await this.#running;
  }

  async #follow(from: string): Promise<void> {
    const { signal } = this.#closing;
    let resourceVersion: string | undefined = from;
    while (!signal.aborted) {
      try {
        resourceVersion ??= await this.#list();
        await this.#watch(resourceVersion, signal);
      } catch {
        // A mirror has nobody to tell; who waits for something hears of its limit.
        await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
      resourceVersion = undefined;
    }
  }

  async #watch(resourceVersion: string, signal: AbortSignal): Promise<void> {
    for await (const { type, object } of this.#client.watch<T>(this.#path, { resourceVersion, signal })) {
      if (type === 'DELETED') this.#remove(object);
      else this.#put(object);
    }
  }

  async #list(): Promise<string> {
    const list = await this.#client.get<{ metadata: { resourceVersion: string }; items: T[] | null }>(this.#path);
    const items = list.items ?? [];
    const present = new Set(items.map(keyOf));
    for (const object of this.objects()) if (!present.has(keyOf(object))) this.#remove(object);
    for (const object of items) this.#put(object);
    return list.metadata.resourceVersion;
  }

  #put(object: T): void {
    const before = this.#objects.get(keyOf(object));
    if (before?.metadata.resourceVersion === object.metadata.resourceVersion && before !== undefined) return;
    this.#objects.set(keyOf(object), object);
    this.#tell({ type: before === undefined ? 'added' : 'changed', object, before });
  }

  #remove(object: T): void {
    const before = this.#objects.get(keyOf(object));
    this.#objects.delete(keyOf(object));
    this.#tell({ type: 'removed', object, before });
  }

  #tell(change: MirrorChange<T>): void {
    this.#onChange(change);
    this.#events.emit('change');
  }
}

function keyOf(object: KubeObject): string {
  return `${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`;
}
