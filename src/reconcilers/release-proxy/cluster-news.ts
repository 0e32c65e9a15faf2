/** What happens to a cluster while Helm works on it: Helm may wait there for an hour, and the object's conditions must not. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { NotConnectedReason } from '../../runtime/index.ts';
import type { Logger } from '../../telemetry/index.ts';

/** Writes one piece of news after the other; the pass that owns it awaits `settled` before it writes its own result. */
export class ClusterNews {
  readonly #write: (reason: NotConnectedReason | undefined) => Promise<void>;
  readonly #log: Logger;
  #isAway = false;
  #last: Promise<void> = Promise.resolve();

  /** `write` is given the reason, or undefined when the cluster is back. Its failures are logged: the pass writes at its end anyway. */
  constructor(write: (reason: NotConnectedReason | undefined) => Promise<void>, log: Logger) {
    // The fleet tells, but it is the pass that writes.
    this.#write = AsyncLocalStorage.bind(write);
    this.#log = log;
  }

  /** `reason` undefined: the cluster is in service, which is news only after it was not. */
  readonly tell = (reason: NotConnectedReason | undefined): void => {
    if (reason === undefined && !this.#isAway) return;
    this.#isAway = reason !== undefined;
    this.#last = this.#last
      .then(async () => this.#write(reason))
      .catch((err: unknown) => {
        this.#log.debug('the news of the cluster cannot be written', { err });
      });
  };

  /** Resolves when all that was told is written. Never rejects. */
  async settled(): Promise<void> {
    await this.#last;
  }
}
