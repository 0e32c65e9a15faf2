/**
 * Writes of our own objects: what changed and no more, or nothing at all. Every write that can be left out is an event
 * less for every watcher (caaph W26, W30).
 */
import { LRUCache } from 'lru-cache';
import type { Condition } from '../api/index.ts';
import type { KubeClient, KubeObject, Resource } from '../kube/index.ts';
import { hasCode } from './errors.ts';
import { isRecord, mergePatch } from './merge-patch.ts';

/** An object of ours: spec, and a status with conditions. */
export interface Writable extends KubeObject {
  spec: object;
  status?: { conditions?: Condition[]; observedGeneration?: number };
}

export interface UpdateOptions {
  readonly signal: AbortSignal;
  /** Milliseconds per request; the client's default when absent. */
  readonly timeoutMs?: number;
  /** False: status.observedGeneration stays what it is, e.g. while the work for this generation is under way. True when absent. */
  readonly observe?: boolean;
}

/** The manager that stands in managedFields for everything the reconcilers write on the management cluster. */
export const FIELD_MANAGER = 'capstan';

/** Tries per update: conflicts come from the user or the other reconciler, never in a row for long. */
const ATTEMPTS = 5;
/** How long an own write may stay unseen by the informer before we stop holding on to it, and how many we hold. */
const RECENT_MS = 60_000;
const RECENT_MAX = 1000;

/** Metadata that reconcilers change. */
const METADATA_FIELDS = ['labels', 'annotations', 'finalizers', 'ownerReferences'] as const;

export class StatusWriter<T extends Writable> {
  readonly #client: KubeClient;
  readonly #resource: Resource;
  /** Newest state that the server told after an own write, by uid, until the informer has caught up. */
  readonly #recent = new LRUCache<string, T>({ max: RECENT_MAX, ttl: RECENT_MS });

  constructor(client: KubeClient, resource: Resource) {
    this.#client = client;
    this.#resource = resource;
  }

  /**
   * Brings the object to what `wanted` makes of it: one merge patch for metadata and spec, one for status, each only when
   * it is not empty; status.observedGeneration follows the generation. Both are locked on resourceVersion; on a conflict the
   * object is read again and `wanted` is asked again, so it must be pure and cheap and must not change its argument.
   *
   * Resolves to the new object (the given one when nothing was written), or to undefined when the object is gone or
   * another one has its name. Rejects with a KubeError.
   */
  async update(object: T, wanted: (current: T) => T, options: UpdateOptions): Promise<T | undefined> {
    let current: T | undefined = object;
    for (let attempt = 1; ; attempt++) {
      if (attempt > 1) current = await this.#read(object, options);
      if (current === undefined) return undefined;
      try {
        const after = await this.#write(current, wanted(current), options);
        if (after !== current) this.note(after);
        return after;
      } catch (error) {
        if (hasCode(error, 'NotFound')) return undefined;
        if (!hasCode(error, 'Conflict') || attempt >= ATTEMPTS) throw error;
      }
    }
  }

  /** The newer of what the informer holds and what an own write returned: a reconcile right after a write does not act on the state before it. */
  freshest(cached: T): T {
    const uid = cached.metadata.uid;
    const recent = uid === undefined ? undefined : this.#recent.get(uid);
    if (uid === undefined || recent === undefined) return cached;
    if (isNewer(recent, cached)) return recent;
    this.#recent.delete(uid);
    return cached;
  }

  /** Says that the server returned this, e.g. from a create. */
  note(object: T): void {
    const uid = object.metadata.uid;
    if (uid === undefined) return;
    const known = this.#recent.get(uid);
    if (known === undefined || isNewer(object, known)) this.#recent.set(uid, object);
  }

  async #read(object: T, options: UpdateOptions): Promise<T | undefined> {
    const read = await this.#client.find<T>(this.#resource, keyOf(object), callOptions(options));
    return read?.metadata.uid === object.metadata.uid ? read : undefined;
  }

  async #write(current: T, wanted: T, options: UpdateOptions): Promise<T> {
    const main = mainPatch(current, wanted);
    const after = main === undefined ? current : await this.#patch(current, main, options);
    if (isGoing(after, wanted)) return after;
    const status =
      options.observe === false ? wanted.status : { ...wanted.status, observedGeneration: after.metadata.generation };
    const statusPatch = mergePatch(after.status ?? {}, status ?? {});
    return statusPatch === undefined ? after : this.#patch(after, { status: statusPatch }, options, 'status');
  }

  async #patch(object: T, body: Record<string, unknown>, options: UpdateOptions, subresource?: 'status'): Promise<T> {
    const metadata = isRecord(body.metadata) ? body.metadata : {};
    const lock = { resourceVersion: object.metadata.resourceVersion, uid: object.metadata.uid };
    return this.#client.patch<T>(
      this.#resource,
      keyOf(object),
      { type: 'merge', body: { ...body, metadata: { ...metadata, ...lock } } },
      { ...callOptions(options), fieldManager: FIELD_MANAGER, subresource },
    );
  }
}

/** Is its last finalizer gone? Then the object goes, and its status interests nobody any more. */
function isGoing(after: KubeObject, wanted: KubeObject): boolean {
  return after.metadata.deletionTimestamp !== undefined && (wanted.metadata.finalizers ?? []).length === 0;
}

function mainPatch(current: Writable, wanted: Writable): Record<string, unknown> | undefined {
  const metadata = mergePatch(pickMetadata(current), pickMetadata(wanted));
  const spec = mergePatch(current.spec, wanted.spec);
  if (metadata === undefined && spec === undefined) return undefined;
  return { ...(metadata !== undefined && { metadata }), ...(spec !== undefined && { spec }) };
}

/** Empty collections count as absent: the server drops them. */
function pickMetadata(object: KubeObject): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  for (const field of METADATA_FIELDS) {
    const value = object.metadata[field];
    if (value !== undefined && Object.keys(value).length > 0) picked[field] = value;
  }
  return picked;
}

/**
 * resourceVersions are compared as numbers: they are decimal and grow on every server that conforms (KEP-5504). Where one
 * is not a number the informer is believed.
 */
function isNewer(a: KubeObject, b: KubeObject): boolean {
  const [left, right] = [Number(a.metadata.resourceVersion), Number(b.metadata.resourceVersion)];
  return Number.isSafeInteger(left) && Number.isSafeInteger(right) && left > right;
}

function keyOf(object: KubeObject): { namespace?: string; name: string } {
  return { namespace: object.metadata.namespace, name: object.metadata.name };
}

function callOptions(options: UpdateOptions): { signal: AbortSignal; timeoutMs?: number } {
  return { signal: options.signal, timeoutMs: options.timeoutMs };
}
