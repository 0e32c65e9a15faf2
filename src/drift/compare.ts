import { isDeepStrictEqual } from 'node:util';
import {
  absentMeansOtherwise,
  isAside,
  isGranularList,
  isOrdered,
  isSetPath,
  isText,
  isTextMap,
  metricKey,
  sameBytes,
} from './kinds.ts';
import { matchesPattern } from './pointer.ts';
import { isQuantityPath, sameQuantity } from './quantity.ts';
import { isAmbiguous, isObject, twinIndex } from './twin.ts';
import type { FieldDrift, JsonObject, JsonValue, ObjectId, Path, PathPattern } from './types.ts';

/** A field that differs, without an author. */
export type Difference = Omit<FieldDrift, 'author'>;

export interface CompareOptions {
  readonly id: ObjectId;
  /** Explicit nulls of the manifest. They are the verifier's business: who put a value there decides. */
  readonly nulls: readonly Path[];
  readonly ignore: readonly PathPattern[];
  readonly quantities: readonly PathPattern[];
  /** Both sides come from the server: what only the live one has counts, too (`added`). */
  readonly wantedIsLive?: boolean;
}

/**
 * What the live object lacks or has otherwise of what `wanted` sets, by structure alone: maps field by field, lists of
 * maps by their keys, and equal where the server writes the same in other words (quantities, empty and absent, order
 * where it means nothing). It rather tells a difference too many: a dry run then decides (verifier.ts). No request.
 */
export function compare(wanted: JsonObject, live: JsonObject, options: CompareOptions): Difference[] {
  const comparison = new Comparison(options, { wanted, live });
  comparison.walk({ wanted, live, wantedPath: [], livePath: [] });
  return comparison.found;
}

interface Place {
  readonly wanted: JsonValue;
  readonly live: JsonValue;
  readonly wantedPath: Path;
  readonly livePath: Path;
}

class Comparison {
  readonly found: Difference[] = [];
  readonly #options: CompareOptions;
  readonly #roots: { readonly wanted: JsonObject; readonly live: JsonObject };

  constructor(options: CompareOptions, roots: { wanted: JsonObject; live: JsonObject }) {
    this.#options = options;
    this.#roots = roots;
  }

