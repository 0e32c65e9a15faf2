import type { Container } from 'inversify';
import { LeaderElector, Manager } from '../runtime/index.ts';
import type { Runnable } from '../runtime/index.ts';
import { createLogger, createRegistry, createTelemetry, registerProcessMetrics } from '../telemetry/index.ts';
import type { Logger, Telemetry } from '../telemetry/index.ts';
import { createContainer, processIdentity, shardGroup } from './container.ts';
import { DebugPages } from './debug-pages.ts';
import { HealthServer } from './health-server.ts';
import { parseAddress } from './http-address.ts';
import { MetricsAccess } from './metrics-access.ts';
import { MetricsServer } from './metrics-server.ts';
import type { Environment, ManagerOptions } from './options.ts';
import { checkApiServer, checkCrds, checkHelm } from './startup-checks.ts';
import { TOKENS } from './tokens.ts';
import { applyPlugins, checkNames } from './plugins.ts';
import { startTracing } from './tracing.ts';

/** After the controllers have drained, helm processes that are left get so long between SIGTERM and SIGKILL. */
const HELM_GRACE_MS = 5_000;
/** What the controllers' grace does not cover: aborting what still runs, and its last writes. */
const DRAIN_MARGIN_MS = 8_000;
/** At the end, what the last traces may take to be sent; never longer than --drain-timeout. A collector that is away must not hold up a rollout. */
const FLUSH_LIMIT_MS = 3_000;

/**
 * Runs until `signal` aborts and everything has stopped. Rejects with an AppError that says what to do. Who calls: main,
 * and third parties' own mains, whose `extend` binds strategies and providers beside ours before anything is made.
 */
export async function runManager(
  options: ManagerOptions,
  env: Environment,
  signal: AbortSignal,
  extend: (container: Container) => void | Promise<void> = () => undefined,
): Promise<void> {
  // A slip in a flag is told before anything is asked of a server.
  const addresses = addressesOf(options);
  const log = createLogger({ format: options.logFormat, level: options.logLevel });
  const tracing = await startTracing(env.tracing, options.version, log);
  try {
    const telemetry = createTelemetry({ log, metrics: createRegistry({ perCluster: options.metricsClusterLabel }) });
    registerProcessMetrics(telemetry.metrics);
    for (const { flag, why } of options.ignoredFlags) log.warn(`${flag} has no effect: ${why}`);
    const container = createContainer(options, env, telemetry);
    await extend(container);
    using _plugins = await applyPlugins(options.plugins, { container, TOKENS, options, log }, env.workingDirectory);
    await serve(container, addresses, signal);
  } finally {
    await tracing.stop(Math.min(options.drainTimeoutMs, FLUSH_LIMIT_MS));
  }
}

async function serve(container: Container, addresses: Addresses, signal: AbortSignal): Promise<void> {
  const connection = container.get(TOKENS.connection);
  const telemetry = container.get(TOKENS.telemetry);
  const { log } = telemetry;
  try {
    const helm = await check(container, signal);
    // Series of a cluster that has left would stay for ever.
    const processes = container.get(TOKENS.processes);
    container.get(TOKENS.fleet).register({ disengaged: (cluster) => processes.forget(cluster.name) });
    log.info('starting', { version: container.get(TOKENS.options).version, helm, server: connection.server });
    await manager(container, addresses, telemetry).run(signal);
    log.info('stopped');
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await container.get(TOKENS.values).close?.();
    await container.get(TOKENS.engine).close(HELM_GRACE_MS);
    await container.get(TOKENS.charts).close?.();
    await connection.close();
  }
}

async function check(container: Container, signal: AbortSignal): Promise<string> {
  const helm = await checkHelm(container.get(TOKENS.engine), container.get(TOKENS.options).helm, signal);
  const management = container.get(TOKENS.management);
  await checkApiServer(management.client, container.get(TOKENS.connection).server, signal);
  await checkCrds(management.discovery, signal);
  return helm;
}

/** Where the servers listen; undefined: not at all. */
interface Addresses {
  readonly health: ReturnType<typeof parseAddress>;
  readonly metrics: ReturnType<typeof parseAddress>;
}

function addressesOf(options: ManagerOptions): Addresses {
  return {
    health: parseAddress('--health-addr', options.healthAddress),
    metrics: parseAddress('--diagnostics-address', options.diagnosticsAddress),
  };
}

function manager(container: Container, addresses: Addresses, telemetry: Telemetry): Manager {
  const options = container.get(TOKENS.options);
  const providers = container.getAll(TOKENS.provider);
  checkNames('providers', providers);
  const shards = container.get(TOKENS.shards);
  const built: Manager = new Manager({
    telemetry,
    fleet: container.get(TOKENS.fleet),
    servers: servers(container, addresses, telemetry, {
      notReady: () => {
        if (built.phase === 'starting' || built.phase === 'stopping') return built.phase;
        return built.phase === 'running' && shards?.joined === false ? 'not a member of the shard group' : undefined;
      },
    }),
    background: [container.get(TOKENS.events)],
    ...(options.leaderElect ? { leader: leader(container, telemetry.log) } : {}),
    ...(shards && { shards }),
    providers,
    controllers: container.get(TOKENS.reconcilers),
    drainMs: options.drainTimeoutMs + DRAIN_MARGIN_MS,
  });
  return built;
}

function servers(
  container: Container,
  { health, metrics }: Addresses,
  telemetry: Telemetry,
  readiness: { notReady(): string | undefined },
): Runnable[] {
  return [
    ...(health === undefined ? [] : [new HealthServer(health, readiness)]),
    ...(metrics === undefined ? [] : [metricsServer(container, metrics, telemetry)]),
  ];
}

function metricsServer(
  container: Container,
  address: NonNullable<Addresses['metrics']>,
  telemetry: Telemetry,
): MetricsServer {
  const { insecureDiagnostics, debugEndpoints } = container.get(TOKENS.options);
  const parts = { fleet: container.get(TOKENS.fleet), controllers: container.get(TOKENS.reconcilers) };
  return new MetricsServer(
    {
      address,
      ...(insecureDiagnostics ? {} : { access: new MetricsAccess(container.get(TOKENS.management).client) }),
      ...(debugEndpoints ? { debug: new DebugPages(parts) } : {}),
    },
    telemetry,
  );
}

function leader(container: Container, log: Logger): LeaderElector {
  const options = container.get(TOKENS.options);
  // Members of a shard group hold the Lease together, so that neither CAAPH nor a manager without --sharding acts beside them.
  const identity = options.sharding ? shardGroup(options) : processIdentity(container.get(TOKENS.environment));
  log.debug('seeking leadership', { lease: `${options.leaseNamespace}/${options.leaseName}`, identity });
  return new LeaderElector({
    client: container.get(TOKENS.management).client,
    telemetry: container.get(TOKENS.telemetry),
    namespace: options.leaseNamespace,
    leaseName: options.leaseName,
    identity,
    shared: options.sharding,
    leaseDurationMs: options.leaseDurationMs,
    renewDeadlineMs: options.renewDeadlineMs,
    retryPeriodMs: options.retryPeriodMs,
  });
}
