import { parseDuration, validateSelector } from '../kube/index.ts';
import { AppError } from './errors.ts';
import { MANAGER_FLAGS } from './flags.ts';
import type { Flag } from './flags.ts';

/** What the binary reads from its environment; nothing below the entry reads process.env. */
export interface Environment {
  readonly kubeconfig: string;
  /** Where ~/.kube/config is looked for; '' when there is no home. */
  readonly home: string;
  /** $NO_COLOR is set, or the terminal is dumb. */
  readonly noColor: boolean;
  /** Namespace of the Pod, for the Lease; '' outside a cluster. */
  readonly podNamespace: string;
  readonly hostname: string;
  readonly isTerminal: boolean;
  readonly temporaryDirectory: string;
  /** Where relative names of plugins start. */
  readonly workingDirectory: string;
  /** Where programs are looked for: helm, and exec plugins where they are allowed. */
  readonly path: string;
  /** The API server as a Pod sees it; '' outside a cluster. */
  readonly serviceHost: string;
  readonly servicePort: string;
  /** Proxies for chart repositories, as the environment names them. */
  readonly httpProxy: string;
  readonly httpsProxy: string;
  readonly noProxy: string;
  /** The OTEL_* variables ask for traces. */
  readonly tracing: boolean;
}

/** Everything `capstan manager` can be told. Times are milliseconds. */
export interface ManagerOptions {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly watchFilter: string;
  readonly kubeconfigSecrets: boolean;
  /** Files, directories and globs. */
  readonly kubeconfigFiles: readonly string[];
  /** The management cluster as a target, with these labels; undefined: it is none. */
  readonly localCluster: { readonly labels: Readonly<Record<string, string>> } | undefined;
  readonly clusterNamespace: string;
  readonly chartProxyConcurrency: number;
  readonly releaseProxyConcurrency: number;
  readonly waitConcurrency: number;
  readonly syncPeriodMs: number;
  readonly crossNamespaceSecrets: boolean;
  readonly allowExecPlugins: boolean;
  readonly driftDetection: 'Disabled' | 'Warn' | 'Correct';
  readonly driftConcurrency: number;
  readonly driftRetryDelaysMs: readonly number[];
  /** Modules that bind strategies and providers: files, or packages. */
  readonly plugins: readonly string[];
  readonly http2: boolean;
  readonly drainTimeoutMs: number;
  readonly leaderElect: boolean;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  readonly leaseNamespace: string;
  readonly leaseName: string;
  readonly sharding: boolean;
  readonly shardWeight: number;
  readonly healthAddress: string;
  readonly diagnosticsAddress: string;
  readonly insecureDiagnostics: boolean;
  readonly debugEndpoints: boolean;
  readonly metricsClusterLabel: boolean;
  readonly helm: string;
  readonly cacheDirectory: string;
  readonly logLevel: 'debug' | 'info' | 'warn';
  readonly logFormat: 'json' | 'text';
  readonly version: string;
  /** What servers see: CAAPH's source name, so that audit policies and flow schemas which match it go on to. */
  readonly userAgent: string;
  /** Flags that were given and have no effect here, with the reason. */
  readonly ignoredFlags: readonly { readonly flag: string; readonly why: string }[];
}

/** Flag values as the command line gave them, by flag name; defaults are filled in already. */
export type FlagValues = Readonly<Record<string, unknown>>;

