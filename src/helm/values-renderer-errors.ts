import type { RenderChart } from './values-renderer-chart.ts';

/** What a failed rendering says. */
export interface RenderFailure {
  /**
   * `parse`: the template itself is at fault, whatever the context. `execute`: this template in this context. `chart`: the
   * error is none of a template of ours.
   */
  readonly kind: 'parse' | 'execute' | 'chart';
  /** The first job at fault; undefined when the error does not tell. */
  readonly job: number | undefined;
  /** The words of Go's template engine. The template's name in them is TPL_NAME. */
  readonly words: string;
}

/** Characters of a message: a template can put anything into `fail`. */
const MAX_MESSAGE = 2000;

/** The name that Helm gives to what `tpl` is called with. */
export const TPL_NAME = 'gotpl';

const PARSE_MARK = 'cannot parse template "';
const EXECUTE_MARK = 'error during tpl function execution for "';

/**
 * Takes what Go's template engine said out of what Helm made of it. Helm wraps it in the place where our chart calls
 * `tpl`, and in the whole template, quoted.
 */
export function readFailure(stderr: string, chart: RenderChart): RenderFailure {
  const text = stripHelm(stderr);
  const job = chart.jobOf(text);
  const raised = new RegExp(`^execution error at \\([^)]*${chart.token}[^)]*\\): `).exec(text);
  // Of `fail` and `required`: Helm keeps nothing but their message.
  if (raised !== null) return failure('execute', job, `template: ${TPL_NAME}: ${text.slice(raised[0].length)}`);
  const parse = text.indexOf(PARSE_MARK);
  const execute = text.indexOf(EXECUTE_MARK);
  // The mark that comes first is our call's; a later one is a `tpl` in the user's template.
  if (parse !== -1 && (execute === -1 || parse < execute)) {
    return failure('parse', job, afterQuoted(text, parse + PARSE_MARK.length));
  }
  if (execute !== -1) return failure('execute', job, afterQuoted(text, execute + EXECUTE_MARK.length));
  return failure('chart', job, text);
}

function failure(kind: RenderFailure['kind'], job: number | undefined, words: string): RenderFailure {
  return { kind, job, words };
}

/** Go's words with the given name for the template, as the name that CAAPH gives it stands in them; bounded. */
export function nameTemplate(words: string, name: string): string {
  const named = words
    .replaceAll(`template: ${TPL_NAME}:`, () => `template: ${name}:`)
    .replaceAll(`"${TPL_NAME}"`, () => JSON.stringify(name));
  return named.length > MAX_MESSAGE ? `${named.slice(0, MAX_MESSAGE)}…` : named;
}

/** True when something missing in a map may be at fault, which CAAPH takes for nothing: see makeLenient. */
export function isAboutMissing({ kind, words }: RenderFailure): boolean {
  return kind === 'execute' && /nil pointer evaluating interface \{\}|got interface \{\}/.test(words);
}

/** Without Helm's warnings, its "Error: " and its advice. */
function stripHelm(stderr: string): string {
  const start = /^Error: /m.exec(stderr);
  const text = start === null ? stderr : stderr.slice(start.index + start[0].length);
  return text.replace(/\n\nUse --debug flag to render out invalid YAML\s*$/, '').trim();
}

/** What follows a Go string literal and ": ", the literal beginning before `from`. */
function afterQuoted(text: string, from: number): string {
  let at = from;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  if (text.startsWith('": ', at)) return text.slice(at + 3);
  // The literal was so long that its middle was left out. Go's own words come last.
  const last = text.lastIndexOf(`": template: ${TPL_NAME}:`);
  return last === -1 ? text.slice(-MAX_MESSAGE) : text.slice(last + 3);
}
