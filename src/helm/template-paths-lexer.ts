/** What stands in an action of Go's template language, as far as anybody here asks (https://pkg.go.dev/text/template). */
export type Token =
  /** A field chain that begins at dot (`.a.b`), at a variable (`$`, `$x`, `$x.a`), or right after a closing parenthesis (`).a.b`). A bare `.` or `$` has no fields. */
  | {
      readonly kind: 'chain';
      readonly base: '.' | ')' | `$${string}`;
      readonly fields: readonly string[];
      readonly start: number;
      readonly end: number;
    }
  | { readonly kind: 'string'; readonly value: string; readonly start: number; readonly end: number }
  | { readonly kind: 'word'; readonly text: string; readonly start: number; readonly end: number }
  /** Numbers and character constants. */
  | { readonly kind: 'constant'; readonly start: number; readonly end: number }
  /** ( ) | , := = */
  | { readonly kind: 'mark'; readonly text: string; readonly start: number; readonly end: number };

/** One `{{ … }}` that is no comment. Offsets are of the template, in UTF-16 units. */
export interface Action {
  readonly tokens: readonly Token[];
}

/** The actions of a template, in order. Undefined when it cannot be read, as by Go either, or is unknown to this reader. */
export function readActions(template: string): readonly Action[] | undefined {
  const actions: Action[] = [];
  for (let at = template.indexOf('{{'); at !== -1; at = template.indexOf('{{', at)) {
    const comment = COMMENT.exec(template.slice(at, at + 8));
    if (comment !== null) {
      const end = endOfComment(template, at + comment[0].length);
      if (end === undefined) return undefined;
      at = end;
      continue;
    }
    const action = readAction(template, at + 2);
    if (action === undefined) return undefined;
    actions.push({ tokens: action.tokens });
    at = action.end;
  }
  return actions;
}

/** A trim marker is a dash with a space next to it. */
const COMMENT = /^\{\{(?:-\s)?\/\*/;

function endOfComment(template: string, from: number): number | undefined {
  const close = template.indexOf('*/', from);
  if (close === -1) return undefined;
  const match = /^(?:\s-)?\}\}/.exec(template.slice(close + 2, close + 6));
  return match === null ? undefined : close + 2 + match[0].length;
}

const PATTERNS: readonly (readonly [Token['kind'] | 'space', RegExp])[] = [
  ['space', /[ \t\r\n]+/y],
  ['string', /"(?:[^"\\\n]|\\.)*"|`[^`]*`/y],
  ['constant', /'(?:[^'\\\n]|\\.)+'|[+-]?(?:\d|\.\d)[\w.+]*/y],
  ['chain', /\$[\p{L}\p{N}_]*(?:\.[\p{L}_][\p{L}\p{N}_]*)*|(?:\.[\p{L}_][\p{L}\p{N}_]*)+|\./uy],
  ['word', /[\p{L}_][\p{L}\p{N}_]*/uy],
  ['mark', /:=|[()|,=]/y],
];

function readAction(template: string, from: number): { tokens: Token[]; end: number } | undefined {
  const tokens: Token[] = [];
  let at = /^-\s/.test(template.slice(from, from + 2)) ? from + 1 : from;
  while (at < template.length) {
    const close = /^(?:\}\}|-\}\})/.exec(template.slice(at, at + 3));
    if (close !== null) return { tokens, end: at + close[0].length };
    const found = matchAt(template, at);
    if (found === undefined) return undefined;
    const token = tokenOf(found.kind, found.text, at, tokens.at(-1));
    if (token !== undefined) tokens.push(token);
    at += found.text.length;
  }
  return undefined;
}

function matchAt(template: string, at: number): { kind: Token['kind'] | 'space'; text: string } | undefined {
  for (const [kind, pattern] of PATTERNS) {
    pattern.lastIndex = at;
    const match = pattern.exec(template);
    if (match !== null) return { kind, text: match[0] };
  }
  return undefined;
}

function tokenOf(
  kind: Token['kind'] | 'space',
  text: string,
  start: number,
  previous: Token | undefined,
): Token | undefined {
  const end = start + text.length;
  switch (kind) {
    case 'space':
      return undefined;
    case 'string':
      return { kind, value: unquote(text), start, end };
    case 'constant':
      return { kind, start, end };
    case 'chain':
      return chainOf(text, start, previous);
    case 'word':
    case 'mark':
      return { kind, text, start, end };
  }
}

function chainOf(text: string, start: number, previous: Token | undefined): Token {
  const [head = '', ...fields] = text.split('.').filter((part, index) => index === 0 || part !== '');
  const end = start + text.length;
  if (head.startsWith('$')) return { kind: 'chain', base: `$${head.slice(1)}`, fields, start, end };
  const afterParenthesis = previous?.kind === 'mark' && previous.text === ')' && previous.end === start;
  return { kind: 'chain', base: afterParenthesis ? ')' : '.', fields, start, end };
}

function unquote(literal: string): string {
  if (literal.startsWith('`')) return literal.slice(1, -1);
  try {
    const parsed: unknown = JSON.parse(literal);
    if (typeof parsed === 'string') return parsed;
  } catch {
    // Escapes that Go has and JSON has not: no name of a field needs them.
  }
  return literal.slice(1, -1);
}
