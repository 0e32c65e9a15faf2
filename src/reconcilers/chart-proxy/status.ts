/** The status of a HelmChartProxy from what is known: pure, sorted, bounded (caaph §1.8, W4, W5, W31). */
import type {
  Condition,
  HelmChartProxy,
  HelmChartProxyStatus,
  HelmReleaseProxy,
  ObjectReference,
} from '../../api/index.ts';
import {
  NOT_YET_REPORTED,
  READY,
  RELEASE_IN_SYNC,
  aggregate,
  bounded,
  getCondition,
  nameList,
  removeConditions,
  setCondition,
  summarize,
} from '../conditions.ts';
import type { ConditionInput } from '../conditions.ts';
import { BARE_CLUSTER, isForeign } from '../cluster-names.ts';
import { CLUSTER_KIND } from '../resources.ts';
import type { PlacementOutcome } from './outcomes.ts';
import { inSyncCondition } from './sync-status.ts';

export const SPECS_UP_TO_DATE = 'HelmReleaseProxySpecsUpToDate';
export const PROXIES_READY = 'HelmReleaseProxiesReady';

const KIND = 'HelmReleaseProxy';
/** Messages of placements in one condition, and characters of each. */
const MAX_PLACEMENTS = 3;
const MAX_PLACEMENT_MESSAGE = 2048;

export interface StatusInput {
  readonly chartProxy: HelmChartProxy;
  /** Names of the selected Clusters, in any order. */
  readonly selected: readonly string[];
  /** `group/version` of Cluster. */
  readonly clusterApiVersion: string;
  /** What is wrong with the selector; the selection is then unknown. */
  readonly selectorProblem?: string;
  /** All HelmReleaseProxies of the object. */
  readonly releaseProxies: readonly HelmReleaseProxy[];
  /** By Cluster name. */
  readonly outcomes: ReadonlyMap<string, PlacementOutcome>;
  /** HelmReleaseProxies that nobody will look at (Cluster paused, handed off): their observedGeneration tells nothing. */
  readonly unobserved: ReadonlySet<HelmReleaseProxy>;
}

/** The whole status except observedGeneration, which the writer fills in. Parts that did not change keep their identity. */
export function chartProxyStatus(input: StatusInput, now: Date = new Date()): HelmChartProxyStatus {
  const { chartProxy, selected, releaseProxies } = input;
  const generation = chartProxy.metadata.generation;
  const readiness = notMadeYet(input) ?? { type: PROXIES_READY, ...aggregate(releaseProxies.map(readySource), KIND) };
  let conditions = setCondition(chartProxy.status?.conditions, specsUpToDate(input), generation, now);
  conditions = setCondition(conditions, readiness, generation, now);
  conditions = summarize(conditions, [SPECS_UP_TO_DATE, PROXIES_READY], generation, now);
  conditions = withSync(conditions, releaseProxies, generation, now);
  const matching =
    input.selectorProblem === undefined ? references(input, selected) : chartProxy.status?.matchingClusters;
  return { ...chartProxy.status, conditions, matchingClusters: matching };
}

/** Status while the HelmChartProxy waits for its HelmReleaseProxies to go: says for which, and what keeps them. */
export function deletionStatus(
  chartProxy: HelmChartProxy,
  remaining: readonly HelmReleaseProxy[],
  now: Date = new Date(),
): HelmChartProxyStatus {
  const generation = chartProxy.metadata.generation;
  const { status, message } = aggregate(remaining.map(readySource), KIND);
  const names = [...remaining]
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .map((proxy) => `${proxy.metadata.name} (cluster ${proxy.spec.clusterRef.name ?? '?'})`);
  const waiting = `waiting for ${remaining.length} ${remaining.length === 1 ? KIND : 'HelmReleaseProxies'} to be deleted: ${nameList(names)}`;
  const condition: ConditionInput = {
    type: PROXIES_READY,
    status: 'False',
    reason: 'HelmReleaseProxiesDeleting',
    message: status === 'True' ? waiting : `${waiting}\n${message}`,
  };
  let conditions = setCondition(chartProxy.status?.conditions, condition, generation, now);
  conditions = summarize(conditions, [SPECS_UP_TO_DATE, PROXIES_READY], generation, now);
  return { ...chartProxy.status, conditions: withSync(conditions, remaining, generation, now) };
}

/** Beside Ready, never part of it: an addon that somebody edited still runs. */
function withSync(
  conditions: Condition[],
  releaseProxies: readonly HelmReleaseProxy[],
  generation: number | undefined,
  now: Date,
): Condition[] {
  const inSync = inSyncCondition(releaseProxies);
  if (inSync === undefined) return removeConditions(conditions, [RELEASE_IN_SYNC]);
  return setCondition(conditions, inSync, generation, now);
}

