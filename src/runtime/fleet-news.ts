import type { Logger } from '../telemetry/index.ts';
import type { Aware, Cluster, ClusterName, ClusterState } from './types.ts';

/** One change of one cluster; `before` is undefined for a first declaration and for a party that comes late. */
export interface ClusterChange {
  readonly name: ClusterName;
  readonly before: ClusterState | undefined;
  readonly now: ClusterState;
}

/** Tells one party what a change means to it. Whatever the party throws passes on. */
export function tell(aware: Required<Aware>, { name, before, now }: ClusterChange): void {
  const was = clusterOf(before);
  const is = clusterOf(now);
  if (was !== undefined && was !== is) aware.disengaged(was, endOf(now));
  if (is !== undefined && entersService(before, is)) aware.engaged(is);
  if (now.phase === 'degraded' && before?.phase !== 'degraded') aware.degraded(now.cluster, now.reason);
  aware.changed(name, now);
}

/** Newly engaged, or back from degraded. A late party learns of a degraded cluster that it is there, first. */
function entersService(before: ClusterState | undefined, cluster: Cluster): boolean {
  if (clusterOf(before) !== cluster) return true;
  return before?.phase === 'degraded' && !cluster.degraded;
}

function clusterOf(state: ClusterState | undefined): Cluster | undefined {
  return state !== undefined && 'cluster' in state ? state.cluster : undefined;
}

function endOf(now: ClusterState): string {
  return now.phase === 'disengaged' ? now.reason : 'another connection took its place';
}

/** One log line per change that a person wants to know of; `log` carries the cluster's name. */
export function say(log: Logger, { before, now }: ClusterChange): void {
  switch (now.phase) {
    case 'discovered':
      log.info('cluster discovered, not connected', { reason: now.reason.message });
      break;
    case 'connecting':
      sayConnecting(log, before, now);
      break;
    case 'engaged':
      if (now.warning !== undefined) log.warn('cluster in service with a warning', { reason: now.warning });
      else if (clusterOf(before) !== now.cluster) log.info('cluster engaged');
      else if (before?.phase === 'degraded') log.info('cluster back in service');
      break;
    case 'degraded':
      log.warn('cluster degraded: its work waits', { reason: now.reason.message });
      break;
    case 'disengaged':
      log.info('cluster disengaged', { reason: now.reason });
  }
}

type Connecting = Extract<ClusterState, { phase: 'connecting' }>;

/** A failing attempt is said when what fails changes; the same every half minute is for debugging. */
function sayConnecting(log: Logger, before: ClusterState | undefined, now: Connecting): void {
  if (now.lastError === undefined) return;
  const fields = { reason: now.lastError.message, attempts: now.attempt - 1 };
  const known = before?.phase === 'connecting' && before.lastError?.message === now.lastError.message;
  if (known) log.debug('cluster still cannot be connected to', fields);
  else log.warn('cluster cannot be connected to; it is tried again', fields);
}
