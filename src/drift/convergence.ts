/**
 * When a correction may be made again (DESIGN §5.5). Whoever else writes a field writes it again, so the n-th correction of
 * the same field waits longer than the one before, and after the last pause there is none: two managers of one field are for
 * a person to sort out. Where the server refuses a correction nobody fights: that is tried for ever, at the longest pause.
 *
 * One of these per release, in memory alone: a restart begins anew, which costs one more round of a fight that stops again.
 * The caller brings the clock.
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
 * the default pauses, as Argo CD's self-heal has it (reference/drift.md §5.2).
 */
const COOLDOWN_PER_PAUSE = 1.1;
const MIN_COOLDOWN_MS = 330_000;
/** What the server refuses is not asked for again at once, whatever the first pause is. Milliseconds. */
const MIN_REFUSED_MS = 1_000;
/** Fields remembered before those are dropped that have held. */
const PRUNE_FROM = 256;

/** One field's story. */
type Story =
  /** Seen to differ first at `sinceMs` (corrections 0), or corrected last then. Next: itself with one more, stopped, or forgotten after the cooldown. */
  | { readonly state: 'trying'; readonly corrections: number; readonly sinceMs: number }
  /** It did not hold after the last pause. Ends with `reset` alone. */
  | { readonly state: 'stopped'; readonly corrections: number };

interface Refusal {
  readonly times: number;
  readonly untilMs: number;
}

export class Convergence {
  readonly #delaysMs: readonly number[];
  readonly #cooldownMs: number;
  /** By object and field. */
  readonly #stories = new Map<string, Story>();
  /** By object: refused so many times in a row. */
  readonly #refusals = new Map<string, Refusal>();

  constructor(options: ConvergenceOptions) {
    this.#delaysMs = options.delaysMs;
    this.#cooldownMs = Math.max(MIN_COOLDOWN_MS, COOLDOWN_PER_PAUSE * Math.max(0, ...options.delaysMs));
  }

  /** May this field ('' for the object itself), which differs, be corrected now? */
  ask(object: string, field: string, nowMs: number): Turn {
    const key = keyOf(object, field);
    const story = this.#current(key, nowMs) ?? { state: 'trying', corrections: 0, sinceMs: nowMs };
    const next = step(story, this.#delaysMs.length);
    this.#stories.set(key, next);
    if (next.state === 'stopped') return { when: 'never', corrections: next.corrections };
    const atMs = next.sinceMs + (this.#delaysMs[next.corrections] ?? 0);
    return atMs <= nowMs ? { when: 'now' } : { when: 'later', atMs };
  }

  /** Notes a correction of the field that the server took. */
  corrected(object: string, field: string, nowMs: number): void {
    if (this.#stories.size >= PRUNE_FROM) this.#prune(nowMs);
    const key = keyOf(object, field);
    const corrections = (this.#current(key, nowMs)?.corrections ?? 0) + 1;
    this.#stories.set(key, { state: 'trying', corrections, sinceMs: nowMs });
    this.#refusals.delete(object);
  }

  /** Notes that the server refused to have the object corrected. Returns when it may be tried again (epoch, milliseconds). */
  refused(object: string, nowMs: number): number {
    const times = (this.#refusals.get(object)?.times ?? 0) + 1;
    const delay = this.#delaysMs[Math.min(times, this.#delaysMs.length - 1)] ?? 0;
    const untilMs = nowMs + Math.max(MIN_REFUSED_MS, delay);
    this.#refusals.set(object, { times, untilMs });
    return untilMs;
  }

  /** Until when an object that was refused waits (epoch, milliseconds); undefined: it need not. */
  waits(object: string, nowMs: number): number | undefined {
    const known = this.#refusals.get(object);
    return known !== undefined && known.untilMs > nowMs ? known.untilMs : undefined;
  }

  /** The object is as it should be: refusals of it are over. Corrections of its fields count on, for a fight has such moments. */
  settled(object: string): void {
    this.#refusals.delete(object);
  }

  /** Everything may be corrected again: another spec, another revision, or somebody asked. */
  reset(): void {
    this.#stories.clear();
    this.#refusals.clear();
  }

  /** The field's story, if that goes on. */
  #current(key: string, nowMs: number): Story | undefined {
    const story = this.#stories.get(key);
    return story !== undefined && this.#isOver(story, nowMs) ? undefined : story;
  }

  #isOver(story: Story, nowMs: number): boolean {
    return story.state === 'trying' && nowMs - story.sinceMs > this.#cooldownMs;
  }

  #prune(nowMs: number): void {
    for (const [key, story] of this.#stories) if (this.#isOver(story, nowMs)) this.#stories.delete(key);
  }
}

/** The field differs, still or again. */
function step(story: Story, pauses: number): Story {
  if (story.state === 'trying' && story.corrections >= pauses) {
    return { state: 'stopped', corrections: story.corrections };
  }
  return story;
}

/** No name holds a blank. */
function keyOf(object: string, field: string): string {
  return `${object} ${field}`;
}
