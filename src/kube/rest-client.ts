import { acceptOne, collectionPath, objectPath } from './paths.ts';
import type { Query } from './paths.ts';
import type { ApiRequest } from './api-request.ts';
import type { Connection } from './connection.ts';
import { isKubeError } from './errors.ts';
import { ListPages } from './list-pages.ts';
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
} from './types.ts';

/** RFC 7396, RFC 6902, and Kubernetes' own. */
const PATCH_CONTENT_TYPES: Readonly<Record<PatchType, string>> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
};

/** KEP-555; JSON is YAML, and `application/apply-patch+yaml` is what every server since 1.22 takes. */
const APPLY_CONTENT_TYPE = 'application/apply-patch+yaml';

/** Typed REST on one connection. Rejects with a KubeError, or with the reason of the caller's signal. */
export class RestClient implements KubeClient {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async get<T extends KubeObject>(
    resource: Resource,
    key: ObjectKey,
    options: CallOptions & { form?: Form } = {},
  ): Promise<T> {
    const object = await this.#connection.json<T>({
      method: 'GET',
      path: objectPath(resource, key),
      accept: acceptOne(options.form),
      ...limits(options),
    });
    return options.form === 'metadata' ? metadataOnly(object) : object;
  }

  async find<T extends KubeObject>(
    resource: Resource,
    key: ObjectKey,
    options: CallOptions & { form?: Form } = {},
  ): Promise<T | undefined> {
    try {
      return await this.get<T>(resource, key, options);
    } catch (error) {
      if (isKubeError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  async list<T extends KubeObject>(
    resource: Resource,
    scope: Scope,
    options: CallOptions & { form?: Form } = {},
  ): Promise<ListResult<T>> {
    const pages = new ListPages<T>(this.#connection, { resource, form: options.form ?? 'full', ...scope });
    const items: T[] = [];
    for (;;) {
      const page = await pages.next(limits(options));
      if (page.restarted) items.length = 0;
      for (const item of page.items) items.push(item);
      if (page.last) return { items, resourceVersion: page.resourceVersion };
    }
  }

  async create<T extends KubeObject>(resource: Resource, object: T, options: WriteOptions = {}): Promise<T> {
    const path =
      options.subresource === undefined
        ? collectionPath(resource, object.metadata.namespace)
        : objectPath(resource, object.metadata, options.subresource);
    return this.#write<T>({ method: 'POST', verb: 'create', path, body: JSON.stringify(object) }, options);
  }

  async replace<T extends KubeObject>(resource: Resource, object: T, options: WriteOptions = {}): Promise<T> {
    const path = objectPath(resource, object.metadata, options.subresource);
    return this.#write<T>({ method: 'PUT', verb: 'update', path, body: JSON.stringify(object) }, options);
  }

  async patch<T extends KubeObject>(
    resource: Resource,
    key: ObjectKey,
    patch: { type: PatchType; body: unknown },
    options: WriteOptions = {},
  ): Promise<T> {
    return this.#write<T>(
      {
        method: 'PATCH',
        path: objectPath(resource, key, options.subresource),
        contentType: PATCH_CONTENT_TYPES[patch.type],
        body: JSON.stringify(patch.body),
      },
      options,
    );
  }

  async apply<T extends KubeObject>(resource: Resource, object: T, options: ApplyOptions): Promise<T> {
    return this.#write<T>(
      {
        method: 'PATCH',
        verb: 'apply',
        path: objectPath(resource, object.metadata, options.subresource),
        contentType: APPLY_CONTENT_TYPE,
        // The server refuses an applied object that carries managedFields, and one that was read does.
        body: JSON.stringify({ ...object, metadata: { ...object.metadata, managedFields: undefined } }),
        query: options.force === undefined ? {} : { force: options.force },
      },
      options,
    );
  }

  async delete(resource: Resource, key: ObjectKey, options: DeleteOptions = {}): Promise<boolean> {
    const preconditions = { uid: options.uid, resourceVersion: options.resourceVersion };
    const conditional = options.uid !== undefined || options.resourceVersion !== undefined;
    const body = JSON.stringify({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: options.propagation,
      preconditions: conditional ? preconditions : undefined,
      dryRun: options.dryRun === true ? ['All'] : undefined,
    });
    try {
      await this.#connection.call({ method: 'DELETE', path: objectPath(resource, key), body, ...limits(options) });
      return true;
    } catch (error) {
      if (isKubeError(error, 'NotFound')) return false;
      throw error;
    }
  }

  async raw<T>(
    method: 'GET' | 'POST',
    path: string,
    options: CallOptions & { body?: unknown; accept?: string } = {},
  ): Promise<T> {
    const [bare = '', search] = path.split('?', 2);
    const answer = await this.#connection.call({
      method,
      path: bare,
      query: Object.fromEntries(new URLSearchParams(search)),
      accept: options.accept ?? 'application/json, */*',
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      ...limits(options),
    });
    // The type parameter is the caller's word for what this path answers, text included.
    return (isJson(answer.contentType) ? JSON.parse(answer.text) : answer.text) as T;
  }

  async #write<T>(request: ApiRequest, options: WriteOptions): Promise<T> {
    const query: Query = {
      ...request.query,
      fieldManager: options.fieldManager,
      dryRun: options.dryRun === true ? 'All' : undefined,
    };
    return this.#connection.json<T>({ ...request, query, ...limits(options) });
  }
}

function limits(options: CallOptions): CallOptions {
  return { signal: options.signal, timeoutMs: options.timeoutMs };
}

function isJson(contentType: string): boolean {
  return /^application\/([^;]+\+)?json\b/.test(contentType);
}

/** Servers that know no metadata form (some aggregated ones) send the whole object. */
export function metadataOnly<T extends KubeObject>(object: T): T {
  const { apiVersion, kind, metadata } = object;
  // What was asked for is metadata; the caller's T is read as far as that.
  return { apiVersion, kind, metadata } as T;
}
