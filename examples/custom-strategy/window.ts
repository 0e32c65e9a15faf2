const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** When a window is open: on some days, from one time of day to another, UTC. */
export class Window {
  readonly text: string;
  readonly #days: ReadonlySet<number>;
  readonly #fromMs: number;
  /** Of the next day where the window goes past midnight. */
  readonly #toMs: number;

  /** Reads `Sat,Sun 22:00-04:00` or `* 02:00-04:00`. Throws with what is wrong. */
  constructor(text: string) {
    const [, days, from, to] = /^(\S+) (\d\d:\d\d)-(\d\d:\d\d)$/.exec(text) ?? [];
    if (days === undefined || from === undefined || to === undefined) {
      throw new Error(`a window is written as "Sat,Sun 22:00-04:00" or "* 02:00-04:00" (UTC), not "${text}"`);
    }
    this.text = text;
    this.#days = new Set(days === '*' ? DAYS.keys() : days.split(',').map(dayOf));
    this.#fromMs = timeOf(from);
    const toMs = timeOf(to);
    this.#toMs = toMs > this.#fromMs ? toMs : toMs + DAY_MS;
  }

  /** Milliseconds until it opens; 0 while it is open. */
  opensInMs(nowMs: number): number {
    const midnight = Math.floor(nowMs / DAY_MS) * DAY_MS;
    // One that began yesterday may still be open; the next one is at most a week away.
    for (let day = -1; day <= 7; day++) {
      const start = midnight + day * DAY_MS;
      if (!this.#days.has(new Date(start).getUTCDay()) || nowMs >= start + this.#toMs) continue;
      return Math.max(0, start + this.#fromMs - nowMs);
    }
    return 0;
  }
}

function dayOf(text: string): number {
  const day = DAYS.findIndex((known) => known === text);
  if (day < 0) throw new Error(`"${text}" is no day of a window: ${DAYS.join(', ')}`);
  return day;
}

function timeOf(text: string): number {
  const [hours = 0, minutes = 0] = text.split(':').map(Number);
  if (hours > 23 || minutes > 59) throw new Error(`"${text}" is no time of day`);
  return (hours * 60 + minutes) * MINUTE_MS;
}
