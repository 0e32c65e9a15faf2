import { HelmError } from './errors.ts';
import type { HelmOptions, ReleaseKey } from './types.ts';

/** What is asked of helm, with the paths that its command line names. */
export type Command =
  | {
      readonly operation: 'install' | 'upgrade';
      readonly release: ReleaseKey;
      readonly chartPath: string;
      /** True: values come on standard input. */
      readonly values: boolean;
      readonly options: HelmOptions;
      /** As DeployRequest.serverSide. */
      readonly serverSide?: boolean;
      /** As DeployRequest.replace. */
      readonly replace?: boolean;
    }
  | {
      readonly operation: 'rollback';
      readonly release: ReleaseKey;
      readonly revision: number;
      readonly options: HelmOptions;
      readonly serverSide?: boolean;
    }
  | { readonly operation: 'uninstall'; readonly release: ReleaseKey; readonly options: HelmOptions }
  | { readonly operation: 'test'; readonly release: ReleaseKey; readonly timeoutMs: number }
  | {
      readonly operation: 'template';
      readonly release: ReleaseKey;
      readonly chartPath: string;
      readonly values: boolean;
      readonly options: HelmOptions;
      readonly kubeVersion?: string;
      readonly apiVersions?: readonly string[];
    };

type Deploy = Extract<Command, { operation: 'install' | 'upgrade' }>;
type Rollback = Extract<Command, { operation: 'rollback' }>;
type Uninstall = Extract<Command, { operation: 'uninstall' }>;
type Template = Extract<Command, { operation: 'template' }>;

/**
 * The command line of helm 3 (3.17 and newer) or 4 for a command. Every option of a HelmChartProxy ends up here
 * (caaph §1.11), or in an OptionUnsupported error that names its field and says what to do.
 */
export function helmArguments(command: Command, major: number): string[] {
  const { operation, release } = command;
  // The names come last, behind --: one that begins with a dash is a bad name then, and no flag.
  return [operation, `--namespace=${release.namespace}`, ...flagsOf(command, major), '--', ...operands(command)];
}

function flagsOf(command: Command, major: number): string[] {
  switch (command.operation) {
    case 'install':
      return installFlags(command, major);
    case 'upgrade':
      return upgradeFlags(command, major);
    case 'rollback':
      return rollbackFlags(command, major);
    case 'uninstall':
      return uninstallFlags(command, major);
    case 'test':
      return [timeout(command.timeoutMs)];
    case 'template':
      return templateFlags(command);
  }
}

function operands(command: Command): string[] {
  const { name } = command.release;
  switch (command.operation) {
    case 'rollback':
      return [name, String(command.revision)];
    case 'uninstall':
    case 'test':
      return [name];
    default:
      return [name, command.chartPath];
  }
}

/** True when helm, so called, waits for workloads rather than computes. */
export function waits(command: Command): boolean {
  switch (command.operation) {
    case 'template':
      return false;
    case 'test':
      return true;
    default:
      return [command.options.wait, command.options.waitForJobs, command.options.atomic].includes(true);
  }
}

function installFlags(command: Deploy, major: number): string[] {
  const { options } = command;
  refuseContradictingCrds(options);
  return [
    ...deployFlags(command, major, true),
    ...when(options.install.createNamespace, '--create-namespace'),
    ...when(command.replace, '--replace'),
    // Said, though it is the default: leaving out the OpenAPI check depends on it.
    ...when(major >= 4, '--server-side=true'),
  ];
}

function upgradeFlags(command: Deploy, major: number): string[] {
  const { upgrade } = command.options;
  // Replacing (PUT) is a thing of client-side apply: helm 4 refuses it together with server-side apply.
  const serverSide = command.serverSide === true && upgrade.force !== true;
  return [
    ...deployFlags(command, major, serverSide),
    ...forceFlags(upgrade.force, major),
    valuesFlag(upgrade),
    `--history-max=${String(upgrade.maxHistory)}`,
    ...when(upgrade.cleanupOnFail, '--cleanup-on-fail'),
    ...recreateFlags(upgrade.recreate, major),
  ];
}

/** What install and upgrade have in common. `serverSide`: helm 4 will apply on the server's side. */
function deployFlags(command: Deploy, major: number, serverSide: boolean): string[] {
  const { options } = command;
  const onServer = major >= 4 && serverSide;
  return [
    // Notes are kept in the release all the same; printing them helps nobody here.
    '--hide-notes',
    ...when(command.values, '--values=-'),
    timeout(options.timeoutMs),
    ...waitFlags(options, major),
    ...when(options.atomic, major >= 4 ? '--rollback-on-failure' : '--atomic'),
    ...when(options.disableHooks, '--no-hooks'),
    ...when(options.skipCRDs, '--skip-crds'),
    ...when(options.subNotes, '--render-subchart-notes'),
    ...when(options.takeOwnership, '--take-ownership'),
    // On a packaged chart Helm does with it what it can: nothing when the chart has its dependencies in it, as
    // `helm package` demands, and else it refuses ("only unpacked charts can be updated").
    ...when(options.dependencyUpdate, '--dependency-update'),
    // Server-side apply validates every field against the same schema on the server, so Helm's own check, which is half
    // of an install's CPU, finds nothing that the server would not refuse with the same release state left behind. Under
    // client-side apply the server drops unknown fields with a warning: there the check stays unless it is turned off.
    ...when(onServer || options.disableOpenAPIValidation, '--disable-openapi-validation'),
    // As on CAAPH's client-side apply: what the chart sets holds, whoever else has written it meanwhile (kubectl scale).
    ...when(onServer, '--force-conflicts'),
  ];
}

