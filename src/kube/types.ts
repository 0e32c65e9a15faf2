/**
 * The contract of the room `kube`: one API server, seen from a client. Nothing here knows of a second cluster, of a
 * controller or of Helm.
 */
import type { KubeError } from './errors.ts';

/** Metadata as every Kubernetes object has it (API conventions, "Metadata"). Only what some room reads is named. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  generateName?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  managedFields?: ManagedFieldsEntry[];
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ManagedFieldsEntry {
  manager?: string;
  operation?: 'Apply' | 'Update';
  apiVersion?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: Record<string, unknown>;
  subresource?: string;
}

/** Any object; rooms above narrow it with their own types. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** An object of a kind nobody typed. */
export type UnstructuredObject = KubeObject & Record<string, unknown>;

/** A REST resource: what stands in the URL, and whether a namespace does. `group` is '' for core. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

/** `metadata`: PartialObjectMetadata is asked for, only metadata comes. `full`: the object. */
export type Form = 'metadata' | 'full';

/** Which objects of a resource. An absent namespace means all. Selectors are in the API's own syntax. */
export interface Scope {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** One watch: equal keys share it. `watchKey()` gives its string form. */
export interface WatchTarget extends Scope {
  readonly resource: Resource;
  readonly form: Form;
  /** managedFields are stripped before storing unless this is true: they are often half of an object. */
  readonly keepManagedFields?: boolean;
}

/**
 * What a list-watch tells, in order. A list (first or after 410) is `init`, then `initApply` per object, then
 * `initDone`: the receiver replaces what it held and thereby learns of deletes that happened while away.
 */
export type WatchNotice<T extends KubeObject> =
  | { readonly type: 'init' }
  | { readonly type: 'initApply'; readonly object: T }
  | { readonly type: 'initDone'; readonly resourceVersion: string }
  | { readonly type: 'apply'; readonly object: T }
  | { readonly type: 'delete'; readonly object: T };

/** Who is told the notices of a watch that stores nothing. Neither may throw; what is thrown is logged and the watch goes on. */
export interface Follower {
  notice(notice: WatchNotice<KubeObject>): void;
  /** The watch failed, for the `failures`th time in a row, and is tried again: also when its resource is not served or not allowed. */
  problem?(error: KubeError, failures: number): void;
  /** The server took the watch (again), without a list, as nothing was missed: a `problem` is over. */
  resumed?(): void;
}

/** What an informer tells its handlers. `initial` is true for objects told during a list. Handlers must not throw; one that does is logged and the others go on. */
export interface InformerHandler<T extends KubeObject> {
  add?(object: T, initial: boolean): void;
  update?(previous: T, object: T): void;
  delete?(object: T): void;
}

/** Reads of an informer's store. Objects are shared: never change one. */
export interface Lister<T extends KubeObject> {
  get(namespace: string | undefined, name: string): T | undefined;
  list(namespace?: string): T[];
  /** Objects for which the index function named `index` gave `value`. Unknown index: throws. */
  byIndex(index: string, value: string): T[];
  readonly size: number;
}

export type IndexFunction<T extends KubeObject> = (object: T) => readonly string[];

/** A cache of one watch target, kept by a list-watch. */
export interface Informer<T extends KubeObject> extends Lister<T> {
  readonly target: WatchTarget;
  /** True once the first list has been stored and told; stays true afterwards. */
  readonly hasSynced: boolean;
  /** Resolves when synced; rejects with the signal's reason, or with TimedOut after `timeoutMs`. */
  synced(signal: AbortSignal, timeoutMs: number): Promise<void>;
  /** Handlers that come late are told `add` (initial) of what is stored, synchronously. Returns the removal, by identity. */
  addHandler(handler: InformerHandler<T>): () => void;
  /** Index functions may be added at any time; what is stored is indexed at once. */
  addIndex(name: string, fn: IndexFunction<T>): void;
}

/** Limits and cancellation of one call. Every call has a limit. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Milliseconds; DEFAULT_REQUEST_TIMEOUT_MS when absent. */
  readonly timeoutMs?: number;
}

export type Propagation = 'Background' | 'Foreground' | 'Orphan';

export interface WriteOptions extends CallOptions {
  readonly fieldManager?: string;
  readonly dryRun?: boolean;
  readonly subresource?: 'status' | 'scale' | 'token';
}

