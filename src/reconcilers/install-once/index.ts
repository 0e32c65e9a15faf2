/** The strategy InstallOnce: a release is put there and then left to others for good (caaph §1.12, W12). */
import { INSTALLED_ANNOTATION } from '../../api/index.ts';
import type { Strategy } from '../types.ts';

/**
 * Retried until the release is deployed once; from then on the annotation stands and nothing is watched, read, changed or
 * deleted on the cluster for it. A cluster recreated under the same name gets another HelmReleaseProxy (the chart-proxy
 * side replaces it: only there is the Cluster's uid at hand), hence without the annotation; `clusterctl move` carries the
 * annotation along but no status, so nothing else may decide.
 */
export const installOnceStrategy: Strategy = {
  name: 'InstallOnce',
  handedOff: (proxy) => proxy.metadata.annotations?.[INSTALLED_ANNOTATION] !== undefined,
  reconcile: (context) => context.installOrUpgrade(),
  uninstallsOnDelete: false,
  followsSelector: false,
};
