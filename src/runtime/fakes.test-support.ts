import { randomUUID } from 'node:crypto';
import {
  AlreadyExistsError,
  ConflictError,
  KubeconfigInvalidError,
  NetworkError,
  NotFoundError,
  raceAbort,
  UnauthorizedError,
} from '../kube/index.ts';
import type {
  CallOptions,
  Discovery,
  Informer,
  InformerHandler,
  KubeClient,
  KubeObject,
  ObjectKey,
  Resource,
  WatchSet,
  WatchTarget,
} from '../kube/index.ts';
import { createTelemetry } from '../telemetry/index.ts';
import type { Logger, LogFields, Telemetry } from '../telemetry/index.ts';
import type { ClusterConnection, ConnectionFactory, ConnectionHooks } from './connection.ts';
import type { ClusterName, ConnectionSpec } from './types.ts';

/** A Logger that keeps its lines: `level message {fields}`. */
export class LogBook implements Logger {
  readonly lines: string[];
  readonly #fields: LogFields;

  constructor(lines: string[] = [], fields: LogFields = {}) {
    this.lines = lines;
    this.#fields = fields;
  }

  debug(message: string, fields?: LogFields): void {
    this.#write('debug', message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#write('info', message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#write('warn', message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#write('error', message, fields);
  }

