import { Container } from 'inversify';
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { basename } from 'node:path';
import {
  CachedChartStore,
  helmProcessOptions,
  HelmProcesses,
  HelmValuesRenderer,
  ProcessHelmEngine,
} from '../helm/index.ts';
import { CapiProvider } from '../providers/capi/index.ts';
import { KubeconfigFileProvider, KubeconfigSecretProvider } from '../providers/kubeconfig/index.ts';
import { LocalProvider } from '../providers/local/index.ts';
import { continuousStrategy, createReconcilers, installOnceStrategy } from '../reconcilers/index.ts';
import type { ReconcilerOptions } from '../reconcilers/index.ts';
import {
  clusterConnection,
  createCluster,
  CurrentPermit,
  KubeEventRecorder,
  kubeConnectionFactory,
  prefixed,
  LOCAL_CLUSTER,
  managementGuard,
  ShardMember,
  SupervisedFleet,
  workloadGuard,
} from '../runtime/index.ts';
import type { Cluster, Sharding } from '../runtime/index.ts';
import { errorText } from '../telemetry/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { AppError } from './errors.ts';
import { findProgram } from './find-program.ts';
import { connectManagement } from './management.ts';
import type { Environment, ManagerOptions } from './options.ts';
import { TOKENS } from './tokens.ts';

/**
 * The one place that binds. Everything is made on first use and once; nothing runs until the manager starts it. A
 * library user rebinds what is to be different, and adds strategies and providers beside ours.
 */
export function createContainer(options: ManagerOptions, env: Environment, telemetry: Telemetry): Container {
  const container = new Container({ defaultScope: 'Singleton' });
  container.bind(TOKENS.options).toConstantValue(options);
  container.bind(TOKENS.environment).toConstantValue(env);
  container.bind(TOKENS.telemetry).toConstantValue(telemetry);
  bindClusters(container);
  bindHelm(container);
  bindWork(container);
  return container;
}

function bindClusters(container: Container): void {
  bindShards(container);
  container
    .bind(TOKENS.connection)
    .toResolvedValue(
      (options, env, telemetry, current) =>
        connectManagement(
          options,
          env,
          telemetry,
          options.sharding ? managementGuard(current, LOCAL_CLUSTER) : undefined,
        ),
      [TOKENS.options, TOKENS.environment, TOKENS.telemetry, TOKENS.currentPermit],
    );
  container
    .bind(TOKENS.management)
    .toResolvedValue(
      (connection) => createCluster(LOCAL_CLUSTER, clusterConnection(connection)).cluster,
      [TOKENS.connection],
    );
  container.bind(TOKENS.fleet).toResolvedValue(
    (options, telemetry, shards, current) =>
      new SupervisedFleet({
        telemetry,
        ...(shards && { shards }),
        factory: kubeConnectionFactory({
          telemetry,
          http2: options.http2,
          allowExec: options.allowExecPlugins,
          userAgent: options.userAgent,
          ...(shards && { guardOf: (name) => workloadGuard(name, { shards, current }) }),
        }),
      }),
    [TOKENS.options, TOKENS.telemetry, TOKENS.shards, TOKENS.currentPermit],
  );
  container.bind(TOKENS.provider).toResolvedValue(
    (options, management, telemetry) =>
      new CapiProvider({
        management,
        telemetry,
        ...(options.namespace === '' ? {} : { namespace: options.namespace }),
      }),
    [TOKENS.options, TOKENS.management, TOKENS.telemetry],
  );
  bindOtherProviders(container);
}

/** Always with a prefix: a cluster must not change its name on the day when another provider comes. */
function bindOtherProviders(container: Container): void {
  const options = container.get(TOKENS.options);
  const { namespace, clusterNamespace, localCluster, kubeconfigFiles: paths } = options;
  const needed = [TOKENS.management, TOKENS.telemetry] as const;
  if (options.kubeconfigSecrets)
    container.bind(TOKENS.provider).toResolvedValue(
      (management, telemetry) =>
        prefixed(
          new KubeconfigSecretProvider({
            management,
            telemetry,
            ...(namespace === '' ? {} : { namespaces: [namespace] }),
          }),
        ),
      [...needed],
    );
  if (paths.length > 0)
    container
      .bind(TOKENS.provider)
      .toResolvedValue(
        (telemetry) => prefixed(new KubeconfigFileProvider({ paths, telemetry, namespace: clusterNamespace })),
        [TOKENS.telemetry],
      );
  if (localCluster !== undefined)
    container
      .bind(TOKENS.provider)
      .toResolvedValue(
        (management) =>
          prefixed(new LocalProvider({ management, labels: localCluster.labels, namespace: clusterNamespace })),
        [TOKENS.management],
      );
}

function bindShards(container: Container): void {
  container.bind(TOKENS.currentPermit).toResolvedValue(() => new CurrentPermit(), []);
  container
    .bind(TOKENS.shards)
    .toResolvedValue(shardMember, [TOKENS.options, TOKENS.environment, TOKENS.management, TOKENS.telemetry]);
}

function shardMember(
  options: ManagerOptions,
  env: Environment,
  management: Cluster,
  telemetry: Telemetry,
): ShardMember | undefined {
  if (!options.sharding) return undefined;
  return new ShardMember({
    client: management.client,
    telemetry,
    group: shardGroup(options),
    namespace: options.leaseNamespace,
    identity: processIdentity(env),
    weight: options.shardWeight,
  });
}

