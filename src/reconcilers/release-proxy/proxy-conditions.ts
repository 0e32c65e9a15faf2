/** The conditions of a HelmReleaseProxy, in CAAPH's words where it has them (caaph §1.7, §1.8). */
import type { Condition, HelmReleaseProxy, HelmReleaseProxyStatus } from '../../api/index.ts';
import type { ReleaseSummary } from '../../helm/index.ts';
import { errorText } from '../../telemetry/index.ts';
import { bounded, getCondition, setCondition, summarize } from '../conditions.ts';
import type { ConditionInput } from '../conditions.ts';

export const CLUSTER_AVAILABLE = 'ClusterAvailable';
export const RELEASE_READY = 'HelmReleaseReady';

/** Characters of a message; Helm's texts can be long, and a HelmChartProxy repeats a few of them. */
const MAX_MESSAGE = 1024;

export const clusterAvailable: ConditionInput = {
  type: CLUSTER_AVAILABLE,
  status: 'True',
  reason: 'Available',
  message: '',
};

export const preparing = releaseNotReady('PreparingToHelmInstall', 'Preparing to install Helm chart');

export const deleted = releaseNotReady('HelmReleaseDeleted', '');

export function clusterNotAvailable(reason: string, message: string): ConditionInput {
  return { type: CLUSTER_AVAILABLE, status: 'False', reason, message: bounded(message, MAX_MESSAGE) };
}

export function releaseNotReady(reason: string, message: string): ConditionInput {
  return { type: RELEASE_READY, status: 'False', reason, message: bounded(message, MAX_MESSAGE) };
}

/** A failure, with its causes. */
export function releaseFailed(reason: string, error: unknown): ConditionInput {
  return releaseNotReady(reason, errorText(error));
}

/**
 * What a release's newest record says of the object. `note` tells what a pending one is waited for. A release that is
 * neither deployed nor pending nor failed has no reason of CAAPH's, which left the condition as it was (caaph W20).
 */
export function releaseCondition(summary: ReleaseSummary, note = ''): ConditionInput {
  const { status } = summary;
  const because = note === '' ? '' : `; ${note}`;
  if (status === 'deployed') return { type: RELEASE_READY, status: 'True', reason: 'Ready', message: note };
  if (status.startsWith('pending-'))
    return releaseNotReady('HelmReleasePending', `Helm release is in a pending state: ${status}${because}`);
  if (status === 'failed')
    return releaseNotReady('HelmInstallOrUpgradeFailed', `Helm release is in a failed state: ${status}${because}`);
  return releaseNotReady('HelmReleaseNotDeployed', `Helm release is in state: ${status}${because}`);
}

/** `note`: what it waits for. */
export function noRelease(note = ''): ConditionInput {
  return releaseNotReady('HelmReleaseNotDeployed', `Helm release is not there${note === '' ? '' : `; ${note}`}`);
}

/** From what a revision was made, as far as its record does not tell. */
export type Made = Pick<HelmReleaseProxyStatus, 'chartDigest' | 'valuesDigest'>;

/** What one pass found out; what is undefined stays as it was. */
export interface Findings {
  readonly conditions?: readonly ConditionInput[];
  /** The release's newest record; null: there is none. */
  readonly release?: ReleaseSummary | null;
  /** From what the newest revision was made. */
  readonly made?: Made;
  readonly clusterUID?: string;
  /** The operation that is about to run; null: none runs. */
  readonly operation?: HelmReleaseProxyStatus['operation'] | null;
}

/** The object with its status after a pass. Pure; the same object when nothing changes. */
export function withFindings(proxy: HelmReleaseProxy, findings: Findings, now: Date): HelmReleaseProxy {
  const before = proxy.status ?? {};
  const status: HelmReleaseProxyStatus = {
    ...before,
    ...releaseFields(findings.release, before.revision),
    ...findings.made,
    ...(findings.clusterUID !== undefined && { clusterUID: findings.clusterUID }),
    ...(findings.operation !== undefined && { operation: findings.operation ?? undefined }),
    conditions: withConditions(proxy, findings.conditions ?? [], now),
  };
  return { ...proxy, status };
}

/** What the status says of a release. From what another revision was made is not known: then nothing is said of it. */
function releaseFields(release: Findings['release'], revisionBefore: number | undefined): HelmReleaseProxyStatus {
  if (release === undefined) return {};
  const { status, revision, chartVersion } = release ?? {};
  const unmade =
    revision === revisionBefore && release !== null ? {} : { chartDigest: undefined, valuesDigest: undefined };
  return { status, revision, chartVersion, ...unmade };
}

function withConditions(
  proxy: HelmReleaseProxy,
  inputs: readonly ConditionInput[],
  now: Date,
): HelmReleaseProxyStatus['conditions'] {
  const before = proxy.status?.conditions;
  if (inputs.length === 0) return before;
  const { generation } = proxy.metadata;
  // An object that was never told of says at least that it is being worked on.
  const first = getCondition(before, RELEASE_READY) === undefined ? [preparing] : [];
  const set = [...first, ...inputs].reduce<readonly Condition[] | undefined>(
    (list, input) => setCondition(list, input, generation, now),
    before,
  );
  return summarize(set, [CLUSTER_AVAILABLE, RELEASE_READY], generation, now);
}
