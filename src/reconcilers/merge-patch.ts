/** JSON merge patches (RFC 7386): the smallest one that turns a value into another. */

export type Json = unknown;

/**
 * The merge patch from `from` to `to`, or undefined when they are equal. A property that is absent or undefined in `to` is
 * removed (null); arrays are replaced whole, as merge patches do.
 */
export function mergePatch(from: Json, to: Json): Json {
  if (isRecord(from) && isRecord(to)) return recordPatch(from, to);
  return deepEqual(from, to) ? undefined : to;
}

/** Equal as JSON: a property with the value undefined is an absent one, order of properties is nothing. */
export function deepEqual(a: Json, b: Json): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => deepEqual(item, b[index]));
  }
  if (!isRecord(a) || !isRecord(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => deepEqual(a[key], b[key]));
}

export function isRecord(value: Json): value is Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function recordPatch(from: Record<string, Json>, to: Record<string, Json>): Record<string, Json> | undefined {
  const patch: Record<string, Json> = {};
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const part = to[key] === undefined ? (from[key] === undefined ? undefined : null) : mergePatch(from[key], to[key]);
    if (part !== undefined) patch[key] = part;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}
