/** An API server in memory, as far as reconcilers see one: resourceVersions, generations, finalizers, merge patches, watches. Its events come at once. */
import { AlreadyExistsError, ConflictError, NotFoundError, watchKey } from '../kube/index.ts';
import type {
  DeleteOptions,
  Discovery,
  Informer,
  KubeClient,
  KubeObject,
  ListResult,
  ObjectKey,
  Resource,
  UnstructuredObject,
  WatchSet,
  WatchTarget,
  WriteOptions,
} from '../kube/index.ts';
import { FakeInformer } from './fake-informer.test-support.ts';
import { deepEqual, isRecord } from './merge-patch.ts';

type Any = UnstructuredObject;

export interface RecordedWrite {
  readonly verb: 'create' | 'patch' | 'delete';
  readonly what: string;
}

/** One API server. */
export class FakeServer {
  readonly writes: RecordedWrite[] = [];
  /** Throws in place of the call that it is asked about, when it wants. */
  fail: ((verb: string, plural: string, name: string) => void) | undefined;
  readonly kinds = new Map<string, Resource>();
  readonly client: KubeClient = new FakeClient(this);
  readonly watches: WatchSet = new FakeWatches(this);
  readonly discovery: Discovery = {
    find: async ({ kind, version }) => {
      const found = this.kinds.get(kind);
      return version === undefined || version === found?.version ? found : undefined;
    },
    versions: async () => [],
    invalidate: () => undefined,
  };
  readonly informers = new Map<string, FakeInformer>();
  readonly #objects = new Map<string, Map<string, Any>>();
  #version = 100;
  /** Informers of these hear nothing: a cache that lags. */
  #lagging: string | undefined;
  readonly #held: (() => void)[] = [];

  /** Puts an object there as it stands, as a user or another controller would. */
  put<T extends KubeObject>(resource: Resource, object: T): T {
    const key = nameKey(object.metadata);
    const before = this.of(resource).get(key);
    const stored = structuredClone(object) as KubeObject as Any;
    stored.metadata.uid ??= before?.metadata.uid ?? `uid-${String(this.#version)}`;
    stored.metadata.creationTimestamp ??= '2026-01-01T00:00:00Z';
    stored.metadata.generation ??= 1;
    if (before !== undefined && !deepEqual(before.spec, stored.spec)) {
      stored.metadata.generation = (before.metadata.generation ?? 0) + 1;
    }
    return this.store(resource, stored) as KubeObject as T;
  }

  /** What a user's edit does. */
  edit<T extends KubeObject>(resource: Resource, key: Required<ObjectKey>, change: (object: T) => void): T {
    const copy: KubeObject = structuredClone(this.must(resource, key));
    change(copy as T);
    return this.put(resource, copy as T);
  }

  peek(resource: Resource, namespace: string, name: string): KubeObject | undefined {
    return this.of(resource).get(`${namespace}/${name}`);
  }

  all<T extends KubeObject>(resource: Resource): T[] {
    return [...this.of(resource).values()] as KubeObject[] as T[];
  }

