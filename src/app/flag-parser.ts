import yargs from 'yargs';
import type { Flag } from './flags.ts';
import { usage } from './options.ts';
import type { FlagValues } from './options.ts';

/** A command's flags, and what its help says. */
export interface FlagSyntax {
  /** As in `capstan <command>`. */
  readonly command: string;
  readonly usage: string;
  readonly flags: readonly (Flag & { readonly letter?: string })[];
}

export interface ParsedFlags {
  /** By flag name; defaults are filled in. */
  readonly values: FlagValues;
  /** Names of the flags that were given. */
  readonly given: ReadonlySet<string>;
  /** What is no flag. */
  readonly words: readonly string[];
}

/** Reads flags in Go's form. Throws AppError (USAGE). */
export async function parseFlags(args: readonly string[], syntax: FlagSyntax): Promise<ParsedFlags> {
  const end = args.indexOf('--');
  const flags = (end < 0 ? args : args.slice(0, end)).map((arg) => withoutLetter(arg, syntax));
  const after = end < 0 ? [] : args.slice(end + 1);
  checkNames(flags, syntax);
  const values = await parserOf(syntax).parseAsync([...flags]);
  return {
    values,
    given: new Set(flags.flatMap((arg) => flagName(arg) ?? [])),
    words: [...values._.map(String), ...after],
  };
}

/** The help text, or undefined when nobody asks for it. */
export async function helpFor(args: readonly string[], syntax: FlagSyntax): Promise<string | undefined> {
  const end = args.indexOf('--');
  const asked = (end < 0 ? args : args.slice(0, end)).some((arg) => arg === '--help' || arg === '-h');
  return asked ? parserOf(syntax).getHelp() : undefined;
}

function parserOf(syntax: FlagSyntax): ReturnType<typeof yargs> {
  const parser = yargs()
    .scriptName(`capstan ${syntax.command}`)
    .usage(syntax.usage)
    .version(false)
    .exitProcess(false)
    .wrap(120)
    .parserConfiguration({
      'camel-case-expansion': false,
      'boolean-negation': false,
      'dot-notation': false,
      'parse-numbers': false,
      'parse-positional-numbers': false,
    })
    .fail((message: string, error: Error | undefined) => {
      throw usage(error?.message ?? message, syntax.command);
    });
  for (const flag of syntax.flags) {
    parser.option(flag.name, {
      type: flag.kind === 'boolean' ? 'boolean' : 'string',
      default: flag.kind === 'boolean' ? flag.default : String(flag.default),
      describe: flag.about,
      group: flag.group,
      requiresArg: flag.kind !== 'boolean',
      ...(flag.letter === undefined ? {} : { alias: flag.letter }),
    });
  }
  return parser;
}

/** `-n x`, `-nx` and `-n=x` as `--namespace x` and `--namespace=x`: yargs would take `-ojson` for five flags. */
function withoutLetter(arg: string, { flags, command }: FlagSyntax): string {
  const [, letter, value = ''] = /^-([A-Za-z])(.*)$/s.exec(arg) ?? [];
  if (letter === undefined) return arg;
  const flag = flags.find((known) => (known.letter ?? known.name) === letter);
  if (flag === undefined) throw usage(`there is no flag -${letter}`, command);
  return value === '' ? `--${flag.name}` : `--${flag.name}=${value.replace(/^=/, '')}`;
}

/** Unknown flags and broken booleans are told before yargs guesses what they mean. */
function checkNames(args: readonly string[], { flags, command }: FlagSyntax): void {
  for (const arg of args) {
    const name = flagName(arg);
    if (name === undefined) continue;
    const flag = flags.find((known) => known.name === name);
    if (flag === undefined) throw usage(`there is no flag --${name}${suggestion(name, flags)}`, command);
    const value = arg.includes('=') ? arg.slice(arg.indexOf('=') + 1) : undefined;
    if (flag.kind === 'boolean' && value !== undefined && value !== 'true' && value !== 'false') {
      throw usage(`--${name} must be true or false, not "${value}"`, command);
    }
  }
}

function flagName(arg: string): string | undefined {
  return /^--([^=]+)/.exec(arg)?.[1];
}

/** The nearest known flag, when near enough to be a typing error. */
function suggestion(name: string, flags: readonly Flag[]): string {
  const near = flags
    .map((flag) => ({ name: flag.name, distance: editDistance(name, flag.name) }))
    .sort((a, b) => a.distance - b.distance)[0];
  return near !== undefined && near.distance <= 3 ? `; did you mean --${near.name}?` : '';
}

/** Levenshtein's distance, by one row. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitute = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, substitute));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