export interface ApplyOptions extends WriteOptions {
  readonly fieldManager: string;
  /** Take fields from other managers (KEP-555). */
  readonly force?: boolean;
}

export interface DeleteOptions extends CallOptions {
  readonly propagation?: Propagation;
  /** Preconditions: the delete is refused with a conflict when the object is another by now. */
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly dryRun?: boolean;
}

export interface ListResult<T> {
  readonly items: T[];
  readonly resourceVersion: string;
}

/** Where an object is. */
export interface ObjectKey {
  readonly namespace?: string;
  readonly name: string;
}

export type PatchType = 'merge' | 'json' | 'strategic';

/** Typed REST on one API server. All methods reject with a KubeError (errors.ts). */
export interface KubeClient {
  get<T extends KubeObject>(resource: Resource, key: ObjectKey, options?: CallOptions & { form?: Form }): Promise<T>;
  /** As `get`, but undefined when the server says NotFound. */
  find<T extends KubeObject>(
    resource: Resource,
    key: ObjectKey,
    options?: CallOptions & { form?: Form },
  ): Promise<T | undefined>;
  /** The whole list, read in pages. */
  list<T extends KubeObject>(
    resource: Resource,
    scope: Scope,
    options?: CallOptions & { form?: Form },
  ): Promise<ListResult<T>>;
  create<T extends KubeObject>(resource: Resource, object: T, options?: WriteOptions): Promise<T>;
  /** PUT; metadata.resourceVersion, when set, is the optimistic lock. */
  replace<T extends KubeObject>(resource: Resource, object: T, options?: WriteOptions): Promise<T>;
  patch<T extends KubeObject>(
    resource: Resource,
    key: ObjectKey,
    patch: { type: PatchType; body: unknown },
    options?: WriteOptions,
  ): Promise<T>;
  apply<T extends KubeObject>(resource: Resource, object: T, options: ApplyOptions): Promise<T>;
  /** Resolves also when the object is already gone (false then). */
  delete(resource: Resource, key: ObjectKey, options?: DeleteOptions): Promise<boolean>;
  /** Any path, parsed JSON back; for discovery, /version, /readyz (text when the answer is no JSON) and reviews. */
  raw<T>(method: 'GET' | 'POST', path: string, options?: CallOptions & { body?: unknown; accept?: string }): Promise<T>;
}

/**
 * The watches of one cluster, shared by key. An owner is known by identity (any object). What an owner no longer names
 * and nobody else holds is stopped; what is already running is not touched: an upgrade that keeps the set of GVKs starts
 * and stops nothing (`watch_starts_total`, `watch_stops_total`).
 */
export interface WatchSet {
  /** Makes `targets` the whole set that `owner` holds. */
  set(owner: object, targets: readonly WatchTarget[]): void;
  /** Adds one target to what `owner` holds and returns its informer, running. */
  hold<T extends KubeObject>(owner: object, target: WatchTarget): Informer<T>;
  /** The informer of a target that somebody holds. */
  get<T extends KubeObject>(target: WatchTarget): Informer<T> | undefined;
  /**
   * The bare list-watch of a target, told to this owner alone; nothing is stored, so `get` does not know of it. It is held,
   * counted and stopped like any other: `set` drops it unless it names its target, `release` drops it. An owner that follows
   * a target again replaces its follower without a restart, so the new one is told no list. Strings of an object that a
   * follower keeps should be copies, or they may keep the text alive from which they were parsed.
   */
  follow(owner: object, target: WatchTarget, follower: Follower): void;
  /** Ends what `follow` began, at once: nothing is told afterwards. */
  unfollow(owner: object, target: WatchTarget): void;
  /** Drops everything that `owner` holds and follows. */
  release(owner: object): void;
  readonly size: number;
}

/** What an API server serves (API discovery, aggregated where the server has it). Cached; refreshed on a miss, at a bounded rate. */
export interface Discovery {
  /** The resource of a kind, or undefined when the server does not serve it. Without a version: the server's preferred one. */
  find(kind: { group: string; version?: string; kind: string }, options?: CallOptions): Promise<Resource | undefined>;
  /** Versions of a group, preferred first; [] when it is not served. */
  versions(group: string, options?: CallOptions): Promise<readonly string[]>;
  /** Forgets what is known, e.g. after a CRD was installed. */
  invalidate(): void;
}