  walk(place: Place): void {
    const { wanted, live } = place;
    if (isObject(wanted) && isObject(live)) this.#maps(wanted, live, place);
    else if (Array.isArray(wanted) && Array.isArray(live)) this.#lists(wanted, live, place);
    else if (!this.#same(place)) this.#tell('changed', place.livePath, { wanted, live });
  }

  #maps(wanted: JsonObject, live: JsonObject, place: Place): void {
    for (const [key, value] of Object.entries(wanted)) {
      const wantedPath = [...place.wantedPath, key];
      const livePath = [...place.livePath, key];
      if (this.#isLeftOut(wantedPath, value)) continue;
      const other = Object.hasOwn(live, key) ? live[key] : undefined;
      if (other !== undefined && other !== null) this.walk({ wanted: value, live: other, wantedPath, livePath });
      else if (!this.#countsAsAbsent(value, wantedPath)) this.#tell('removed', wantedPath, { wanted: value });
    }
    if (this.#options.wantedIsLive === true) this.#additions(wanted, live, place.livePath);
  }

  #additions(wanted: JsonObject, live: JsonObject, livePath: Path): void {
    for (const [key, value] of Object.entries(live)) {
      const path = [...livePath, key];
      if (Object.hasOwn(wanted, key) || this.#isLeftOut(path, value)) continue;
      if (!this.#countsAsAbsent(value, path)) this.#tell('added', path, { live: value });
    }
  }

  #lists(wanted: readonly JsonValue[], live: readonly JsonValue[], place: Place): void {
    const { id } = this.#options;
    if (isSetPath(place.wantedPath)) {
      this.#sets(wanted, live, place);
      return;
    }
    const taken = new Set<number>();
    const pairs = wanted.map((_, index) => {
      const at = this.#twin(wanted, live, { index, path: place.wantedPath });
      if (at === undefined || taken.has(at)) return undefined;
      taken.add(at);
      return at;
    });
    if (this.#options.wantedIsLive !== true && isAmbiguous(wanted, live)) {
      // Somebody gave an element a twin, of which one would be overlooked, and the other may be the one that counts.
      this.#tell('changed', place.livePath, { wanted: [...wanted], live: [...live] });
      return;
    }
    const hasOthers = !isGranularList(id, place.wantedPath) && this.#hasOthers(pairs, live.length - taken.size);
    if (hasOthers || (isOrdered(id, place.wantedPath) && isReordered(pairs))) {
      // An atomic list is one value: it is wanted as a whole, and in its order.
      this.#tell('changed', place.livePath, { wanted: [...wanted], live: [...live] });
      return;
    }
    for (const [index, at] of pairs.entries()) this.#element(index, at, { place, wanted, live });
    if (this.#options.wantedIsLive === true) this.#extraElements(live, taken, place.livePath);
  }

  /**
   * Does a list, which is one value as far as is known here, have other elements than it should? That a custom resource's
   * list is one is not known from its name; but of a list that managers share an apply takes nothing of others' away, so
   * between two answers of a server an element too many proves it, and one too few does not.
   */
  #hasOthers(pairs: readonly (number | undefined)[], extra: number): boolean {
    return extra > 0 || (this.#options.wantedIsLive !== true && pairs.includes(undefined));
  }

  #element(
    index: number,
    at: number | undefined,
    { place, wanted, live }: { place: Place; wanted: readonly JsonValue[]; live: readonly JsonValue[] },
  ): void {
    const wantedPath = [...place.wantedPath, index];
    const value = wanted[index];
    if (value === undefined || this.#isIgnored(wantedPath)) return;
    const other = at === undefined ? undefined : live[at];
    if (at === undefined || other === undefined) this.#tell('removed', wantedPath, { wanted: value });
    else if (!this.#isIgnored([...place.livePath, at]))
      this.walk({ wanted: value, live: other, wantedPath, livePath: [...place.livePath, at] });
  }

  #extraElements(live: readonly JsonValue[], taken: ReadonlySet<number>, livePath: Path): void {
    for (const [at, value] of live.entries()) {
      const path = [...livePath, at];
      if (!taken.has(at) && !this.#isIgnored(path)) this.#tell('added', path, { live: value });
    }
  }

  /** Order and additions mean nothing; what is missing is missing. */
  #sets(wanted: readonly JsonValue[], live: readonly JsonValue[], place: Place): void {
    const has = (list: readonly JsonValue[], value: JsonValue): boolean =>
      list.some((other) => isDeepStrictEqual(other, value));
    for (const [index, value] of wanted.entries()) {
      const path = [...place.wantedPath, index];
      if (!has(live, value) && !this.#isIgnored(path)) this.#tell('removed', path, { wanted: value });
    }
    if (this.#options.wantedIsLive !== true) return;
    for (const [index, value] of live.entries())
      if (!has(wanted, value)) this.#tell('added', [...place.livePath, index], { live: value });
  }

  #twin(
    wanted: readonly JsonValue[],
    live: readonly JsonValue[],
    { index, path }: { index: number; path: Path },
  ): number | undefined {
    const key = metricKey(this.#options.id, path);
    if (key !== undefined) {
      const own = key(wanted[index] ?? null);
      const at = live.findIndex((other) => key(other) === own);
      return at === -1 ? undefined : at;
    }
    return isObject(wanted[index]) ? twinIndex(wanted, live, index) : index < live.length ? index : undefined;
  }

  #same({ wanted, live, wantedPath }: Place): boolean {
    if (wanted === live) return true;
    if (isEmpty(wanted) && isEmpty(live)) return true;
    const { id } = this.#options;
    if (sameBytes(id, wantedPath, [wanted, live])) return true;
    return this.#isQuantity(wantedPath) && sameQuantity(wanted, live);
  }

  #isQuantity(path: Path): boolean {
    if (this.#options.quantities.some((pattern) => matchesPattern(path, pattern))) return true;
    return !isText(this.#options.id, path) && isQuantityPath(path);
  }

  /** The server drops what is empty, and what is zero where that is the same as nothing; a text in a map of texts stays. */
  #countsAsAbsent(value: JsonValue, path: Path): boolean {
    if (value === null) return true;
    if (isText(this.#options.id, path) || absentMeansOtherwise(this.#options.id, path)) return false;
    if (isObject(value) && isTextMap(this.#options.id, path)) return Object.keys(value).length === 0;
    return isEmpty(value) || value === false || value === 0;
  }

  #isLeftOut(path: Path, value: JsonValue): boolean {
    return this.#isIgnored(path) || isAside(this.#options.id, path, { value, ...this.#roots });
  }

  #isIgnored(path: Path): boolean {
    return this.#options.ignore.some((pattern) => matchesPattern(path, pattern));
  }

  #tell(
    change: Difference['change'],
    path: Path,
    values: { readonly wanted?: JsonValue; readonly live?: JsonValue },
  ): void {
    if (this.#isIgnored(path)) return;
    this.found.push({ change, path, wanted: values.wanted, live: values.live });
  }
}

/** Are the elements that both lists have in another order? */
function isReordered(places: readonly (number | undefined)[]): boolean {
  const found = places.filter((place) => place !== undefined);
  return found.some((place, index) => index > 0 && place < (found[index - 1] ?? 0));
}

/** Nothing in it: what API servers leave out. */
function isEmpty(value: JsonValue): boolean {
  if (value === null || value === '') return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.values(value).every(isEmpty);
}
