import type { Gauge } from 'prom-client';
import type { Discovery, KubeObject, Resource, WatchSet } from '../kube/index.ts';
import { ConnectionClosedError, raceAbort, withTimeout } from '../kube/index.ts';
import { gauge } from '../telemetry/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { canWriteUnseen, markOf, restOf } from './mark.ts';
import { absence, copied, keyOf, TrackedEntry, versionNumber } from './tracked-entry.ts';
import type { Observation, ReleaseRef } from './tracked-entry.ts';
import { kindKey, TrackedKind } from './tracked-kind.ts';
import { ManagerSets } from './tracked-managers.ts';
import { TrackedRelease } from './tracked-release.ts';
import { Stirs } from './tracked-stirs.ts';
import type { StirsOptions } from './tracked-stirs.ts';
import type { Settled, Stirred, TrackOptions } from './tracked-types.ts';
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

interface Waiter {
  readonly release: TrackedRelease;
  readonly done: () => void;
}

/**
 * Notices in one cluster, from metadata alone, that objects of releases may drift (DESIGN §5.1). Level-based: what is
 * stirred stays so until it is settled, so nothing is lost when a pass fails or an event comes during it. Watches are shared
 * by all releases of the cluster, one per kind; per object there is one small entry. A relist or a new connection stirs only
 * what has changed meanwhile. Made and closed by whoever owns the engagement of the cluster.
 */
export class ClusterTracker {
  readonly #dependencies: ClusterTrackerDependencies;
  readonly #managers: ManagerSets;
  readonly #tracked: Gauge<'cluster'>;
  readonly #releases = new Map<string, TrackedRelease>();
  readonly #kinds = new Map<string, TrackedKind>();
  readonly #stirs: Stirs<ReleaseRef>;
  readonly #unserved: UnservedKinds;
  readonly #waiters = new Set<Waiter>();
  readonly #stop = new AbortController();

  constructor(dependencies: ClusterTrackerDependencies) {
    const { cluster, watches, discovery, telemetry, onStir, options } = dependencies;
    const log = telemetry.log.with({ cluster });
    this.#dependencies = dependencies;
    this.#managers = new ManagerSets(dependencies.helmManagers);
    this.#tracked = gauge(
      telemetry.metrics,
      'capstan_drift_tracked_objects',
      'Objects of releases whose changes are noticed',
      ['cluster'],
    );
    const onError = (error: unknown): void => {
      log.error('who is told of stirred objects threw', { err: error });
    };
    const tell = ({ name }: ReleaseRef): void => {
      // What was put back as it was, or settled meanwhile, needs nobody.
      if (this.#releases.get(name)?.isStirred === true) onStir(name);
    };
    this.#stirs = new Stirs(tell, onError, options);
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
    const release = this.#releases.get(name) ?? new TrackedRelease(name);
    this.#releases.set(name, release);
    const wasOutdated = release.isOutdated;
    const entries = new Map<TrackedKind, TrackedEntry[]>();
    let isOutdated = false;
    for (const [index, object] of inventory.objects.entries()) {
      const kind = this.#kindFor(object);
      // A watch that gets on shows that the kind is served: the inventory was made of what discovery said before.
      isOutdated ||= object.resource === undefined && kind.state.phase === 'watching';
      const entry = entryFor(kind, { release, object, index }, options);
      const ofKind = entries.get(kind);
      if (ofKind === undefined) entries.set(kind, [entry]);
      else ofKind.push(entry);
    }
    const before = release.replace(entries);
    release.isOutdated = isOutdated;
    this.#drop(before, entries);
    // Once: if an inventory that is made anew does not know better either, there is no more to be had.
    if (isOutdated && !wasOutdated) this.#outdate(release);
  }

