import type { Condition, HelmReleaseProxy } from '../../api/index.ts';
import { HCP_NAME_ANNOTATION, HCP_NAME_LABEL } from '../../api/index.ts';
import { spelledKey } from '../inspect/objects.ts';
import { clusterKeyOf, releaseNamespaceOf } from '../../reconcilers/release-proxy/proxy.ts';

/** One release, as its HelmReleaseProxy tells. */
export interface ReleaseNode {
  readonly helmReleaseProxy: string;
  readonly helmChartProxy: string | undefined;
  readonly cluster: string;
  readonly namespace: string;
  /** '' while it is still to be generated. */
  readonly release: string;
  readonly chart: string;
  readonly strategy: string;
  /** Helm's word; 'none' while there is none. */
  readonly status: string;
  readonly revision: number | undefined;
  readonly healthy: boolean;
  /** Why it is not healthy, or what it waits for; '' when there is nothing to say. */
  readonly reason: string;
}

const READY = 'Ready';
const IN_SYNC = 'ReleaseInSync';
/** Of a message in one line. */
const MAX_MESSAGE = 200;

export function releaseNode(proxy: HelmReleaseProxy): ReleaseNode {
  const { spec, status } = proxy;
  const { namespace, name } = clusterKeyOf(proxy);
  const reason = whyUnhealthy(proxy);
  return {
    helmReleaseProxy: spelledKey(proxy),
    helmChartProxy: ownerOf(proxy),
    cluster: `${namespace}/${name}`,
    namespace: releaseNamespaceOf(proxy),
    release: spec.releaseName ?? '',
    chart: chartOf(proxy),
    strategy: strategyOf(proxy),
    status: status?.status ?? 'none',
    revision: status?.revision,
    healthy: reason === undefined,
    reason: short(reason ?? conditionOf(proxy, READY)?.message ?? ''),
  };
}

function ownerOf({ metadata: { annotations, labels } }: HelmReleaseProxy): string | undefined {
  return annotations?.[HCP_NAME_ANNOTATION] ?? labels?.[HCP_NAME_LABEL];
}

function strategyOf({ spec }: HelmReleaseProxy): string {
  const name = spec.reconcileStrategy ?? '';
  return name === '' ? 'Continuous' : name;
}

function chartOf({ spec, status }: HelmReleaseProxy): string {
  const version = status?.chartVersion ?? spec.version ?? '';
  return version === '' ? spec.chartName : `${spec.chartName}-${version}`;
}

/** undefined: it is as it should be, and its controller has seen its newest spec. */
function whyUnhealthy(proxy: HelmReleaseProxy): string | undefined {
  const { metadata, status } = proxy;
  if (metadata.deletionTimestamp !== undefined) return `being deleted since ${metadata.deletionTimestamp}`;
  const ready = conditionOf(proxy, READY);
  if (ready === undefined) return 'no controller has looked at it yet';
  if (ready.status !== 'True') return told(ready);
  const inSync = conditionOf(proxy, IN_SYNC);
  if (inSync?.status === 'False') return told(inSync);
  const isBehind = status?.observedGeneration !== undefined && status.observedGeneration !== metadata.generation;
  return isBehind ? 'its newest spec is not worked on yet' : undefined;
}

export function conditionOf(
  object: { readonly status?: { readonly conditions?: readonly Condition[] } },
  type: string,
): Condition | undefined {
  return object.status?.conditions?.find((condition) => condition.type === type);
}

export function told({ reason, message }: Condition): string {
  return [reason, message].filter(Boolean).join(': ');
}

function short(text: string): string {
  return text.length <= MAX_MESSAGE ? text : `${text.slice(0, MAX_MESSAGE - 1)}…`;
}
