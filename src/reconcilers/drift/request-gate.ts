/** Bounds what sweeps ask of API servers: a first look at everything is in no hurry, and a restart begins a thousand of them. */
import { LRUCache } from 'lru-cache';
import PQueue from 'p-queue';
import type {
  ApplyOptions,
  CallOptions,
  DeleteOptions,
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

/** Requests of sweeps under way in the whole process. */
const IN_ALL = 20;
/** And on one cluster. */
const PER_CLUSTER = 2;
/** Begun per second on one cluster: below what API priority and fairness notices of a small server. */
const PER_SECOND = 20;
/** Clusters remembered; what is dropped is a queue that nothing waits in for longest. */
const MAX_CLUSTERS = 10_000;

export class RequestGate {
  readonly #all = new PQueue({ concurrency: IN_ALL });
  readonly #byCluster = new LRUCache<string, PQueue>({ max: MAX_CLUSTERS });

  /** Runs `request` when its turn has come. Rejects with the signal's reason when that aborts first. */
  async run<T>(cluster: string, signal: AbortSignal | undefined, request: () => Promise<T>): Promise<T> {
    const through = async (): Promise<T> => this.#all.add(request, { signal });
    return this.#of(cluster).add(through, { signal });
  }

  /** The cluster is gone. */
  forget(cluster: string): void {
    this.#byCluster.delete(cluster);
  }

  #of(cluster: string): PQueue {
    let queue = this.#byCluster.get(cluster);
    if (queue === undefined) {
      queue = new PQueue({ concurrency: PER_CLUSTER, interval: 1_000, intervalCap: PER_SECOND });
      this.#byCluster.set(cluster, queue);
    }
    return queue;
  }
}

/** A client whose every request waits for its turn. A list counts once, however many pages it has. */
export class GatedClient implements KubeClient {
  readonly #client: KubeClient;
  readonly #gate: RequestGate;
  readonly #cluster: string;

  constructor(client: KubeClient, gate: RequestGate, cluster: string) {
    this.#client = client;
    this.#gate = gate;
    this.#cluster = cluster;
  }

  async get<T extends KubeObject>(
    resource: Resource,
    key: ObjectKey,
    options: CallOptions & { form?: Form } = {},
  ): Promise<T> {
    return this.#run(options, async () => this.#client.get<T>(resource, key, options));
  }

  async find<T extends KubeObject>(
    resource: Resource,
    key: ObjectKey,
    options: CallOptions & { form?: Form } = {},
  ): Promise<T | undefined> {
    return this.#run(options, async () => this.#client.find<T>(resource, key, options));
  }

  async list<T extends KubeObject>(
    resource: Resource,
    scope: Scope,
    options: CallOptions & { form?: Form } = {},
  ): Promise<ListResult<T>> {
    return this.#run(options, async () => this.#client.list<T>(resource, scope, options));
  }

  async create<T extends KubeObject>(resource: Resource, object: T, options: WriteOptions = {}): Promise<T> {
    return this.#run(options, async () => this.#client.create(resource, object, options));
  }

  async replace<T extends KubeObject>(resource: Resource, object: T, options: WriteOptions = {}): Promise<T> {
    return this.#run(options, async () => this.#client.replace(resource, object, options));
  }

  async patch<T extends KubeObject>(
    resource: Resource,
    key: ObjectKey,
    patch: { type: PatchType; body: unknown },
    options: WriteOptions = {},
  ): Promise<T> {
    return this.#run(options, async () => this.#client.patch<T>(resource, key, patch, options));
  }

  async apply<T extends KubeObject>(resource: Resource, object: T, options: ApplyOptions): Promise<T> {
    return this.#run(options, async () => this.#client.apply(resource, object, options));
  }

  async delete(resource: Resource, key: ObjectKey, options: DeleteOptions = {}): Promise<boolean> {
    return this.#run(options, async () => this.#client.delete(resource, key, options));
  }

  async raw<T>(
    method: 'GET' | 'POST',
    path: string,
    options: CallOptions & { body?: unknown; accept?: string } = {},
  ): Promise<T> {
    return this.#run(options, async () => this.#client.raw<T>(method, path, options));
  }

  async #run<T>(options: CallOptions, request: () => Promise<T>): Promise<T> {
    return this.#gate.run(this.#cluster, options.signal, request);
  }
}
