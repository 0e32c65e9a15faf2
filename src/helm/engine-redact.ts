import { isObject } from './values-yaml.ts';
import type { JsonValue } from './values-yaml.ts';

const MASK = '***';

/** Shorter texts are words like `web`, in every message, and no secrets. Characters. */
const MIN_LENGTH = 5;

/** From this length on a value is also found within a longer word. Characters. */
const MIN_LENGTH_WITHIN_WORDS = 12;

/** Beyond this a value cannot stand in a message whole; its lines can. Characters. */
const MAX_LENGTH = 4_096;

/**
 * A text without the user's values: schema checks quote them, charts' `fail` prints them, and so do API servers about
 * the objects that are made of them. Words in `known` (the release's name, say) are no secrets even when a value
 * repeats them.
 */
export function redactValues(text: string, values: JsonValue, known: readonly string[] = []): string {
  const harmless = new Set(known);
  const found = new Set<string>();
  for (const value of leaves(values)) {
    for (const form of formsOf(value)) {
      if (!harmless.has(form) && text.includes(form)) found.add(form);
    }
  }
  // Longer ones first: one may be within another.
  return [...found].sort((a, b) => b.length - a.length).reduce(mask, maskSchemaQuotes(text));
}

/** What `values.schema.json` quotes of the values, however short. */
function maskSchemaQuotes(text: string): string {
  return text.replaceAll(/^(\s*- at '.*?': )'.*'( does not match pattern | is not valid )/gm, `$1'${MASK}'$2`);
}

function mask(text: string, value: string): string {
  const escaped = value.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  const pattern = value.length < MIN_LENGTH_WITHIN_WORDS ? `(?<![\\w])${escaped}(?![\\w])` : escaped;
  return text.replaceAll(new RegExp(pattern, 'gu'), MASK);
}

function* leaves(value: JsonValue): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (Array.isArray(value)) for (const item of value) yield* leaves(item);
  else if (isObject(value)) for (const item of Object.values(value)) yield* leaves(item);
}

/** As it is, line by line, as it stands in a Secret, and as it is quoted. */
function formsOf(value: string): string[] {
  const forms = value.includes('\n') ? value.split('\n').map((line) => line.trim()) : [value];
  if (value.length <= MAX_LENGTH) forms.push(Buffer.from(value).toString('base64'), JSON.stringify(value).slice(1, -1));
  return forms.filter((form) => form.length >= MIN_LENGTH && form.length <= MAX_LENGTH);
}
