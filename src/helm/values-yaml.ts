import { LineCounter, isAlias, isMap, isScalar, isSeq, parseAllDocuments, visit } from 'yaml';
import type { Alias, Document, Node, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { HelmError } from './errors.ts';
import { formatGoFloat32, resolveScalar } from './values-scalar.ts';
import type { ScalarValue } from './values-scalar.ts';

/** What Helm stores as a release's config. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue;
}

/** Nodes that may be reached through aliases: a document of a few lines can otherwise unfold into billions (as go-yaml limits it). */
const MAX_ALIASED_NODES = 400_000;

/**
 * Reads values as CAAPH's Helm does: sigs.k8s.io/yaml over go-yaml v2, which is YAML 1.1 with exceptions (`yes` is true,
 * 010 is 8, 1:30 is text, dates are text, of duplicate keys the last one holds, and so does a `<<` after the key),
 * numbers as float64. '' is {}. Throws ValuesInvalid, with the line where there is one and nothing of the values, for
 * what Helm refuses, and for several documents: Helm 3 drops all but the first of them, Helm 4 merges them.
 */
export function parseValues(text: string): JsonObject {
  const quick = parseJson(text);
  if (quick !== undefined) return quick;
  // Line breaks of YAML 1.1, which the parser does not know as such; none is added and none is lost.
  const source = text.replaceAll(/\r\n?|\u0085/g, '\n');
  const lines = new LineCounter();
  try {
    const document = onlyDocument(source, lines);
    if (document === undefined) return {};
    const value = new Decoder(document, lines, !source.endsWith('\n')).decode();
    if (value === null) return {};
    if (isObject(value)) return value;
    throw invalid(`they are ${Array.isArray(value) ? 'a list' : 'a single value'}, not a map`, 1);
  } catch (error) {
    if (error instanceof RangeError) throw invalid('they are nested too deeply');
    throw error;
  }
}

/**
 * The same values as one line of JSON that every YAML parser reads alike, for Helm's -f. So what Helm stores has the
 * digest that was compared, whatever this Helm makes of documents, of line breaks at the end, or of a duplicate key.
 */
export function valuesAsJson(text: string): string {
  return JSON.stringify(parseValues(text)).replaceAll(
    NOT_THE_SAME_IN_YAML_ALL,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

export function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Characters that end a line in YAML 1.1 or may not stand in it, and mean themselves in JSON. */
const NOT_THE_SAME_IN_YAML = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/;
const NOT_THE_SAME_IN_YAML_ALL = new RegExp(NOT_THE_SAME_IN_YAML, 'g');

/** What libyaml refuses to read (its reader's "control characters are not allowed"). */
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\ufffe\uffff]/;

/** JSON is YAML, and parsed twenty times as fast; undefined when it is none, or would not mean the same. */
function parseJson(text: string): JsonObject | undefined {
  if (!text.trimStart().startsWith('{') || NOT_THE_SAME_IN_YAML.test(text)) return undefined;
  try {
    const value = JSON.parse(text) as JsonObject;
    return allFinite(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function allFinite(value: JsonValue): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return true;
  return Object.values(value).every(allFinite);
}

/** The document with the values; undefined when there is nothing in the text. */
function onlyDocument(source: string, lines: LineCounter): Document.Parsed | undefined {
  const control = source.search(CONTROL);
  if (control >= 0) throw invalid('there is a control character', source.slice(0, control).split('\n').length);
  const documents = parseTolerantly(source, lines);
  for (const document of documents) {
    const error = document.errors[0] ?? document.warnings.find((warning) => warning.code === 'BAD_DIRECTIVE');
    if (error !== undefined) {
      const what = error.code.toLowerCase().replaceAll('_', ' ');
      throw invalid(`they are not valid YAML (${what})`, lines.linePos(error.pos[0]).line);
    }
  }
  const [first, ...others] = documents;
  if (first === undefined && source.startsWith('%')) throw invalid('they are not valid YAML (bad directive)', 1);
  const second = others.find((document) => !isEmpty(document));
  if (second !== undefined) {
    const line = lines.linePos(second.range[0]).line;
    throw invalid('there is more than one YAML document, of which Helm 3 would drop all but the first', line);
  }
  return first;
}

/** Lines of one quoted text that may be indented too little; each costs a pass. */
const MAX_REPAIRS = 100;

/**
 * libyaml lets the lines of a quoted scalar begin anywhere, YAML 1.2 wants them indented. White space there means nothing,
 * so it is added where the parser misses the closing quote at the end of a line.
 */
function parseTolerantly(source: string, lines: LineCounter): readonly Document.Parsed[] {
  let text = source;
  for (let repairs = 0; ; repairs++) {
    lines.lineStarts.length = 0;
    const documents = parse(text, lines);
    const error = documents.flatMap((document) => document.errors)[0];
    const open = error?.code === 'MISSING_CHAR' && error.message.startsWith('Missing closing');
    const next = open ? text.indexOf('\n', error.pos[0]) + 1 : 0;
    if (next === 0 || next === text.length || repairs === MAX_REPAIRS) return documents;
    text = text.slice(0, next) + ' '.repeat(deepestIndent(source) + 1) + text.slice(next);
  }
}

function deepestIndent(text: string): number {
  return Math.max(...(text.match(/^ */gm) ?? []).map((run) => run.length), 0);
}

function parse(source: string, lineCounter: LineCounter): readonly Document.Parsed[] {
  return parseAllDocuments(source, {
    // Every plain scalar as text: what it means is decided as go-yaml does (values-scalar.ts).
    schema: 'failsafe',
    version: '1.1',
    merge: false,
    uniqueKeys: false,
    // Else error texts quote the values.
    prettyErrors: false,
    lineCounter,
  });
}

function isEmpty(document: Document.Parsed): boolean {
  const { contents } = document;
  return contents === null || (isScalar(contents) && contents.source === '' && contents.type === 'PLAIN');
}

function invalid(what: string, line?: number): HelmError {
  const where = line === undefined ? '' : ` at line ${line}`;
  return new HelmError(
    'ValuesInvalid',
    `the values cannot be used: ${what}${where}`,
    line === undefined ? {} : { line },
  );
}

/** go-yaml's decoding of a document into interface{}, and sigs.k8s.io/yaml's of that into JSON. */
class Decoder {
  readonly #document: Document.Parsed;
  readonly #lines: LineCounter;
  readonly #cutOff: boolean;
  readonly #targets: ReadonlyMap<Alias, Node>;
  readonly #open = new Set<unknown>();
  #aliasDepth = 0;
  #aliased = 0;

  /** `cutOff`: the text ends without a line break. */
  constructor(document: Document.Parsed, lines: LineCounter, cutOff: boolean) {
    this.#document = document;
    this.#lines = lines;
    this.#cutOff = cutOff;
    this.#targets = aliasTargets(document);
  }

  decode(): JsonValue {
    return this.#value(this.#document.contents);
  }

  #value(node: unknown): JsonValue {
    if (this.#aliasDepth > 0 && ++this.#aliased > MAX_ALIASED_NODES) {
      throw invalid('they unfold too many aliases', this.#line(node));
    }
    if (isMap(node)) return this.#within(node, () => this.#map(node, {}));
    if (isSeq(node)) return this.#within(node, () => node.items.map((item) => this.#value(item)));
    if (isAlias(node)) return this.#alias(node, (target) => this.#value(target));
    return isScalar(node) ? this.#scalar(node) : null;
  }

  /** Whatever holds itself by an alias has no end. */
  #within<T>(node: YAMLMap | YAMLSeq, fn: () => T): T {
    if (this.#open.has(node)) throw invalid('an anchor contains itself', this.#line(node));
    this.#open.add(node);
    const value = fn();
    this.#open.delete(node);
    return value;
  }

  #alias<T>(node: Alias, fn: (target: unknown) => T): T {
    const target = this.#targets.get(node);
    if (target === undefined) throw invalid('an alias names an unknown anchor', this.#line(node));
    this.#aliasDepth++;
    const value = fn(target);
    this.#aliasDepth--;
    return value;
  }

  #map(node: YAMLMap, into: JsonObject): JsonObject {
    for (const { key, value } of node.items) {
      if (isScalar(key) && key.type === 'PLAIN' && key.source === '<<') this.#merge(value, into);
      else define(into, this.#key(key), this.#value(value));
    }
    return into;
  }

  /** In order: a key before the `<<` gives way to it, one after it holds. Of a list of maps the first holds. */
  #merge(node: unknown, into: JsonObject): void {
    if (isMap(node)) {
      this.#within(node, () => this.#map(node, into));
    } else if (isAlias(node)) {
      this.#alias(node, (target) => {
        if (!isMap(target)) throw invalid('a map merge (<<) needs a map', this.#line(node));
        this.#merge(target, into);
      });
    } else if (isSeq(node)) {
      for (const item of node.items.toReversed()) {
        if (isSeq(item)) throw invalid('a map merge (<<) needs maps', this.#line(item));
        this.#merge(item, into);
      }
    } else {
      throw invalid('a map merge (<<) needs a map', this.#line(node));
    }
  }

  #key(node: unknown): string {
    if (isAlias(node)) return this.#alias(node, (target) => this.#key(target));
    if (isMap(node) || isSeq(node)) throw invalid('a key is a map or a list', this.#line(node));
    const key = isScalar(node) ? this.#resolve(node) : null;
    if (key === null || (typeof key === 'bigint' && key > MAX_INT64)) {
      throw invalid(`a key is ${key === null ? 'null' : 'too large a number'}`, this.#line(node));
    }
    return typeof key === 'number' ? formatGoFloat32(key) : String(key);
  }

  #scalar(node: Scalar): JsonValue {
    const value = this.#resolve(node);
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw invalid('infinity and NaN cannot be stored', this.#line(node));
    }
    return typeof value === 'bigint' ? Number(value) : value;
  }

  #resolve(node: Scalar): ScalarValue {
    const tag = shortTag(node);
    const text = this.#text(node);
    if (!text.isWellFormed()) throw invalid('there is half a surrogate pair', this.#line(node));
    if (tag === undefined && node.type !== 'PLAIN') return text;
    const resolved = resolveScalar(text, tag);
    if (resolved === undefined) throw invalid('a value is not what its tag says', this.#line(node));
    return resolved.value;
  }

  /** A block scalar at the very end of a text without a last line break has none either; the parser adds one. */
  #text(node: Scalar): string {
    const text = typeof node.value === 'string' ? node.value : '';
    const block = node.type === 'BLOCK_LITERAL' || node.type === 'BLOCK_FOLDED';
    const last = this.#cutOff && block && node.range?.[2] === this.#document.range[2];
    return last && text.endsWith('\n') ? text.slice(0, -1) : text;
  }

  #line(node: unknown): number | undefined {
    const range = isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range : undefined;
    return range ? this.#lines.linePos(range[0]).line : undefined;
  }
}

/** An alias means the last anchor of its name before it; looked up in one pass, since the parser would walk the document for each. */
function aliasTargets(document: Document.Parsed): ReadonlyMap<Alias, Node> {
  const anchors = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(document, {
    Node: (_key, node) => {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchors.set(node.anchor, node);
        return;
      }
      const target = anchors.get(node.source);
      if (target !== undefined) targets.set(node, target);
    },
  });
  return targets;
}

const MAX_INT64 = 2n ** 63n - 1n;

/** `__proto__` is a key like any other. */
function define(into: JsonObject, key: string, value: JsonValue): void {
  Object.defineProperty(into, key, { value, enumerable: true, configurable: true, writable: true });
}

const CORE_TAG = 'tag:yaml.org,2002:';

/** '!!int', '!own', or undefined for none. '!' alone says: a string. */
function shortTag(node: Scalar): string | undefined {
  const { tag } = node;
  if (tag === undefined) return undefined;
  if (tag === '!') return '!!str';
  return tag.startsWith(CORE_TAG) ? `!!${tag.slice(CORE_TAG.length)}` : tag;
}
