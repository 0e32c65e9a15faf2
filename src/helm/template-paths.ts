import { readActions } from './template-paths-lexer.ts';
import type { Action, Token } from './template-paths-lexer.ts';

/** Fields, from the object's root. */
export type FieldPath = readonly string[];

/** What is read of one object: all of it, nothing, or what lies at and below these paths. */
export type Paths = 'all' | 'none' | readonly FieldPath[];

/** What a values template reads of its built-in objects (caaph §1.10). */
export interface TemplatePaths {
  readonly cluster: Paths;
  readonly controlPlane: Paths;
  readonly infraCluster: Paths;
}

const BUILTINS = { Cluster: 'cluster', ControlPlane: 'controlPlane', InfraCluster: 'infraCluster' } as const;
type Builtin = keyof typeof BUILTINS;

/**
 * What a template reads, from its text: never less than it can read, except of objects that it does not name. Those are
 * 'none', so that nobody has to have an infrastructure object whose template has no word of it; a template that prints
 * its whole context (`toJson .`) sees such an object only when it names it elsewhere.
 */
export function templatePaths(template: string): TemplatePaths {
  const actions = readActions(template);
  if (actions === undefined) return unreadable(template);
  const reads = new Reads();
  new Reader(reads).read(actions);
  return reads.paths();
}

/** It will not render; what it names is fetched, so that its own error is what is told. */
function unreadable(template: string): TemplatePaths {
  const named = (name: Builtin): Paths => (new RegExp(`\\b${name}\\b`).test(template) ? 'all' : 'none');
  return { cluster: 'all', controlPlane: named('ControlPlane'), infraCluster: named('InfraCluster') };
}

class Reads {
  readonly #paths = new Map<Builtin, string[][]>();
  #everything = false;

  add(builtin: Builtin, path: readonly string[]): void {
    this.#paths.set(builtin, [...(this.#paths.get(builtin) ?? []), [...path]]);
  }

  /** The context as a whole. */
  addRoot(): void {
    this.#everything = true;
  }

  paths(): TemplatePaths {
    return {
      cluster: this.#everything ? 'all' : this.#of('Cluster'),
      controlPlane: this.#of('ControlPlane'),
      infraCluster: this.#of('InfraCluster'),
    };
  }

  #of(builtin: Builtin): Paths {
    const paths = this.#paths.get(builtin);
    if (paths === undefined) return 'none';
    if (this.#everything || paths.some((path) => path.length === 0)) return 'all';
    return minimal(paths);
  }
}

/** Sorted, without what another path covers. */
function minimal(paths: readonly string[][]): FieldPath[] {
  const sorted = paths.toSorted((a, b) => compare(a, b));
  const kept: FieldPath[] = [];
  for (const path of sorted) {
    const last = kept.at(-1);
    if (last === undefined || !last.every((field, index) => path[index] === field)) kept.push(path);
  }
  return kept;
}

/** A path stands right before those that it covers. */
function compare(a: readonly string[], b: readonly string[]): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const left = a[index] ?? '';
    const right = b[index] ?? '';
    if (left !== right) return left < right ? -1 : 1;
  }
  return a.length - b.length;
}

/** How many string arguments of a function name keys of its first one. */
const KEYED = new Map([
  ['index', Number.POSITIVE_INFINITY],
  ['get', 1],
  ['hasKey', 1],
]);

/** What they are called with is read in their body, and there it is seen. */
const CALLS = new Set(['template', 'include', 'block']);

class Reader {
  readonly #reads: Reads;
  /** Whether dot is the context, for each block that is open. */
  readonly #scopes: boolean[] = [];

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  read(actions: readonly Action[]): void {
    const tpl = actions.some(({ tokens }) => tokens.some((token) => token.kind === 'word' && token.text === 'tpl'));
    for (const { tokens } of actions) this.#action(tokens, tpl);
  }

  #action(tokens: readonly Token[], tpl: boolean): void {
    const [first, second] = tokens;
    const word = wordOf(first);
    // Of the pipeline of a block, dot is that of the block around it; an else has that back, too.
    if (word === 'end' || word === 'else') this.#scopes.pop();
    for (let at = 0; at < tokens.length; at += this.#token(tokens, at, tpl));
    if (word === 'else') this.#scopes.push(wordOf(second) === 'with' ? false : this.#dotIsRoot);
    else this.#open(word);
  }

