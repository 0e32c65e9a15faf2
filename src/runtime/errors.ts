import type { ClusterName, NotConnectedReason } from './types.ts';

/**
 * Everything this room throws. The code is stable and never reused; the class says what the caller does about it:
 *
 * | code | class | what the caller does |
 * | --- | --- | --- |
 * | CAPSTAN_CLUSTER_NOT_FOUND | ClusterNotFoundError | ends quietly: nobody declares the cluster any more |
 * | CAPSTAN_CLUSTER_NOT_CONNECTED | ClusterNotConnectedError | waits for the cluster, not for a timer |
 * | CAPSTAN_TERMINAL | TerminalError | reports and does not retry; only a change of the object helps |
 * | CAPSTAN_RECONCILE_TIMEOUT | ReconcileTimeoutError | retries with back-off |
 * | CAPSTAN_CLUSTER_GONE | ClusterGoneError | reason of a signal: the engagement that the work ran for is over |
 * | CAPSTAN_STOPPING | StoppingError | reason of a signal: the process is stopping |
 * | CAPSTAN_LEADERSHIP_LOST | LeadershipLostError | ends the process: another replica acts now |
 * | CAPSTAN_SHARD_LOST | ShardLostError | ends quietly: another replica does the work, or this one does once it holds the cluster again |
 * | CAPSTAN_STARTUP_TIMEOUT | StartupTimeoutError | ends the process: something did not come up in time |
 * | CAPSTAN_RUNNABLE_ENDED | RunnableEndedError | ends the process: a part that must run for ever has ended |
 * | CAPSTAN_INVALID_CLUSTER_NAME | InvalidClusterNameError | mends the program: a bad name was given |
 */
export abstract class RuntimeError extends Error {
  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

export class ClusterNotFoundError extends RuntimeError {
  readonly code = 'CAPSTAN_CLUSTER_NOT_FOUND';
  readonly cluster: ClusterName;

  constructor(cluster: ClusterName) {
    super(`cluster ${cluster} is not known`);
    this.cluster = cluster;
  }
}

export class ClusterNotConnectedError extends RuntimeError {
  readonly code = 'CAPSTAN_CLUSTER_NOT_CONNECTED';
  readonly cluster: ClusterName;
  readonly reason: NotConnectedReason;

  constructor(cluster: ClusterName, reason: NotConnectedReason) {
    super(`cluster ${cluster} is not connected: ${reason.message}`);
    this.cluster = cluster;
    this.reason = reason;
  }
}

export class TerminalError extends RuntimeError {
  readonly code = 'CAPSTAN_TERMINAL';
}

export class ReconcileTimeoutError extends RuntimeError {
  readonly code = 'CAPSTAN_RECONCILE_TIMEOUT';

  constructor(limitMs: number) {
    super(`the reconcile did not end within its limit of ${limitMs / 1000} s`);
  }
}

export class ClusterGoneError extends RuntimeError {
  readonly code = 'CAPSTAN_CLUSTER_GONE';

  constructor(cluster: ClusterName, reason: string) {
    super(`cluster ${cluster} was disengaged: ${reason}`);
  }
}

export class StoppingError extends RuntimeError {
  readonly code = 'CAPSTAN_STOPPING';

  constructor(what = 'the manager') {
    super(`${what} is stopping`);
  }
}

export class LeadershipLostError extends RuntimeError {
  readonly code = 'CAPSTAN_LEADERSHIP_LOST';
}

/** Reason of a permit's signal, and of the refusal of a write without a fence. */
export class ShardLostError extends RuntimeError {
  readonly code = 'CAPSTAN_SHARD_LOST';
  readonly cluster: ClusterName;

  constructor(cluster: ClusterName, why: string) {
    super(`this replica does not serve cluster ${cluster} any more: ${why}`);
    this.cluster = cluster;
  }
}

export class StartupTimeoutError extends RuntimeError {
  readonly code = 'CAPSTAN_STARTUP_TIMEOUT';
}

export class RunnableEndedError extends RuntimeError {
  readonly code = 'CAPSTAN_RUNNABLE_ENDED';

  constructor(name: string, cause?: unknown) {
    super(`${name} ended`, cause === undefined ? undefined : { cause });
  }
}

export class InvalidClusterNameError extends RuntimeError {
  readonly code = 'CAPSTAN_INVALID_CLUSTER_NAME';

  constructor(name: string, why: string) {
    super(`"${name}" is no cluster name: ${why}`);
  }
}
