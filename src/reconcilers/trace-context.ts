/** How a trace gets from the HelmChartProxy's side to the HelmReleaseProxy's: as an annotation, along with a write that happens anyway. */
import { TRACEPARENT_ANNOTATION } from '../api/index.ts';
import type { HelmReleaseProxy } from '../api/index.ts';
import { originFrom } from '../telemetry/index.ts';
import type { TraceOrigin } from '../telemetry/index.ts';

/** `after`, with the trace noted on it; untouched when it does not differ from `before`, or when there is no trace. */
export function withTraceparent(
  before: HelmReleaseProxy | undefined,
  after: HelmReleaseProxy,
  traceparent: string | undefined,
): HelmReleaseProxy {
  if (after === before || traceparent === undefined) return after;
  const annotations = { ...after.metadata.annotations, [TRACEPARENT_ANNOTATION]: traceparent };
  return { ...after, metadata: { ...after.metadata, annotations } };
}

/** The trace that made this change: the one noted with it. One that stood there before has nothing to do with it. */
export function causeOf(before: HelmReleaseProxy | undefined, after: HelmReleaseProxy): TraceOrigin | undefined {
  const noted = after.metadata.annotations?.[TRACEPARENT_ANNOTATION];
  return noted === before?.metadata.annotations?.[TRACEPARENT_ANNOTATION] ? undefined : originFrom(noted);
}