  /** Tracks nothing of the release any more; unknown names are passed over. Who waits for its lists is let go. */
  forget(name: string): void {
    const release = this.#releases.get(name);
    if (release === undefined) return;
    this.#releases.delete(name);
    this.#stirs.forget(release);
    this.#drop(release.replace(new Map()), new Map());
    this.#settleWaiters();
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
    if (release === undefined || release.isReady) return;
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const waiter: Waiter = {
      release,
      done: () => {
        resolve(undefined);
      },
    };
    this.#waiters.add(waiter);
    try {
      const wait = async (): Promise<undefined> => raceAbort(promise, this.#stop.signal);
      await withTimeout(signal, timeoutMs, wait, `first lists of the objects of ${name}`);
    } finally {
      this.#waiters.delete(waiter);
      resolve(undefined);
    }
  }

  /** What is to be verified, in the inventory's order. Stays so until it is settled. */
  take(name: string): readonly Stirred[] {
    const stirred: Stirred[] = [];
    for (const [kind, entries] of this.#releases.get(name)?.entries ?? []) {
      for (const entry of entries) {
        const how = entry.take();
        if (how !== undefined) stirred.push({ index: entry.index, id: kind.idOf(entry), kind: how });
      }
    }
    return stirred.sort((one, other) => one.index - other.index);
  }

  /**
   * The object was verified, or written, as it is in `verified`: it is not stirred any more, unless the watch has told of
   * something newer meanwhile; then `onStir` tells. Events up to that version, above all that of our own write, stir
   * nothing. What is not tracked is passed over.
   */
  settle(name: string, id: ObjectId, verified: Settled): void {
    const release = this.#releases.get(name);
    const kind = release?.kindOf(id);
    const entry = release?.find(id);
    if (release === undefined || kind === undefined || entry === undefined) return;
    this.#settle(entry, verified);
    if (verified.notServed === true) kind.withdraw();
    if (entry.isStirred) this.#stirs.add(release);
  }

  /** The object is to be looked at again: `take` gives it. `onStir` does not tell, as the caller knows. */
  unsettle(name: string, id: ObjectId): void {
    this.#releases.get(name)?.find(id)?.unsettle();
  }

  /** Objects of the release whose kinds the cluster does not serve. */
  unserved(name: string): ObjectId[] {
    return [...(this.#releases.get(name)?.entries ?? [])].flatMap(([kind, entries]) =>
      kind.state.phase === 'unserved' ? entries.map((entry) => kind.idOf(entry)) : [],
    );
  }

  /**
   * True when a kind of the release that was not served is served now: the inventory should be made anew and tracked with
   * `keep`. `onStir` tells.
   */
  isOutdated(name: string): boolean {
    return this.#releases.get(name)?.isOutdated ?? false;
  }

  /** Why changes to some objects of the release are not noticed, one text per kind. Normally empty. */
  problems(name: string): string[] {
    const kinds = this.#releases.get(name)?.entries.keys() ?? [];
    return [...kinds].flatMap(({ state }) => (state.phase === 'refused' ? [state.problem] : []));
  }

  /** Stops every watch and timer; nothing is told afterwards. */
  close(): void {
    this.#stop.abort(new ConnectionClosedError('the tracker was closed'));
    this.#stirs.close();
    this.#unserved.close();
    for (const kind of this.#kinds.values()) kind.stop();
    this.#kinds.clear();
    this.#releases.clear();
    this.#tracked.remove({ cluster: this.#dependencies.cluster });
  }

  #kindFor(object: InventoryObject): TrackedKind {
    const key = kindKey(object);
    const known = this.#kinds.get(key);
    if (known !== undefined) {
      if (known.state.phase === 'unserved' && object.resource !== undefined) this.#served(known, object.resource);
      return known;
    }
    const kind = new TrackedKind(object, {
      watches: this.#dependencies.watches,
      observe: (live, entry) => this.#observe(live, entry),
      stir: (release) => {
        this.#stirs.add(release);
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

  #settle(entry: TrackedEntry, verified: Settled): void {
    const { live, watch, wide = false } = verified;
    const rescoped = entry.rescope(this.#managers.of(watch), wide);
    const version = versionNumber(verified.resourceVersion ?? live?.metadata.resourceVersion);
    entry.settle({ ...(live === undefined ? absence(version) : this.#observe(live, entry)), version }, rescoped);
  }

  #served(kind: TrackedKind, resource: Resource): void {
    this.#unserved.delete(kind);
    kind.serve(resource);
    for (const release of kind.unsettleAll()) {
      release.isOutdated = true;
      this.#stirs.add(release);
    }
  }

  #outdate(release: TrackedRelease): void {
    this.#dependencies.discovery.invalidate();
    this.#stirs.add(release);
  }

  /** Takes entries out that a release does not have any more, and with the last entry of a kind the kind. */
  #drop(
    before: ReadonlyMap<TrackedKind, readonly TrackedEntry[]>,
    after: ReadonlyMap<TrackedKind, readonly TrackedEntry[]>,
  ): void {
    for (const [kind, entries] of before) {
      const kept = new Set(after.get(kind));
      for (const entry of entries) if (!kept.has(entry)) kind.remove(entry);
      if (kind.size === 0) this.#end(kind);
    }
    const size = [...this.#kinds.values()].reduce((sum, kind) => sum + kind.size, 0);
    this.#tracked.set({ cluster: this.#dependencies.cluster }, size);
  }

  #end(kind: TrackedKind): void {
    kind.stop();
    this.#unserved.delete(kind);
    for (const [key, known] of this.#kinds) if (known === kind) this.#kinds.delete(key);
  }

  #observe(object: KubeObject, { also, wide }: TrackedEntry): Observation {
    const scope = { helm: this.#dependencies.helmManagers, also, wide };
    const { generation = 0, resourceVersion } = object.metadata;
    const mark = markOf(object, scope);
    const canBeUnseen = canWriteUnseen(object, scope);
    return { mark, rest: restOf(object, scope), canBeUnseen, generation, version: versionNumber(resourceVersion) };
  }

  #settleWaiters(): void {
    for (const { release, done } of this.#waiters) if (release.isReady) done();
  }
}

/** The entry that there is, if what was verified of it still holds, else one to be verified. */
function entryFor(
  kind: TrackedKind,
  of: { readonly release: TrackedRelease; readonly object: InventoryObject; readonly index: number },
  options: TrackOptions,
): TrackedEntry {
  const { release, object, index } = of;
  // Where the manifest says null, a field that anybody adds is drift, and no entry of Helm's tells of it.
  const wide = options.wide || object.nulls.length > 0;
  const key = keyOf(object.id);
  const known = kind.find(key, release);
  if (known === undefined) {
    const entry = new TrackedEntry(copied(key), release, index);
    entry.reset(wide);
    kind.add(entry);
    return entry;
  }
  known.index = index;
  if (!options.keep || (wide && !known.wide)) known.reset(wide);
  return known;
}
