/** The controller `helmreleaseproxy`: HelmReleaseProxy → release (DESIGN §3, §4). Read reconciler.ts first, then release-run.ts. */
import type { HelmReleaseProxy } from '../../api/index.ts';
import { Controller } from '../../runtime/index.ts';
import type { Request, Runnable } from '../../runtime/index.ts';
import type { ManagementCaches } from '../shared.ts';
import type { StatusWriter } from '../status-writer.ts';
import type { ReconcilerDependencies } from '../types.ts';
import type { ReleaseLocks } from '../release-locks.ts';
import type { ReleaseMemories } from './memory.ts';
import { helmOptions, waits } from './options.ts';
import type { Parts, ReleaseCaches, ReleaseTools } from './parts.ts';
import { BY_CLUSTER, BY_RELEASE, byCluster, byRelease, isGone } from './proxy.ts';
import type { ReleaseReaders } from './readers.ts';
import { ReleaseProxyReconciler } from './reconciler.ts';
import { ReleaseNames } from './release-name.ts';
import { RepositoryAccess } from './repository-access.ts';
import { ReleaseProxySources } from './sources.ts';
import { StrategyRegistry } from './strategies.ts';

export type { ReleaseTools } from './parts.ts';

/** As CAAPH's controller, whose name stands in metrics and dashboards. */
const CONTROLLER_NAME = 'helmreleaseproxy';

/** Work that waits for workloads has a pool of its own, so that `wait` cannot hold the fleet (caaph W28). */
const WAIT_LANE = 'wait';

/**
 * Limit of one pass, milliseconds. Every step in it has its own: Helm's is the user's, who may ask for hours, so this one
 * only ends what nothing else ended.
 */
const PASS_LIMIT_MS = 24 * 3_600_000;

/** Ceiling of the first delay after a failure, milliseconds: a failed operation costs half a CPU second and a revision of the history. */
const BACKOFF_BASE_MS = 2_000;

/** What this controller has in common with the chart-proxy half and with drift. */
export interface ReleaseProxyShared {
  readonly caches: Pick<ManagementCaches, 'ready'>;
  /** One for all, so that each sees the others' writes at once. */
  readonly writer: StatusWriter<HelmReleaseProxy>;
  readonly readers: ReleaseReaders;
  readonly memories: ReleaseMemories;
  readonly locks: ReleaseLocks;
  readonly tools: ReleaseTools;
}

/** The controller; it begins when the management cluster's caches are complete. Throws when two strategies have one name. */
export function createReleaseProxyController(deps: ReconcilerDependencies, shared: ReleaseProxyShared): Runnable {
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
  readonly shared: ReleaseProxyShared;
  readonly strategies: StrategyRegistry;
  readonly caches: ReleaseCaches;
  /** Told the controller while it runs, for those who look for a fault. */
  readonly made: (controller: Controller | undefined) => void;
}

async function runController(composition: Composition, signal: AbortSignal): Promise<void> {
  const { deps, shared, strategies, caches, made } = composition;
  const { writer, readers, memories, locks, tools } = shared;
  const parts: Parts = {
    deps,
    caches,
    writer,
    strategies,
    access: new RepositoryAccess(deps.management.client, deps.options),
    names: new ReleaseNames(),
    memories,
    locks,
    readers,
    tools,
  };
  const { releaseProxyConcurrency, waitConcurrency } = deps.options;
  const controller = new Controller({
    name: CONTROLLER_NAME,
    reconciler: new ReleaseProxyReconciler(parts),
    telemetry: deps.telemetry,
    fleet: deps.fleet,
    ...(deps.sharding && { sharding: { ...deps.sharding, isMoot: (request) => isGone(caches, request) } }),
    graceMs: deps.options.graceMs,
    backoffBaseMs: BACKOFF_BASE_MS,
    lane: (request) => laneOf(caches, request),
    lanes: {
      default: { concurrency: releaseProxyConcurrency, limitMs: PASS_LIMIT_MS },
      [WAIT_LANE]: { concurrency: waitConcurrency, limitMs: PASS_LIMIT_MS },
    },
  });
  const sources = new ReleaseProxySources(parts, controller);
  const deaf = sources.listen();
  made(controller);
  try {
    await controller.run(signal);
  } finally {
    made(undefined);
    deaf();
    readers.close();
  }
}

function laneOf(caches: ReleaseCaches, request: Request): string {
  const proxy = caches.releaseProxies.get(request.namespace, request.name);
  return proxy !== undefined && waits(helmOptions(proxy.spec.options)) ? WAIT_LANE : 'default';
}
