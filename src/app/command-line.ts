import { DRIFT_FLAGS, driftOptions } from './drift/options.ts';
import type { DriftOptions } from './drift/options.ts';
import { helpFor, parseFlags } from './flag-parser.ts';
import type { FlagSyntax } from './flag-parser.ts';
import { MANAGER_FLAGS } from './flags.ts';
import { managerOptions, usage } from './options.ts';
import type { Environment, ManagerOptions } from './options.ts';

/** What the command line asks for. */
export type Command =
  /** Run the controllers. */
  | { readonly kind: 'manager'; readonly options: ManagerOptions }
  /** Print how releases differ from their charts. */
  | { readonly kind: 'drift'; readonly options: DriftOptions }
  /** Print and leave. */
  | { readonly kind: 'print'; readonly text: string };

const HELP = `Capstan hauls Helm charts onto a fleet of Kubernetes clusters and keeps them as they were hauled.

Usage:
  capstan manager [flags]        run the controllers (capstan manager --help lists the flags)
  capstan drift [name…] [flags]  print which releases differ from their charts, where, and who changed them
  capstan version                print the version
  capstan --help                 print this

Documentation: README.md and docs/ of the package.`;

const MANAGER: FlagSyntax = {
  command: 'manager',
  usage: 'capstan manager [flags]\n\nRuns the controllers for HelmChartProxies and HelmReleaseProxies.',
  flags: MANAGER_FLAGS,
};

const DRIFT: FlagSyntax = {
  command: 'drift',
  usage: `capstan drift [name…] [flags]

Prints where the objects of Helm releases differ from what their charts made, and who changed them. On a management
cluster: the releases of HelmReleaseProxies, on all clusters that can be reached; on any other: its own releases. Names
are those of releases, HelmReleaseProxies or HelmChartProxies. Nothing is written. Exit code: 0 no drift, 1 drift,
2 something could not be compared.`,
  flags: DRIFT_FLAGS,
};

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
    case 'drift':
      return readDrift(rest, env, version);
    default:
      if (command.startsWith('-')) {
        throw usage(`the command comes first: capstan manager ${argv.join(' ')}`);
      }
      throw usage(`there is no command "${command}"; there are manager, drift and version`);
  }
}

async function readManager(args: readonly string[], env: Environment, version: string): Promise<Command> {
  const help = await helpFor(args, MANAGER);
  if (help !== undefined) return { kind: 'print', text: help };
  const { values, given, words } = await parseFlags(
    args.map((arg) => (/^-v(=|$)/.test(arg) ? `-${arg}` : arg)),
    MANAGER,
  );
  if (words.length > 0) throw usage(`unexpected argument "${words[0] ?? ''}"`);
  return { kind: 'manager', options: managerOptions(values, given, env, version) };
}

async function readDrift(args: readonly string[], env: Environment, version: string): Promise<Command> {
  const help = await helpFor(args, DRIFT);
  if (help !== undefined) return { kind: 'print', text: help };
  const { values, words } = await parseFlags(args, DRIFT);
  return { kind: 'drift', options: driftOptions(values, words, env, version) };
}
