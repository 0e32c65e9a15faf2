import { LRUCache } from 'lru-cache';
import { isHelmError } from './errors.ts';
import { SharedFlights } from './chart-store-flights.ts';

export interface FreshnessOptions {
  /** For this long nothing is asked again, milliseconds. */
  readonly freshMs: number;
  /** A fresh answer that lacks what is wanted is asked for anew at once, but not more often than this, milliseconds. */
  readonly minRevalidateMs: number;
  /** A failure is given again to others for this long, so that a fleet does not knock at a dead repository one by one. Milliseconds. */
  readonly failureMs: number;
  /** When a repository does not answer, what is known is used for up to this long, milliseconds. */
  readonly staleMs: number;
  /** Of one request with its repetitions, milliseconds. */
  readonly limitMs: number;
  readonly maxEntries: number;
  /** Bytes, about. */
  readonly maxSize: number;
}

interface Known<T> {
  /** Absent: only the failure is known. */
  readonly value?: T;
  /** When the repository last confirmed `value`. */
  readonly confirmedAt: number;
  /** When it was last asked. */
  readonly askedAt: number;
  /** When it was last asked although `value` was fresh. */
  readonly forcedAt: number;
  readonly failure?: unknown;
}

export interface FreshRequest<T> {
  readonly key: string;
  readonly signal: AbortSignal;
  /** False: the value lacks what is wanted, and a newer one may have it. */
  readonly suffices: (value: T) => boolean;
  /** Asks the repository; given what is known, for a conditional request. Returns that very value when it still holds. */
  readonly fetch: (known: T | undefined, signal: AbortSignal) => Promise<T>;
}

/** What repositories said, each asked once however many want to know, and not again while it is fresh. */
export class FreshCache<T extends object> {
  readonly #options: FreshnessOptions;
  readonly #known: LRUCache<string, Known<T>>;
  readonly #flights: SharedFlights<T>;
  readonly #onCached: () => void;

  /** `size`: bytes of a value, about. `onCached` hears of each answer that needed no request. */
  constructor(options: FreshnessOptions, size: (value: T) => number, onCached: () => void = () => undefined) {
    this.#options = options;
    this.#flights = new SharedFlights(options.limitMs);
    this.#onCached = onCached;
    this.#known = new LRUCache<string, Known<T>>({
      max: options.maxEntries,
      maxSize: options.maxSize,
      sizeCalculation: (known) => 1 + (known.value === undefined ? 0 : size(known.value)),
    });
  }

  /** What is known, however old, without a request. */
  peek(key: string): T | undefined {
    return this.#known.peek(key)?.value;
  }

  async get(request: FreshRequest<T>): Promise<T> {
    const known = this.#known.get(request.key);
    const answer = known === undefined ? undefined : this.#answer(known, request);
    if (answer !== undefined) {
      this.#onCached();
      return answer;
    }
    return this.#flights.join(request.key, request.signal, async (signal) => this.#refresh(request, signal));
  }

  async close(): Promise<void> {
    await this.#flights.close();
  }

  /** Undefined: ask. Throws a failure that is still to be believed. */
  #answer(known: Known<T>, request: FreshRequest<T>): T | undefined {
    const now = Date.now();
    const sinceAsked = now - known.askedAt;
    if (known.value === undefined) {
      if (sinceAsked < this.#options.failureMs) throw known.failure;
      return undefined;
    }
    // After a failure with a value in hand, the next try is due as after any failure.
    const fresh = known.failure === undefined ? this.#options.freshMs : this.#options.failureMs;
    if (sinceAsked >= fresh) return undefined;
    const mayForce = now - known.forcedAt >= this.#options.minRevalidateMs;
    return mayForce && !request.suffices(known.value) ? undefined : known.value;
  }

  async #refresh(request: FreshRequest<T>, signal: AbortSignal): Promise<T> {
    const known = this.#known.peek(request.key);
    const began = Date.now();
    const forced =
      known?.value !== undefined && known.failure === undefined && began - known.askedAt < this.#options.freshMs;
    const forcedAt = forced ? began : (known?.forcedAt ?? 0);
    try {
      const value = await request.fetch(known?.value, signal);
      this.#known.set(request.key, { value, confirmedAt: began, askedAt: began, forcedAt });
      return value;
    } catch (failure) {
      return this.#failed(request.key, known, { failure, forcedAt });
    }
  }

  #failed(
    key: string,
    known: Known<T> | undefined,
    after: { readonly failure: unknown; readonly forcedAt: number },
  ): T {
    const { failure } = after;
    if (isHelmError(failure, 'Cancelled')) throw failure;
    const now = Date.now();
    const passing = isHelmError(failure, 'RepositoryUnreachable', 'Timeout');
    if (passing && known?.value !== undefined && now - known.confirmedAt < this.#options.staleMs) {
      this.#known.set(key, { value: known.value, confirmedAt: known.confirmedAt, askedAt: now, ...after });
      return known.value;
    }
    this.#known.set(key, { confirmedAt: 0, askedAt: now, ...after });
    throw failure;
  }
}
