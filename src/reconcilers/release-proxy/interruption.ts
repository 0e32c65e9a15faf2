/** Telling a pass that was broken off from one that failed. */
import { isHelmError } from '../../helm/index.ts';
import { isKubeError } from '../../kube/index.ts';
import { ClusterGoneError, ReconcileTimeoutError, ShardLostError, StoppingError } from '../../runtime/index.ts';

/** The object is another by now than the pass began with. No failure: the change is an event of its own. */
export class ObjectChanged extends Error {
  override readonly name = 'ObjectChanged';
}

/** Broken off from outside, which says nothing about the release; what was written down about the operation stays for the next pass. */
export function isInterruption(error: unknown, signal: AbortSignal): boolean {
  if (error instanceof ObjectChanged) return true;
  const reason: unknown = signal.aborted ? signal.reason : undefined;
  if (reason instanceof ReconcileTimeoutError) return false;
  // Another replica is at work there, and what this one found says nothing any more.
  if (reason instanceof ShardLostError || isKubeError(error, 'WriteRefused')) return true;
  // Cancelled without a signal: the engine itself is closing.
  return isHelmError(error, 'Cancelled') || reason instanceof ClusterGoneError || reason instanceof StoppingError;
}
