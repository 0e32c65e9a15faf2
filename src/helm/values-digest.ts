import { createHash } from 'node:crypto';
import { isObject, parseValues } from './values-yaml.ts';
import type { JsonValue } from './values-yaml.ts';

/**
 * Digest of a release's user-supplied values, the same for the text that the user wrote and for the config that Helm
 * stored of it: 1 and 1.0 are equal, the order of keys is nothing, no values are {}; a null is kept, as Helm keeps it.
 * Throws ValuesInvalid as `parseValues` does.
 */
export function valuesDigest(text: string): string {
  return digestOf(parseValues(text));
}

/** As `valuesDigest`, of values already decoded, e.g. a record's config; absent or null is {}. */
export function configDigest(config: JsonValue | undefined): string {
  return digestOf(config ?? {});
}

function digestOf(value: JsonValue): string {
  return `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex')}`;
}

/** One text for equal values: keys in order of code units, numbers as float64 in their shortest form (RFC 8785). */
export function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`);
  return `{${members.join(',')}}`;
}