/** Who leads together shares clusters together. */
export function shardGroup(options: ManagerOptions): string {
  return `${options.leaseName}-shards`;
}

/** As client-go's candidates: the host's name for people, a part of chance because two processes may share a host. */
export function processIdentity(env: Environment): string {
  return `${env.hostname}_${randomUUID()}`;
}

function sharding(container: Container): Sharding | undefined {
  const shards = container.get(TOKENS.shards);
  return shards && { shards, current: container.get(TOKENS.currentPermit) };
}

function bindHelm(container: Container): void {
  container
    .bind(TOKENS.processes)
    .toResolvedValue(helmProcesses, [TOKENS.options, TOKENS.environment, TOKENS.telemetry]);
  container
    .bind(TOKENS.engine)
    .toResolvedValue(
      (processes, telemetry) => new ProcessHelmEngine(processes, telemetry),
      [TOKENS.processes, TOKENS.telemetry],
    );
  container
    .bind(TOKENS.charts)
    .toResolvedValue(
      (options, env, telemetry) =>
        new CachedChartStore({ directory: workDirectory(options, env), http: { proxy: proxyOf(env) } }, telemetry),
      [TOKENS.options, TOKENS.environment, TOKENS.telemetry],
    );
  container
    .bind(TOKENS.values)
    .toResolvedValue(
      (processes, telemetry) => new HelmValuesRenderer(processes, {}, telemetry),
      [TOKENS.processes, TOKENS.telemetry],
    );
}

function bindWork(container: Container): void {
  container.bind(TOKENS.strategy).toConstantValue(continuousStrategy);
  container.bind(TOKENS.strategy).toConstantValue(installOnceStrategy);
  container
    .bind(TOKENS.events)
    .toResolvedValue(
      (management, env, telemetry) =>
        new KubeEventRecorder({ client: management.client, telemetry, component: 'capstan', instance: env.hostname }),
      [TOKENS.management, TOKENS.environment, TOKENS.telemetry],
    );
  container.bind(TOKENS.reconcilers).toDynamicValue(() => {
    const shared = sharding(container);
    return createReconcilers({
      ...(shared && { sharding: shared }),
      management: container.get(TOKENS.management),
      fleet: container.get(TOKENS.fleet),
      ...(container.getAll(TOKENS.provider).length > 1 && { records: container.get(TOKENS.fleet).records }),
      engine: container.get(TOKENS.engine),
      charts: container.get(TOKENS.charts),
      values: container.get(TOKENS.values),
      strategies: container.getAll(TOKENS.strategy),
      events: container.get(TOKENS.events),
      telemetry: container.get(TOKENS.telemetry),
      options: reconcilerOptions(container.get(TOKENS.options)),
    });
  });
}

function reconcilerOptions(options: ManagerOptions): ReconcilerOptions {
  return {
    ...(options.namespace === '' ? {} : { namespace: options.namespace }),
    ...(options.watchFilter === '' ? {} : { watchFilter: options.watchFilter }),
    chartProxyConcurrency: options.chartProxyConcurrency,
    releaseProxyConcurrency: options.releaseProxyConcurrency,
    waitConcurrency: options.waitConcurrency,
    syncPeriodMs: options.syncPeriodMs,
    allowCrossNamespaceSecrets: options.crossNamespaceSecrets,
    driftDefault: options.driftDetection,
    driftConcurrency: options.driftConcurrency,
    driftRetryDelaysMs: options.driftRetryDelaysMs,
    helmManagers: helmManagers(options.helm),
    graceMs: options.drainTimeoutMs,
  };
}

/** Helm's own field manager is the base name of its program; `manager` is CAAPH's. */
function helmManagers(program: string): string[] {
  return [...new Set(['helm', 'manager', basename(program)])];
}

function helmProcesses(options: ManagerOptions, env: Environment, telemetry: Telemetry): HelmProcesses {
  const helmPath = findProgram(options.helm, env.path);
  if (helmPath === undefined) {
    throw new AppError('HELM', `there is no helm that may be run (--helm ${options.helm})`, {
      advice: 'install Helm 3.17 or later (4 is best), or name its path with --helm',
    });
  }
  return new HelmProcesses(
    helmProcessOptions({
      helmPath,
      workDir: workDirectory(options, env),
      maxWaitingProcesses: options.waitConcurrency,
      proxy: proxyOf(env),
      // What an allowed exec plugin is looked for in; without plugins helm starts nothing.
      ...(options.allowExecPlugins ? { path: env.path } : {}),
    }),
    telemetry,
  );
}

/** --cache-dir, made when missing, or the temporary directory; what lies in it is in folders of this process's own, and what a killed one left is swept. */
function workDirectory(options: ManagerOptions, env: Environment): string {
  if (options.cacheDirectory === '') return env.temporaryDirectory;
  try {
    mkdirSync(options.cacheDirectory, { recursive: true, mode: 0o700 });
    return options.cacheDirectory;
  } catch (error) {
    throw new AppError('USAGE', `--cache-dir ${options.cacheDirectory} cannot be used: ${errorText(error)}`, {
      advice: 'name a folder that this user may write to',
      cause: error,
    });
  }
}

function proxyOf(env: Environment): { httpProxy?: string; httpsProxy?: string; noProxy?: string } {
  return {
    ...(env.httpProxy === '' ? {} : { httpProxy: env.httpProxy }),
    ...(env.httpsProxy === '' ? {} : { httpsProxy: env.httpsProxy }),
    ...(env.noProxy === '' ? {} : { noProxy: env.noProxy }),
  };
}
