import { acceptList, collectionPath } from './paths.ts';
import type { Connection } from './connection.ts';
import { isKubeError } from './errors.ts';
import type { CallOptions, KubeObject, WatchTarget } from './types.ts';

/** Objects per page, as client-go and kubectl have it. */
export const PAGE_SIZE = 500;

export interface Page<T> {
  readonly items: T[];
  /** Of the whole list; the same on each page. */
  readonly resourceVersion: string;
  readonly last: boolean;
  /** The list had to begin again: what earlier pages held is void. */
  readonly restarted: boolean;
}

interface ListAnswer<T> {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: T[] | null;
}

/**
 * A list, page by page (API concepts, "Retrieving large results sets in chunks"). When a continue token has expired
 * (410), the list is asked for once more as a whole: tokens live five minutes, and a list that outlived one would
 * outlive the next.
 */
export class ListPages<T extends KubeObject> {
  readonly #connection: Pick<Connection, 'json'>;
  readonly #target: WatchTarget;
  #token: string | undefined;
  #whole = false;

  constructor(connection: Pick<Connection, 'json'>, target: WatchTarget) {
    this.#connection = connection;
    this.#target = target;
  }

  async next(options: CallOptions): Promise<Page<T>> {
    try {
      return await this.#page(options, false);
    } catch (error) {
      if (!isKubeError(error, 'Gone') || this.#token === undefined) throw error;
      this.#token = undefined;
      this.#whole = true;
      return this.#page(options, true);
    }
  }

  async #page(options: CallOptions, restarted: boolean): Promise<Page<T>> {
    const { resource, namespace, labelSelector, fieldSelector, form } = this.#target;
    const answer = await this.#connection.json<ListAnswer<T>>({
      method: 'GET',
      verb: 'list',
      path: collectionPath(resource, namespace),
      accept: acceptList(form),
      query: { labelSelector, fieldSelector, limit: this.#whole ? undefined : PAGE_SIZE, continue: this.#token },
      ...options,
    });
    const token = answer.metadata?.continue;
    this.#token = token === '' ? undefined : token;
    return {
      items: typed(answer),
      resourceVersion: answer.metadata?.resourceVersion ?? '',
      last: this.#token === undefined,
      restarted,
    };
  }
}

/** Servers leave apiVersion and kind out of a typed list's items: the list's own say them. */
function typed<T extends KubeObject>(answer: ListAnswer<T>): T[] {
  const items = answer.items ?? [];
  const kind = answer.kind?.replace(/List$/, '');
  for (const item of items) {
    item.apiVersion ??= answer.apiVersion;
    item.kind ??= kind;
  }
  return items;
}
