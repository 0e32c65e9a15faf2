/** The management cluster in memory: its API and its caches. For the tests of this folder. */
import { ConflictError, NotFoundError } from '../../kube/index.ts';
import type { Informer, InformerHandler, KubeClient, KubeObject, ObjectKey, Resource } from '../../kube/index.ts';
import { HRP } from '../resources.ts';

export function pathOf(key: { namespace?: string; name: string }): string {
  return `${key.namespace ?? ''}/${key.name}`;
}

/** A cache that is filled by hand. */
export class FakeInformer<T extends KubeObject> implements Informer<T> {
  readonly target = { resource: HRP, form: 'full' as const };
  readonly hasSynced = true;
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<string, (object: T) => readonly string[]>();
  readonly #handlers = new Set<InformerHandler<T>>();

  get size(): number {
    return this.#objects.size;
  }

  get(namespace: string | undefined, name: string): T | undefined {
    return this.#objects.get(pathOf({ namespace, name }));
  }

  list(): T[] {
    return [...this.#objects.values()];
  }

  byIndex(index: string, value: string): T[] {
    return this.list().filter((object) => this.#indexes.get(index)?.(object).includes(value));
  }

  addIndex(name: string, fn: (object: T) => readonly string[]): void {
    this.#indexes.set(name, fn);
  }

  async synced(): Promise<void> {
    return Promise.resolve();
  }

  addHandler(handler: InformerHandler<T>): () => void {
    this.#handlers.add(handler);
    for (const object of this.list()) handler.add?.(object, true);
    return () => this.#handlers.delete(handler);
  }

  put(object: T): void {
    const before = this.get(object.metadata.namespace, object.metadata.name);
    this.#objects.set(pathOf(object.metadata), object);
    for (const handler of this.#handlers) {
      if (before === undefined) handler.add?.(object, false);
      else handler.update?.(before, object);
    }
  }

  remove(namespace: string | undefined, name: string): void {
    const before = this.get(namespace, name);
    if (before === undefined) return;
    this.#objects.delete(pathOf({ namespace, name }));
    for (const handler of this.#handlers) handler.delete?.(before);
  }
}

interface Write {
  readonly resource: string;
  readonly name: string;
  readonly subresource?: string;
  readonly body: Record<string, unknown>;
}

type Json = Record<string, unknown>;

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function merged(target: unknown, patch: unknown): unknown {
  if (!isJson(patch)) return patch;
  const out: Json = isJson(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) out[key] = value === null ? undefined : merged(out[key], value);
  // As the server does: what is undefined is not there.
  return JSON.parse(JSON.stringify(out)) as Json;
}

/** The management cluster's API: objects by resource, merge patches with the optimistic lock, a count of everything. */
export class FakeApi {
  readonly objects = new Map<string, KubeObject>();
  readonly writes: Write[] = [];
  readonly reads: string[] = [];
  /** Called after each write, e.g. to bring a cache up to date or to fail on purpose. */
  onWrite: ((object: KubeObject, resource: Resource) => void) | undefined;
  #version = 100;

  put<T extends KubeObject>(resource: Resource, object: T): T {
    this.#version += 1;
    const stored: T = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } };
    this.objects.set(`${resource.plural} ${pathOf(object.metadata)}`, stored);
    return stored;
  }

  delete(resource: Resource, key: ObjectKey): void {
    this.objects.delete(`${resource.plural} ${pathOf(key)}`);
  }

  peek(resource: Resource, key: ObjectKey): KubeObject | undefined {
    return this.objects.get(`${resource.plural} ${pathOf(key)}`);
  }

  client(): KubeClient {
    const refuse = async (): Promise<never> => Promise.reject(new Error('not expected in these tests'));
    return {
      get: refuse,
      list: refuse,
      create: refuse,
      replace: refuse,
      apply: refuse,
      delete: refuse,
      raw: refuse,
      find: async <T extends KubeObject>(resource: Resource, key: ObjectKey) => {
        this.reads.push(`${resource.plural} ${pathOf(key)}`);
        return Promise.resolve(this.peek(resource, key) as T | undefined);
      },
      patch: async <T extends KubeObject>(
        resource: Resource,
        key: ObjectKey,
        patch: { body: unknown },
        options: { subresource?: string } = {},
      ) =>
        Promise.resolve(
          this.#patch(resource, key, { body: patch.body as Json, subresource: options.subresource }) as T,
        ),
    };
  }

  #patch(resource: Resource, key: ObjectKey, { body, subresource }: { body: Json; subresource?: string }): KubeObject {
    const before = this.peek(resource, key);
    if (before === undefined) throw new NotFoundError('not found');
    const lock = (body.metadata as { resourceVersion?: string } | undefined)?.resourceVersion;
    if (lock !== undefined && lock !== before.metadata.resourceVersion) throw new ConflictError('conflict');
    this.writes.push({ resource: resource.plural, name: key.name, subresource, body });
    const after = merged(before, subresource === 'status' ? { status: body.status } : body) as KubeObject;
    if (body.spec !== undefined && subresource === undefined) nextGeneration(after);
    const stored = this.put(resource, after);
    if (isGoing(stored)) this.delete(resource, key);
    this.onWrite?.(stored, resource);
    return stored;
  }
}

function nextGeneration(object: KubeObject): void {
  object.metadata.generation = (object.metadata.generation ?? 1) + 1;
}

function isGoing(object: KubeObject): boolean {
  return object.metadata.deletionTimestamp !== undefined && (object.metadata.finalizers ?? []).length === 0;
}
