import type { Follower, KubeError, KubeObject, Resource, WatchNotice, WatchSet, WatchTarget } from '../kube/index.ts';
import { HELM_SELECTOR } from './inventory.ts';
import { absence, copied, keyOfObject, partsOf, versionNumber } from './tracked-entry.ts';
import type { Observation, ReleaseRef, TrackedEntry } from './tracked-entry.ts';
import type { InventoryObject, ObjectId } from './types.ts';

/** How the tracker stands to the objects of one kind. */
export type KindState =
  /** The cluster does not serve it; nothing is watched. Next: listing, when it is served. */
  | { readonly phase: 'unserved' }
  /** The watch began and has not told its first list. Next: watching, refused or unserved. */
  | { readonly phase: 'listing' }
  /** The first list is in: what is tracked is up to date, or will be when the server can be reached. Next: refused, unserved. */
  | { readonly phase: 'watching' }
  /** The server will not let us; tried again all the same, as rights may be given. Next: watching, unserved. */
  | { readonly phase: 'refused'; readonly problem: string };

/** What a kind needs of its tracker. */
export interface KindSurroundings {
  readonly watches: WatchSet;
  /** An object as an entry keeps it, by the entry's scope. */
  readonly observe: (object: KubeObject, entry: TrackedEntry) => Observation;
  readonly stir: (release: ReleaseRef) => void;
  /** The state became another one. */
  readonly turned: (kind: TrackedKind) => void;
}

/** What tells one kind's watch from another's. */
export function kindKey({ id, resource, fromCrds }: InventoryObject): string {
  return JSON.stringify([id.group, resource?.version ?? id.version, id.kind, fromCrds]);
}

/**
 * The objects of one kind that a cluster's releases have, and the metadata watch that tells of them. Whatever else has
 * the label is passed over.
 */
export class TrackedKind implements Follower {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly fromCrds: boolean;
  readonly #surroundings: KindSurroundings;
  /** By key; a list where several releases have the object, which is seldom. */
  readonly #entries = new Map<string, TrackedEntry | TrackedEntry[]>();
  #size = 0;
  #state: KindState = { phase: 'unserved' };
  #isListing = false;

  constructor({ id, resource, fromCrds }: InventoryObject, surroundings: KindSurroundings) {
    this.group = copied(id.group);
    this.version = copied(resource?.version ?? id.version);
    this.kind = copied(id.kind);
    this.fromCrds = fromCrds;
    this.#surroundings = surroundings;
  }

  get state(): KindState {
    return this.#state;
  }

  get size(): number {
    return this.#size;
  }

  /** For people. */
  get name(): string {
    return this.group === '' ? this.kind : `${this.kind}.${this.group}`;
  }

  idOf({ key }: TrackedEntry): ObjectId {
    const { group, version, kind } = this;
    return { group, version, kind, ...partsOf(key) };
  }

  find(key: string, release: ReleaseRef): TrackedEntry | undefined {
    return this.#at(key).find((entry) => entry.release === release);
  }

  add(entry: TrackedEntry): void {
    this.#put(entry.key, [...this.#at(entry.key), entry]);
    this.#size += 1;
  }

  remove(entry: TrackedEntry): void {
    const others = this.#at(entry.key).filter((other) => other !== entry);
    this.#put(entry.key, others);
    this.#size -= 1;
  }

  /** Begins to watch, as the kind is served. */
  serve({ group, version, plural, namespaced }: Resource): void {
    const resource = { group: copied(group), version: copied(version), plural: copied(plural), namespaced };
    this.#turn({ phase: 'listing' });
    this.#surroundings.watches.follow(this, targetOf(resource, this.fromCrds), this);
  }

  /** Makes all to be verified and tells their releases, each once. */
  unsettleAll(): ReadonlySet<ReleaseRef> {
    const releases = new Set<ReleaseRef>();
    for (const entry of this.#all()) {
      entry.unsettle();
      releases.add(entry.release);
    }
    for (const release of releases) this.#surroundings.stir(release);
    return releases;
  }

