import { asError, linkAbort, sleep, withTimeout } from './abort.ts';
import { Backoff } from './backoff.ts';
import type { Connection } from './connection.ts';
import type { KubeErrorCode } from './errors.ts';
import { KubeError, ServerError, TimedOutError, isKubeError } from './errors.ts';
import { ListPages } from './list-pages.ts';
import { withDefaults } from './list-watch-options.ts';
import type { ListWatchOptions, Settings } from './list-watch-options.ts';
import { acceptOne, collectionPath } from './paths.ts';
import type { Query } from './paths.ts';
import { metadataOnly } from './rest-client.ts';
import { errorFromStatus } from './status.ts';
import { WatchFeed } from './watch-feed.ts';
import type { WatchEvent } from './watch-feed.ts';
import type { KubeObject, WatchNotice, WatchTarget } from './types.ts';

/** What a list-watch needs of a connection. */
export type WatchConnection = Pick<Connection, 'json' | 'open' | 'onSwap' | 'features' | 'requestTimeoutMs'>;

/** Where a list-watch is. */
type State<T extends KubeObject> =
  /** Nothing is known, or not any more. Next: streaming where the server has it, else paging. */
  | { readonly phase: 'empty' }
  /** A list is read page by page. Next: listed after the last page. */
  | { readonly phase: 'paging'; readonly pages: ListPages<T> }
  /** The server tells its objects through a watch (KEP-3157). Next: watching, with the bookmark that ends the list. */
  | { readonly phase: 'streaming'; readonly feed: WatchFeed<T> }
  /** All up to `resourceVersion` is told and no watch is open. Next: watching. */
  | { readonly phase: 'listed'; readonly resourceVersion: string }
  /** Events come. Next: listed when the watch ends, empty when `resourceVersion` has become too old. */
  | { readonly phase: 'watching'; readonly feed: WatchFeed<T>; readonly resourceVersion: string }
  /** Something failed; `next` follows after `ms`, or when credentials change if it was about them. */
  | { readonly phase: 'waiting'; readonly ms: number; readonly untilSwap: boolean; readonly next: State<T> };

interface Step<T extends KubeObject> {
  readonly notices: readonly WatchNotice<T>[];
  readonly next: State<T>;
}

/** The annotation on the bookmark that ends a streaming list (KEP-3157). */
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** The resourceVersion is too old, or what was watched has gone (a CRD that was deleted, and may be there again): only a list can tell. */
const LIST_AGAIN: ReadonlySet<KubeErrorCode> = new Set<KubeErrorCode>(['Gone', 'NotFound']);

/** A watch that the server closes sooner than this, having told nothing, was of no use. */
const USEFUL_WATCH_MS = 1_000;

/** As often a resourceVersion may be ahead of the server (a replica that lags) before it is taken to be from another life of its etcd. */
const MAX_AHEAD = 3;

/**
 * Lists and watches one target until `signal` aborts (then it ends, without throwing). Whatever fails is tried again, by
 * the cheapest way that misses nothing; `onProblem` hears of it. Deletes that happened while away show as absence from
 * the next `init` … `initDone`. The consumer's pace is the watch's: what is not taken stays with the server.
 */
export async function* listWatch<T extends KubeObject>(
  connection: WatchConnection,
  target: WatchTarget,
  signal: AbortSignal,
  options: ListWatchOptions = {},
): AsyncGenerator<WatchNotice<T>, void, undefined> {
  const machine = new Machine<T>(connection, target, withDefaults(options));
  let state: State<T> = { phase: 'empty' };
  try {
    while (!signal.aborted) {
      const { notices, next }: Step<T> = await machine.advance(state, signal);
      state = next;
      yield* notices;
    }
  } finally {
    closeFeed(state);
  }
}

class Machine<T extends KubeObject> {
  readonly #connection: WatchConnection;
  readonly #target: WatchTarget;
  readonly #settings: Settings;
  readonly #backoff: Backoff;
  #uselessWatches = 0;
  #failures = 0;
  #ahead = 0;

  constructor(connection: WatchConnection, target: WatchTarget, settings: Settings) {
    this.#connection = connection;
    this.#target = target;
    this.#settings = settings;
    this.#backoff = new Backoff(settings.backoff);
  }

  /** One step, or what follows from its failure. */
  async advance(state: State<T>, signal: AbortSignal): Promise<Step<T>> {
    try {
      return await this.#step(state, signal);
    } catch (error) {
      closeFeed(state);
      if (signal.aborted) return { notices: [], next: { phase: 'empty' } };
      this.#settle(state);
      return { notices: [], next: this.#failed(state, asError(error)) };
    }
  }

  async #step(state: State<T>, signal: AbortSignal): Promise<Step<T>> {
    switch (state.phase) {
      case 'empty':
        return this.#begin(signal);
      case 'paging':
        return this.#page(state, signal);
      case 'streaming':
        return this.#stream(state, signal);
      case 'listed':
        return { notices: [], next: await this.#resumed(state.resourceVersion, signal) };
      case 'watching':
        return this.#watch(state);
      case 'waiting':
        await this.#wait(state.ms, state.untilSwap, signal);
        return { notices: [], next: state.next };
    }
  }

  async #resumed(resourceVersion: string, signal: AbortSignal): Promise<State<T>> {
    const next = await this.#open(resourceVersion, signal);
    this.#settings.onResumed?.();
    return next;
  }

