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
  const key = KEYS.find((fields) => identifies(fields, from) && identifies(fields, to));
  if (key === undefined) return index < to.length ? index : undefined;
  const id = identity(element, key);
  const at = to.findIndex((other) => isObject(other) && identity(other, key) === id);
  return at === -1 ? undefined : at;
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
  return JSON.stringify(fields.map((field) => element[field] ?? KEY_DEFAULTS[field]));
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
