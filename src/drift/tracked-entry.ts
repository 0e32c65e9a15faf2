import { Buffer } from 'node:buffer';
import type { KubeObject } from '../kube/index.ts';
import { ABSENT } from './mark.ts';

/** `unverified`: never looked at, or to be looked at again. `gone`: deleted, or without Helm's label, or of a kind that is not served. */
export type StirredKind = 'unverified' | 'changed' | 'gone';

/** `#settled` of an entry that was never verified, or is to be again. */
const UNVERIFIED = -1;

/** `#seen` of an entry that no watch has told of yet. */
const UNKNOWN = -2;

/** What most objects have: nobody but Helm owns what the manifest sets. One array for all of them. */
export const NOBODY_ELSE: readonly string[] = [];

/** A release as its entries know it: by identity. */
export interface ReleaseRef {
  readonly name: string;
  /** Its inventory was made when a kind was not served that is served now. */
  isOutdated: boolean;
}

/** Bits of `#flags`; above them is the generation, as far as there is room. */
const TAKEN = 1;
const TOLD = 2;
const WIDE = 4;
const ALWAYS_WIDE = 8;
const UNSEEN_WRITE = 16;
const BITS = 5;
const GENERATIONS = 1 << 20;

/** One state of an object, as far as it is kept. Made of the whole object by `observe`, which its tracker has. */
export interface Observation {
  /** See mark.ts; ABSENT when there is no object. */
  readonly mark: number;
  readonly rest: number;
  readonly canBeUnseen: boolean;
  /** 0 where objects have none. */
  readonly generation: number;
  /** undefined where it is not known, or no number. */
  readonly version: number | undefined;
}

/** No object; `version` is that of the delete, where it is known. */
export function absence(version: number | undefined): Observation {
  return { mark: ABSENT, rest: 0, canBeUnseen: false, generation: 0, version };
}

/**
 * One object as one release tracks it. A cluster may have a hundred thousand of them, so it has few fields, all of them
 * small: marks and not objects, numbers and not texts, bits and not booleans.
 */
export class TrackedEntry {
  /** `namespace/name`, or the name of a cluster-scoped object. */
  readonly key: string;
  readonly release: ReleaseRef;
  /** Where in the release's inventory. */
  index: number;
  /** Mark of the newest state that the watch told, or that a verification read if that is newer. */
  #seen: number = UNKNOWN;
  /** Mark of the state that was verified. Equal to `#seen`: nothing to do. */
  #settled: number = UNVERIFIED;
  /** resourceVersion of `#seen`; 0 where it is not known: whatever comes next is newer. */
  #version = 0;
  /** `restOf` the newest state. */
  #rest = 0;
  #also: readonly string[] = NOBODY_ELSE;
  #flags = 0;

  constructor(key: string, release: ReleaseRef, index: number) {
    this.key = key;
    this.release = release;
    this.index = index;
  }

  get version(): number {
    return this.#version;
  }

  /** Managers beside Helm's whose entries are in the marks. */
  get also(): readonly string[] {
    return this.#also;
  }

  /** Everybody's entries are in the marks. */
  get wide(): boolean {
    return this.#has(WIDE | ALWAYS_WIDE);
  }

  /** The list that is under way has told of it. */
  get told(): boolean {
    return this.#has(TOLD);
  }

  set told(told: boolean) {
    this.#flag(TOLD, told);
  }

  get isStirred(): boolean {
    return this.#seen !== this.#settled || this.#has(UNSEEN_WRITE);
  }

  /** The owner takes it to look at it; undefined when there is nothing to look at. */
  take(): StirredKind | undefined {
    if (!this.isStirred) return undefined;
    this.#flag(TAKEN, true);
    if (this.#settled === UNVERIFIED) return 'unverified';
    return this.#seen === ABSENT ? 'gone' : 'changed';
  }

  /** Takes in what a watch told. True when the owner has something to do that it was not told of before. */
  see(now: Observation): boolean {
    const isUnseenWrite = this.#isUnseenWrite(now);
    const isNews = isUnseenWrite || this.#seen !== now.mark;
    this.#keep(now);
    if (!isNews) return false;
    const wasTaken = this.#has(TAKEN);
    this.#flag(TAKEN, false);
    if (isUnseenWrite) this.#flag(UNSEEN_WRITE, true);
    return this.isStirred && (this.#settled !== UNVERIFIED || wasTaken);
  }

  /** To be looked at again. */
  unsettle(): void {
    this.#settled = UNVERIFIED;
  }

  /** What was verified is void, as it was verified against something else. `wide`: from now on, whatever is verified. */
  reset(wide: boolean): void {
    this.#settled = UNVERIFIED;
    this.#also = NOBODY_ELSE;
    this.#flag(WIDE, false);
    this.#flag(ALWAYS_WIDE, wide);
  }

  /** Whose entries are in the marks from now on. True when that changes something. */
  rescope(also: readonly string[], wide: boolean): boolean {
    const before = this.wide;
    this.#flag(WIDE, wide);
    const changed = before !== this.wide || this.#also !== also;
    this.#also = also;
    return changed;
  }

  /**
   * This state was verified. If the watch has told of a newer one, that stays to be looked at; without a version that is
   * known by its having told of something after `take`.
   */
  settle(verified: Observation, rescoped: boolean): void {
    const { mark, version } = verified;
    const isAhead = version === undefined ? this.#hasToldSinceTake : version < this.#version;
    this.#settled = mark;
    if (!isAhead) {
      this.#flag(UNSEEN_WRITE, false);
      this.#keep({ ...verified, version: version ?? this.#version });
    } else if (rescoped && mark !== ABSENT) {
      // What the watch told was marked for other managers and cannot be compared.
      this.#settled = UNVERIFIED;
    }
  }

  #keep({ mark, rest, generation, version }: Observation): void {
    this.#seen = mark;
    this.#rest = rest;
    this.#version = version ?? 0;
    this.#flags = (this.#flags & ((1 << BITS) - 1)) | ((generation % GENERATIONS) << BITS);
  }

  /**
   * Another version that neither the mark nor anybody else's entry accounts for. Objects with a generation tell by it
   * whether it was more than metadata; of the others it must be found out.
   */
  #isUnseenWrite({ mark, rest, canBeUnseen, generation, version }: Observation): boolean {
    if (!canBeUnseen || mark !== this.#seen || rest !== this.#rest || version === this.#version) return false;
    return generation === 0 || generation % GENERATIONS !== this.#flags >> BITS;
  }

  get #hasToldSinceTake(): boolean {
    return this.#seen !== UNKNOWN && !this.#has(TAKEN);
  }

  #has(bits: number): boolean {
    return (this.#flags & bits) !== 0;
  }

  #flag(bit: number, on: boolean): void {
    this.#flags = on ? this.#flags | bit : this.#flags & ~bit;
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
