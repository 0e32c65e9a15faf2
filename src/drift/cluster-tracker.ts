import type { Gauge } from 'prom-client';
import type { Discovery, KubeObject, Resource, WatchSet } from '../kube/index.ts';
import { ConnectionClosedError, withTimeout } from '../kube/index.ts';
import { gauge } from '../telemetry/index.ts';
import type { Logger, Telemetry } from '../telemetry/index.ts';
import { ABSENT, markOf } from './mark.ts';
import { copied, keyOf, NOBODY_ELSE, TrackedEntry, UNVERIFIED, versionNumber } from './tracked-entry.ts';
import { kindKey, TrackedKind } from './tracked-kind.ts';
import { Stirs } from './tracked-stirs.ts';
import type { StirsOptions } from './tracked-stirs.ts';
import { UnservedKinds } from './tracked-unserved.ts';
import type { UnservedOptions } from './tracked-unserved.ts';
import type { Inventory, InventoryObject, ObjectId } from './types.ts';

export interface ClusterTrackerOptions extends StirsOptions, UnservedOptions {}

export interface ClusterTrackerDependencies {
  readonly cluster: string;
  readonly watches: WatchSet;
  readonly discovery: Discovery;
  readonly telemetry: Telemetry;
  /** Field managers that are Helm. */
  readonly helmManagers: ReadonlySet<string>;
  /** A release has something to `take`, or `isOutdated`. Must not throw. */
  readonly onStir: (release: string) => void;
  readonly options?: ClusterTrackerOptions;
}

export interface TrackOptions {
  /** Edits of fields that the manifest does not set count, too (extraFields). */
  readonly wide: boolean;
  /** What was verified of objects that were tracked before still holds: the same revision and the same rules. */
  readonly keep: boolean;
}

/** An object of which the newest known state is not the one that was verified. */
export interface Stirred {
  /** Its place in the inventory that was tracked. */
  readonly index: number;
  readonly id: ObjectId;
  /** `unverified`: never looked at. `gone`: deleted, or without Helm's label, or of a kind that is not served. */
  readonly kind: 'unverified' | 'changed' | 'gone';
}

/** What a verification found of one object, or a correction made of it. */
export interface Settled {
  /** The object that was read or written; absent when there is none. */
  readonly live?: KubeObject;
  /** Of `live`, where it does not say. */
  readonly resourceVersion?: string;
  /** A verdict's `watch`: managers whose edits stir the object, too. */
  readonly watch: readonly string[];
  /**
   * Everybody's edits stir the object: for one that is left drifting. A field that was taken away is nobody's, so whoever
   * puts it back leaves no trace in the entries of Helm or of `watch`.
   */
  readonly wide?: boolean;
}

/** What is tracked of one release. */
interface Release {
  readonly name: string;
  wide: boolean;
  entries: Map<TrackedKind, TrackedEntry[]>;
  outdated: boolean;
}

interface Waiter {
  readonly release: Release;
  readonly done: () => void;
}

/** Sets of managers are kept once; beyond so many different ones something makes up names, and they are kept per object. */
const MAX_KNOWN_SETS = 1_000;

/**
 * Notices in one cluster, from metadata alone, that objects of releases may drift (DESIGN §5.1). Level-based: what is
 * stirred stays so until it is settled, so nothing is lost when a pass fails or an event comes during it. Watches are shared
 * by all releases of the cluster, one per kind; per object there is one small entry. A relist or a new connection stirs only
 * what has changed meanwhile. Made and closed by whoever owns the engagement of the cluster.
 */
export class ClusterTracker {
  readonly #cluster: string;
  readonly #watches: WatchSet;
  readonly #helmManagers: ReadonlySet<string>;
  readonly #discovery: Discovery;
  readonly #tracked: Gauge<'cluster'>;
  readonly #releases = new Map<string, Release>();
  readonly #kinds = new Map<string, TrackedKind>();
  readonly #stirs: Stirs<Release>;
  readonly #unserved: UnservedKinds;
  readonly #waiters = new Set<Waiter>();
  readonly #managerSets = new Map<string, readonly string[]>();
  readonly #stop = new AbortController();

