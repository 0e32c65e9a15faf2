/** How an object must stand before Helm runs for it. */
import { HRP_FINALIZER, RELEASE_NAME_GENERATED_ANNOTATION } from '../../api/index.ts';
import type { HelmReleaseProxy, ReleaseOperation } from '../../api/index.ts';
import { getCondition } from '../conditions.ts';
import { isDeleting } from './proxy.ts';
import { CLUSTER_AVAILABLE, clusterAvailable, withFindings } from './proxy-conditions.ts';

export interface Preparation {
  /** The release's name, where the object leaves it to us. */
  readonly generated: string | undefined;
  readonly operation: ReleaseOperation;
  readonly now: Date;
  readonly clusterUID: string | undefined;
}

/**
 * The object with finalizer, name and operation written down (caaph W16, W17). Pure; one that is going stays as it is. What
 * the status says of another cluster of the same name is dropped with the first operation on this one.
 */
export function prepared(current: HelmReleaseProxy, preparation: Preparation): HelmReleaseProxy {
  if (isDeleting(current)) return current;
  const { generated, operation, now, clusterUID } = preparation;
  const recordedUID = current.status?.clusterUID;
  const another = recordedUID !== undefined && clusterUID !== undefined && recordedUID !== clusterUID;
  // An operation that waits takes minutes: meanwhile the object says at least that its cluster is there.
  const isTold = getCondition(current.status?.conditions, CLUSTER_AVAILABLE)?.status === 'True';
  return withFindings(
    withFinalizer(generated === undefined ? current : withName(current, generated)),
    { operation, clusterUID, conditions: isTold ? [] : [clusterAvailable], release: another ? null : undefined },
    now,
  );
}

function withName(proxy: HelmReleaseProxy, releaseName: string): HelmReleaseProxy {
  if ((proxy.spec.releaseName ?? '') !== '') return proxy;
  const annotations = { ...proxy.metadata.annotations, [RELEASE_NAME_GENERATED_ANNOTATION]: 'true' };
  return { ...proxy, metadata: { ...proxy.metadata, annotations }, spec: { ...proxy.spec, releaseName } };
}

/** The object with our finalizer, unless it is going already: the server takes no new finalizer then. */
export function withFinalizer(proxy: HelmReleaseProxy): HelmReleaseProxy {
  const finalizers = proxy.metadata.finalizers ?? [];
  if (isDeleting(proxy) || finalizers.includes(HRP_FINALIZER)) return proxy;
  return { ...proxy, metadata: { ...proxy.metadata, finalizers: [...finalizers, HRP_FINALIZER] } };
}