  stop(): void {
    this.#surroundings.watches.release(this);
  }

  /** Somebody else found out that the kind is not served: it is waited for until it is. */
  withdraw(): void {
    if (this.#state.phase !== 'unserved') this.#unserved();
  }

  notice(notice: WatchNotice<KubeObject>): void {
    switch (notice.type) {
      case 'init':
        this.#isListing = true;
        for (const entry of this.#all()) entry.told = false;
        return;
      case 'initApply':
        this.#applied(notice.object);
        return;
      case 'initDone':
        this.#listed();
        return;
      case 'apply':
        this.#applied(notice.object);
        return;
      case 'delete':
        this.#deleted(notice.object);
        return;
    }
  }

  problem(error: KubeError): void {
    if (error.code === 'NotFound') this.#unserved();
    else if (error.handling === 'never') {
      this.#turn({ phase: 'refused', problem: `${this.name} cannot be watched: ${error.message}` });
    }
  }

  /** A server that has just begun allows nobody anything; then it does, and what was told before holds. */
  resumed(): void {
    if (this.#state.phase === 'refused') this.#turn({ phase: 'watching' });
  }

  /** In a list whatever the server says holds, older than what is known or not: its past may have been changed (a restore of etcd). */
  #applied(object: KubeObject): void {
    const version = versionNumber(object.metadata.resourceVersion);
    for (const entry of this.#at(keyOfObject(object))) {
      entry.told = true;
      if (!this.#isListing && version !== undefined && version <= entry.version) continue;
      this.#see(entry, this.#surroundings.observe(object, entry));
    }
  }

  /** Also said of an object that lost the label. A server that gives no version of its own to a delete gives the object's last one. */
  #deleted(object: KubeObject): void {
    const version = versionNumber(object.metadata.resourceVersion);
    for (const entry of this.#at(keyOfObject(object))) {
      entry.told = false;
      if (!this.#isListing && version !== undefined && version < entry.version) continue;
      this.#see(entry, absence(version));
    }
  }

  /** What a list did not tell is gone; since when is not known, so whatever a verification reads is newer. */
  #listed(): void {
    this.#isListing = false;
    for (const entry of this.#all()) if (!entry.told) this.#see(entry, absence(undefined));
    this.#turn({ phase: 'watching' });
  }

  /** The kind was taken away: no more is told, not even by a list. */
  #unserved(): void {
    this.#surroundings.watches.release(this);
    this.#isListing = false;
    for (const entry of this.#all()) this.#see(entry, absence(undefined));
    this.#turn({ phase: 'unserved' });
  }

  #see(entry: TrackedEntry, now: Observation): void {
    if (entry.see(now)) this.#surroundings.stir(entry.release);
  }

  #turn(state: KindState): void {
    const isNews = (this.#state.phase === 'refused') !== (state.phase === 'refused');
    this.#state = state;
    this.#surroundings.turned(this);
    // What is a problem, or is none any more, is to be told.
    if (isNews) for (const release of this.#releases()) this.#surroundings.stir(release);
  }

  #releases(): ReadonlySet<ReleaseRef> {
    return new Set([...this.#all()].map(({ release }) => release));
  }

  #at(key: string): readonly TrackedEntry[] {
    const found = this.#entries.get(key);
    return found === undefined ? [] : listed(found);
  }

  #put(key: string, entries: TrackedEntry[]): void {
    const [first, second] = entries;
    if (first === undefined) this.#entries.delete(key);
    else this.#entries.set(key, second === undefined ? first : entries);
  }

  *#all(): Generator<TrackedEntry> {
    for (const found of this.#entries.values()) yield* listed(found);
  }
}

function listed(found: TrackedEntry | TrackedEntry[]): readonly TrackedEntry[] {
  return Array.isArray(found) ? found : [found];
}

function targetOf(resource: Resource, fromCrds: boolean): WatchTarget {
  const target = { resource, form: 'metadata', keepManagedFields: true } as const;
  return fromCrds ? target : { ...target, labelSelector: HELM_SELECTOR };
}
