import { readActions } from './template-paths-lexer.ts';
import type { Token } from './template-paths-lexer.ts';

/** A template rewritten, and the way back for what Go says about it. */
export interface LenientTemplate {
  readonly text: string;
  /** Words of Go's template engine about `text`, as they would be about the original: places and expressions. */
  restore(message: string): string;
}

/** An insertion at an offset of the original. */
interface Insertion {
  readonly at: number;
  readonly text: string;
}

/**
 * Go's template engine can take what is missing in a map for nothing (`missingkey=default`, as CAAPH has it), so that
 * `.Cluster.spec.clusterNetwork.pods` is empty where there is no clusterNetwork, or for the element type's zero value
 * (`missingkey=zero`, which Helm sets), which here is a nil interface: a field of it, or its use where a map is wanted,
 * is an error. A nil in parentheses becomes nothing again (text/template, evalPipeline). So each chain a.b.c is written
 * ((a.b).c), which means the same wherever nothing is missing.
 *
 * Undefined when the template has no chain, or cannot be read.
 */
export function makeLenient(template: string): LenientTemplate | undefined {
  const actions = readActions(template);
  if (actions === undefined) return undefined;
  const insertions = actions.flatMap(({ tokens }) => tokens.flatMap((token, index) => wrap(tokens, token, index)));
  if (insertions.length === 0) return undefined;
  insertions.sort((a, b) => a.at - b.at);
  return {
    text: insert(template, insertions),
    restore: (message) => restoreWords(restorePlaces(message, template, insertions)),
  };
}

function wrap(tokens: readonly Token[], token: Token, index: number): Insertion[] {
  if (token.kind !== 'chain' || (token.fields.length === 0 && !token.base.startsWith('$'))) return [];
  if (isDeclared(tokens, index) || isCalled(tokens, index)) return [];
  const begin = token.base === ')' ? opening(tokens, index - 1) : index;
  const start = begin === undefined ? undefined : tokens[begin]?.start;
  if (start === undefined) return [];
  const ends = endsOf(token);
  return [{ at: start, text: '('.repeat(ends.length) }, ...ends.map((at) => ({ at, text: ')' }))];
}

/** Where a parenthesis closes: after the variable, and after each field. */
function endsOf(token: Extract<Token, { kind: 'chain' }>): number[] {
  const ends: number[] = [];
  let at = token.start;
  if (token.base.startsWith('$')) {
    at += token.base.length;
    ends.push(at);
  }
  for (const field of token.fields) {
    at += field.length + 1;
    ends.push(at);
  }
  return ends;
}

/** `$x :=`, `$x =`, `$i, $x :=` name a variable. */
function isDeclared(tokens: readonly Token[], index: number): boolean {
  const token = tokens[index];
  const next = tokens[index + 1];
  if (token?.kind !== 'chain' || !token.base.startsWith('$') || token.fields.length > 0) return false;
  return next?.kind === 'mark' && (next.text === ':=' || next.text === '=' || next.text === ',');
}

/** Something with arguments, or that is piped into, is a method: it must stay bare. */
function isCalled(tokens: readonly Token[], index: number): boolean {
  const token = tokens[index];
  const first = token?.kind === 'chain' && token.base === ')' ? (opening(tokens, index - 1) ?? index) : index;
  const previous = tokens[first - 1];
  if (previous?.kind === 'mark' && previous.text === '|') return true;
  return isCommandStart(tokens, first) && isOperand(tokens[index + 1]);
}

function isOperand(token: Token | undefined): boolean {
  return token !== undefined && (token.kind !== 'mark' || token.text === '(');
}

/** Words that a command may follow. */
const KEYWORDS = new Set(['if', 'with', 'range', 'else']);

function isCommandStart(tokens: readonly Token[], index: number): boolean {
  const previous = tokens[index - 1];
  if (previous === undefined) return true;
  if (previous.kind === 'word') return KEYWORDS.has(previous.text);
  return previous.kind === 'mark' && previous.text !== ')';
}

/** The parenthesis that the one at `index` closes. */
function opening(tokens: readonly Token[], index: number): number | undefined {
  let depth = 0;
  for (let at = index; at >= 0; at -= 1) {
    const token = tokens[at];
    if (token?.kind !== 'mark') continue;
    if (token.text === ')') depth += 1;
    if (token.text === '(') depth -= 1;
    if (depth === 0) return at;
  }
  return undefined;
}

function insert(template: string, insertions: readonly Insertion[]): string {
  const parts: string[] = [];
  let from = 0;
  for (const { at, text } of insertions) {
    parts.push(template.slice(from, at), text);
    from = at;
  }
  return parts.join('') + template.slice(from);
}

/** gotpl:LINE:COLUMN, of which Go counts the column in bytes from 0. */
const PLACE = /(\btemplate: gotpl:)(\d+):(\d+)(?=:)/g;

function restorePlaces(message: string, template: string, insertions: readonly Insertion[]): string {
  return message.replace(PLACE, (_, head: string, line: string, column: string) => {
    return `${head}${line}:${originalColumn(template, insertions, { line: Number(line), column: Number(column) })}`;
  });
}

function originalColumn(
  template: string,
  insertions: readonly Insertion[],
  place: { readonly line: number; readonly column: number },
): number {
  const start = lineStart(template, place.line);
  let { column } = place;
  for (const { at, text } of insertions) {
    if (at < start) continue;
    const here = Buffer.byteLength(template.slice(start, at));
    if (here >= column) break;
    column = Math.max(here, column - text.length);
  }
  return column;
}

function lineStart(template: string, line: number): number {
  let at = 0;
  for (let number = 1; number < line; number += 1) {
    const end = template.indexOf('\n', at);
    if (end === -1) return at;
    at = end + 1;
  }
  return at;
}

/** Parentheses around nothing but a chain. */
const AROUND_CHAIN = /\((\$?[\p{L}\p{N}_]*(?:\.[\p{L}_][\p{L}\p{N}_]*)*|\$)\)/gu;

function restoreWords(message: string): string {
  return message.replace(/ at <[^\n]*?>: /g, (place) => {
    let text = place;
    for (let before = ''; before !== text;) {
      before = text;
      text = text.replace(AROUND_CHAIN, '$1');
    }
    return text;
  });
}
