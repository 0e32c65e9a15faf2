import type { ClusterName, ClusterState } from './types.ts';

/** A cluster's state as people see it who look for a fault. */
export function describeState(name: ClusterName, state: ClusterState): Record<string, unknown> {
  const { phase } = state;
  switch (state.phase) {
    case 'discovered':
      return { name, phase, reason: state.reason };
    case 'connecting':
      return { name, phase, attempt: state.attempt, reason: state.lastError };
    case 'engaged':
      return { name, phase, uid: state.cluster.uid, watches: state.cluster.watches.size, warning: state.warning };
    case 'degraded':
      return { name, phase, uid: state.cluster.uid, watches: state.cluster.watches.size, reason: state.reason };
    case 'disengaged':
      return { name, phase, reason: state.reason };
  }
}
