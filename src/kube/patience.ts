import { NetworkError, isKubeError } from './errors.ts';

/** 429s that one read waits for by itself; more than this, and its caller's queue is the better place to wait. */
const MAX_THROTTLED_TRIES = 5;

/** When a 429 names no time (client-go waits a second, too). */
const DEFAULT_RETRY_AFTER_MS = 1_000;

const BROKEN_CODES: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'UND_ERR_INFO']);

/** How often one call is tried again by itself. Writes are not, except after a 401: what they did is for their caller to find out. */
export class Patience {
  readonly #isRead: boolean;
  readonly #deadline: number;
  #throttled = 0;
  #broken = false;
  #renewed = false;

  /** `deadline` in performance.now()'s time. */
  constructor(isRead: boolean, deadline: number) {
    this.#isRead = isRead;
    this.#deadline = deadline;
  }

  /** True once: a 401 to renewed credentials is the answer. */
  mayRenew(error: unknown): boolean {
    if (this.#renewed || !isKubeError(error, 'Unauthorized')) return false;
    this.#renewed = true;
    return true;
  }

  /** Milliseconds to wait before another try; undefined: tell the caller. */
  waitAfter(error: unknown): number | undefined {
    if (!this.#isRead) return undefined;
    if (isKubeError(error, 'TooManyRequests')) return this.#throttledWait(error.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS);
    if (this.#broken || !brokeOff(error)) return undefined;
    this.#broken = true;
    return 0;
  }

  #throttledWait(wait: number): number | undefined {
    this.#throttled += 1;
    return this.#throttled < MAX_THROTTLED_TRIES && performance.now() + wait < this.#deadline ? wait : undefined;
  }
}

/** A kept socket may have been closed by the server just as it was taken up again. */
function brokeOff(error: unknown): boolean {
  if (!(error instanceof NetworkError)) return false;
  return error.cause instanceof Error && 'code' in error.cause && BROKEN_CODES.has(error.cause.code);
}
