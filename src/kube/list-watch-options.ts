import type { BackoffOptions } from './backoff.ts';
import type { KubeError } from './errors.ts';
import type { WatchTarget } from './types.ts';

/** A watch that does not get on, and when it tries again. */
export interface WatchProblem {
  readonly target: WatchTarget;
  readonly error: KubeError;
  readonly retryInMs: number;
  /** How many in a row, this one included: since the watch last told something, or lived for a while. */
  readonly failures: number;
}

/** Times of a list-watch; all have defaults, tests shorten them. */
export interface ListWatchOptions {
  /** How long the server is asked to keep a watch open, seconds. Default 290: below the five minutes after which many a proxy cuts. */
  readonly watchSeconds?: number;
  /** Part of `watchSeconds` that is cut off at random, so that a cluster's watches do not end together. Default 0.1. */
  readonly watchJitter?: number;
  /** Silence allowed beyond `watchSeconds`, milliseconds: a server that is there has closed the watch by then, so a connection without one is dead. Default 5 s. */
  readonly idleMarginMs?: number;
  /** Full jitter between failures. Default 0.8 s, at most 30 s, as client-go's reflector. */
  readonly backoff?: BackoffOptions;
  /** A watch that lived this long makes the next failure a first one, milliseconds. Default 60 s. */
  readonly healthyMs?: number;
  /** When a resource that the server does not serve is asked for again, milliseconds. Default 30 s. */
  readonly notServedRetryMs?: number;
  /** Use streaming lists (sendInitialEvents, KEP-3157) where the server has them. Default true. */
  readonly streamingLists?: boolean;
  /** Silence allowed within a streaming list, milliseconds. Default 30 s. */
  readonly initialEventsIdleMs?: number;
  /** A number in [0, 1); Math.random by default. */
  readonly random?: () => number;
  /** Told of each failure. Must not throw. */
  readonly onProblem?: (problem: WatchProblem) => void;
  /** Told each time that the server took a watch that goes on from where the last one ended: what was wrong is over. Must not throw. */
  readonly onResumed?: () => void;
}

/** ListWatchOptions with every default in place. */
export interface Settings {
  readonly watchSeconds: () => number;
  readonly idleMarginMs: number;
  readonly backoff: BackoffOptions;
  readonly healthyMs: number;
  readonly notServedRetryMs: number;
  readonly streamingLists: boolean;
  readonly initialEventsIdleMs: number;
  readonly onProblem: ((problem: WatchProblem) => void) | undefined;
  readonly onResumed: (() => void) | undefined;
}

export function withDefaults(options: ListWatchOptions): Settings {
  const random = options.random ?? Math.random;
  const seconds = options.watchSeconds ?? 290;
  const jitter = options.watchJitter ?? 0.1;
  return {
    watchSeconds: () => Math.max(1, Math.round(seconds * (1 - jitter * random()))),
    idleMarginMs: options.idleMarginMs ?? 5_000,
    backoff: options.backoff ?? { baseMs: 800, capMs: 30_000, random },
    healthyMs: options.healthyMs ?? 60_000,
    notServedRetryMs: options.notServedRetryMs ?? 30_000,
    streamingLists: options.streamingLists ?? true,
    initialEventsIdleMs: options.initialEventsIdleMs ?? 30_000,
    onProblem: options.onProblem,
    onResumed: options.onResumed,
  };
}