  with(fields: LogFields): Logger {
    return new LogBook(this.lines, { ...this.#fields, ...fields });
  }

  /** Lines that hold `text`. */
  of(text: string): string[] {
    return this.lines.filter((line) => line.includes(text));
  }

  #write(level: string, message: string, fields: LogFields = {}): void {
    const all = { ...this.#fields, ...fields };
    const shown = Object.entries(all).map(
      ([key, value]) => `${key}=${value instanceof Error ? value.message : String(value)}`,
    );
    this.lines.push(`${level} ${message} {${shown.join(' ')}}`);
  }
}

export function testTelemetry(): { telemetry: Telemetry; log: LogBook } {
  const log = new LogBook();
  return { telemetry: createTelemetry({ log }), log };
}

/** The values of one metric by its labels, e.g. `{"phase":"engaged"}` → 3. */
export async function metricValues(telemetry: Telemetry, name: string): Promise<Record<string, number>> {
  const metric = await telemetry.metrics.getSingleMetric(name)?.get();
  return Object.fromEntries((metric?.values ?? []).map(({ labels, value }) => [JSON.stringify(labels), value]));
}

/** An API server as the fleet sees it. */
export class FakeServer {
  uid: string | undefined = randomUUID();
  mode: 'ok' | 'hangs' | 'refuses' = 'ok';
  readonly tokens = new Set(['good']);
  probes = 0;

  async probe(token: string, signal: AbortSignal): Promise<KubeObject> {
    this.probes += 1;
    if (this.mode === 'hangs') return raceAbort(new Promise<never>(() => undefined), signal);
    if (this.mode === 'refuses') throw new NetworkError('GET /api/v1/namespaces/kube-system: connection refused');
    if (!this.tokens.has(token)) throw new UnauthorizedError('GET /api/v1/namespaces/kube-system: Unauthorized');
    return { metadata: { name: 'kube-system', ...(this.uid === undefined ? {} : { uid: this.uid }) } };
  }
}

export class FakeConnection implements ClusterConnection {
  readonly identity: string;
  readonly client: KubeClient;
  readonly discovery: Discovery = { find: never, versions: never, invalidate: () => undefined };
  readonly watches: WatchSet = new FakeWatchSet();
  readonly hooks: ConnectionHooks | undefined;
  token: string;
  resets = 0;
  closed = false;
  readonly #onClose: () => void;

  constructor(spec: FakeSpec, server: FakeServer, hooks: ConnectionHooks | undefined, onClose: () => void) {
    this.identity = `${spec.server} ${spec.ca ?? ''}`;
    this.hooks = hooks;
    this.token = spec.token;
    this.#onClose = onClose;
    // As the real client: a 401 is told to the hook, and worth one more try when it says so.
    const find = async (_resource: Resource, _key: ObjectKey, options?: CallOptions): Promise<KubeObject> => {
      const signal = options?.signal ?? new AbortController().signal;
      try {
        return await server.probe(this.token, signal);
      } catch (error) {
        if (!(error instanceof UnauthorizedError) || !(await hooks?.onUnauthorized(signal))) throw error;
        return server.probe(this.token, signal);
      }
    };
    this.client = fakeClient({ find: find as KubeClient['find'] });
  }

  swap(spec: ConnectionSpec): void {
    this.token = parseSpec(spec).token;
  }

  kubeconfig(): string {
    return this.token;
  }

  reset(): void {
    this.resets += 1;
  }

  async close(): Promise<void> {
    this.closed = true;
    this.#onClose();
  }
}

interface FakeSpec {
  readonly server: string;
  readonly ca?: string;
  readonly token: string;
}

/** A spec in the fakes' own form. */
export function specOf(server: string, token = 'good', ca?: string): ConnectionSpec {
  return { kubeconfig: JSON.stringify({ server, token, ca }) };
}

export const BROKEN_SPEC: ConnectionSpec = { kubeconfig: 'no kubeconfig' };

function parseSpec(spec: ConnectionSpec): FakeSpec {
  if (!spec.kubeconfig.startsWith('{')) throw new KubeconfigInvalidError('the kubeconfig is no YAML');
  return JSON.parse(spec.kubeconfig) as FakeSpec;
}

/** Connections to FakeServers, by the server's name; one that nobody made yet is made, in order. */
export class FakeFactory implements ConnectionFactory {
  readonly open_: FakeConnection[] = [];
  readonly #servers = new Map<string, FakeServer>();

  server(name: string): FakeServer {
    let server = this.#servers.get(name);
    if (server === undefined) this.#servers.set(name, (server = new FakeServer()));
    return server;
  }

  open(_name: ClusterName, spec: ConnectionSpec, hooks?: ConnectionHooks): FakeConnection {
    const parsed = parseSpec(spec);
    const connection: FakeConnection = new FakeConnection(parsed, this.server(parsed.server), hooks, () => {
      this.open_.splice(this.open_.indexOf(connection), 1);
    });
    this.open_.push(connection);
    return connection;
  }
}

async function never(): Promise<never> {
  throw new Error('not expected in this test');
}

export function fakeClient(methods: Partial<KubeClient>): KubeClient {
  return {
    get: never,
    find: never,
    list: never,
    create: never,
    replace: never,
    patch: never,
    apply: never,
    delete: never,
    raw: never,
    ...methods,
  };
}

/** Objects in memory with resourceVersions and optimistic locks: enough for leases, events and Secrets. */
export class FakeStore {
  readonly objects = new Map<string, KubeObject>();
  /** Called before each call; throw to fail it. */
  before: (verb: string, key: ObjectKey) => void | Promise<void> = () => undefined;
  readonly calls: string[] = [];
  #version = 0;

  readonly client: KubeClient = fakeClient({
    find: async <T extends KubeObject>(resource: Resource, key: ObjectKey): Promise<T | undefined> => {
      await this.#call('find', key);
      return structuredClone(this.objects.get(keyOf(resource, key))) as T | undefined;
    },
    create: async <T extends KubeObject>(resource: Resource, object: T): Promise<T> => {
      await this.#call('create', object.metadata);
      if (this.objects.has(keyOf(resource, object.metadata))) throw new AlreadyExistsError('it exists');
      return this.put(resource, object);
    },
    replace: async <T extends KubeObject>(resource: Resource, object: T): Promise<T> => {
      await this.#call('replace', object.metadata);
      const known = this.objects.get(keyOf(resource, object.metadata));
      if (known === undefined) throw new NotFoundError('it is not there');
      if (known.metadata.resourceVersion !== object.metadata.resourceVersion) throw new ConflictError('it changed');
      return this.put(resource, object);
    },
    patch: async <T extends KubeObject>(resource: Resource, key: ObjectKey, patch: { body: unknown }): Promise<T> => {
      await this.#call('patch', key);
      const known = this.objects.get(keyOf(resource, key));
      if (known === undefined) throw new NotFoundError('it is not there');
      return this.put(resource, { ...known, ...(patch.body as Partial<T>) } as T);
    },
  });

  put<T extends KubeObject>(resource: Resource, object: T): T {
    this.#version += 1;
    const stored = structuredClone(object);
    stored.metadata.resourceVersion = String(this.#version);
    this.objects.set(keyOf(resource, object.metadata), stored);
    return structuredClone(stored);
  }

  remove(resource: Resource, key: ObjectKey): void {
    this.objects.delete(keyOf(resource, key));
  }

  async #call(verb: string, key: ObjectKey): Promise<void> {
    this.calls.push(`${verb} ${key.namespace ?? ''}/${key.name}`);
    await this.before(verb, key);
  }
}

function keyOf(resource: Resource, { namespace, name }: ObjectKey): string {
  return `${resource.plural} ${namespace ?? ''}/${name}`;
}

/** An informer that a test feeds. */
export class FakeInformer<T extends KubeObject> implements Informer<T> {
  readonly target: WatchTarget;
  hasSynced = true;
  readonly #objects = new Map<string, T>();
  readonly #handlers = new Set<InformerHandler<T>>();

  constructor(target: WatchTarget) {
    this.target = target;
  }

  get size(): number {
    return this.#objects.size;
  }

  get handlers(): number {
    return this.#handlers.size;
  }

  get(namespace: string | undefined, name: string): T | undefined {
    return this.#objects.get(`${namespace ?? ''}/${name}`);
  }

  list(): T[] {
    return [...this.#objects.values()];
  }

  byIndex(): T[] {
    throw new Error('not expected in this test');
  }

  addIndex(): void {
    throw new Error('not expected in this test');
  }

  async synced(): Promise<void> {
    await Promise.resolve();
  }

  addHandler(handler: InformerHandler<T>): () => void {
    this.#handlers.add(handler);
    for (const object of this.#objects.values()) handler.add?.(object, true);
    return () => {
      this.#handlers.delete(handler);
    };
  }

  put(object: T): void {
    const key = `${object.metadata.namespace ?? ''}/${object.metadata.name}`;
    const before = this.#objects.get(key);
    this.#objects.set(key, object);
    for (const handler of this.#handlers)
      if (before === undefined) handler.add?.(object, false);
      else handler.update?.(before, object);
  }

  remove(namespace: string, name: string): void {
    const object = this.get(namespace, name);
    this.#objects.delete(`${namespace}/${name}`);
    if (object !== undefined) for (const handler of this.#handlers) handler.delete?.(object);
  }
}

/** One FakeInformer per resource. */
export class FakeWatchSet implements WatchSet {
  readonly informers = new Map<string, FakeInformer<KubeObject>>();
  readonly owners = new Set<object>();

  get size(): number {
    return this.informers.size;
  }

  set(): void {
    throw new Error('not expected in this test');
  }

  hold<T extends KubeObject>(owner: object, target: WatchTarget): Informer<T> {
    this.owners.add(owner);
    return this.of<T>(target);
  }

  get<T extends KubeObject>(target: WatchTarget): Informer<T> | undefined {
    return this.informers.get(target.resource.plural) as Informer<KubeObject> as Informer<T> | undefined;
  }

  follow(): void {
    throw new Error('not expected in this test');
  }

  unfollow(): void {
    throw new Error('not expected in this test');
  }

  release(owner: object): void {
    this.owners.delete(owner);
  }

  of<T extends KubeObject>(target: WatchTarget): FakeInformer<T> {
    const { plural } = target.resource;
    let informer = this.informers.get(plural);
    if (informer === undefined) this.informers.set(plural, (informer = new FakeInformer<KubeObject>(target)));
    return informer as FakeInformer<T>;
  }
}
