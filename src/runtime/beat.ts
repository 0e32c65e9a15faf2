/**
 * The process's common beat: periodic work that is in no hurry falls on it, whatever it belongs to. Most of what an idle
 * process costs is to wake up, not what it does then: measured with 8 clusters and 40 releases at rest, a third of the
 * CPU time. Milliseconds.
 */
const BEAT_MS = 5_000;
/** Shorter delays than this are kept as they are: on the beat they would be off by too large a part. Milliseconds. */
const FROM_MS = 2 * BEAT_MS;

/** `ms` from now, prolonged to the next beat where it is long. For what must not come early. */
export function upToBeat(ms: number): number {
  return ms < FROM_MS ? ms : onBeat(ms, Math.ceil);
}

/** `ms` from now, moved to the nearest beat where `period` is long. For what comes once per `period`. */
export function nearBeat(ms: number, period: number): number {
  return period < FROM_MS ? ms : onBeat(ms, Math.round);
}

function onBeat(ms: number, round: (beats: number) => number): number {
  const now = performance.now();
  return round((now + ms) / BEAT_MS) * BEAT_MS - now;
}
