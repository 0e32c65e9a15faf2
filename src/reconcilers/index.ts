/**
 * The room `reconcilers`: what becomes of HelmChartProxies and HelmReleaseProxies. A newcomer reads `types.ts` (what is
 * needed from below, and the contract of a strategy), then `chart-proxy/`, `release-proxy/` and `drift/`.
 */
import type { HelmReleaseProxy } from '../api/index.ts';
import type { Runnable } from '../runtime/index.ts';
import { ChartProxyControllers } from './chart-proxy/index.ts';
import { createDriftController } from './drift/index.ts';
import { ReleaseLocks } from './release-locks.ts';
import { createReleaseProxyController } from './release-proxy/index.ts';
import { ReleaseMemories } from './release-proxy/memory.ts';
import { ReleaseReaders } from './release-proxy/readers.ts';
import { defaultTools } from './release-proxy/tools.ts';
import { HRP } from './resources.ts';
import { ManagementCaches } from './shared.ts';
import { StatusWriter } from './status-writer.ts';
import type { ReconcilerDependencies } from './types.ts';

export type * from './types.ts';
export { continuousStrategy } from './install/index.ts';
export { installOnceStrategy } from './install-once/index.ts';
export { ReconcilerError } from './errors.ts';
export type { ReconcilerErrorClass } from './errors.ts';
export { getCondition } from './conditions.ts';

/**
 * Everything that reconciles, for the manager to run: the caches of the management cluster first, then the controllers,
 * which wait for them. Nothing happens before `run`.
 */
export function createReconcilers(deps: ReconcilerDependencies): Runnable[] {
  const caches = new ManagementCaches(deps.management, {
    namespace: deps.options.namespace,
    log: deps.telemetry.log,
    ...(deps.records && { records: deps.records }),
  });
  const tools = defaultTools(deps.telemetry);
  const shared = {
    caches,
    writer: new StatusWriter<HelmReleaseProxy>(deps.management.client, HRP),
    readers: new ReleaseReaders(tools.createReader),
    memories: new ReleaseMemories(),
    locks: new ReleaseLocks(),
    tools,
  };
  return [
    caches,
    new ChartProxyControllers(deps, shared),
    createReleaseProxyController(deps, shared),
    createDriftController(deps, shared),
  ];
}
