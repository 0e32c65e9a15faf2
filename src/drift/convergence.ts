/**
 * When a correction may be made again (DESIGN §5.5). Whoever else writes a field writes it again, so the n-th correction of
 * the same field waits longer than the one before, and after the last pause there is none: two managers of one field are for
 * a person to sort out. Where the server refuses a correction nobody fights: that is tried for ever, at the longest pause.
 *
 * One of these per release, in memory alone: a restart begins anew, which costs one more round of a fight that stops again.
 * Pure but for what it remembers; the caller brings the clock.
 */

export interface ConvergenceOptions {
  /** Milliseconds before the first, second … correction; of one at least. */
  readonly delaysMs: readonly number[];
}

/** May a field be corrected? */
export type Turn =
  | { readonly when: 'now' }
  /** At that time (epoch, milliseconds). */
  | { readonly when: 'later'; readonly atMs: number }
  /** Not again before `reset`: it was corrected so many times and did not hold. */
  | { readonly when: 'never'; readonly corrections: number };

/**
 * A correction that holds for so long has held; the next one is a new story. Longer than the longest pause, and 330 s with
 * the default pauses, as Argo CD's self-heal (reference/drift.md §5.2).
 */
const COOLDOWN_PER_PAUSE = 1.1;
const MIN_COOLDOWN_MS = 330_000;
/** What the server refuses is not asked for again at once, whatever the first pause is. Milliseconds. */
const MIN_REFUSED_MS = 1_000;
/** Fields remembered before those are dropped that have held. */
const PRUNE_FROM = 256;

interface Field {
  corrections: number;
  lastMs: number;
}

export class Convergence {
  readonly #delaysMs: readonly number[];
  readonly #cooldownMs: number;
  /** By object and field. */
  readonly #fields = new Map<string, Field>();
  /** By object: refused so many times in a row, and when it may be tried again. */
  readonly #refused = new Map<string, { times: number; untilMs: number }>();

  constructor(options: ConvergenceOptions) {
    this.#delaysMs = options.delaysMs;
    this.#cooldownMs = Math.max(MIN_COOLDOWN_MS, COOLDOWN_PER_PAUSE * Math.max(0, ...options.delaysMs));
  }

  /** May this field ('' for the object itself) be corrected now? */
  ask(object: string, field: string, nowMs: number): Turn {
    const known = this.#fields.get(keyOf(object, field));
    if (known === undefined) return this.#at(0, nowMs, nowMs);
    const stopped = known.corrections >= this.#delaysMs.length;
    if (nowMs - known.lastMs > this.#cooldownMs && !this.#isStopped(known)) return this.#at(0, nowMs, nowMs);
    if (!stopped) return this.#at(known.corrections, known.lastMs, nowMs);
    known.lastMs = Number.POSITIVE_INFINITY;
    return { when: 'never', corrections: known.corrections };
  }

  /** Notes a correction of the field that the server took. */
  corrected(object: string, field: string, nowMs: number): void {
    if (this.#fields.size >= PRUNE_FROM) this.#prune(nowMs);
    const key = keyOf(object, field);
    const known = this.#fields.get(key);
    const isNew = known === undefined || nowMs - known.lastMs > this.#cooldownMs;
    this.#fields.set(key, { corrections: isNew ? 1 : known.corrections + 1, lastMs: nowMs });
    this.#refused.delete(object);
  }

  /** Notes that the server refused to have the object corrected. Returns when it may be tried again (epoch, milliseconds). */
  refused(object: string, nowMs: number): number {
    const times = (this.#refused.get(object)?.times ?? 0) + 1;
    const delay = this.#delaysMs[Math.min(times, this.#delaysMs.length - 1)] ?? 0;
    const untilMs = nowMs + Math.max(MIN_REFUSED_MS, delay);
    this.#refused.set(object, { times, untilMs });
    return untilMs;
  }

  /** Until when an object that was refused waits (epoch, milliseconds); undefined: it need not. */
  waits(object: string, nowMs: number): number | undefined {
    const known = this.#refused.get(object);
    return known !== undefined && known.untilMs > nowMs ? known.untilMs : undefined;
  }

  /** The object is as it should be without our doing: a refusal is over. Corrections of its fields count on, for a fight has such moments. */
  settled(object: string): void {
    this.#refused.delete(object);
  }

  /** Everything may be corrected again: another spec, another revision, or somebody asked. */
  reset(): void {
    this.#fields.clear();
    this.#refused.clear();
  }

  #at(correction: number, sinceMs: number, nowMs: number): Turn {
    const atMs = sinceMs + (this.#delaysMs[correction] ?? 0);
    // The first pause counts from when the drift is first asked about, and so has to be remembered.
    if (correction === 0) return { when: 'now' };
    return atMs <= nowMs ? { when: 'now' } : { when: 'later', atMs };
  }

  #isStopped(field: Field): boolean {
    return field.lastMs === Number.POSITIVE_INFINITY;
  }

  #prune(nowMs: number): void {
    for (const [key, field] of this.#fields) if (nowMs - field.lastMs > this.#cooldownMs) this.#fields.delete(key);
  }
}

/** No name holds a blank. */
function keyOf(object: string, field: string): string {
  return `${object} ${field}`;
}
