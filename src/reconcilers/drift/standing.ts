/** Is an object's release one that is looked at? Without the cluster, and without compiling any rule. */
import type { HelmReleaseProxy } from '../../api/index.ts';
import type { Request } from '../../runtime/index.ts';
import {
  clusterKeyOf,
  clusterNameOf,
  isDeleting,
  isPaused,
  namesCluster,
  passesFilter,
} from '../release-proxy/proxy.ts';
import type { DriftParts } from './parts.ts';

export type Standing =
  /** Its objects are watched. */
  | 'watched'
  /** Not touched while it is paused, or goes. */
  | 'left'
  /** Drift detection is off, by its spec or its strategy. */
  | 'off';

type Parts = Pick<DriftParts, 'caches' | 'policies' | 'strategies'>;

/** Is the object this manager's, and the request about it as it is now? */
export function isOurs(parts: Pick<DriftParts, 'deps'>, proxy: HelmReleaseProxy, request: Request): boolean {
  return (
    namesCluster(proxy) &&
    clusterNameOf(proxy) === request.cluster &&
    passesFilter(proxy, parts.deps.options.watchFilter)
  );
}

export function standingOf(parts: Parts, proxy: HelmReleaseProxy): Standing {
  if (isDeleting(proxy) || isPaused(proxy)) return 'left';
  const { namespace, name } = clusterKeyOf(proxy);
  if (parts.caches.clusters.get(namespace, name)?.spec?.paused === true) return 'left';
  const strategy = parts.strategies.find(proxy);
  if (strategy?.detectsDrift !== true || strategy.handedOff(proxy)) return 'off';
  return parts.policies.modeOf(proxy.spec.driftDetection) === 'Disabled' ? 'off' : 'watched';
}
