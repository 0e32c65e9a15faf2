import yargs from 'yargs';
import { MANAGER_FLAGS } from './flags.ts';
import type { Flag } from './flags.ts';
import { managerOptions, usage } from './options.ts';
import type { Environment, ManagerOptions } from './options.ts';

/** What the command line asks for. */
export type Command =
  /** Run the controllers. */
  | { readonly kind: 'manager'; readonly options: ManagerOptions }
  /** Print and leave. */
  | { readonly kind: 'print'; readonly text: string };

const HELP = `Capstan hauls Helm charts onto a fleet of Kubernetes clusters and keeps them as they were hauled.

Usage:
  capstan manager [flags]   run the controllers (capstan manager --help lists the flags)
  capstan version           print the version
  capstan --help            print this

Documentation: README.md and docs/ of the package.`;

/** Reads the command line. Throws AppError (USAGE). */
export async function readCommandLine(argv: readonly string[], env: Environment, version: string): Promise<Command> {
  const [command, ...rest] = argv;
  switch (command) {
    case undefined:
    case '--help':
    case '-h':
    case 'help':
      return { kind: 'print', text: HELP };
    case 'version':
    case '--version':
      return { kind: 'print', text: `capstan ${version}` };
    case 'manager':
      return readManager(rest, env, version);
    default:
      if (command.startsWith('-')) {
        throw usage(`the command comes first: capstan manager ${argv.join(' ')}`);
      }
      throw usage(`there is no command "${command}"; there are manager and version`);
  }
}

async function readManager(args: readonly string[], env: Environment, version: string): Promise<Command> {
  const parser = managerParser();
  if (args.includes('--help') || args.includes('-h')) return { kind: 'print', text: await parser.getHelp() };
  const normalized = args.map((arg) => (/^-v(=|$)/.test(arg) ? `-${arg}` : arg));
  checkNames(normalized);
  const values = await parser.parseAsync([...normalized]);
  if (values._.length > 0) throw usage(`unexpected argument "${String(values._[0])}"`);
  const given = new Set(normalized.flatMap((arg) => flagName(arg) ?? []));
  return { kind: 'manager', options: managerOptions(values, given, env, version) };
}

function managerParser(): ReturnType<typeof yargs> {
  const parser = yargs()
    .scriptName('capstan manager')
    .usage('capstan manager [flags]\n\nRuns the controllers for HelmChartProxies and HelmReleaseProxies.')
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
      throw usage(error?.message ?? message);
    });
  for (const flag of MANAGER_FLAGS) {
    parser.option(flag.name, {
      type: flag.kind === 'boolean' ? 'boolean' : 'string',
      default: flag.kind === 'boolean' ? flag.default : String(flag.default),
      describe: flag.about,
      group: flag.group,
      requiresArg: flag.kind !== 'boolean',
    });
  }
  return parser;
}

/** Unknown flags and broken booleans are told before yargs guesses what they mean. */
function checkNames(args: readonly string[]): void {
  for (const arg of args) {
    const name = flagName(arg);
    if (name === undefined) continue;
    const flag = MANAGER_FLAGS.find((known) => known.name === name);
    if (flag === undefined) throw usage(`there is no flag --${name}${suggestion(name, MANAGER_FLAGS)}`);
    const value = arg.includes('=') ? arg.slice(arg.indexOf('=') + 1) : undefined;
    if (flag.kind === 'boolean' && value !== undefined && value !== 'true' && value !== 'false') {
      throw usage(`--${name} must be true or false, not "${value}"`);
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