/** From flags to options. Throws AppError (USAGE) that names the flag. */
export function managerOptions(
  values: FlagValues,
  given: ReadonlySet<string>,
  env: Environment,
  version: string,
): ManagerOptions {
  const read = new FlagReader(values);
  const options: ManagerOptions = {
    kubeconfig: read.text('kubeconfig') || env.kubeconfig,
    namespace: read.text('namespace'),
    watchFilter: read.text('watch-filter'),
    kubeconfigSecrets: read.flag('kubeconfig-secrets'),
    kubeconfigFiles: read.texts('kubeconfig-files'),
    localCluster: localCluster(read, given),
    clusterNamespace: read.text('cluster-namespace'),
    chartProxyConcurrency: read.count('helm-chart-proxy-concurrency', 1),
    releaseProxyConcurrency: read.count('helm-release-proxy-concurrency', 1),
    waitConcurrency: read.count('wait-concurrency', 1),
    syncPeriodMs: read.duration('sync-period', 1_000),
    crossNamespaceSecrets: read.flag('cross-namespace-secrets'),
    allowExecPlugins: read.flag('allow-exec-plugins'),
    driftDetection: read.oneOf('drift-detection', ['Disabled', 'Warn', 'Correct']),
    driftConcurrency: read.count('drift-concurrency', 1),
    driftRetryDelaysMs: read.durations('drift-retry-delays'),
    plugins: read.texts('plugin'),
    http2: read.flag('http2'),
    drainTimeoutMs: read.duration('drain-timeout', 0),
    leaderElect: read.flag('leader-elect'),
    leaseDurationMs: read.duration('leader-elect-lease-duration', 1_000),
    renewDeadlineMs: read.duration('leader-elect-renew-deadline', 1_000),
    retryPeriodMs: read.duration('leader-elect-retry-period', 100),
    leaseNamespace: read.text('leader-elect-resource-namespace') || env.podNamespace,
    leaseName: read.text('leader-elect-resource-name'),
    sharding: read.flag('sharding'),
    shardWeight: read.count('shard-weight', 0),
    healthAddress: read.text('health-addr'),
    diagnosticsAddress: read.text('diagnostics-address'),
    insecureDiagnostics: read.flag('insecure-diagnostics'),
    debugEndpoints: read.flag('debug-endpoints'),
    metricsClusterLabel: read.flag('metrics-cluster-label'),
    helm: read.text('helm'),
    cacheDirectory: read.text('cache-dir'),
    logLevel: logLevel(read.count('v', 0)),
    logFormat: logFormat(read.text('logging-format') || read.text('log-format'), env.isTerminal),
    version,
    userAgent: `cluster-api-helm-controller-manager/capstan-${version}`,
    ignoredFlags: MANAGER_FLAGS.flatMap((flag) =>
      flag.ignored !== undefined && given.has(flag.name) ? [{ flag: `--${flag.name}`, why: flag.ignored }] : [],
    ),
  };
  checkLease(options);
  if (options.debugEndpoints && options.insecureDiagnostics) {
    throw usage('--debug-endpoints are for those who may read them: leave --insecure-diagnostics out');
  }
  checkSharding(options, given);
  return options;
}

function localCluster(read: FlagReader, given: ReadonlySet<string>): ManagerOptions['localCluster'] {
  if (read.flag('local-cluster')) return { labels: read.labels('local-cluster-labels') };
  if (given.has('local-cluster-labels')) throw usage('--local-cluster-labels needs --local-cluster');
  return undefined;
}

/** The relation that client-go demands as well: a leader gives up before another may take over. */
function checkLease(options: ManagerOptions): void {
  if (!options.leaderElect) return;
  if (options.leaseDurationMs <= options.renewDeadlineMs) {
    throw usage('--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline');
  }
  if (options.renewDeadlineMs <= options.retryPeriodMs) {
    throw usage('--leader-elect-renew-deadline must be longer than --leader-elect-retry-period');
  }
  if (options.leaseNamespace === '') {
    throw usage(
      '--leader-elect needs a namespace for its Lease outside a cluster: add --leader-elect-resource-namespace',
    );
  }
}

function checkSharding(options: ManagerOptions, given: ReadonlySet<string>): void {
  if (!options.sharding && given.has('shard-weight')) throw usage('--shard-weight needs --sharding');
  if (!options.sharding || options.leaderElect) return;
  if (options.leaseNamespace === '') {
    throw usage('--sharding needs a namespace for its Leases outside a cluster: add --leader-elect-resource-namespace');
  }
}

function logLevel(verbosity: number): ManagerOptions['logLevel'] {
  if (verbosity >= 4) return 'debug';
  return verbosity >= 2 ? 'info' : 'warn';
}

