import type { Cluster, ClusterState, NotConnectedReason } from './types.ts';

/** What happens to a cluster, as its supervisor sees it. */
export type ClusterEvent =
  /** The provider knows it but has no connection for it. */
  | { readonly type: 'declared'; readonly reason: NotConnectedReason }
  /** The provider has a connection for it. */
  | { readonly type: 'specified' }
  /** An attempt to connect failed. */
  | { readonly type: 'connectFailed'; readonly reason: NotConnectedReason }
  /** Connected: a first engagement, or another object in the place of the one before. */
  | { readonly type: 'connected'; readonly cluster: Cluster }
  /** Probes failed often enough. */
  | { readonly type: 'lost'; readonly reason: NotConnectedReason }
  /** A probe succeeded again. */
  | { readonly type: 'recovered' }
  /** In service, but something about its declaration is wrong. */
  | { readonly type: 'warned'; readonly warning: string }
  /** What was warned of is over. */
  | { readonly type: 'cleared' }
  /** The provider took it back, or the fleet stops. */
  | { readonly type: 'removed'; readonly reason: string };

/**
 * The only way from one state to the next (docs/lifecycle.md). Pure. An event that means nothing in a state returns that
 * very object, so callers compare by identity to learn whether something changed. `undefined` is the state before the
 * first declaration.
 */
export function step(state: ClusterState | undefined, event: ClusterEvent): ClusterState {
  if (state === undefined) return fromNothing(event);
  if (state.phase === 'disengaged') return state;
  if (event.type === 'removed') return { phase: 'disengaged', reason: event.reason };
  switch (state.phase) {
    case 'discovered':
      return fromDiscovered(state, event);
    case 'connecting':
      return fromConnecting(state, event);
    case 'engaged':
      return fromEngaged(state, event);
    case 'degraded':
      return fromDegraded(state, event);
  }
}

type In<P extends ClusterState['phase']> = Extract<ClusterState, { phase: P }>;

const FIRST_ATTEMPT = { phase: 'connecting', attempt: 1 } as const;

function fromNothing(event: ClusterEvent): ClusterState {
  if (event.type === 'removed') return { phase: 'disengaged', reason: event.reason };
  return event.type === 'declared' ? { phase: 'discovered', reason: event.reason } : FIRST_ATTEMPT;
}

function fromDiscovered(state: In<'discovered'>, event: ClusterEvent): ClusterState {
  switch (event.type) {
    case 'declared':
      return sameReason(state.reason, event.reason) ? state : { phase: 'discovered', reason: event.reason };
    case 'specified':
      return FIRST_ATTEMPT;
    default:
      return state;
  }
}

function fromConnecting(state: In<'connecting'>, event: ClusterEvent): ClusterState {
  switch (event.type) {
    case 'declared':
      return { phase: 'discovered', reason: event.reason };
    case 'specified':
      // Another spec starts over: the back-off of the old one says nothing about it.
      return FIRST_ATTEMPT;
    case 'connectFailed':
      return { phase: 'connecting', attempt: state.attempt + 1, lastError: event.reason };
    case 'connected':
      return { phase: 'engaged', cluster: event.cluster };
    default:
      return state;
  }
}

function fromEngaged(state: In<'engaged'>, event: ClusterEvent): ClusterState {
  switch (event.type) {
    case 'connected':
      return { phase: 'engaged', cluster: event.cluster };
    case 'lost':
      return { phase: 'degraded', cluster: state.cluster, reason: event.reason };
    case 'warned':
      return state.warning === event.warning
        ? state
        : { phase: 'engaged', cluster: state.cluster, warning: event.warning };
    case 'cleared':
      return state.warning === undefined ? state : { phase: 'engaged', cluster: state.cluster };
    default:
      return state;
  }
}

function fromDegraded(state: In<'degraded'>, event: ClusterEvent): ClusterState {
  switch (event.type) {
    case 'connected':
      return { phase: 'engaged', cluster: event.cluster };
    case 'recovered':
      return { phase: 'engaged', cluster: state.cluster };
    case 'lost':
      return sameReason(state.reason, event.reason)
        ? state
        : { phase: 'degraded', cluster: state.cluster, reason: event.reason };
    default:
      return state;
  }
}

function sameReason(a: NotConnectedReason, b: NotConnectedReason): boolean {
  return a.code === b.code && a.message === b.message;
}
