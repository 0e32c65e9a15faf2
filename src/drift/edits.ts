import { child, isObject, twinPath } from './twin.ts';
import type { JsonObject, JsonValue, Path } from './types.ts';

/** Changes of JSON documents. All of them change the document that they are given, which is the caller's own copy. */

/** Sets the value at a path, with the maps that lead there. False when the way leads through something else. */
export function setAt(document: JsonObject, path: Path, value: JsonValue): boolean {
  const last = path.at(-1);
  const parent = last === undefined ? undefined : parentFor(document, path.slice(0, -1));
  if (last === undefined || parent === undefined) return false;
  if (typeof last === 'string') {
    if (Array.isArray(parent)) return false;
    parent[last] = value;
    return true;
  }
  if (!Array.isArray(parent)) return false;
  if (last < parent.length) parent[last] = value;
  else parent.push(value);
  return true;
}

/** Inserts an element into a list, or sets a map's key. */
export function insertAt(document: JsonObject, path: Path, value: JsonValue): boolean {
  const last = path.at(-1);
  if (typeof last !== 'number') return setAt(document, path, value);
  const list = parentFor(document, path.slice(0, -1), 'list');
  if (!Array.isArray(list)) return false;
  list.splice(Math.min(last, list.length), 0, value);
  return true;
}

/** Takes away what is at a path; maps that are empty thereafter stay. */
export function removeAt(document: JsonObject, path: Path): boolean {
  const last = path.at(-1);
  if (last === undefined) return false;
  const parent = path.slice(0, -1).reduce<JsonValue | undefined>(child, document);
  if (child(parent, last) === undefined) return false;
  if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else if (isObject(parent)) Reflect.deleteProperty(parent, last);
  return true;
}

/** The paths so ordered that removing one leaves the others valid: elements of one list from its end. */
export function removalOrder(paths: readonly Path[]): readonly Path[] {
  return [...paths].sort((one, other) => comparePaths(other, one));
}

function comparePaths(one: Path, other: Path): number {
  for (let index = 0; index < Math.min(one.length, other.length); index += 1) {
    const order = compareSegments(one[index] ?? '', other[index] ?? '');
    if (order !== 0) return order;
  }
  return one.length - other.length;
}

function compareSegments(one: string | number, other: string | number): number {
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  if (String(one) === String(other)) return 0;
  return String(one) < String(other) ? -1 : 1;
}

/** The map or list at a path, made where it is missing: as maps, and the last one as what is asked for. */
function parentFor(
  document: JsonObject,
  path: Path,
  kind: 'map' | 'list' = 'map',
): JsonObject | JsonValue[] | undefined {
  let here: JsonObject | JsonValue[] | undefined = document;
  for (const [index, segment] of path.entries()) {
    if (here === undefined) return undefined;
    here = enter(here, segment, kind === 'list' && index === path.length - 1 ? [] : {});
  }
  return here;
}

function enter(
  parent: JsonObject | JsonValue[],
  segment: string | number,
  missing: JsonObject | JsonValue[],
): JsonObject | JsonValue[] | undefined {
  const there = child(parent, segment) ?? undefined;
  if (there !== undefined) return isObject(there) || Array.isArray(there) ? there : undefined;
  // A list gets no element by the way.
  if (Array.isArray(parent)) return undefined;
  parent[segment] = missing;
  return missing;
}

/** The path in `to` of what is at `path` in `from`; where an element is missing there, the place after the last one. */
export function placeFor(from: JsonValue, to: JsonValue, path: Path): Path | undefined {
  const exact = twinPath(from, to, path);
  const last = path.at(-1);
  if (exact !== undefined || typeof last !== 'number') return exact;
  const parent = twinPath(from, to, path.slice(0, -1));
  if (parent === undefined) return undefined;
  const list = parent.reduce<JsonValue | undefined>(child, to);
  return [...parent, Array.isArray(list) ? list.length : 0];
}
