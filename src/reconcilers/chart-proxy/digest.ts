import { createHash } from 'node:crypto';

/** Hex characters of a digest in an annotation: 96 bits, far beyond chance among the states of one object. */
const DIGEST_CHARS = 24;

/** A short digest of any JSON value; the order of properties is nothing. */
export function digest(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, DIGEST_CHARS);
}

/** JSON with sorted properties; undefined ones are absent. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}
