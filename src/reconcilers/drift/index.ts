/**
 * The controller `drift`: objects of deployed releases → as their manifest has them, or told (DESIGN §5). Read reconciler.ts
 * first, then verifying.ts and correcting.ts; what is known between passes is in session.ts.
 */
import type { HelmReleaseProxy } from '../../api/index.ts';
import { Controller } from '../../runtime/index.ts';
import type { Runnable } from '../../runtime/index.ts';
import type { ReleaseLocks } from '../release-locks.ts';
import type { ReleaseMemories } from '../release-proxy/memory.ts';
import type { ReleaseCaches } from '../release-proxy/parts.ts';
import { BY_CLUSTER, BY_RELEASE, byCluster, byRelease, isGone } from '../release-proxy/proxy.ts';
import type { ReleaseReaders } from '../release-proxy/readers.ts';
import { StrategyRegistry } from '../release-proxy/strategies.ts';
import type { ManagementCaches } from '../shared.ts';
import type { StatusWriter } from '../status-writer.ts';
import type { ReconcilerDependencies } from '../types.ts';
import { Inventories } from './inventories.ts';
import { DriftMetrics } from './metrics.ts';
import { defaultDriftTools } from './parts.ts';
import type { DriftParts } from './parts.ts';
import { Policies } from './policy.ts';
import { DriftReconciler } from './reconciler.ts';
import { RequestGate } from './request-gate.ts';
import { Sessions } from './sessions.ts';
import { DriftSources } from './sources.ts';
import { Trackers } from './trackers.ts';

export { policyOf } from './policy.ts';
export type { DriftDefaults, DriftPolicy } from './policy.ts';

const CONTROLLER_NAME = 'drift';

/** Limit of one pass, milliseconds. Sweeps end by themselves; this one ends what waits for a slow server. */
const PASS_LIMIT_MS = 15 * 60_000;

/** What this controller has in common with the others. */
export interface DriftShared {
  readonly caches: Pick<ManagementCaches, 'ready'>;
  /** One for all, so that each sees the others' writes at once. */
  readonly writer: StatusWriter<HelmReleaseProxy>;
  readonly readers: ReleaseReaders;
  readonly memories: ReleaseMemories;
  readonly locks: ReleaseLocks;
}

/** The controller; it begins when the management cluster's caches are complete. Throws when two strategies have one name. */
export function createDriftController(deps: ReconcilerDependencies, shared: DriftShared): Runnable {
  const strategies = new StrategyRegistry(deps.strategies);
  let running: Controller | undefined;
  return {
    name: CONTROLLER_NAME,
    debug: () => running?.debug() ?? [],
    run: async (signal) => {
      const caches = await shared.caches.ready(signal);
      caches.releaseProxies.addIndex(BY_CLUSTER, byCluster);
      caches.releaseProxies.addIndex(BY_RELEASE, byRelease);
      const made = (controller: Controller | undefined): void => {
        running = controller;
      };
      await runController({ deps, shared, strategies, caches, made }, signal);
    },
  };
}

interface Composition {
  readonly deps: ReconcilerDependencies;
  readonly shared: DriftShared;
  readonly strategies: StrategyRegistry;
  readonly caches: ReleaseCaches;
  /** Told the controller while it runs, for those who look for a fault. */
  readonly made: (controller: Controller | undefined) => void;
}

async function runController(
  { deps, shared, strategies, caches, made }: Composition,
  signal: AbortSignal,
): Promise<void> {
  const { driftDefault, helmManagers, driftRetryDelaysMs, driftConcurrency, graceMs } = deps.options;
  const { telemetry, fleet } = deps;
  const tools = defaultDriftTools(telemetry, helmManagers);
  // Trackers are made by passes, when everything below is made.
  const trackers = new Trackers((cluster) => tools.createTracker(cluster, (uid) => sources.stirred(uid)));
  const sessions = new Sessions(trackers, driftRetryDelaysMs);
  const { writer, readers, memories, locks } = shared;
  const parts: DriftParts = {
    deps,
    caches,
    writer,
    strategies,
    readers,
    memories,
    locks,
    policies: new Policies({ mode: driftDefault, helmManagers }),
    inventories: new Inventories(),
    sessions,
    gate: new RequestGate(),
    metrics: new DriftMetrics(telemetry.metrics),
    tools,
    later: (request, afterMs) => controller.enqueue(request, { priority: 'resync', afterMs }),
  };
  const controller = new Controller({
    name: CONTROLLER_NAME,
    reconciler: new DriftReconciler(parts),
    telemetry,
    fleet,
    ...(deps.sharding && { sharding: { ...deps.sharding, isMoot: (request) => isGone(caches, request) } }),
    graceMs,
    lanes: { default: { concurrency: driftConcurrency, limitMs: PASS_LIMIT_MS } },
  });
  const sources = new DriftSources(parts, controller);
  const deaf = sources.listen();
  made(controller);
  try {
    await controller.run(signal);
  } finally {
    made(undefined);
    deaf();
    sessions.closeAll();
    readers.close();
  }
}
