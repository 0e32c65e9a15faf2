import type { IndexFunction, KubeObject, Lister } from './types.ts';

/** One difference between what a store held and what it holds. */
export type Change<T extends KubeObject> =
  | { readonly type: 'add'; readonly object: T }
  | { readonly type: 'update'; readonly previous: T; readonly object: T }
  | { readonly type: 'delete'; readonly object: T };

/** Objects of one watch target by namespace and name, with indexes. What an object was and what it is are told apart by uid. */
export class Store<T extends KubeObject> implements Lister<T> {
  readonly #indexes = new Map<string, Index<T>>();
  #objects = new Map<string, T>();

  get size(): number {
    return this.#objects.size;
  }

  get(namespace: string | undefined, name: string): T | undefined {
    return this.#objects.get(keyOf(namespace, name));
  }

  list(namespace?: string): T[] {
    const all = [...this.#objects.values()];
    return namespace === undefined ? all : all.filter((object) => object.metadata.namespace === namespace);
  }

  byIndex(index: string, value: string): T[] {
    const found = this.#indexes.get(index);
    if (found === undefined) throw new TypeError(`there is no index "${index}"`);
    return found.get(value);
  }

  /** What is stored is indexed at once. A name that is taken is replaced. */
  addIndex(name: string, fn: IndexFunction<T>): void {
    const index = new Index(fn);
    for (const [key, object] of this.#objects) index.put(key, object);
    this.#indexes.set(name, index);
  }

  /** Stores one object. One of the same name but another uid is another object: its predecessor is deleted first. */
  put(object: T): Change<T>[] {
    const key = keyOfObject(object);
    const previous = this.#objects.get(key);
    this.#objects.set(key, object);
    for (const index of this.#indexes.values()) index.put(key, object);
    return changesBetween(previous, object);
  }

  /** Removes by identity: an object that has been replaced by one with another uid stays. */
  remove(object: T): Change<T>[] {
    const key = keyOfObject(object);
    const previous = this.#objects.get(key);
    if (previous === undefined || !sameObject(previous, object)) return [];
    this.#objects.delete(key);
    for (const index of this.#indexes.values()) index.drop(key);
    return [{ type: 'delete', object }];
  }

  /**
   * Makes `objects` the whole contents. What has not changed keeps its stored object, so that a relist leaves no second
   * copy behind; what is not among them any more is a delete that nobody told.
   */
  replace(objects: ReadonlyMap<string, T>): Change<T>[] {
    const before = this.#objects;
    const after = new Map<string, T>();
    const changes: Change<T>[] = [];
    for (const [key, previous] of before) if (!objects.has(key)) changes.push({ type: 'delete', object: previous });
    for (const [key, object] of objects) {
      const previous = before.get(key);
      if (previous !== undefined && sameVersion(previous, object)) {
        after.set(key, previous);
        continue;
      }
      after.set(key, object);
      for (const change of changesBetween(previous, object)) changes.push(change);
    }
    this.#objects = after;
    for (const index of this.#indexes.values()) index.reset(after);
    return changes;
  }
}

export function keyOfObject(object: KubeObject): string {
  return keyOf(object.metadata.namespace, object.metadata.name);
}

function keyOf(namespace: string | undefined, name: string): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

function sameObject(one: KubeObject, other: KubeObject): boolean {
  return one.metadata.uid === other.metadata.uid;
}

function sameVersion(one: KubeObject, other: KubeObject): boolean {
  const { resourceVersion } = one.metadata;
  return sameObject(one, other) && resourceVersion !== undefined && resourceVersion === other.metadata.resourceVersion;
}

function changesBetween<T extends KubeObject>(previous: T | undefined, object: T): Change<T>[] {
  if (previous === undefined) return [{ type: 'add', object }];
  if (sameObject(previous, object)) return [{ type: 'update', previous, object }];
  return [
    { type: 'delete', object: previous },
    { type: 'add', object },
  ];
}

/** Objects by the values that a function gives for them. */
class Index<T extends KubeObject> {
  readonly #fn: IndexFunction<T>;
  #byValue = new Map<string, Map<string, T>>();
  #valuesOf = new Map<string, readonly string[]>();

  constructor(fn: IndexFunction<T>) {
    this.#fn = fn;
  }

  get(value: string): T[] {
    return [...(this.#byValue.get(value)?.values() ?? [])];
  }

  put(key: string, object: T): void {
    this.drop(key);
    const values = this.#fn(object);
    if (values.length === 0) return;
    this.#valuesOf.set(key, values);
    for (const value of values) {
      const known = this.#byValue.get(value);
      if (known === undefined) this.#byValue.set(value, new Map([[key, object]]));
      else known.set(key, object);
    }
  }

  drop(key: string): void {
    for (const value of this.#valuesOf.get(key) ?? []) {
      const known = this.#byValue.get(value);
      known?.delete(key);
      if (known?.size === 0) this.#byValue.delete(value);
    }
    this.#valuesOf.delete(key);
  }

  reset(objects: ReadonlyMap<string, T>): void {
    this.#byValue = new Map();
    this.#valuesOf = new Map();
    for (const [key, object] of objects) this.put(key, object);
  }
}
