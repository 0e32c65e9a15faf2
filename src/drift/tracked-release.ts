import type { ReleaseRef, TrackedEntry } from './tracked-entry.ts';
import { keyOf } from './tracked-entry.ts';
import type { TrackedKind } from './tracked-kind.ts';
import type { ObjectId } from './types.ts';

/** What is tracked of one release. */
export class TrackedRelease implements ReleaseRef {
  readonly name: string;
  isOutdated = false;
  #entries: ReadonlyMap<TrackedKind, readonly TrackedEntry[]> = new Map();

  constructor(name: string) {
    this.name = name;
  }

  get entries(): ReadonlyMap<TrackedKind, readonly TrackedEntry[]> {
    return this.#entries;
  }

  /** Takes other entries in place of those it had, and gives these back. */
  replace(
    entries: ReadonlyMap<TrackedKind, readonly TrackedEntry[]>,
  ): ReadonlyMap<TrackedKind, readonly TrackedEntry[]> {
    const before = this.#entries;
    this.#entries = entries;
    return before;
  }

  /** No first list of a kind is under way. */
  get isReady(): boolean {
    return [...this.#entries.keys()].every(({ state }) => state.phase !== 'listing');
  }

  /** There is something to do for its owner. */
  get isStirred(): boolean {
    if (this.isOutdated) return true;
    for (const entries of this.#entries.values()) if (entries.some((entry) => entry.isStirred)) return true;
    return false;
  }

  find(id: ObjectId): TrackedEntry | undefined {
    return this.kindOf(id)?.find(keyOf(id), this);
  }

  /** The kind under which the object is tracked. */
  kindOf(id: ObjectId): TrackedKind | undefined {
    const key = keyOf(id);
    for (const kind of this.#entries.keys()) {
      if (kind.group === id.group && kind.kind === id.kind && kind.find(key, this) !== undefined) return kind;
    }
    return undefined;
  }
}
