/** How many of a HelmChartProxy's clusters drift, from what their HelmReleaseProxies say. Pure and bounded. */
import type { Condition, HelmReleaseProxy } from '../../api/index.ts';
import { RELEASE_IN_SYNC, getCondition } from '../conditions.ts';
import type { ConditionInput } from '../conditions.ts';

/** Names of clusters in the message: enough to begin with; all stand in the HelmReleaseProxies. */
const MAX_NAMES = 5;

/** The worst first: it gives the reason. */
const REASONS = ['DriftNotConverging', 'DriftCorrectionFailed', 'DriftDetected'] as const;

/** undefined while drift detection is on for none of them: then the HelmChartProxy says nothing of it either. */
export function inSyncCondition(releaseProxies: readonly HelmReleaseProxy[]): ConditionInput | undefined {
  const known = releaseProxies.flatMap((proxy) => {
    const condition = getCondition(proxy.status?.conditions, RELEASE_IN_SYNC);
    return condition === undefined ? [] : [{ cluster: clusterOf(proxy), condition }];
  });
  if (known.length === 0) return undefined;
  const drifting = known.filter(({ condition }) => condition.status === 'False');
  const type = RELEASE_IN_SYNC;
  if (drifting.length > 0) {
    const message = `${drifting.length} of ${known.length} clusters drift: ${names(drifting)}`;
    return { type, status: 'False', reason: worst(drifting.map(({ condition }) => condition)), message };
  }
  const unknown = known.filter(({ condition }) => condition.status !== 'True');
  if (unknown.length > 0) {
    const message = `${unknown.length} of ${known.length} clusters not verified yet: ${names(unknown)}`;
    return { type, status: 'Unknown', reason: 'DriftUnverified', message };
  }
  return { type, status: 'True', reason: 'InSync', message: `${known.length} of ${known.length} clusters are in sync` };
}

function worst(conditions: readonly Condition[]): string {
  return REASONS.find((reason) => conditions.some((condition) => condition.reason === reason)) ?? 'DriftDetected';
}

function names(of: readonly { readonly cluster: string }[]): string {
  const sorted = of.map(({ cluster }) => cluster).sort();
  const rest = sorted.length - MAX_NAMES;
  return sorted.slice(0, MAX_NAMES).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}

function clusterOf(proxy: HelmReleaseProxy): string {
  return proxy.spec.clusterRef.name ?? proxy.metadata.name;
}
