/** Is the cluster there to be worked on, and what does the object say when it is not (caaph §1.7.2–4, W2)? */
import type { HelmReleaseProxy } from '../../api/index.ts';
import { ClusterNotConnectedError, ClusterNotFoundError } from '../../runtime/index.ts';
import type { NotConnectedReason } from '../../runtime/index.ts';
import { getCondition } from '../conditions.ts';
import type { ConditionInput } from '../conditions.ts';
import { CLUSTER_AVAILABLE, clusterNotAvailable } from './proxy-conditions.ts';

/**
 * CAAPH's reasons by the fleet's codes. It read the kubeconfig on every pass, so everything wrong with credentials was
 * GetKubeconfigFailed; it had no reason for a server that does not answer.
 */
const REASONS: Readonly<Record<string, string>> = {
  ControlPlaneNotReady: 'NotAvailable',
  KubeconfigUnavailable: 'GetKubeconfigFailed',
  KubeconfigInvalid: 'GetKubeconfigFailed',
  ExecPluginRefused: 'GetKubeconfigFailed',
  FileReferenceRefused: 'GetKubeconfigFailed',
  Unauthorized: 'GetKubeconfigFailed',
  Forbidden: 'GetKubeconfigFailed',
};

/** For every other code: what is wrong is between us and the API server. */
const UNREACHABLE = 'ClusterUnreachable';

/** The fleet's code for an attempt that has not failed: no news about the cluster. */
const CONNECTING = 'Connecting';
/** And for a cluster that another replica serves, which says about it what there is to say. */
const NOT_MY_SHARD = 'NotMyShard';

/** Why the cluster cannot be used now, as the fleet says; undefined when the error is about something else. */
export function whyNotConnected(error: unknown): NotConnectedReason | undefined {
  if (error instanceof ClusterNotConnectedError) return error.reason;
  if (error instanceof ClusterNotFoundError)
    return { code: CONNECTING, message: 'the cluster has not been discovered yet' };
  return undefined;
}

/**
 * The condition for it, or undefined when nothing is to be written: while the manager starts, no cluster is connected yet,
 * and a fleet of objects must not turn unready and back for that. An object that never had the condition is told, though.
 */
export function notConnectedCondition(proxy: HelmReleaseProxy, reason: NotConnectedReason): ConditionInput | undefined {
  if (reason.code === NOT_MY_SHARD) return undefined;
  if (reason.code === CONNECTING) {
    const known = getCondition(proxy.status?.conditions, CLUSTER_AVAILABLE);
    return known === undefined ? clusterNotAvailable('NotAvailable', reason.message) : undefined;
  }
  const text = REASONS[reason.code] ?? UNREACHABLE;
  const message =
    text === 'GetKubeconfigFailed' ? `failed to get kubeconfig for cluster: ${reason.message}` : reason.message;
  return clusterNotAvailable(text, message);
}
