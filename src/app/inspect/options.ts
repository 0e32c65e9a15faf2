import type { DriftFlag } from '../drift/options.ts';
import { FlagReader, usage } from '../options.ts';
import type { Environment, FlagValues } from '../options.ts';

/** What `capstan tree` and `capstan doctor` have in common. Times are milliseconds. */
export interface InspectOptions {
  /** Files, as in $KUBECONFIG; '' where neither flag nor environment names one. */
  readonly kubeconfig: string;
  /** '' for the current one. */
  readonly context: string;
  /** undefined: all namespaces; '' for the context's. */
  readonly namespace: string | undefined;
  readonly output: 'text' | 'json' | 'yaml';
  readonly color: 'auto' | 'always' | 'never';
  /** Of one request. */
  readonly timeoutMs: number;
  readonly userAgent: string;
}

export interface TreeOptions extends InspectOptions {
  /** Clusters, HelmChartProxies or releases; none: all. */
  readonly names: readonly string[];
  readonly by: 'cluster' | 'chart';
  readonly onlyUnhealthy: boolean;
}

export interface DoctorOptions extends InspectOptions {
  /** The manager's, whose rights are looked at; undefined: the user's own are. */
  readonly serviceAccount: { readonly namespace: string; readonly name: string } | undefined;
  readonly helm: string;
  /** Clusters looked at, and requests under way, at a time. */
  readonly concurrency: number;
  readonly allowExecPlugins: boolean;
  readonly leaseName: string;
}

const WHERE = 'Where to look:';
const OUTPUT = 'Output:';
const CHECKS = 'What is checked:';

function text(name: string, value: string, about: string, group: string): DriftFlag {
  return { name, kind: 'string', default: value, about, group };
}

function boolean(name: string, about: string, group: string): DriftFlag {
  return { name, kind: 'boolean', default: false, about, group };
}

const COMMON: readonly DriftFlag[] = [
  text('kubeconfig', '', "Kubeconfig; $KUBECONFIG, ~/.kube/config, then the Pod's service account when absent", WHERE),
  text('context', '', 'Context of the kubeconfig; its current one when empty', WHERE),
  { ...text('namespace', '', "Namespace of the Clusters; the context's when empty", WHERE), letter: 'n' },
  { ...boolean('all-namespaces', 'All namespaces', WHERE), letter: 'A' },
  { ...text('output', 'text', 'text, json or yaml', OUTPUT), letter: 'o' },
  text('color', 'auto', 'always, never, or auto: at a terminal, unless $NO_COLOR is set', OUTPUT),
  { name: 'timeout', kind: 'duration', default: '15s', about: 'How long one request may take', group: WHERE },
];

export const TREE_FLAGS: readonly DriftFlag[] = [
  ...COMMON,
  text('by', 'cluster', 'cluster: the releases of each cluster; chart: the clusters of each HelmChartProxy', OUTPUT),
  boolean('unhealthy', 'Only what needs attention', OUTPUT),
];

export const DOCTOR_FLAGS: readonly DriftFlag[] = [
  ...COMMON,
  text('service-account', '', "Look at this ServiceAccount's rights (namespace/name) and not at your own", CHECKS),
  text('helm', 'helm', 'The helm binary that the manager is to run; none is looked for when empty', CHECKS),
  text('lease', 'controller-leader-election-caaph', 'Name of the leader election Lease', CHECKS),
  {
    name: 'concurrency',
    kind: 'count',
    default: 20,
    about: 'Clusters looked at, and requests under way, at a time',
    group: CHECKS,
  },
  boolean('allow-exec-plugins', 'Kubeconfigs of workload clusters may run programs (exec, auth-provider)', CHECKS),
];

/** From flags to options. Throws AppError (USAGE) that names the flag. */
export function treeOptions(
  values: FlagValues,
  names: readonly string[],
  env: Environment,
  version: string,
): TreeOptions {
  const read = new FlagReader(values, 'tree');
  return {
    ...common(read, env, { command: 'tree', version }),
    names,
    by: read.oneOf('by', ['cluster', 'chart']),
    onlyUnhealthy: read.flag('unhealthy'),
  };
}

/** From flags to options. Throws AppError (USAGE) that names the flag. */
export function doctorOptions(values: FlagValues, env: Environment, version: string): DoctorOptions {
  const read = new FlagReader(values, 'doctor');
  return {
    ...common(read, env, { command: 'doctor', version }),
    serviceAccount: accountOf(read.text('service-account')),
    helm: read.text('helm'),
    concurrency: read.count('concurrency', 1),
    allowExecPlugins: read.flag('allow-exec-plugins'),
    leaseName: read.text('lease'),
  };
}

function common(read: FlagReader, env: Environment, of: { command: string; version: string }): InspectOptions {
  const namespace = read.text('namespace');
  const everywhere = read.flag('all-namespaces');
  if (namespace !== '' && everywhere) throw usage('--namespace and --all-namespaces exclude each other', of.command);
  return {
    kubeconfig: read.text('kubeconfig') || env.kubeconfig,
    context: read.text('context'),
    namespace: everywhere ? undefined : namespace,
    output: read.oneOf('output', ['text', 'json', 'yaml']),
    color: read.oneOf('color', ['auto', 'always', 'never']),
    timeoutMs: read.duration('timeout', 1),
    userAgent: `capstan-${of.command}/${of.version}`,
  };
}

function accountOf(given: string): DoctorOptions['serviceAccount'] {
  if (given === '') return undefined;
  const [namespace = '', name = '', ...more] = given.split('/');
  if (namespace !== '' && name !== '' && more.length === 0) return { namespace, name };
  throw usage(`--service-account must be namespace/name, not "${given}"`, 'doctor');
}
