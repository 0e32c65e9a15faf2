import type { Flag } from '../flags.ts';
import { FlagReader, usage } from '../options.ts';
import type { Environment, FlagValues } from '../options.ts';

/** A flag that may have a letter, as kubectl's have. */
export interface DriftFlag extends Flag {
  readonly letter?: string;
}

/** Everything `capstan drift` can be told. Times are milliseconds. */
export interface DriftOptions {
  /** Files, as in $KUBECONFIG; '' where neither flag nor environment names one. */
  readonly kubeconfig: string;
  /** '' for the current one. */
  readonly context: string;
  /** '' for the context's. */
  readonly namespace: string;
  readonly allNamespaces: boolean;
  /** Of a management cluster: only releases on this Cluster. */
  readonly cluster: { readonly namespace: string; readonly name: string } | undefined;
  /** Look at the releases of the kubeconfig's cluster even where HelmReleaseProxies are served. */
  readonly direct: boolean;
  /** Releases, HelmReleaseProxies or HelmChartProxies; none: all. */
  readonly names: readonly string[];
  /** undefined: as each HelmReleaseProxy says. */
  readonly extraFields: 'Ignore' | 'Report' | 'Remove' | undefined;
  readonly includeCRDs: boolean;
  /** Ask servers what they make of a manifest (nothing is written); else compare by structure alone. */
  readonly dryRun: boolean;
  /** What is printed. */
  readonly view: 'table' | 'diff' | 'ignore-rules';
  readonly output: 'text' | 'json' | 'yaml';
  readonly color: 'auto' | 'always' | 'never';
  /** Of one request. */
  readonly timeoutMs: number;
  /** Clusters connected to, and requests under way, at a time. */
  readonly concurrency: number;
  /** For kubeconfigs from Secrets; the user's own may always run its plugins. */
  readonly allowExecPlugins: boolean;
  readonly userAgent: string;
}

const WHERE = 'Where to look:';
const WHAT = 'What counts as drift:';
const OUTPUT = 'Output:';
const REQUESTS = 'Requests:';

function text(name: string, value: string, about: string, group: string): DriftFlag {
  return { name, kind: 'string', default: value, about, group };
}

function boolean(name: string, about: string, group: string): DriftFlag {
  return { name, kind: 'boolean', default: false, about, group };
}

export const DRIFT_FLAGS: readonly DriftFlag[] = [
  text('kubeconfig', '', "Kubeconfig; $KUBECONFIG, ~/.kube/config, then the Pod's service account when absent", WHERE),
  text('context', '', 'Context of the kubeconfig; its current one when empty', WHERE),
  {
    ...text(
      'namespace',
      '',
      "Namespace of the releases (HelmReleaseProxies); that of --cluster, then the context's when empty",
      WHERE,
    ),
    letter: 'n',
  },
  { ...boolean('all-namespaces', 'All namespaces', WHERE), letter: 'A' },
  text('cluster', '', 'On a management cluster: only releases on this Cluster (namespace/name)', WHERE),
  boolean('direct', "The releases on the kubeconfig's own cluster, also where it is a management cluster", WHERE),
  text(
    'extra-fields',
    '',
    'Fields that somebody added: Ignore or Report (Remove is Report here); as the HelmReleaseProxy says when empty',
    WHAT,
  ),
  boolean('include-crds', "CRDs from the charts' crds/ too", WHAT),
  boolean('no-dry-run', 'Compare by structure alone, without asking servers for dry runs (which write nothing)', WHAT),
  boolean('diff', 'A diff per object, from what the chart wants to what is there', OUTPUT),
  boolean('ignore-rules', 'The rules for spec.driftDetection.ignore that would silence what was found', OUTPUT),
  { ...text('output', 'text', 'text, json or yaml', OUTPUT), letter: 'o' },
  text('color', 'auto', 'always, never, or auto: at a terminal, unless $NO_COLOR is set', OUTPUT),
  {
    name: 'timeout',
    kind: 'duration',
    default: '15s',
    about: 'How long one request may take; a cluster that takes longer is told as not reached',
    group: REQUESTS,
  },
  {
    name: 'concurrency',
    kind: 'count',
    default: 20,
    about: 'Clusters connected to, and requests under way, at a time',
    group: REQUESTS,
  },
  boolean('allow-exec-plugins', 'Kubeconfigs of workload clusters may run programs (exec, auth-provider)', REQUESTS),
];

const EXTRA_FIELDS = ['Ignore', 'Report', 'Remove'] as const;

/** A USAGE error with the advice to read this command's help. */
export function driftUsage(message: string): ReturnType<typeof usage> {
  return usage(message, 'drift');
}

/** From flags to options. Throws AppError (USAGE) that names the flag. */
export function driftOptions(
  values: FlagValues,
  names: readonly string[],
  env: Environment,
  version: string,
): DriftOptions {
  const read = new FlagReader(values, 'drift');
  const options: DriftOptions = {
    kubeconfig: read.text('kubeconfig') || env.kubeconfig,
    context: read.text('context'),
    namespace: read.text('namespace'),
    allNamespaces: read.flag('all-namespaces'),
    cluster: clusterKey(read.text('cluster')),
    direct: read.flag('direct'),
    names,
    extraFields: read.text('extra-fields') === '' ? undefined : read.oneOf('extra-fields', EXTRA_FIELDS),
    includeCRDs: read.flag('include-crds'),
    dryRun: !read.flag('no-dry-run'),
    view: view(read.flag('diff'), read.flag('ignore-rules')),
    output: read.oneOf('output', ['text', 'json', 'yaml']),
    color: read.oneOf('color', ['auto', 'always', 'never']),
    timeoutMs: read.duration('timeout', 1),
    concurrency: read.count('concurrency', 1),
    allowExecPlugins: read.flag('allow-exec-plugins'),
    userAgent: `capstan-drift/${version}`,
  };
  checkTogether(options);
  return options;
}

function checkTogether(options: DriftOptions): void {
  if (options.namespace !== '' && options.allNamespaces) {
    throw driftUsage('--namespace and --all-namespaces exclude each other');
  }
  if (options.direct && options.cluster !== undefined) throw driftUsage('--direct and --cluster exclude each other');
  if (options.view === 'diff' && options.output !== 'text') throw driftUsage('--diff is for -o text only');
}

function view(diff: boolean, rules: boolean): DriftOptions['view'] {
  if (diff && rules) throw driftUsage('--diff and --ignore-rules exclude each other');
  if (diff) return 'diff';
  return rules ? 'ignore-rules' : 'table';
}

function clusterKey(given: string): DriftOptions['cluster'] {
  if (given === '') return undefined;
  const [namespace = '', name = '', ...more] = given.split('/');
  if (namespace === '' || name === '' || more.length > 0) {
    throw driftUsage(`--cluster must be namespace/name of a Cluster, not "${given}"`);
  }
  return { namespace, name };
}