function logFormat(text: string, isTerminal: boolean): 'json' | 'text' {
  if (text === 'auto') return isTerminal ? 'text' : 'json';
  if (text === 'json' || text === 'text') return text;
  throw usage(`--log-format must be json, text or auto, not "${text}"`);
}

/** A USAGE error; the command's help is what to read next. */
export function usage(message: string, command = 'manager'): AppError {
  return new AppError('USAGE', message, { advice: `run 'capstan ${command} --help' for the flags` });
}

/** Flags of one command as the types that they stand for. Everything throws AppError (USAGE) that names the flag. */
export class FlagReader {
  readonly #values: FlagValues;
  readonly #command: string;

  constructor(values: FlagValues, command = 'manager') {
    this.#values = values;
    this.#command = command;
  }

  text(name: string): string {
    const value = this.#last(name);
    if (typeof value === 'string') return value.trim();
    if (typeof value === 'number') return String(value);
    throw this.#wrong(`--${name} needs a value`);
  }

  /** A flag that may be given many times; empty when it is not given. */
  texts(name: string): string[] {
    const value = this.#values[name];
    const texts = (Array.isArray(value) ? value : [value]).map((text) => (typeof text === 'string' ? text.trim() : ''));
    if (texts.length > 1 && texts.includes('')) throw this.#wrong(`--${name} needs a value`);
    return texts.filter((text) => text !== '');
  }

  /** `key=value,key=value`, each a valid label. */
  labels(name: string): Record<string, string> {
    const pairs = this.text(name)
      .split(',')
      .map((part) => part.trim())
      .filter(Boolean);
    const matchLabels = Object.fromEntries(
      pairs.map((pair) => {
        const at = pair.indexOf('=');
        if (at <= 0) throw this.#wrong(`--${name} must be key=value,key=value, not "${pair}"`);
        return [pair.slice(0, at), pair.slice(at + 1)];
      }),
    );
    const [problem] = validateSelector({ matchLabels }, `--${name}`);
    if (problem !== undefined) throw this.#wrong(problem);
    return matchLabels;
  }

  flag(name: string): boolean {
    const value = this.#last(name);
    if (typeof value === 'boolean') return value;
    throw this.#wrong(`--${name} must be true or false`);
  }

  count(name: string, least: number): number {
    const value = Number(this.text(name) || Number.NaN);
    if (Number.isSafeInteger(value) && value >= least) return value;
    throw this.#wrong(`--${name} must be a whole number of at least ${least}, not "${this.text(name)}"`);
  }

  duration(name: string, leastMs: number): number {
    const text = this.text(name);
    const ms = parseDuration(text);
    if (ms === undefined) throw this.#wrong(`--${name} must be a duration such as 90s, 10m or 1h30m, not "${text}"`);
    if (ms < leastMs) throw this.#wrong(`--${name} must be at least ${leastMs}ms, not "${text}"`);
    return ms;
  }

  oneOf<T extends string>(name: string, words: readonly T[]): T {
    const text = this.text(name);
    const word = words.find((known) => known === text);
    if (word === undefined) throw this.#wrong(`--${name} must be one of ${words.join(', ')}, not "${text}"`);
    return word;
  }

  /** A list of durations with commas, of one at least, none below 0. */
  durations(name: string): number[] {
    const text = this.text(name);
    return text.split(',').map((part) => {
      const ms = parseDuration(part.trim());
      if (ms !== undefined && ms >= 0) return ms;
      throw this.#wrong(`--${name} must be a list of durations such as 0s,2s,1m30s, not "${text}"`);
    });
  }

  #wrong(message: string): AppError {
    return usage(message, this.#command);
  }

  /** A flag given twice: the last one counts, as with Go's flags. */
  #last(name: string): unknown {
    const value = this.#values[name];
    return Array.isArray(value) ? value.at(-1) : value;
  }
}

/** All flags with their defaults; who calls: tests, and library users who want the manager's defaults. */
export function defaultFlagValues(flags: readonly Flag[] = MANAGER_FLAGS): Record<string, unknown> {
  return Object.fromEntries(flags.map((flag) => [flag.name, flag.default]));
}
