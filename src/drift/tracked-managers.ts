import { copied, NOBODY_ELSE } from './tracked-entry.ts';

/** Beyond so many different sets somebody makes up names of managers, and old sets are dropped: their entries keep them. */
const MAX_SETS = 1_000;

/** Sets of field managers, each kept once: most objects have the same few, and equal sets are the same array. */
export class ManagerSets {
  readonly #helmManagers: ReadonlySet<string>;
  readonly #sets = new Map<string, readonly string[]>();

  constructor(helmManagers: ReadonlySet<string>) {
    this.#helmManagers = helmManagers;
  }

  /** The set of these managers, without Helm's. */
  of(managers: readonly string[]): readonly string[] {
    const others = managers.filter((manager) => !this.#helmManagers.has(manager));
    if (others.length === 0) return NOBODY_ELSE;
    const sorted = [...new Set(others)].sort().map(copied);
    const key = JSON.stringify(sorted);
    const known = this.#sets.get(key);
    if (known !== undefined) return known;
    if (this.#sets.size >= MAX_SETS) this.#sets.clear();
    this.#sets.set(key, sorted);
    return sorted;
  }
}
