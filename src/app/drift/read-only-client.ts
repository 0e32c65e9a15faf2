import { ForbiddenError } from '../../kube/index.ts';
import type {
  ApplyOptions,
  CallOptions,
  Form,
  KubeClient,
  KubeObject,
  ListResult,
  ObjectKey,
  PatchType,
  Resource,
  Scope,
  WriteOptions,
} from '../../kube/index.ts';

/** Runs a piece of work when there is a place for it; for bounding requests. */
export type Gate = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * A client that cannot write: `capstan drift` is read-only whatever the rooms below it do. Dry runs pass where they are
 * allowed; refused ones fail as a server does that allows none, so that the comparison goes on by structure.
 */
export class ReadOnlyClient implements KubeClient {
  readonly #client: KubeClient;
  readonly #dryRuns: boolean;
  readonly #gate: Gate;

  constructor(client: KubeClient, options: { readonly dryRuns: boolean; readonly gate: Gate }) {
    this.#client = client;
    this.#dryRuns = options.dryRuns;
    this.#gate = options.gate;
  }

  async get<T extends KubeObject>(
    resource: Resource,
    key: ObjectKey,
    options?: CallOptions & { form?: Form },
  ): Promise<T> {
    return this.#gate(async () => this.#client.get<T>(resource, key, options));
  }

  async find<T extends KubeObject>(
    resource: Resource,
    key: ObjectKey,
    options?: CallOptions & { form?: Form },
  ): Promise<T | undefined> {
    return this.#gate(async () => this.#client.find<T>(resource, key, options));
  }

  async list<T extends KubeObject>(
    resource: Resource,
    scope: Scope,
    options?: CallOptions & { form?: Form },
  ): Promise<ListResult<T>> {
    return this.#gate(async () => this.#client.list<T>(resource, scope, options));
  }

  async create<T extends KubeObject>(resource: Resource, object: T, options?: WriteOptions): Promise<T> {
    this.#check(options);
    return this.#gate(async () => this.#client.create(resource, object, options));
  }

  async replace<T extends KubeObject>(resource: Resource, object: T, options?: WriteOptions): Promise<T> {
    this.#check(options);
    return this.#gate(async () => this.#client.replace(resource, object, options));
  }

  async patch<T extends KubeObject>(
    resource: Resource,
    key: ObjectKey,
    patch: { type: PatchType; body: unknown },
    options?: WriteOptions,
  ): Promise<T> {
    this.#check(options);
    return this.#gate(async () => this.#client.patch<T>(resource, key, patch, options));
  }

  async apply<T extends KubeObject>(resource: Resource, object: T, options: ApplyOptions): Promise<T> {
    this.#check(options);
    return this.#gate(async () => this.#client.apply(resource, object, options));
  }

  async delete(): Promise<boolean> {
    return Promise.reject(refusal());
  }

  async raw<T>(
    method: 'GET' | 'POST',
    path: string,
    options?: CallOptions & { body?: unknown; accept?: string },
  ): Promise<T> {
    if (method !== 'GET') throw refusal();
    return this.#gate(async () => this.#client.raw<T>(method, path, options));
  }

  #check(options: WriteOptions | undefined): void {
    if (options?.dryRun !== true) throw refusal();
    if (!this.#dryRuns) throw new ForbiddenError('dry runs are turned off (--no-dry-run)');
  }
}

function refusal(): Error {
  return new Error('capstan drift writes nothing, and was about to: this is a bug');
}