  constructor(dependencies: ClusterTrackerDependencies) {
    const { cluster, watches, discovery, telemetry, options = {} } = dependencies;
    const log = telemetry.log.with({ cluster });
    this.#cluster = cluster;
    this.#watches = watches;
    this.#discovery = discovery;
    this.#helmManagers = dependencies.helmManagers;
    this.#tracked = gauge(
      telemetry.metrics,
      'capstan_drift_tracked_objects',
      'Objects of releases whose changes are noticed',
      ['cluster'],
    );
    this.#stirs = new Stirs(({ name }) => {
      tellSafely(() => dependencies.onStir(name), log);
    }, options);
    const onServed = (kind: TrackedKind, resource: Resource): void => {
      this.#served(kind, resource);
    };
    this.#unserved = new UnservedKinds({ watches, discovery, log, onServed }, options);
  }

  /**
   * Makes these objects what is tracked of a release. All that is new, and all when not `keep`, is unverified and can be
   * taken at once; `onStir` does not tell of it. Only watches of kinds that nobody tracked before begin, and only those
   * of kinds that nobody tracks any more end.
   */
  track(name: string, inventory: Inventory, options: TrackOptions): void {
    if (this.#stop.signal.aborted) return;
    const release = this.#releases.get(name) ?? { name, wide: options.wide, entries: new Map(), outdated: false };
    const before = release.entries;
    const wasOutdated = release.outdated;
    this.#releases.set(name, release);
    release.entries = new Map();
    release.outdated = false;
    release.wide = options.wide;
    const isKept = new Set<TrackedEntry>();
    for (const [index, object] of inventory.objects.entries()) {
      const kind = this.#kindFor(object);
      // Another release's watch, or this one's, shows that the kind is served: what the inventory knows is out of date.
      if (object.resource === undefined && kind.state.phase === 'watching') release.outdated = true;
      const entry = this.#entryFor(kind, { release, object, index, options });
      isKept.add(entry);
      const entries = release.entries.get(kind);
      if (entries === undefined) release.entries.set(kind, [entry]);
      else entries.push(entry);
    }
    this.#drop(before, isKept);
    this.#count();
    if (release.outdated && !wasOutdated) {
      this.#discovery.invalidate();
      this.#stirs.add(release);
    }
  }

  /** Tracks nothing of the release any more; unknown names are passed over. */
  forget(name: string): void {
    const release = this.#releases.get(name);
    if (release === undefined) return;
    this.#releases.delete(name);
    this.#stirs.forget(release);
    this.#drop(release.entries, new Set());
    this.#settleWaiters();
    this.#count();
  }

  /**
   * Resolves when the first list of each kind of the release is in. Kinds that are not served or that the server will not
   * let us watch are not waited for (`unserved`, `problems`). Rejects with the signal's reason, with TimedOut, or with
   * ConnectionClosed after `close`.
   */
  async synced(name: string, signal: AbortSignal, timeoutMs: number): Promise<void> {
    signal.throwIfAborted();
    this.#stop.signal.throwIfAborted();
    const release = this.#releases.get(name);
    if (release === undefined || isReady(release)) return;
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const waiter: Waiter = { release, done: () => resolve(undefined) };
    const onStop = (): void => {
      reject(this.#stop.signal.reason as Error);
    };
    this.#waiters.add(waiter);
    this.#stop.signal.addEventListener('abort', onStop, { once: true });
    try {
      await withTimeout(signal, timeoutMs, async () => promise, `first lists of the objects of ${name}`);
    } finally {
      this.#waiters.delete(waiter);
      this.#stop.signal.removeEventListener('abort', onStop);
    }
  }

  /** What is to be verified, in the inventory's order. Stays so until it is settled. */
  take(name: string): readonly Stirred[] {
    const stirred: Stirred[] = [];
    for (const [kind, entries] of this.#releases.get(name)?.entries ?? []) {
      for (const entry of entries) {
        if (!entry.isStirred) continue;
        entry.taken = true;
        stirred.push({ index: entry.index, id: kind.idOf(entry), kind: entry.stirredKind });
      }
    }
    return stirred.sort((one, other) => one.index - other.index);
  }

  /**
   * The object was verified, or written, as it is in `verified`: it is not stirred any more, unless the watch has told of
   * something newer meanwhile. Events up to that version, above all that of our own write, stir nothing.
   */
  settle(name: string, id: ObjectId, verified: Settled): void {
    const entry = this.#find(name, id);
    const release = this.#releases.get(name);
    if (entry === undefined || release === undefined) return;
    const version = versionNumber(verified.resourceVersion ?? verified.live?.metadata.resourceVersion);
    const isAhead = version === undefined ? !entry.taken : version < entry.version;
    const rescoped = this.#rescope(entry, verified);
    const mark = verified.live === undefined ? ABSENT : this.#mark(verified.live, entry);
    entry.settled = mark;
    if (!isAhead) {
      entry.seen = mark;
      entry.version = version ?? entry.version;
    } else if (rescoped && mark !== ABSENT) {
      // What was seen was seen with other eyes and cannot be compared.
      entry.settled = UNVERIFIED;
    }
    entry.taken = false;
    if (entry.isStirred) this.#stirs.add(release);
  }

  /** The object is to be looked at again: `take` gives it. `onStir` does not tell, the caller knows. */
  unsettle(name: string, id: ObjectId): void {
    const entry = this.#find(name, id);
    if (entry !== undefined) entry.settled = UNVERIFIED;
  }

  /** Objects of the release whose kinds the cluster does not serve. */
  unserved(name: string): ObjectId[] {
    return this.#kindsOf(name).flatMap(([kind, entries]) =>
      kind.state.phase === 'unserved' ? entries.map((entry) => kind.idOf(entry)) : [],
    );
  }

  /**
   * True when a kind of the release that was not served is served now: the inventory should be built anew and tracked with
   * `keep`. Told through `onStir`.
   */
  isOutdated(name: string): boolean {
    return this.#releases.get(name)?.outdated ?? false;
  }

  /** Why changes to some objects of the release are not noticed, one text per kind. Normally empty. */
  problems(name: string): string[] {
    return this.#kindsOf(name).flatMap(([{ state }]) => (state.phase === 'refused' ? [state.problem] : []));
  }

  /** Stops every watch and timer; nothing is told afterwards. */
  close(): void {
    this.#stop.abort(new ConnectionClosedError('the tracker was closed'));
    this.#stirs.close();
    this.#unserved.close();
    for (const kind of this.#kinds.values()) kind.stop();
    this.#kinds.clear();
    this.#releases.clear();
    this.#tracked.remove({ cluster: this.#cluster });
  }

  #kindFor(object: InventoryObject): TrackedKind {
    const key = kindKey(object);
    const known = this.#kinds.get(key);
    if (known !== undefined) {
      if (known.state.phase === 'unserved' && object.resource !== undefined) this.#served(known, object.resource);
      return known;
    }
    const kind = new TrackedKind(object, {
      watches: this.#watches,
      mark: (live, entry) => this.#mark(live, entry),
      stir: (release) => {
        this.#stirs.add(release as Release);
      },
      turned: (turned) => {
        if (turned.state.phase === 'unserved') this.#unserved.add(turned);
        this.#settleWaiters();
      },
    });
    this.#kinds.set(key, kind);
    if (object.resource === undefined) this.#unserved.add(kind);
    else kind.serve(object.resource);
    return kind;
  }

  #entryFor(
    kind: TrackedKind,
    of: { release: Release; object: InventoryObject; index: number; options: TrackOptions },
  ): TrackedEntry {
    const { release, object, index, options } = of;
    // Where the manifest says null, a field that anybody adds is drift, and no entry of Helm's tells of it.
    const wide = options.wide || object.nulls.length > 0;
    const key = keyOf(object.id);
    const known = kind.find(key, release);
    if (known === undefined) {
      const entry = new TrackedEntry(copied(key), release, { index, wide });
      kind.add(entry);
      return entry;
    }
    known.index = index;
    if (options.keep && (known.wide || !wide)) return known;
    known.settled = UNVERIFIED;
    known.also = NOBODY_ELSE;
    known.wide = wide;
    return known;
  }

  #drop(before: ReadonlyMap<TrackedKind, readonly TrackedEntry[]>, isKept: ReadonlySet<TrackedEntry>): void {
    for (const [kind, entries] of before) {
      for (const entry of entries) if (!isKept.has(entry)) kind.remove(entry);
      if (kind.size > 0) continue;
      kind.stop();
      this.#unserved.delete(kind);
      for (const [key, known] of this.#kinds) if (known === kind) this.#kinds.delete(key);
    }
  }
}