  #open(word: string): void {
    if (word === 'with' || word === 'range') this.#scopes.push(false);
    if (word === 'if') this.#scopes.push(this.#dotIsRoot);
    // What they are called with is not looked for: their dot may be the context.
    if (word === 'define' || word === 'block') this.#scopes.push(true);
  }

  get #dotIsRoot(): boolean {
    return this.#scopes.at(-1) ?? true;
  }

  /** Returns how many tokens it took. */
  #token(tokens: readonly Token[], at: number, tpl: boolean): number {
    const token = tokens[at];
    if (token?.kind === 'chain') this.#chain(token, []);
    if (token?.kind === 'string') this.#string(token.value, tpl);
    if (token?.kind === 'word') return this.#word(token.text, tokens, at);
    return 1;
  }

  #word(text: string, tokens: readonly Token[], at: number): number {
    if (CALLS.has(text) && this.#isRoot(tokens[at + 2]) && tokens[at + 1]?.kind === 'string') return 3;
    const of = tokens[at + 1];
    if (of?.kind !== 'chain') return 1;
    const keys = stringsFrom(tokens, at + 2, KEYED.get(text) ?? 0);
    this.#chain(of, keys);
    return 2 + keys.length;
  }

  /** A chain, and keys that an `index` takes of it. */
  #chain(chain: Extract<Token, { kind: 'chain' }>, keys: readonly string[]): void {
    const [builtin, ...path] = [...chain.fields, ...keys];
    if (isBuiltin(builtin)) this.#reads.add(builtin, path);
    else if (chain.fields.length === 0 && this.#isRoot(chain)) this.#reads.addRoot();
    // Any other is of something that was read, and counted, where dot or the variable got it.
  }

  #isRoot(token: Token | undefined): boolean {
    if (token?.kind !== 'chain' || token.fields.length > 0) return false;
    return token.base === '$' || (token.base === '.' && this.#dotIsRoot);
  }

  /** A name in quotes is for some function that takes keys, or part of a template for `tpl`. */
  #string(value: string, tpl: boolean): void {
    for (const builtin of Object.keys(BUILTINS)) {
      if (!isBuiltin(builtin)) continue;
      if (value === builtin || (tpl && value.includes(builtin))) this.#reads.add(builtin, []);
    }
  }
}

/** At most `count` string literals that stand at an index of the tokens, one after the other. */
function stringsFrom(tokens: readonly Token[], index: number, count: number): string[] {
  const strings: string[] = [];
  for (const token of tokens.slice(index)) {
    if (token.kind !== 'string' || strings.length >= count) break;
    strings.push(token.value);
  }
  return strings;
}

function wordOf(token: Token | undefined): string {
  return token?.kind === 'word' ? token.text : '';
}

function isBuiltin(name: string | undefined): name is Builtin {
  return name !== undefined && Object.hasOwn(BUILTINS, name);
}

/** What changes in an object's metadata with every write of it, whatever was written. */
const NOISE = new Set(['resourceVersion', 'generation', 'managedFields']);

/**
 * What the paths say of an object, for a digest: equal as long as a template that reads no more than they say renders
 * the same. Where all of the metadata is read, what every write changes is left out.
 */
export function projectContext(object: unknown, paths: Paths): unknown {
  if (paths === 'none' || !isRecord(object)) return undefined;
  if (paths === 'all') return quietMetadata(object);
  const projected: Record<string, unknown> = {};
  for (const path of paths) {
    // All of the metadata; a longer path to something noisy is one that somebody wrote down.
    const source = path.length === 1 ? quietMetadata(object) : object;
    copyPath(source, projected, path);
  }
  return projected;
}

function copyPath(from: Record<string, unknown>, to: Record<string, unknown>, path: FieldPath): void {
  const [field, ...rest] = path;
  if (field === undefined || !Object.hasOwn(from, field)) return;
  const value = from[field];
  // What has no fields is taken as it is: a template that wants one of it fails, and differently when it changes.
  if (rest.length === 0 || !isRecord(value)) {
    to[field] = value;
    return;
  }
  const next = (to[field] ??= {});
  if (isRecord(next)) copyPath(value, next, rest);
}

function quietMetadata(object: Record<string, unknown>): Record<string, unknown> {
  const { metadata } = object;
  if (!isRecord(metadata)) return object;
  return { ...object, metadata: Object.fromEntries(Object.entries(metadata).filter(([name]) => !NOISE.has(name))) };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
