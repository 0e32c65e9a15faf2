/** What to do for one placement: a pure function; decide.test.ts is its table. */
import { DELETE_FOR_MOVE_ANNOTATION, PAUSED_ANNOTATION, WORKLOAD_CLUSTER_UID_ANNOTATION } from '../../api/index.ts';
import type { HelmChartProxy, HelmReleaseProxy } from '../../api/index.ts';
import type { CapiCluster } from '../shared.ts';
import type { Strategy } from '../types.ts';
import { immutableChanges } from './desired.ts';

export interface Observed {
  readonly chartProxy: HelmChartProxy;
  /** Undefined: there is no such Cluster, by a list that is complete. */
  readonly cluster: CapiCluster | undefined;
  /** It is not there, and nobody knows yet whether it is gone. */
  readonly unknown?: boolean;
  /** Does the selector match it? */
  readonly selected: boolean;
  /** The HelmReleaseProxy of this placement, if there is one. */
  readonly proxy: HelmReleaseProxy | undefined;
  /** The one that the HelmChartProxy names; undefined when nobody bound it. */
  readonly strategy: Strategy | undefined;
  /** UID of the workload cluster, when it is engaged and may be asked. */
  readonly workloadUid: string | undefined;
  /** Is the workload cluster engaged (its uid is then as known as it will be)? */
  readonly engaged: boolean;
}

export type Action =
  /** Nothing to do, or nothing that we may do. */
  | { readonly type: 'none'; readonly why: string }
  /** Something runs whose end is an event: a deletion, a cluster's engagement (`forIdentity`: it must say who it is). */
  | { readonly type: 'wait'; readonly why: string; readonly reinstalling: boolean; readonly forIdentity?: true }
  /** The HelmReleaseProxy goes. `reinstall`: another takes its place once it is gone. */
  | { readonly type: 'delete'; readonly why: string; readonly reinstall: boolean }
  /** Handed off: only the uid of the Cluster object is noted, because `clusterctl move` gave it a new one, or CAAPH noted none. */
  | { readonly type: 'adopt' }
  /** Values are needed; then it is created. */
  | { readonly type: 'create' }
  /** Values are needed; then what differs is written, if anything. */
  | { readonly type: 'update' };

/** The first rule that applies, from what forbids everything to what is usual. */
export function decide(observed: Observed): Action {
  return forbidden(observed) ?? leaving(observed) ?? staying(observed);
}

/** May anything be written or deleted for this placement? */
export function mayAct(observed: Observed): boolean {
  return forbidden(observed) === undefined;
}

/** Is the object paused by its annotation? Its presence counts, whatever its value. */
export function isPaused(object: { metadata: { annotations?: Record<string, string> } }): boolean {
  return object.metadata.annotations?.[PAUSED_ANNOTATION] !== undefined;
}

/** Is clusterctl about to delete it because it lives on in another management cluster? */
export function isMovedAway(object: { metadata: { annotations?: Record<string, string> } }): boolean {
  return object.metadata.annotations?.[DELETE_FOR_MOVE_ANNOTATION] !== undefined;
}

/** What forbids to act at all (caaph W13: paused means that nothing is written or deleted). */
function forbidden({ chartProxy, cluster, proxy }: Observed): Action | undefined {
  if (isPaused(chartProxy)) return none('the HelmChartProxy is paused');
  if (isMovedAway(chartProxy) || (proxy !== undefined && isMovedAway(proxy))) return none('it is being moved away');
  if (chartProxy.metadata.deletionTimestamp !== undefined) return none('the HelmChartProxy is being deleted');
  if (cluster?.spec?.paused === true) return none('the Cluster is paused');
  return undefined;
}

/** Reasons for a HelmReleaseProxy to go, or for none to come. */
function leaving({ cluster, unknown, selected, proxy, strategy }: Observed): Action | undefined {
  const clusterStays = !isDeleting(cluster);
  if (proxy !== undefined && isDeleting(proxy)) {
    return { type: 'wait', why: 'its HelmReleaseProxy is being deleted', reinstalling: selected && clusterStays };
  }
  if (cluster === undefined) return missing(proxy, unknown);
  if (!selected && strategy?.followsSelector === false) return none('the strategy does not follow the selector');
  if (!selected) return removal(proxy, 'the Cluster is not selected');
  return clusterStays ? undefined : none('the Cluster is being deleted');
}

/** The Cluster is not there. */
function missing(proxy: HelmReleaseProxy | undefined, unknown: boolean | undefined): Action {
  return unknown === true
    ? none('its provider has not told of its clusters yet')
    : removal(proxy, 'the Cluster is gone');
}

/** Being deleted, or gone. */
function isDeleting(object: { metadata: { deletionTimestamp?: string } } | undefined): boolean {
  return object === undefined || object.metadata.deletionTimestamp !== undefined;
}

/** The Cluster is there, selected and to be served. */
function staying(observed: Observed): Action {
  const { chartProxy, proxy, strategy } = observed;
  if (proxy === undefined) return { type: 'create' };
  if (strategy?.handedOff(proxy) === true) return handedOff(observed, proxy);
  const changed = immutableChanges(chartProxy, proxy);
  if (changed.length > 0) return { type: 'delete', why: `${changed.join(', ')} changed`, reinstall: true };
  return { type: 'update' };
}

/**
 * Handed off: nothing, unless the Cluster object is another than the one noted. Then it matters whether the cluster behind
 * it is another too (recreated under the same name: a new cluster, caaph W12) or the same (`clusterctl move`).
 */
function handedOff(observed: Observed, proxy: HelmReleaseProxy): Action {
  const noted = proxy.spec.clusterRef.uid ?? '';
  if (noted === observed.cluster?.metadata.uid) return none('it is handed off');
  // CAAPH notes no uid, and no more can be known.
  if (noted === '') return { type: 'adopt' };
  switch (sameCluster(observed, proxy)) {
    case 'same':
      return { type: 'adopt' };
    case 'another':
      return { type: 'delete', why: 'the Cluster was recreated under the same name', reinstall: true };
    case 'unknown':
      return {
        type: 'wait',
        why: 'the cluster must be engaged to tell whether it is the same',
        reinstalling: false,
        forIdentity: true,
      };
  }
}

/** By the uid of the workload cluster; where none was noted or none can be read, by age. */
function sameCluster(observed: Observed, proxy: HelmReleaseProxy): 'same' | 'another' | 'unknown' {
  const noted = notedWorkload(proxy);
  if (noted !== undefined && observed.workloadUid !== undefined)
    return noted === observed.workloadUid ? 'same' : 'another';
  if (noted !== undefined && !observed.engaged) return 'unknown';
  return isYounger(observed.cluster, proxy) ? 'another' : 'same';
}

/** The annotation outlives `clusterctl move`, status does not. */
function notedWorkload(proxy: HelmReleaseProxy): string | undefined {
  const noted = proxy.metadata.annotations?.[WORKLOAD_CLUSTER_UID_ANNOTATION] ?? proxy.status?.clusterUID ?? '';
  return noted === '' ? undefined : noted;
}

/** `clusterctl move` creates a Cluster before what depends on it; a recreated one is younger than what was there before. */
function isYounger(cluster: CapiCluster | undefined, proxy: HelmReleaseProxy): boolean {
  return (cluster?.metadata.creationTimestamp ?? '') > (proxy.metadata.creationTimestamp ?? '');
}

function none(why: string): Action {
  return { type: 'none', why };
}

function removal(proxy: HelmReleaseProxy | undefined, why: string): Action {
  return proxy === undefined ? none(why) : { type: 'delete', why, reinstall: false };
}
