import type { IndexFunction, Informer, InformerHandler, UnstructuredObject, WatchTarget } from '../kube/index.ts';

type Any = UnstructuredObject;

/** An informer that is told by hand. */
export class FakeInformer implements Informer<Any> {
  readonly target: WatchTarget;
  readonly hasSynced = true;
  readonly #objects = new Map<string, Any>();
  readonly #handlers = new Set<InformerHandler<Any>>();
  readonly #indexes = new Map<string, IndexFunction<Any>>();

  constructor(target: WatchTarget) {
    this.target = target;
  }

  tell(after: Any | undefined, before?: Any): void {
    const either = after ?? before;
    if (either === undefined) return;
    const key = `${either.metadata.namespace ?? ''}/${either.metadata.name}`;
    const known = this.#objects.get(key);
    if (after === undefined) this.#objects.delete(key);
    else this.#objects.set(key, after);
    for (const handler of this.#handlers) tellOne(handler, known, after);
  }

  async synced(): Promise<void> {
    return;
  }

  addHandler(handler: InformerHandler<Any>): () => void {
    this.#handlers.add(handler);
    for (const object of this.#objects.values()) handler.add?.(object, true);
    return () => this.#handlers.delete(handler);
  }

  addIndex(name: string, fn: IndexFunction<Any>): void {
    this.#indexes.set(name, fn);
  }

  get(namespace: string | undefined, name: string): Any | undefined {
    return this.#objects.get(`${namespace ?? ''}/${name}`);
  }

  list(namespace?: string): Any[] {
    return [...this.#objects.values()].filter(
      ({ metadata }) => namespace === undefined || metadata.namespace === namespace,
    );
  }

  byIndex(index: string, value: string): Any[] {
    const fn = this.#indexes.get(index);
    if (fn === undefined) throw new Error(`no index ${index}`);
    return this.list().filter((object) => fn(object).includes(value));
  }

  get size(): number {
    return this.#objects.size;
  }
}

function tellOne(handler: InformerHandler<Any>, known: Any | undefined, after: Any | undefined): void {
  if (after === undefined) {
    if (known !== undefined) handler.delete?.(known);
  } else if (known === undefined) handler.add?.(after, false);
  else handler.update?.(known, after);
}
