import { DRIFT_FLAGS, driftOptions } from './drift/options.ts';
import type { DriftOptions } from './drift/options.ts';
import { helpFor, parseFlags } from './flag-parser.ts';
import type { FlagSyntax } from './flag-parser.ts';
import { MANAGER_FLAGS } from './flags.ts';
import { DOCTOR_FLAGS, doctorOptions, TREE_FLAGS, treeOptions } from './inspect/options.ts';
import type { DoctorOptions, TreeOptions } from './inspect/options.ts';
import { managerOptions, usage } from './options.ts';
import type { Environment, ManagerOptions } from './options.ts';

/** What the command line asks for. */
export type Command =
  /** Run the controllers. */
  | { readonly kind: 'manager'; readonly options: ManagerOptions }
  /** Print how releases differ from their charts. */
  | { readonly kind: 'drift'; readonly options: DriftOptions }
  /** Print clusters, their releases and how they are. */
  | { readonly kind: 'tree'; readonly options: TreeOptions }
  /** Print what is wrong, and what to do. */
  | { readonly kind: 'doctor'; readonly options: DoctorOptions }
  /** Print and leave. */
  | { readonly kind: 'print'; readonly text: string };

const HELP = `Capstan hauls Helm charts onto a fleet of Kubernetes clusters and keeps them as they were hauled.

Usage:
  capstan manager [flags]        run the controllers (capstan manager --help lists the flags)
  capstan drift [name…] [flags]  print which releases differ from their charts, where, and who changed them
  capstan tree [name…] [flags]   print clusters, their releases, and how they are
  capstan doctor [flags]         print what is wrong with clusters, rights, CRDs and helm, and what to do
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

const TREE: FlagSyntax = {
  command: 'tree',
  usage: `capstan tree [name…] [flags]

Prints the clusters of a management cluster, the releases on each, and how they are, from the management
cluster's objects alone. Names are those of Clusters, HelmChartProxies, HelmReleaseProxies or releases.
Exit code: 0 all is well, 1 something needs attention, 2 trouble.`,
  flags: TREE_FLAGS,
};

const DOCTOR: FlagSyntax = {
  command: 'doctor',
  usage: `capstan doctor [flags]

Looks at what a manager needs (API server, CRDs, rights, helm, the way to every Cluster) and at what it left,
and prints what is wrong and what to do about it. Nothing is written.
Exit code: 0 all is well, 1 something is not, 2 not everything could be looked at.`,
  flags: DOCTOR_FLAGS,
};

/** Reads the command line. Throws AppError (USAGE). */
export async function readCommandLine(argv: readonly string[], env: Environment, version: string): Promise<Command> {
  const [command, ...rest] = argv;
  if (command === undefined || ['--help', '-h', 'help'].includes(command)) return { kind: 'print', text: HELP };
  if (['version', '--version'].includes(command)) return { kind: 'print', text: `capstan ${version}` };
  const read = READERS.get(command);
  if (read !== undefined) return read(rest, env, version);
  if (command.startsWith('-')) throw usage(`the command comes first: capstan manager ${argv.join(' ')}`);
  throw usage(`there is no command "${command}"; there are ${[...READERS.keys()].join(', ')} and version`);
}

type Reader = (args: readonly string[], env: Environment, version: string) => Promise<Command>;

const READERS: ReadonlyMap<string, Reader> = new Map([
  ['manager', readManager],
  ['drift', readDrift],
  ['tree', readTree],
  ['doctor', readDoctor],
]);

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

async function readTree(args: readonly string[], env: Environment, version: string): Promise<Command> {
  const help = await helpFor(args, TREE);
  if (help !== undefined) return { kind: 'print', text: help };
  const { values, words } = await parseFlags(args, TREE);
  return { kind: 'tree', options: treeOptions(values, words, env, version) };
}

async function readDoctor(args: readonly string[], env: Environment, version: string): Promise<Command> {
  const help = await helpFor(args, DOCTOR);
  if (help !== undefined) return { kind: 'print', text: help };
  const { values, words } = await parseFlags(args, DOCTOR);
  if (words.length > 0) throw usage(`unexpected argument "${words[0] ?? ''}"`, 'doctor');
  return { kind: 'doctor', options: doctorOptions(values, env, version) };
}
