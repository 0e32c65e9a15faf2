import { LRUCache } from 'lru-cache';
import { hash } from 'node:crypto';
import type { View } from './types.ts';

/** Names whose owner is remembered per ranking: more than the clusters of a fleet; computed anew beyond. */
const REMEMBERED_NAMES = 20_000;
/** Bits of the hash that make the number: a double holds 53 exactly. */
const HASH_BYTES = 6;

/**
 * Weighted rendezvous hashing (Thaler and Ravishankar 1998; weights as -w / ln h): each member scores each name, the
 * highest owns it. A member that comes takes its share from all others and nothing moves between those; one that goes
 * leaves its share to all others. Immutable.
 */
export class Ranking {
  static readonly EMPTY = new Ranking([]);
  readonly members: View;
  /** Equal for equal members: sorted JSON. What is published. */
  readonly text: string;
  readonly #owners = new LRUCache<string, { readonly owner: string | undefined }>({ max: REMEMBERED_NAMES });

  constructor(members: Iterable<readonly [identity: string, weight: number]>) {
    const sorted = [...members].sort(([a], [b]) => (a < b ? -1 : 1));
    this.members = new Map(sorted);
    this.text = JSON.stringify(Object.fromEntries(sorted));
  }

  /** Reads `text`; undefined when it is none. */
  static parse(text: string): Ranking | undefined {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return undefined;
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    const members = Object.entries(value);
    return members.every(isMember) ? new Ranking(members) : undefined;
  }

  /** Whose the name is; undefined when there is no member with a weight above 0. */
  owner(name: string): string | undefined {
    let known = this.#owners.get(name);
    if (known === undefined) this.#owners.set(name, (known = { owner: this.#highest(name) }));
    return known.owner;
  }

  #highest(name: string): string | undefined {
    let owner: string | undefined;
    let highest = 0;
    for (const [identity, weight] of this.members) {
      const score = weight > 0 ? -weight / Math.log(unitHash(`${identity}\0${name}`)) : 0;
      // Members are sorted: among equals the first wins everywhere.
      if (score > highest) [owner, highest] = [identity, score];
    }
    return owner;
  }
}

/** Between 0 and 1, never either. */
function unitHash(text: string): number {
  return (hash('sha256', text, 'buffer').readUIntBE(0, HASH_BYTES) + 0.5) / 2 ** (8 * HASH_BYTES);
}

function isMember(entry: [string, unknown]): entry is [string, number] {
  return typeof entry[1] === 'number' && Number.isFinite(entry[1]) && entry[1] >= 0;
}
