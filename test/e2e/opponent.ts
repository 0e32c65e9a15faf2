import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeObject, RestClient } from '../support/index.ts';

/** How often it looks, milliseconds. */
const LOOK_MS = 20;

/** Another controller that wants an object otherwise: whenever it is not as that wants it, it writes again. */
export class Opponent {
  /** Its writes so far. */
  writes = 0;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  private constructor(running: (opponent: Opponent, signal: AbortSignal) => Promise<void>) {
    this.#running = running(this, this.#stop.signal);
  }

  /** `write` is called while `isContent` says no; it is asked of an object that is not there, too. */
  static start(
    api: RestClient,
    path: string,
    wish: { isContent: (object: KubeObject | undefined) => boolean; write: () => Promise<unknown> },
  ): Opponent {
    return new Opponent(async (opponent, signal) => {
      while (!signal.aborted) {
        if (!wish.isContent(await api.find(path))) {
          await wish.write();
          opponent.writes += 1;
        }
        await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
      }
    });
  }

  /** Rejects when one of its requests failed. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}
