/**
 * What CAAPH costs and what Capstan is to cost, for 5 charts of 26 objects on 8 clusters, on two cores that are shared
 * with nine API servers. CAAPH's figures are of its main branch at 8c58141. Seconds, CPU seconds, MiB.
 */
export const REFERENCE_RELEASES = 40;
/** CAAPH's rest was measured over 130 s; it is scaled to these. */
export const REFERENCE_REST_SECONDS = 120;
const CAAPH_REST_SECONDS = 130;

export const CAAPH = {
  install: { wall: 34, cpu: 27.6, memory: 173, requests: 178 },
  change: { wall: 51, cpu: 44.7, memory: 192, requests: 164 },
  rest: {
    cpu: (8.5 * REFERENCE_REST_SECONDS) / CAAPH_REST_SECONDS,
    memory: 120,
    requests: (240 * REFERENCE_REST_SECONDS) / CAAPH_REST_SECONDS,
  },
} as const;

export const LIMITS = {
  install: { cpu: 14 },
  change: { cpu: 20 },
  /** Two resyncs of everything, and nothing to do. */
  rest: { cpu: 0.3 },
  ownMemory: 150,
} as const;
