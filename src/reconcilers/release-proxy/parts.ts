/** What the passes of this controller work with; made once, by index.ts. */
import type { HelmReleaseProxy } from '../../api/index.ts';
import type { ReleaseKey, ReleaseReader } from '../../helm/index.ts';
import type { Cluster, ClusterName } from '../../runtime/index.ts';
import type { ReleaseLocks } from '../release-locks.ts';
import type { Caches } from '../shared.ts';
import type { StatusWriter } from '../status-writer.ts';
import type { ReconcilerDependencies } from '../types.ts';
import type { ReleaseMemories } from './memory.ts';
import { BY_CLUSTER, BY_RELEASE, releaseIndexKey } from './proxy.ts';
import type { ReleaseReaders } from './readers.ts';
import type { ReleaseNames } from './release-name.ts';
import type { RepositoryAccess } from './repository-access.ts';
import type { StrategyRegistry } from './strategies.ts';

/** Everything of the room helm that is not in ReconcilerDependencies, and the clock; replaced in tests. */
export interface ReleaseTools {
  readonly createReader: (cluster: Cluster) => ReleaseReader;
  /** Canonical digest of values as an object has them (YAML text). Throws a HelmError (ValuesInvalid). */
  readonly valuesDigest: (yaml: string) => string;
  readonly now: () => number;
  /** 0 to 1, for jitter. */
  readonly random: () => number;
}

export type ReleaseCaches = Pick<Caches, 'releaseProxies' | 'clusters' | 'clusterResource'>;

export interface Parts {
  readonly deps: Pick<
    ReconcilerDependencies,
    'management' | 'fleet' | 'engine' | 'charts' | 'events' | 'telemetry' | 'options' | 'sharding'
  >;
  readonly caches: ReleaseCaches;
  readonly writer: StatusWriter<HelmReleaseProxy>;
  readonly strategies: StrategyRegistry;
  readonly access: RepositoryAccess;
  readonly names: ReleaseNames;
  readonly memories: ReleaseMemories;
  /** Shared with who corrects drift. */
  readonly locks: ReleaseLocks;
  readonly readers: ReleaseReaders;
  readonly tools: ReleaseTools;
}

/** The objects that name a release of a cluster. */
export function claimsOf(caches: ReleaseCaches, cluster: ClusterName, key: ReleaseKey): HelmReleaseProxy[] {
  return caches.releaseProxies.byIndex(BY_RELEASE, releaseIndexKey(cluster, key));
}

export function proxiesOf(caches: ReleaseCaches, cluster: ClusterName): HelmReleaseProxy[] {
  return caches.releaseProxies.byIndex(BY_CLUSTER, cluster);
}

/** Closes the cluster's reader when no object is left that needs it: what is handed off is not watched (caaph W12). */
export function settleReader(parts: Parts, cluster: ClusterName, without?: string): void {
  const needed = proxiesOf(parts.caches, cluster).some(
    (proxy) => proxy.metadata.uid !== without && parts.strategies.find(proxy)?.handedOff(proxy) !== true,
  );
  if (!needed) parts.readers.release(cluster);
}
