import { insertAt, placeFor, removalOrder, removeAt, setAt } from './edits.ts';
import { valueAt } from './pointer.ts';
import { isObject, twinPath } from './twin.ts';
import type { JsonObject, JsonValue, LiveObject, Path, PathPattern } from './types.ts';

/** What is to be left as it is, whatever the manifest says: by the user's rules, or because it is no drift or is stopped. */
export interface Untouched {
  readonly patterns: readonly PathPattern[];
  /** Into the wanted object. */
  readonly paths: readonly Path[];
  /** Whether an earlier server-side apply of Helm's own manager owns the live object's field, or something below it. */
  readonly applied: (livePath: Path) => boolean;
}

/**
 * The document for a server-side apply (KEP-555) that changes all but what is to be left untouched. Leaving a field out is
 * enough where it was never applied: its owner keeps it. A field that was applied would be removed by leaving it out, so its
 * live value is sent. Within lists the live value is sent, too: an atomic list without the field would be another list.
 */
export function documentFor(wanted: JsonObject, live: LiveObject, untouched: Untouched): JsonObject {
  const document = structuredClone(wanted);
  const paths = [...untouched.paths, ...untouched.patterns.flatMap((pattern) => matching(wanted, pattern))];
  const gone: Path[] = [];
  for (const path of paths) {
    const livePath = twinPath(wanted, live, path);
    const value = livePath === undefined ? undefined : valueAt(live, livePath);
    if (value === undefined || livePath === undefined) gone.push(path);
    else if (isInList(path) || untouched.applied(livePath)) setAt(document, path, structuredClone(value));
    else gone.push(path);
  }
  for (const path of removalOrder(gone)) removeAt(document, path);
  for (const pattern of untouched.patterns) keepApplied(document, live, { pattern, applied: untouched.applied });
  return document;
}

/** What a rule covers that the manifest does not set (any more) but Helm applied: it stays, too. */
function keepApplied(
  document: JsonObject,
  live: LiveObject,
  rule: { pattern: PathPattern; applied: (livePath: Path) => boolean },
): void {
  for (const path of matching(live, rule.pattern)) {
    if (!rule.applied(path)) continue;
    const place = placeFor(live, document, path);
    const value = valueAt(live, path);
    if (place === undefined || value === undefined || valueAt(document, place) !== undefined) continue;
    insertAt(document, place, structuredClone(value));
  }
}

function isInList(path: Path): boolean {
  return path.some((segment) => typeof segment === 'number');
}

/** The places in a document that a pattern names. */
export function matching(value: JsonValue, pattern: PathPattern, above: Path = []): Path[] {
  const [segment, ...rest] = pattern;
  if (segment === undefined) return [above];
  return children(value)
    .filter(([key]) => segment === '*' || segment === String(key))
    .flatMap(([key, inner]) => matching(inner, rest, [...above, key]));
}

function children(value: JsonValue): [string | number, JsonValue][] {
  if (Array.isArray(value)) return [...value.entries()];
  return isObject(value) ? Object.entries(value) : [];
}

/** Paths of all values that are no map and no list, and of the empty ones. */
export function leaves(value: JsonValue, above: Path = []): Path[] {
  const inner = children(value);
  return inner.length === 0 ? [above] : inner.flatMap(([key, below]) => leaves(below, [...above, key]));
}
