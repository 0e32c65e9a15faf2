/** Who a workload cluster is that another replica serves: asked for the few placements where that decides. */
import { fleetNameOf } from '../cluster-names.ts';
import type { ClusterName, ReconcileContext } from '../../runtime/index.ts';
import { decide } from './decide.ts';
import type { Observed } from './decide.ts';

/** Resolves to the uid, undefined where it may not be read; rejects when the cluster does not answer. */
export type Identify = (name: ClusterName, signal: AbortSignal) => Promise<string | undefined>;

/** Between questions to a cluster that does not answer, milliseconds. */
const ASK_AGAIN_MS = 60_000;

/** With the cluster's uid, where it is needed and `identify` is there. Rejects only when the context's signal aborts. */
export async function identified(
  observed: Observed,
  identify: Identify | undefined,
  { signal, log }: Pick<ReconcileContext, 'signal' | 'log'>,
): Promise<Observed> {
  const { namespace = '', name } = observed.cluster?.metadata ?? { name: '' };
  if (identify === undefined || !isNeeded(observed)) return observed;
  try {
    return { ...observed, workloadUid: await identify(fleetNameOf({ namespace, name }), signal), engaged: true };
  } catch (err) {
    signal.throwIfAborted();
    log.debug('the cluster does not say who it is; it is asked again', { err });
    return observed;
  }
}

/** When to ask again, milliseconds: no engagement on this replica tells. Undefined: it is not needed. */
export function askAgainMs(observed: Observed): number | undefined {
  return isNeeded(observed) ? ASK_AGAIN_MS : undefined;
}

function isNeeded(observed: Observed): boolean {
  if (observed.engaged) return false;
  const action = decide(observed);
  return action.type === 'wait' && action.forIdentity === true;
}
