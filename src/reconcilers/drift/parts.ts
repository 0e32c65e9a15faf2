/** What the passes of this controller work with; made once, by index.ts. */
import type { HelmReleaseProxy } from '../../api/index.ts';
import { ClusterTracker, correctableFields, correctObject, verifyObject } from '../../drift/index.ts';
import type { Cluster, Request } from '../../runtime/index.ts';
import type { Telemetry } from '../../telemetry/index.ts';
import type { ReleaseLocks } from '../release-locks.ts';
import type { ReleaseMemories } from '../release-proxy/memory.ts';
import type { ReleaseCaches } from '../release-proxy/parts.ts';
import type { ReleaseReaders } from '../release-proxy/readers.ts';
import type { StrategyRegistry } from '../release-proxy/strategies.ts';
import type { StatusWriter } from '../status-writer.ts';
import type { ReconcilerDependencies } from '../types.ts';
import type { Inventories } from './inventories.ts';
import type { DriftMetrics } from './metrics.ts';
import type { Policies } from './policy.ts';
import type { RequestGate } from './request-gate.ts';
import type { Sessions } from './sessions.ts';
import type { Tracker } from './trackers.ts';

/** The room drift, and the clock; replaced in tests. */
export interface DriftTools {
  /** `onStir` is told the uid of the object whose release has something to look at. */
  readonly createTracker: (cluster: Cluster, onStir: (uid: string) => void) => Tracker;
  readonly verify: typeof verifyObject;
  readonly correct: typeof correctObject;
  readonly correctable: typeof correctableFields;
  readonly now: () => number;
  /** 0 to 1, for jitter. */
  readonly random: () => number;
}

export interface DriftParts {
  readonly deps: Pick<ReconcilerDependencies, 'fleet' | 'events' | 'telemetry' | 'options'>;
  readonly caches: ReleaseCaches;
  readonly writer: StatusWriter<HelmReleaseProxy>;
  readonly strategies: StrategyRegistry;
  readonly readers: ReleaseReaders;
  readonly memories: ReleaseMemories;
  readonly locks: ReleaseLocks;
  readonly policies: Policies;
  readonly inventories: Pick<Inventories, 'of' | 'renew'>;
  readonly sessions: Sessions;
  readonly gate: RequestGate;
  readonly metrics: DriftMetrics;
  readonly tools: DriftTools;
  /** Has a request looked at again after so many milliseconds. */
  readonly later: (request: Request, afterMs: number) => void;
}

/** Limit of one request to a workload cluster, milliseconds: an admission webhook may take 30 s of it. */
export const CALL_LIMIT_MS = 40_000;

/** Who calls: index.ts; tests bring their own. */
export function defaultDriftTools(telemetry: Telemetry, helmManagers: readonly string[]): DriftTools {
  const managers = new Set(helmManagers);
  return {
    createTracker: ({ name, watches, discovery }, onStir) =>
      new ClusterTracker({ cluster: name, watches, discovery, telemetry, helmManagers: managers, onStir }),
    verify: verifyObject,
    correct: correctObject,
    correctable: correctableFields,
    now: () => Date.now(),
    random: () => Math.random(),
  };
}
