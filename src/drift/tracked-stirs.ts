/** Quiet after an event before its release is told: `kubectl delete all --all` comes as one piece of news, not as fifty. A person sees no delay. */
const QUIET_MS = 40;

/** Longest wait from the first event: something that writes without end must not keep the release waiting. */
const LONGEST_MS = 500;

export interface StirsOptions {
  readonly quietMs?: number;
  readonly longestMs?: number;
}

interface Waiting {
  readonly timer: NodeJS.Timeout;
  /** performance.now() of the first event. */
  readonly since: number;
}

/** Tells that releases have something to do, once per burst of events. What `tell` throws goes to `onError`. */
export class Stirs<R> {
  readonly #tell: (release: R) => void;
  readonly #onError: (error: unknown) => void;
  readonly #quietMs: number;
  readonly #longestMs: number;
  readonly #waiting = new Map<R, Waiting>();
  #closed = false;

  constructor(
    tell: (release: R) => void,
    onError: (error: unknown) => void,
    { quietMs = QUIET_MS, longestMs = LONGEST_MS }: StirsOptions = {},
  ) {
    this.#tell = tell;
    this.#onError = onError;
    this.#quietMs = quietMs;
    this.#longestMs = longestMs;
  }

  add(release: R): void {
    if (this.#closed) return;
    const waiting = this.#waiting.get(release);
    if (waiting !== undefined) {
      if (performance.now() - waiting.since + this.#quietMs <= this.#longestMs) waiting.timer.refresh();
      return;
    }
    const timer = setTimeout(() => {
      this.#waiting.delete(release);
      try {
        this.#tell(release);
      } catch (error) {
        this.#onError(error);
      }
    }, this.#quietMs);
    timer.unref();
    this.#waiting.set(release, { timer, since: performance.now() });
  }

  forget(release: R): void {
    clearTimeout(this.#waiting.get(release)?.timer);
    this.#waiting.delete(release);
  }

  close(): void {
    this.#closed = true;
    for (const release of [...this.#waiting.keys()]) this.forget(release);
  }
}
