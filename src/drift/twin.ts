import type { JsonObject, JsonValue, Path } from './types.ts';

/**
 * What elements of lists are told apart by. The first key that every element of both lists has, and that occurs once in
 * each, is taken; else their position counts. The order is that of precision: a container port's `name` can be edited,
 * its number is what it is merged by (Kubernetes API reference, patchMergeKey and x-kubernetes-list-map-keys).
 */
const KEYS: readonly (readonly string[])[] = [
  ['containerPort', 'protocol'],
  ['port', 'protocol'],
  ['mountPath'],
  ['devicePath'],
  ['name'],
  ['topologyKey', 'whenUnsatisfiable'],
  ['ip'],
  ['uid'],
  ['key'],
  ['type'],
];

/** What the server fills in where a key is absent. */
const KEY_DEFAULTS: Readonly<Record<string, string>> = { protocol: 'TCP' };

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Where in `to` the thing is that stands at `path` in `from`: elements of lists are found by their key. The last segment
 * need not be there in `to` when it is a map's key. undefined: what it would be in is not there.
 */
export function twinPath(from: JsonValue, to: JsonValue, path: Path): Path | undefined {
  const found: (string | number)[] = [];
  let here: JsonValue | undefined = from;
  let there: JsonValue | undefined = to;
  for (const segment of path) {
    if (there === undefined) return undefined;
    const step = twinSegment(here, there, segment);
    if (step === undefined) return undefined;
    found.push(step);
    here = child(here, segment);
    there = child(there, step);
  }
  return found;
}

function twinSegment(
  from: JsonValue | undefined,
  to: JsonValue,
  segment: string | number,
): string | number | undefined {
  if (typeof segment === 'string') return isObject(to) ? segment : undefined;
  if (!Array.isArray(to)) return undefined;
  return Array.isArray(from) ? twinIndex(from, to, segment) : undefined;
}

/** The index in `to` of the element that is `from[index]`. */
export function twinIndex(from: readonly JsonValue[], to: readonly JsonValue[], index: number): number | undefined {
  const element = from[index];
  if (!isObject(element)) return scalarIndex(to, element, index);
  const key = keyFor(from, to);
  if (key === undefined) return index < to.length ? index : undefined;
  const id = identity(element, key);
  const at = to.findIndex((other) => isObject(other) && identity(other, key) === id);
  return at === -1 ? undefined : at;
}

/** For all leaves of `from` at once: where they are in `to`, those only that are there. As `twinPath`, but each list is matched once. */
export function twinLeaves(from: JsonValue, to: JsonValue | undefined, place: { from: Path; to: Path }): TwinLeaf[] {
  if (to === undefined) return [];
  const inner = childrenOf(from);
  if (inner.length === 0) return [{ ...place }];
  const indexOf = Array.isArray(from) && Array.isArray(to) ? indexer(from, to) : undefined;
  return inner.flatMap(([segment, value]) => {
    const step = typeof segment === 'number' ? indexOf?.(segment) : segment;
    if (step === undefined) return [];
    return twinLeaves(value, child(to, step), { from: [...place.from, segment], to: [...place.to, step] });
  });
}

export interface TwinLeaf {
  readonly from: Path;
  readonly to: Path;
}

function childrenOf(value: JsonValue): [string | number, JsonValue][] {
  if (Array.isArray(value)) return [...value.entries()];
  return isObject(value) ? Object.entries(value) : [];
}

function indexer(from: readonly JsonValue[], to: readonly JsonValue[]): (index: number) => number | undefined {
  const key = keyFor(from, to);
  if (key === undefined) return (index) => twinIndex(from, to, index);
  const places = new Map(to.map((element, index) => [identity(element, key), index]));
  return (index) => places.get(identity(from[index] ?? null, key));
}

/** Whether elements of `to` share a key that tells those of `from` apart: which one is meant cannot be said then. */
export function isAmbiguous(from: readonly JsonValue[], to: readonly JsonValue[]): boolean {
  if (from.length === 0 || keyFor(from, to) !== undefined) return false;
  const key = KEYS.find((fields) => identifies(fields, from));
  const [first = ''] = key ?? [];
  return key !== undefined && to.every((element) => isObject(element) && element[first] !== undefined);
}

function keyFor(from: readonly JsonValue[], to: readonly JsonValue[]): readonly string[] | undefined {
  return KEYS.find((fields) => identifies(fields, from) && identifies(fields, to));
}

/** Whether a path leads through a list of maps whose elements have no keys of their own: what is where is a matter of position. */
export function isPositional(one: JsonValue, other: JsonValue, path: Path): boolean {
  return path.some((segment, index) => {
    if (typeof segment === 'string') return false;
    const above = path.slice(0, index);
    const place = twinPath(one, other, above);
    const list = valueIn(one, above);
    const twin = place === undefined ? undefined : valueIn(other, place);
    return !Array.isArray(list) || !Array.isArray(twin) || keyFor(list, twin) === undefined;
  });
}

function valueIn(value: JsonValue, path: Path): JsonValue | undefined {
  return path.reduce<JsonValue | undefined>(child, value);
}

function scalarIndex(to: readonly JsonValue[], value: JsonValue | undefined, index: number): number | undefined {
  const at = value === undefined ? -1 : to.indexOf(value);
  if (at !== -1) return at;
  return index < to.length ? index : undefined;
}

/** Whether every element has the key, and each its own. */
function identifies(fields: readonly string[], list: readonly JsonValue[]): boolean {
  const [first = ''] = fields;
  if (!list.every((element) => isObject(element) && element[first] !== undefined)) return false;
  return new Set(list.map((element) => identity(element, fields))).size === list.length;
}

function identity(element: JsonValue, fields: readonly string[]): string {
  if (!isObject(element)) return '';
  const values = fields.map((field) => element[field] ?? KEY_DEFAULTS[field]);
  const [first] = values;
  // Nearly always a name; lists of hundreds of variables are compared element by element.
  return values.length === 1 && typeof first === 'string' ? first : JSON.stringify(values);
}

export function child(value: JsonValue | undefined, segment: string | number): JsonValue | undefined {
  if (Array.isArray(value)) return typeof segment === 'number' ? value[segment] : undefined;
  return isObject(value) && Object.hasOwn(value, segment) ? value[segment] : undefined;
}

/** Whether one of the paths is the other or leads to it. */
export function overlap(one: Path, other: Path): boolean {
  const length = Math.min(one.length, other.length);
  return one.slice(0, length).every((segment, index) => segment === other[index]);
}

/** Whether `path` is `above` or leads further down. */
export function isWithin(path: Path, above: Path): boolean {
  return path.length >= above.length && overlap(path, above);
}