/** Before the first placement nothing can be ready: a `kubectl wait` that comes early must not be told so. */
function notMadeYet(input: StatusInput): ConditionInput | undefined {
  if (input.releaseProxies.length > 0 || pending(input) === undefined) return undefined;
  const standing = getCondition(input.chartProxy.status?.conditions, PROXIES_READY);
  if (standing?.observedGeneration === input.chartProxy.metadata.generation) return standing;
  return {
    type: PROXIES_READY,
    status: 'Unknown',
    reason: NOT_YET_REPORTED,
    message: 'No HelmReleaseProxy was made yet',
  };
}

function readySource(proxy: HelmReleaseProxy): { name: string; condition?: Condition } {
  return { name: proxy.metadata.name, condition: getCondition(proxy.status?.conditions, READY) };
}

function references(input: StatusInput, selected: readonly string[]): ObjectReference[] | undefined {
  if (selected.length === 0) return undefined;
  const namespace = input.chartProxy.metadata.namespace;
  return [...selected].sort().map((name) => ({ ...kindOf(name, input.clusterApiVersion), name, namespace }));
}

/** The first rule that applies. */
function specsUpToDate(input: StatusInput): ConditionInput {
  if (input.selectorProblem !== undefined) return specs('False', 'ClusterSelectionFailed', input.selectorProblem);
  return failed(input) ?? reinstalling(input) ?? pending(input) ?? notObserved(input) ?? specs('True', 'UpToDate', '');
}

function failed({ outcomes }: StatusInput): ConditionInput | undefined {
  const all = sorted(outcomes).flatMap(([cluster, { outcome }]) =>
    outcome.state === 'failed' ? [{ cluster, reason: outcome.reason, message: outcome.message }] : [],
  );
  const [first] = all;
  return first === undefined ? undefined : specs('False', first.reason, several(all));
}

function reinstalling({ outcomes }: StatusInput): ConditionInput | undefined {
  const all = sorted(outcomes).flatMap(([cluster, { outcome }]) =>
    outcome.state === 'reinstalling' ? [{ cluster, message: outcome.message }] : [],
  );
  return all.length === 0 ? undefined : specs('False', 'HelmReleaseProxyReinstalling', several(all));
}

/** Selected Clusters whose placement has not been looked at for this generation. */
function pending({ chartProxy, selected, outcomes }: StatusInput): ConditionInput | undefined {
  const generation = chartProxy.metadata.generation ?? 0;
  const missing = selected.filter((name) => (outcomes.get(name)?.generation ?? -1) < generation).sort();
  if (missing.length === 0) return undefined;
  const standing = getCondition(chartProxy.status?.conditions, SPECS_UP_TO_DATE);
  // Already told for this generation: after a restart, or for a Cluster that has just come. No news until it is known.
  if (standing?.observedGeneration === generation) return standing;
  return specs(
    'False',
    'HelmReleaseProxySpecsUpdating',
    `${missing.length} of ${selected.length} clusters to be updated: ${nameList(missing)}`,
  );
}

/** HelmReleaseProxies whose newest spec their controller has not seen; the others are aggregated all the same (caaph W31). */
function notObserved({ releaseProxies, unobserved }: StatusInput): ConditionInput | undefined {
  const names = releaseProxies
    .filter((proxy) => proxy.metadata.generation !== proxy.status?.observedGeneration && !unobserved.has(proxy))
    .map((proxy) => `'${proxy.metadata.name}'`)
    .sort();
  if (names.length === 0) return undefined;
  const message =
    names.length === 1
      ? `Helm release proxy ${names.join('')} is not updated yet`
      : `Helm release proxies ${nameList(names)} are not updated yet`;
  return specs('False', 'HelmReleaseProxySpecsUpdating', message);
}

/** One message as it is; several as a list of a few, with the number of the rest. */
function several(all: readonly { readonly message: string }[]): string {
  const shown = all.slice(0, MAX_PLACEMENTS).map(({ message }) => bounded(message, MAX_PLACEMENT_MESSAGE));
  if (all.length === 1) return shown.join('');
  const rest = all.length - shown.length;
  const more = rest === 0 ? [] : [`And ${rest} more ${rest === 1 ? 'cluster' : 'clusters'}`];
  return [...shown.map((message) => `* ${message.replaceAll('\n', ' ')}`), ...more].join('\n');
}

function sorted(outcomes: ReadonlyMap<string, PlacementOutcome>): [string, PlacementOutcome][] {
  return [...outcomes].sort(([a], [b]) => (a < b ? -1 : 1));
}

function specs(status: Condition['status'], reason: string, message: string): ConditionInput {
  return { type: SPECS_UP_TO_DATE, status, reason, message };
}

/** Of a cluster of another provider no kind says what stands for it: its name does. */
function kindOf(name: string, clusterApiVersion: string): { apiVersion: string; kind: string } {
  return isForeign(name) ? BARE_CLUSTER : { apiVersion: clusterApiVersion, kind: CLUSTER_KIND };
}
