import { listWatch } from './list-watch.ts';
import type { WatchConnection } from './list-watch.ts';
import type { ListWatchOptions, WatchProblem } from './list-watch-options.ts';
import type { Follower, KubeObject, WatchTarget } from './types.ts';

export interface FollowOptions extends ListWatchOptions {
  /** Told what a follower threw; the watch goes on. */
  readonly onFollowerError: (error: unknown) => void;
}

/** A list-watch that stores nothing: what it is told it tells its follower, as it comes. Whoever calls `run` owns it. */
export class FollowedWatch {
  readonly #connection: WatchConnection;
  readonly #target: WatchTarget;
  readonly #options: FollowOptions;
  #follower: Follower;

  constructor(connection: WatchConnection, target: WatchTarget, follower: Follower, options: FollowOptions) {
    this.#connection = connection;
    this.#target = target;
    this.#follower = follower;
    this.#options = options;
  }

  /** From now on another one is told; what was told before is not told again. */
  replace(follower: Follower): void {
    this.#follower = follower;
  }

  /** Lists and watches until `signal` aborts; nothing is told afterwards. Call once. */
  async run(signal: AbortSignal): Promise<void> {
    const onProblem = (problem: WatchProblem): void => {
      this.#options.onProblem?.(problem);
      this.#tell(signal, () => this.#follower.problem?.(problem.error, problem.failures));
    };
    const onResumed = (): void => this.#tell(signal, () => this.#follower.resumed?.());
    const options = { ...this.#options, onProblem, onResumed };
    const notices = listWatch<KubeObject>(this.#connection, this.#target, signal, options);
    for await (const notice of notices) this.#tell(signal, () => this.#follower.notice(notice));
  }

  /** A batch of notices may outlive the watch that it came from. */
  #tell(signal: AbortSignal, tell: () => void): void {
    if (signal.aborted) return;
    try {
      tell();
    } catch (error) {
      this.#options.onFollowerError(error);
    }
  }
}