function rollbackFlags(command: Rollback, major: number): string[] {
  const { options } = command;
  const { upgrade } = options;
  return [
    timeout(options.timeoutMs),
    ...waitFlags(options, major),
    ...when(options.disableHooks, '--no-hooks'),
    ...forceFlags(upgrade.force, major),
    ...when(major >= 4 && command.serverSide === true && upgrade.force !== true, '--force-conflicts'),
    `--history-max=${String(upgrade.maxHistory)}`,
    ...when(upgrade.cleanupOnFail, '--cleanup-on-fail'),
    ...recreateFlags(upgrade.recreate, major),
  ];
}

function uninstallFlags(command: Uninstall, major: number): string[] {
  const { options } = command;
  const { description } = options.uninstall;
  // --ignore-not-found is not used: with it Helm takes any failure to read its storage for "not found".
  return [
    timeout(options.timeoutMs),
    ...when(options.wait, waitFlag(major)),
    ...when(options.disableHooks, '--no-hooks'),
    ...when(options.uninstall.keepHistory, '--keep-history'),
    ...(description === undefined || description === '' ? [] : [`--description=${description}`]),
  ];
}

function templateFlags(command: Template): string[] {
  const { options } = command;
  return [
    ...when(command.values, '--values=-'),
    ...when(options.disableHooks, '--no-hooks'),
    ...when(options.skipCRDs, '--skip-crds'),
    ...when(options.install.includeCRDs, '--include-crds'),
    ...when(options.subNotes, '--render-subchart-notes'),
    ...when(options.dependencyUpdate, '--dependency-update'),
    ...(command.kubeVersion === undefined ? [] : [`--kube-version=${command.kubeVersion}`]),
    ...(command.apiVersions ?? []).map((version) => `--api-versions=${version}`),
  ];
}

/**
 * "Clearing values clears them": without a flag Helm keeps the last values when the new ones are empty. Where more than
 * one is asked for, the first of these wins, as in Helm.
 */
function valuesFlag(upgrade: HelmOptions['upgrade']): string {
  if (upgrade.resetValues === true) return '--reset-values';
  if (upgrade.reuseValues === true) return '--reuse-values';
  return upgrade.resetThenReuseValues === true ? '--reset-then-reuse-values' : '--reset-values';
}

function waitFlags(options: HelmOptions, major: number): string[] {
  return [
    ...when(options.wait === true || options.atomic === true, waitFlag(major)),
    ...when(options.waitForJobs, '--wait-for-jobs'),
  ];
}

/**
 * Helm 4's `legacy` is Helm 3's wait: workloads, Services and claims. Its other one, `watcher`, also waits for whatever
 * a custom resource says of itself: a HelmChartProxy that installed under CAAPH could then fail.
 */
function waitFlag(major: number): string {
  return major >= 4 ? '--wait=legacy' : '--wait';
}

function forceFlags(force: boolean | undefined, major: number): string[] {
  if (force !== true) return [];
  return major >= 4 ? ['--force-replace', '--server-side=false'] : ['--force'];
}

function recreateFlags(recreate: boolean | undefined, major: number): string[] {
  if (recreate !== true) return [];
  if (major < 4) return ['--recreate-pods'];
  throw new HelmError(
    'OptionUnsupported',
    'options.upgrade.recreate: Helm 4 cannot recreate pods. Set it to false, and restart pods by an annotation in the ' +
      "pod template that changes with the chart's configuration (checksum/config), or run Capstan with Helm 3",
    { field: 'options.upgrade.recreate' },
  );
}

/**
 * `includeCRDs` makes a chart's crds/ part of what is installed. Helm's install does that unless told to skip them; both
 * together would make them part of the release's manifest, from which the next upgrade would delete them.
 */
function refuseContradictingCrds(options: HelmOptions): void {
  if (options.install.includeCRDs !== true || options.skipCRDs !== true) return;
  throw new HelmError(
    'OptionUnsupported',
    'options.install.includeCRDs and options.skipCRDs contradict one another: set the one that is meant',
    { field: 'options.install.includeCRDs' },
  );
}

/** A Go duration. */
function timeout(ms: number): string {
  return `--timeout=${String(Math.round(ms))}ms`;
}

function when(condition: boolean | undefined, flag: string): string[] {
  return condition === true ? [flag] : [];
}
