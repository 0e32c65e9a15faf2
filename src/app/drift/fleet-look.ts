import PQueue from 'p-queue';
import { Connection, RestClient } from '../../kube/index.ts';
import type { CallOptions } from '../../kube/index.ts';
import { readKubeconfigSecret } from '../../providers/capi/index.ts';
import { AppError } from '../errors.ts';
import { failedCluster, lookAtCluster } from './cluster-look.ts';
import type { ClusterLook, Looking, Wanted } from './cluster-look.ts';
import { explain } from './explain.ts';
import type { Gate } from './read-only-client.ts';
import type { DriftOptions } from './options.ts';
import { findFleetTargets, servesReleaseProxies } from './targets.ts';
import type { FleetTarget } from './targets.ts';
import type { UserCluster } from './user-kubeconfig.ts';

/** All that was seen, and what could not be. */
export interface Looks {
  readonly looks: readonly ClusterLook[];
  readonly problems: readonly string[];
  /** For people, beside the report. */
  readonly hints: readonly string[];
}

/** Where nothing else says which: as kubectl. */
const DEFAULT_NAMESPACE = 'default';

/**
 * Looks at everything that the options ask for. Rejects with AppError when the kubeconfig's own cluster cannot be used for
 * that, or with the signal's reason; what fails on other clusters is in the reports.
 */
export async function lookAtAll(user: UserCluster, options: DriftOptions, signal: AbortSignal): Promise<Looks> {
  const queue = new PQueue({ concurrency: options.concurrency });
  const gate: Gate = async (work) => queue.add(work);
  const looking: Looking = { options, gate, signal };
  const managed = !options.direct && (await isManagement(user, options, signal));
  if (managed) return lookAtFleet(user, looking);
  if (options.cluster !== undefined) {
    throw new AppError('USAGE', `--cluster is for management clusters: ${user.name} serves no HelmReleaseProxies`);
  }
  return lookAtOwn(user, looking);
}

async function isManagement(user: UserCluster, options: DriftOptions, signal: AbortSignal): Promise<boolean> {
  const call = { signal, timeoutMs: options.timeoutMs };
  return own(user, signal, async () => servesReleaseProxies(new RestClient(user.connection), call));
}

/** The user's own cluster must answer: there is nothing to go on with otherwise. */
async function own<T>(user: UserCluster, signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    signal.throwIfAborted();
    throw new AppError('API_SERVER', `${user.name} (${user.connection.server}): ${explain(error)}`, {
      advice: 'check --kubeconfig and --context, and what this user may read',
      cause: error,
    });
  }
}

function namespaceOf(user: UserCluster, options: DriftOptions): string | undefined {
  if (options.allNamespaces) return undefined;
  if (options.namespace !== '') return options.namespace;
  return options.cluster?.namespace ?? user.connection.namespace ?? DEFAULT_NAMESPACE;
}

function placeOf(namespace: string | undefined): string {
  return namespace === undefined ? 'any namespace' : `namespace ${namespace}`;
}

async function lookAtOwn(user: UserCluster, looking: Looking): Promise<Looks> {
  const { names } = looking.options;
  const namespace = namespaceOf(user, looking.options);
  const wanted: Wanted = { kind: 'stored', namespace, names };
  const look = await lookAtCluster(user.name, user.connection, wanted, looking);
  const place = placeOf(namespace);
  const none = look.releases.length === 0 && look.cluster.error === undefined && names.length === 0;
  return {
    looks: [look],
    problems: look.unknown.map((name) => `there is no release "${name}" in ${place}`),
    hints: none ? [nothingIn('releases', place, namespace)] : [],
  };
}

function nothingIn(what: string, place: string, namespace: string | undefined): string {
  return `there are no ${what} in ${place}${namespace === undefined ? '' : '; -A looks in all namespaces'}`;
}

async function lookAtFleet(user: UserCluster, looking: Looking): Promise<Looks> {
  const { options, signal } = looking;
  const call: CallOptions = { signal, timeoutMs: options.timeoutMs };
  const client = new RestClient(user.connection);
  const namespace = namespaceOf(user, options);
  const { targets, installOnce, unknown } = await own(user, signal, async () =>
    findFleetTargets(client, namespace, options, call),
  );
  const clusters = new PQueue({ concurrency: options.concurrency });
  const looks = await Promise.all(
    targets.map(async (target) => clusters.add(async () => lookAtTarget(client, target, looking))),
  );
  const place = placeOf(namespace);
  const nothing = targets.length === 0 && installOnce === 0 && unknown.length === 0;
  return {
    looks,
    problems: unknown.map((name) => `there is no release, HelmReleaseProxy or HelmChartProxy "${name}" in ${place}`),
    hints: [
      ...(nothing ? [nothingIn('HelmReleaseProxies', place, namespace)] : []),
      ...(installOnce > 0 ? [leftOut(installOnce)] : []),
    ],
  };
}

function leftOut(count: number): string {
  const releases = count === 1 ? '1 InstallOnce release was' : `${count} InstallOnce releases were`;
  return `${releases} left out, which may differ; named ones are looked at`;
}

async function lookAtTarget(client: RestClient, target: FleetTarget, looking: Looking): Promise<ClusterLook> {
  const name = `${target.cluster.namespace}/${target.cluster.name}`;
  const wanted: Wanted = { kind: 'targets', targets: target.releases };
  let connection: Connection;
  try {
    connection = await connect(client, target, looking);
  } catch (error) {
    looking.signal.throwIfAborted();
    return failedCluster(name, wanted, explain(error));
  }
  try {
    return await lookAtCluster(name, connection, wanted, looking);
  } finally {
    await connection.close();
  }
}

async function connect(client: RestClient, { cluster }: FleetTarget, looking: Looking): Promise<Connection> {
  const { options, gate, signal } = looking;
  const call: CallOptions = { signal, timeoutMs: options.timeoutMs };
  const { kubeconfig } = await gate(async () => readKubeconfigSecret(client, cluster, call));
  const name = `${cluster.namespace}/${cluster.name}`;
  if (kubeconfig === '') throw new Error(`Secret ${name}-kubeconfig is missing or has no key "value"`);
  return Connection.fromKubeconfig(kubeconfig, {
    clusterName: name,
    userAgent: options.userAgent,
    allowExec: options.allowExecPlugins,
    requestTimeoutMs: options.timeoutMs,
    connectTimeoutMs: options.timeoutMs,
  });
}