  async #begin(signal: AbortSignal): Promise<Step<T>> {
    const init = { type: 'init' } as const;
    const { features } = this.#connection;
    if (!this.#settings.streamingLists || features.streamingLists === 'no') {
      return { notices: [init], next: { phase: 'paging', pages: new ListPages(this.#connection, this.#target) } };
    }
    try {
      const feed = await this.#feed({ sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }, signal);
      return { notices: [init], next: { phase: 'streaming', feed } };
    } catch (error) {
      // 400 or 422: the server knows the parameters and refuses them, or knows only one of them and forbids that.
      if (!isKubeError(error, 'Invalid')) throw error;
      features.streamingLists = 'no';
      return { notices: [], next: { phase: 'empty' } };
    }
  }

  async #page({ pages }: State<T> & { phase: 'paging' }, signal: AbortSignal): Promise<Step<T>> {
    const page = await pages.next({ signal });
    const notices: WatchNotice<T>[] = page.restarted ? [{ type: 'init' }] : [];
    for (const item of page.items) notices.push({ type: 'initApply', object: this.#trim(item) });
    if (!page.last) return { notices, next: { phase: 'paging', pages } };
    const { resourceVersion } = page;
    notices.push({ type: 'initDone', resourceVersion });
    return { notices, next: { phase: 'listed', resourceVersion } };
  }

  async #stream(state: State<T> & { phase: 'streaming' }, signal: AbortSignal): Promise<Step<T>> {
    const limit = this.#settings.initialEventsIdleMs;
    let events: WatchEvent<T>[] | undefined;
    try {
      events = await withTimeout(signal, limit, async () => state.feed.next(), 'streaming list');
    } catch (error) {
      // A server that knows nothing of streaming lists, and ignores what it does not know, sends no end of the list.
      if (error instanceof TimedOutError) this.#connection.features.streamingLists = 'no';
      throw error;
    }
    if (events === undefined) throw new ServerError('the server ended a streaming list before its end');
    const end = events.findIndex(endsList);
    const notices = this.#initial(end < 0 ? events : events.slice(0, end));
    const bookmark = events[end];
    if (bookmark === undefined) return { notices, next: state };
    this.#connection.features.streamingLists = 'yes';
    const resourceVersion = versionOf(bookmark);
    notices.push({ type: 'initDone', resourceVersion });
    const watching = { phase: 'watching', feed: state.feed, resourceVersion } as const;
    const later = this.#events(watching, events.slice(end + 1));
    return { notices: [...notices, ...later.notices], next: later.next };
  }

  #initial(events: readonly WatchEvent<T>[]): WatchNotice<T>[] {
    const notices: WatchNotice<T>[] = [];
    for (const event of events) {
      if (event.type === 'ERROR') throw this.#told(event);
      if (event.type === 'BOOKMARK') continue;
      const object = this.#trim(event.object);
      notices.push(event.type === 'DELETED' ? { type: 'delete', object } : { type: 'initApply', object });
    }
    return notices;
  }

  async #watch(state: State<T> & { phase: 'watching' }): Promise<Step<T>> {
    const events = await state.feed.next();
    if (events !== undefined) return this.#events(state, events);
    closeFeed(state);
    this.#settle(state);
    return { notices: [], next: this.#closed(state) };
  }

  /** What was told before an ERROR event counts; the ERROR decides what is next. */
  #events(state: State<T> & { phase: 'watching' }, events: readonly WatchEvent<T>[]): Step<T> {
    const notices: WatchNotice<T>[] = [];
    let { resourceVersion } = state;
    for (const event of events) {
      if (event.type === 'ERROR') {
        closeFeed(state);
        this.#settle(state);
        return { notices, next: this.#failed({ phase: 'listed', resourceVersion }, this.#told(event)) };
      }
      this.#failures = 0;
      resourceVersion = versionOf(event) || resourceVersion;
      if (event.type === 'BOOKMARK') continue;
      const object = this.#trim(event.object);
      notices.push({ type: event.type === 'DELETED' ? 'delete' : 'apply', object });
    }
    return { notices, next: { ...state, resourceVersion } };
  }

  /** The server closed the watch, as it does at timeoutSeconds: on at once, unless that is all it ever does. */
  #closed({ feed, resourceVersion }: State<T> & { phase: 'watching' }): State<T> {
    const next = { phase: 'listed', resourceVersion } as const;
    const useful = feed.hasTold || performance.now() - feed.openedAt >= USEFUL_WATCH_MS;
    this.#uselessWatches = useful ? 0 : this.#uselessWatches + 1;
    if (this.#uselessWatches < 2) return next;
    return this.#later(
      next,
      new ServerError('the server closes the watch as soon as it is open'),
      this.#backoff.next(),
    );
  }