  /** Stops events of a resource until the returned function is called. */
  lag(resource: Resource): () => void {
    this.#lagging = resource.plural;
    return () => {
      this.#lagging = undefined;
      for (const tell of this.#held.splice(0)) tell();
    };
  }

  store(resource: Resource, given: Any): Any {
    const object = { ...given, metadata: { ...given.metadata } };
    const key = nameKey(object.metadata);
    const objects = this.of(resource);
    const before = objects.get(key);
    object.metadata.resourceVersion = String(++this.#version);
    const gone = object.metadata.deletionTimestamp !== undefined && (object.metadata.finalizers ?? []).length === 0;
    if (gone) objects.delete(key);
    else objects.set(key, object);
    this.#tell(resource, before, gone ? undefined : object);
    return object;
  }

  /** Takes an object away, finalizers or not. */
  remove(resource: Resource, namespace: string, name: string): void {
    const before = this.must(resource, { namespace, name });
    this.of(resource).delete(`${namespace}/${name}`);
    this.#tell(resource, before, undefined);
  }

  #tell(resource: Resource, before: Any | undefined, after: Any | undefined): void {
    const tell = (): void => {
      for (const informer of this.informers.values()) {
        if (informer.target.resource.plural === resource.plural) informer.tell(after, before);
      }
    };
    if (this.#lagging === resource.plural) this.#held.push(tell);
    else tell();
  }

  of(resource: Resource): Map<string, Any> {
    const objects = this.#objects.get(resource.plural) ?? new Map<string, Any>();
    this.#objects.set(resource.plural, objects);
    return objects;
  }

  must(resource: Resource, key: ObjectKey): Any {
    const found = this.of(resource).get(nameKey(key));
    if (found === undefined) throw new NotFoundError(`${resource.plural} ${key.name} not found`);
    return found;
  }
}

class FakeClient implements KubeClient {
  readonly #server: FakeServer;

  constructor(server: FakeServer) {
    this.#server = server;
  }

  async get<T extends KubeObject>(resource: Resource, key: ObjectKey): Promise<T> {
    return this.#server.must(resource, key) as KubeObject as T;
  }

  async find<T extends KubeObject>(resource: Resource, key: ObjectKey): Promise<T | undefined> {
    this.#server.fail?.('get', resource.plural, key.name);
    const found: KubeObject | undefined = this.#server.of(resource).get(nameKey(key));
    return found as T | undefined;
  }

  async list<T extends KubeObject>(resource: Resource): Promise<ListResult<T>> {
    return { items: this.#server.all<T>(resource), resourceVersion: '1' };
  }

  async create<T extends KubeObject>(resource: Resource, object: T): Promise<T> {
    const { name } = object.metadata;
    this.#server.fail?.('create', resource.plural, name);
    if (this.#server.of(resource).has(nameKey(object.metadata))) throw new AlreadyExistsError(`${name} exists`);
    this.#server.writes.push({ verb: 'create', what: `${resource.plural}/${name}` });
    return structuredClone(this.#server.put<T>(resource, JSON.parse(JSON.stringify(object)) as T));
  }

  async patch<T extends KubeObject>(
    resource: Resource,
    key: ObjectKey,
    patch: { type: string; body: unknown },
    options: WriteOptions = {},
  ): Promise<T> {
    this.#server.fail?.('patch', resource.plural, key.name);
    const before = this.#server.must(resource, key);
    const body = JSON.parse(JSON.stringify(patch.body)) as Partial<KubeObject>;
    const lock = body.metadata?.resourceVersion;
    if (lock !== undefined && lock !== before.metadata.resourceVersion) throw new ConflictError(`${key.name} changed`);
    const next = patched(before, body, options.subresource === 'status');
    const path = options.subresource === undefined ? key.name : `${key.name}/${options.subresource}`;
    this.#server.writes.push({ verb: 'patch', what: `${resource.plural}/${path}` });
    const stored: KubeObject = structuredClone(this.#server.store(resource, next));
    return stored as T;
  }

  async delete(resource: Resource, key: ObjectKey, options: DeleteOptions = {}): Promise<boolean> {
    this.#server.fail?.('delete', resource.plural, key.name);
    const before = this.#server.of(resource).get(nameKey(key));
    if (before === undefined) return false;
    if (options.uid !== undefined && options.uid !== before.metadata.uid) throw new ConflictError('another object');
    this.#server.writes.push({ verb: 'delete', what: `${resource.plural}/${key.name}` });
    const next = structuredClone(before);
    next.metadata.deletionTimestamp ??= '2026-01-01T01:00:00Z';
    this.#server.store(resource, next);
    return true;
  }

  async replace<T extends KubeObject>(): Promise<T> {
    throw new Error('not used');
  }

  async apply<T extends KubeObject>(): Promise<T> {
    throw new Error('not used');
  }

  async raw<T>(): Promise<T> {
    throw new Error('not used');
  }
}

class FakeWatches implements WatchSet {
  readonly #server: FakeServer;
  readonly #owners = new Map<object, Set<string>>();

  constructor(server: FakeServer) {
    this.#server = server;
  }

  set(): void {
    throw new Error('not used');
  }

  hold<T extends KubeObject>(owner: object, target: WatchTarget): Informer<T> {
    const key = watchKey(target);
    this.#owners.set(owner, (this.#owners.get(owner) ?? new Set<string>()).add(key));
    let informer = this.#server.informers.get(key);
    if (informer === undefined) {
      informer = new FakeInformer(target);
      this.#server.informers.set(key, informer);
      for (const object of this.#server.of(target.resource).values()) informer.tell(object);
    }
    return informer as Informer<KubeObject> as Informer<T>;
  }

  get<T extends KubeObject>(target: WatchTarget): Informer<T> | undefined {
    return this.#server.informers.get(watchKey(target)) as Informer<KubeObject> | undefined as Informer<T> | undefined;
  }

  follow(): void {
    throw new Error('not used');
  }

  unfollow(): void {
    throw new Error('not used');
  }

  release(owner: object): void {
    this.#owners.delete(owner);
    for (const key of this.#server.informers.keys()) {
      if (![...this.#owners.values()].some((keys) => keys.has(key))) this.#server.informers.delete(key);
    }
  }

  get size(): number {
    return this.#server.informers.size;
  }
}

/** What the server makes of a patch: status and the rest are two subresources; the generation counts changes of the spec. */
function patched(before: Any, body: unknown, isStatus: boolean): Any {
  const merged = merge(before, body) as Any;
  if (isStatus) return { ...before, status: merged.status };
  const changed = deepEqual(before.spec, merged.spec) ? 0 : 1;
  const generation = (before.metadata.generation ?? 0) + changed;
  return { ...merged, status: before.status, metadata: { ...merged.metadata, generation } };
}

function nameKey({ namespace, name }: { namespace?: string; name: string }): string {
  return `${namespace ?? ''}/${name}`;
}

/** RFC 7386. */
function merge(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const result = new Map<string, unknown>(isRecord(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key);
    else result.set(key, merge(result.get(key), value));
  }
  return Object.fromEntries(result);
}
