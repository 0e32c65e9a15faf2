import { Buffer } from 'node:buffer';
import type { KubeObject } from '../kube/index.ts';
import { ABSENT } from './mark.ts';

/** `settled` of an entry that was never verified, or is to be again. */
export const UNVERIFIED = -1;

/** `seen` of an entry that no watch has told of yet. */
const UNKNOWN = -2;

/** What most objects have: nobody but Helm owns what the manifest sets. One array for all of them. */
export const NOBODY_ELSE: readonly string[] = [];

/** The owner's view of what it is told about: any object, known by identity. */
export type ReleaseRef = object;

/**
 * One object as one release tracks it. A cluster may have a hundred thousand of them, so it has few fields, all of them
 * small: marks and not objects, numbers and not texts.
 */
export class TrackedEntry {
  /** `namespace/name`, or the name of a cluster-scoped object. */
  readonly key: string;
  readonly release: ReleaseRef;
  /** Where in the release's inventory. */
  index: number;
  /** Mark of the newest state that the watch told, or that a verification read if that is newer. */
  seen: number = UNKNOWN;
  /** Mark of the state that was verified. Equal to `seen`: nothing to do. */
  settled: number = UNVERIFIED;
  /** resourceVersion of `seen`; 0 where it is not known: whatever comes next is newer. */
  version = 0;
  /** Managers beside Helm's whose entries are in the marks. */
  also: readonly string[] = NOBODY_ELSE;
  /** Everybody's entries are in the marks. */
  wide: boolean;
  /** `take` gave it away, and `seen` is since what it was. */
  taken = false;
  /** The list that is under way has told of it. */
  told = false;
  /** Another release's entry of the same object. Seldom. */
  next: TrackedEntry | undefined = undefined;

  constructor(key: string, release: ReleaseRef, at: { readonly index: number; readonly wide: boolean }) {
    this.key = key;
    this.release = release;
    this.index = at.index;
    this.wide = at.wide;
  }

  get isStirred(): boolean {
    return this.seen !== this.settled;
  }

  get stirredKind(): 'unverified' | 'changed' | 'gone' {
    if (this.settled === UNVERIFIED) return 'unverified';
    return this.seen === ABSENT ? 'gone' : 'changed';
  }

  /** Takes in what a watch told. True when the owner has something new to do that it was not told of before. */
  see(mark: number, version: number | undefined): boolean {
    this.version = version ?? 0;
    if (this.seen === mark) return false;
    const wasTaken = this.taken;
    this.seen = mark;
    this.taken = false;
    return this.isStirred && (this.settled !== UNVERIFIED || wasTaken);
  }
}

/** resourceVersions of one resource are numbers that grow (KEP-5504); undefined where a server makes them otherwise. */
export function versionNumber(resourceVersion: string | undefined): number | undefined {
  const version = resourceVersion === undefined || resourceVersion === '' ? Number.NaN : Number(resourceVersion);
  return Number.isSafeInteger(version) ? version : undefined;
}

export function keyOf({ namespace, name }: { readonly namespace?: string; readonly name: string }): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

export function keyOfObject({ metadata }: KubeObject): string {
  return keyOf(metadata);
}

/** The parts of a key; names of objects have no slash in them. */
export function partsOf(key: string): { namespace?: string; name: string } {
  const slash = key.indexOf('/');
  return slash === -1 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** A string of its own: one that was cut out of a manifest's text, or put together, keeps all of that alive in V8. */
export function copied(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8');
}
