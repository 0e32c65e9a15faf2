import { child, isObject } from './twin.ts';
import type { JsonObject, JsonValue, Path } from './types.ts';

/**
 * The fields that a server said to be `not declared in schema`, as paths into the document that was sent. The server
 * writes `.spec.template.spec.containers[name="app"].foo` (structured-merge-diff's fieldpath), where a key with dots
 * looks like several: what the document has decides.
 */
export function undeclaredFields(message: string, document: JsonObject): readonly Path[] {
  const found: Path[] = [];
  for (const [, text] of message.matchAll(/(\.[^\n]*?): field not declared in schema/g)) {
    // A single error follows on the header that names the object, whose own `: ` comes before.
    const path = resolve(text?.slice(text.lastIndexOf(': .') + 1).trim() ?? '', document);
    if (path !== undefined && path.length > 0) found.push(path);
  }
  return found;
}

function resolve(text: string, value: JsonValue | undefined): Path | undefined {
  if (text === '') return value === undefined ? undefined : [];
  if (text.startsWith('.')) return isObject(value) ? resolveKey(text.slice(1), value) : undefined;
  return text.startsWith('[') && Array.isArray(value) ? resolveElement(text, value) : undefined;
}

function resolveKey(text: string, map: JsonObject): Path | undefined {
  const keys = Object.keys(map).filter((key) => text.startsWith(key) && isEnd(text.charAt(key.length)));
  // The longest first: `a.b` is more likely one key than `b` below `a`, when both are there.
  keys.sort((one, other) => other.length - one.length);
  for (const key of keys) {
    const rest = resolve(text.slice(key.length), map[key]);
    if (rest !== undefined) return [key, ...rest];
  }
  return undefined;
}

function isEnd(character: string): boolean {
  return character === '' || character === '.' || character === '[';
}

function resolveElement(text: string, list: readonly JsonValue[]): Path | undefined {
  const end = closing(text);
  if (end === -1) return undefined;
  const inner = text.slice(1, end);
  const index = /^\d+$/.test(inner) ? Number(inner) : list.findIndex((element) => isNamed(element, inner));
  const rest = index === -1 ? undefined : resolve(text.slice(end + 1), list[index]);
  return rest === undefined ? undefined : [index, ...rest];
}

/** Where the bracket that begins the text ends; brackets within quotes are none. */
function closing(text: string): number {
  const match = /^\[(?:"(?:[^"\\]|\\.)*"|[^"\]])*\]/.exec(text);
  return match === null ? -1 : match[0].length - 1;
}

/** `name="app"` or `containerPort=80,protocol="TCP"`; a key that the element lacks was filled in by the server. */
function isNamed(element: JsonValue, inner: string): boolean {
  const pairs = [...inner.matchAll(/([^=,]+)=("(?:[^"\\]|\\.)*"|[^,]*)/g)];
  const answers = pairs.map(([, key = '', value = '']) => {
    const has = child(element, key);
    return has === undefined ? 'absent' : JSON.stringify(has) === value;
  });
  return isObject(element) && answers.includes(true) && !answers.includes(false);
}

/**
 * The path that a validation error names (`spec.template.spec.containers[0].resources.requests`, `data[key]`), as far as
 * the object has it.
 */
export function complainedPath(field: string, object: JsonObject): Path {
  const found: (string | number)[] = [];
  let here: JsonValue | undefined = object;
  for (const [token, bracketed] of field.matchAll(/\[([^\]]*)\]|[^.[\]]+/g)) {
    const text: string = bracketed ?? token;
    const segment: string | number = Array.isArray(here) ? Number(text) : text;
    here = child(here, segment);
    if (here === undefined) break;
    found.push(segment);
  }
  return found;
}