  /** Back-off starts anew only after a watch that lived: one that opens and breaks each time must not reset it. */
  #settle(state: State<T>): void {
    if (state.phase !== 'watching' || performance.now() - state.feed.openedAt < this.#settings.healthyMs) return;
    this.#backoff.reset();
    this.#ahead = 0;
    this.#failures = 0;
  }

  #failed(state: State<T>, error: Error): State<T> {
    const told = error instanceof KubeError ? error : new ServerError(error.message, { cause: error });
    const next = this.#resume(state, told);
    if (told.code === 'NotFound' && !hasVersion(state)) {
      return this.#later(next, told, this.#settings.notServedRetryMs);
    }
    // The first relist goes at once; a server that answers every list with another 410 is left in peace like any other.
    const relists = LIST_AGAIN.has(told.code) && this.#backoff.attempts === 0;
    const wait = this.#backoff.next();
    return this.#later(next, told, relists ? 0 : Math.max(wait, told.retryAfterMs ?? 0));
  }

  /** Where to go on: from the last resourceVersion, unless the server cannot. */
  #resume(state: State<T>, error: KubeError): State<T> {
    if (!hasVersion(state)) return { phase: 'empty' };
    if (LIST_AGAIN.has(error.code)) return { phase: 'empty' };
    this.#ahead = error.causes.includes('ResourceVersionTooLarge') ? this.#ahead + 1 : 0;
    if (this.#ahead < MAX_AHEAD) return { phase: 'listed', resourceVersion: state.resourceVersion };
    this.#ahead = 0;
    return { phase: 'empty' };
  }

  #later(next: State<T>, error: KubeError, ms: number): State<T> {
    this.#failures += 1;
    this.#settings.onProblem?.({ target: this.#target, error, retryInMs: ms, failures: this.#failures });
    return { phase: 'waiting', ms, untilSwap: error.code === 'Unauthorized', next };
  }

  async #wait(ms: number, untilSwap: boolean, signal: AbortSignal): Promise<void> {
    if (!untilSwap) {
      await sleep(ms, signal);
      return;
    }
    const swapped = new Error('credentials were swapped');
    const linked = linkAbort(signal);
    const remove = this.#connection.onSwap(() => {
      linked.abort(swapped);
    });
    try {
      await sleep(ms, linked.signal);
    } catch (error) {
      if (error !== swapped) throw error;
    } finally {
      linked.unlink();
      remove();
    }
  }

  async #open(resourceVersion: string, signal: AbortSignal): Promise<State<T>> {
    return { phase: 'watching', feed: await this.#feed({ resourceVersion }, signal), resourceVersion };
  }

  async #feed(query: Query, signal: AbortSignal): Promise<WatchFeed<T>> {
    const { resource, namespace, labelSelector, fieldSelector, form } = this.#target;
    const seconds = this.#settings.watchSeconds();
    const stream = await this.#connection.open({
      method: 'GET',
      verb: 'watch',
      path: collectionPath(resource, namespace),
      accept: acceptOne(form),
      query: { watch: 1, allowWatchBookmarks: true, timeoutSeconds: seconds, labelSelector, fieldSelector, ...query },
      idleLimitMs: Math.round(seconds * 1000) + this.#settings.idleMarginMs,
      signal,
    });
    return new WatchFeed<T>(stream);
  }

  #told(event: WatchEvent<T> & { type: 'ERROR' }): KubeError {
    const path = collectionPath(this.#target.resource, this.#target.namespace);
    return errorFromStatus({ method: 'WATCH', path }, event.object);
  }

  #trim(object: T): T {
    if (this.#target.keepManagedFields !== true) delete object.metadata.managedFields;
    return this.#target.form === 'metadata' ? metadataOnly(object) : object;
  }
}

/** True where a list has been told and there is a place to go on from. */
function hasVersion<T extends KubeObject>(state: State<T>): state is State<T> & { phase: 'listed' | 'watching' } {
  return state.phase === 'listed' || state.phase === 'watching';
}

function endsList(event: WatchEvent<KubeObject>): boolean {
  return event.type === 'BOOKMARK' && event.object.metadata.annotations?.[INITIAL_EVENTS_END] === 'true';
}

function versionOf(event: WatchEvent<KubeObject>): string {
  return event.type === 'ERROR' ? '' : (event.object.metadata.resourceVersion ?? '');
}

function closeFeed<T extends KubeObject>(state: State<T>): void {
  if (state.phase === 'streaming' || state.phase === 'watching') state.feed.close();
}
