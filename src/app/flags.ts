/** The manager's flags as data: one row a flag. CAAPH's names and defaults (caaph §2.1) come first, Capstan's own after. */
export type FlagKind = 'boolean' | 'string' | 'count' | 'duration';

export interface Flag {
  readonly name: string;
  readonly kind: FlagKind;
  readonly default: string | number | boolean;
  readonly about: string;
  readonly group: string;
  /** Accepted so that CAAPH's manifests work, without effect here; the text says why. */
  readonly ignored?: string;
}

const MANAGER = 'What to work on:';
const LEADER = 'Leader election:';
const SHARDING = 'Several replicas at work:';
const SERVERS = 'Servers:';
const HELM = 'Helm and charts:';
const LOGS = 'Logs:';
const ACCEPTED = 'Accepted for compatibility, without effect:';

function ignored(name: string, kind: FlagKind, value: string | number | boolean, why: string): Flag {
  return { name, kind, default: value, about: why, group: ACCEPTED, ignored: why };
}

const NO_WEBHOOKS = 'Capstan needs no webhook: the CRDs carry defaults and validation';
const KLOG = 'Capstan does not log through klog; use --v and --log-format';

export const MANAGER_FLAGS: readonly Flag[] = [
  {
    name: 'kubeconfig',
    kind: 'string',
    default: '',
    group: MANAGER,
    about: "Kubeconfig of the management cluster; $KUBECONFIG, then the Pod's service account when absent",
  },
  { name: 'namespace', kind: 'string', default: '', group: MANAGER, about: 'Namespace to work in; all when empty' },
  {
    name: 'watch-filter',
    kind: 'string',
    default: '',
    group: MANAGER,
    about: 'Only objects whose label cluster.x-k8s.io/watch-filter has this value',
  },
  {
    name: 'kubeconfig-secrets',
    kind: 'boolean',
    default: false,
    group: MANAGER,
    about: 'Clusters from kubeconfigs in labelled Secrets, beside those of Cluster API (docs/providers.md)',
  },
  {
    name: 'kubeconfig-files',
    kind: 'string',
    default: '',
    group: MANAGER,
    about: 'Clusters from kubeconfig files: a file, directory or glob; may be given many times',
  },
  {
    name: 'local-cluster',
    kind: 'boolean',
    default: false,
    group: MANAGER,
    about: 'The management cluster itself as a cluster to work on',
  },
  {
    name: 'local-cluster-labels',
    kind: 'string',
    default: '',
    group: MANAGER,
    about: 'Labels of the local cluster, which selectors match: key=value,key=value',
  },
  {
    name: 'cluster-namespace',
    kind: 'string',
    default: 'default',
    group: MANAGER,
    about: 'Namespace whose HelmChartProxies may select clusters from files, and the local cluster',
  },
  {
    name: 'helm-chart-proxy-concurrency',
    kind: 'count',
    default: 10,
    group: MANAGER,
    about: 'HelmChartProxies (and placements) worked on at a time',
  },
  {
    name: 'helm-release-proxy-concurrency',
    kind: 'count',
    default: 10,
    group: MANAGER,
    about: 'HelmReleaseProxies worked on at a time',
  },
  {
    name: 'wait-concurrency',
    kind: 'count',
    default: 50,
    group: MANAGER,
    about: 'Releases with wait, waitForJobs or atomic worked on at a time, in a pool of their own',
  },
  {
    name: 'sync-period',
    kind: 'duration',
    default: '10m',
    group: MANAGER,
    about: 'Every object is looked at again this often',
  },
  {
    name: 'cross-namespace-secrets',
    kind: 'boolean',
    default: false,
    group: MANAGER,
    about: "Allow credentials.secret and tlsConfig.caSecret outside the object's own namespace",
  },
  {
    name: 'allow-exec-plugins',
    kind: 'boolean',
    default: false,
    group: MANAGER,
    about: 'Allow kubeconfigs of workload clusters to run programs (exec, auth-provider)',
  },
  {
    name: 'drift-detection',
    kind: 'string',
    default: 'Disabled',
    group: MANAGER,
    about: 'Of releases that say nothing themselves: Disabled, Warn or Correct (docs/drift.md)',
  },
  {
    name: 'drift-concurrency',
    kind: 'count',
    default: 10,
    group: MANAGER,
    about: 'Releases looked at for drift at a time',
  },
  {
    name: 'drift-retry-delays',
    kind: 'string',
    default: '0s,2s,6s,18s,54s,2m42s,5m',
    group: MANAGER,
    about: 'Pauses before the first, second … correction of a field that does not hold; after the last it stops',
  },
  {
    name: 'plugin',
    kind: 'string',
    default: '',
    group: MANAGER,
    about: 'A module that binds strategies and providers of your own; may be given many times (docs/extending.md)',
  },
  { name: 'http2', kind: 'boolean', default: true, group: MANAGER, about: 'Use HTTP/2 to API servers' },
  {
    name: 'drain-timeout',
    kind: 'duration',
    default: '25s',
    group: MANAGER,
    about: 'How long a stop waits for running work before it is ended',
  },

  {
    name: 'leader-elect',
    kind: 'boolean',
    default: false,
    group: LEADER,
    about: 'Be active only while holding the Lease',
  },
  {
    name: 'leader-elect-lease-duration',
    kind: 'duration',
    default: '15s',
    group: LEADER,
    about: 'How long others wait before they take an unrenewed Lease',
  },
  {
    name: 'leader-elect-renew-deadline',
    kind: 'duration',
    default: '10s',
    group: LEADER,
    about: 'How long a leader tries to renew before it gives up',
  },
  { name: 'leader-elect-retry-period', kind: 'duration', default: '2s', group: LEADER, about: 'Pause between tries' },
  {
    name: 'leader-elect-resource-namespace',
    kind: 'string',
    default: '',
    group: LEADER,
    about: "Namespace of the Lease; the Pod's own when empty",
  },
  {
    name: 'leader-elect-resource-name',
    kind: 'string',
    default: 'controller-leader-election-caaph',
    group: LEADER,
    about: "Name of the Lease; CAAPH's own by default, so that the two never act together",
  },

  {
    name: 'sharding',
    kind: 'boolean',
    default: false,
    group: SHARDING,
    about: 'Share the clusters with all replicas that have this flag (docs/sharding.md)',
  },
  {
    name: 'shard-weight',
    kind: 'count',
    default: 1,
    group: SHARDING,
    about: "This replica's share relative to the others' weights; 0 takes no clusters",
  },

  { name: 'health-addr', kind: 'string', default: ':9440', group: SERVERS, about: 'Address of /healthz and /readyz' },
  {
    name: 'diagnostics-address',
    kind: 'string',
    default: ':8443',
    group: SERVERS,
    about: 'Address of /metrics; 0 turns it off',
  },
  {
    name: 'insecure-diagnostics',
    kind: 'boolean',
    default: false,
    group: SERVERS,
    about: 'Serve /metrics over plain HTTP without asking who reads it',
  },
  {
    name: 'debug-endpoints',
    kind: 'boolean',
    default: false,
    group: SERVERS,
    about: 'Serve /debug/ beside /metrics, to those who may read it (docs/diagnostics.md)',
  },
  {
    name: 'metrics-cluster-label',
    kind: 'boolean',
    default: true,
    group: SERVERS,
    about: 'Tell clusters apart in metrics; false for fleets with too many series (docs/metrics.md)',
  },

  { name: 'helm', kind: 'string', default: 'helm', group: HELM, about: 'The helm binary: 3.17 or later, or 4' },
  {
    name: 'cache-dir',
    kind: 'string',
    default: '',
    group: HELM,
    about: 'Where charts are kept; a folder of its own below the temporary directory when empty',
  },

  {
    name: 'v',
    kind: 'count',
    default: 2,
    group: LOGS,
    about: 'Verbosity: 0 and 1 warnings, 2 and 3 facts, 4 and more everything',
  },
  {
    name: 'log-format',
    kind: 'string',
    default: 'auto',
    group: LOGS,
    about: 'json, text, or auto: text at a terminal',
  },
  { name: 'logging-format', kind: 'string', default: '', group: LOGS, about: "CAAPH's name for --log-format" },

  ignored('webhook-port', 'count', 9443, NO_WEBHOOKS),
  ignored('webhook-cert-dir', 'string', '/tmp/k8s-webhook-server/serving-certs/', NO_WEBHOOKS),
  ignored(
    'profiler-address',
    'string',
    '',
    'there is no Go profiler in Node; start with NODE_OPTIONS=--inspect to profile',
  ),
  ignored(
    'kube-api-qps',
    'count',
    20,
    "the API server's own priority and fairness bounds Capstan, which honours Retry-After",
  ),
  ignored(
    'kube-api-burst',
    'count',
    30,
    "the API server's own priority and fairness bounds Capstan, which honours Retry-After",
  ),
  ignored('tls-min-version', 'string', 'VersionTLS12', "the metrics server uses Node's TLS defaults (1.2 and later)"),
  ignored('tls-cipher-suites', 'string', '', "the metrics server uses Node's TLS defaults"),
  ignored('feature-gates', 'string', '', 'CAAPH uses none of them, nor does Capstan'),
  ignored('logtostderr', 'boolean', true, KLOG),
  ignored('alsologtostderr', 'boolean', false, KLOG),
  ignored('stderrthreshold', 'string', '', KLOG),
  ignored('vmodule', 'string', '', KLOG),
  ignored('log-dir', 'string', '', KLOG),
  ignored('log-file', 'string', '', KLOG),
  ignored('log-flush-frequency', 'duration', '5s', KLOG),
  ignored('log-text-split-stream', 'boolean', false, KLOG),
  ignored('log-json-split-stream', 'boolean', false, KLOG),
  ignored('log-text-info-buffer-size', 'string', '', KLOG),
  ignored('log-json-info-buffer-size', 'string', '', KLOG),
];
