/** Times and counts of supervision; all times in milliseconds. */
export interface SupervisionOptions {
  /** Between probes of a cluster in service. 10 s: as CAPI's ClusterCache, which has proved itself there. */
  readonly probeIntervalMs: number;
  /** Limit of one probe. 5 s. */
  readonly probeTimeoutMs: number;
  /** Failing probes in a row until the cluster is degraded. 5. */
  readonly probeFailures: number;
  /** Between probes of a degraded cluster, ±30 %. 10 s: parked work waits for nothing else, and one small read in ten seconds is no load. */
  readonly degradedIntervalMs: number;
  /** Limit of one attempt to connect, once it has its turn. 10 s. */
  readonly connectTimeoutMs: number;
  /** Attempts to connect at a time, over the fleet. 50: a thousand clusters that hang take 200 s to go round, first attempts first. */
  readonly concurrentConnects: number;
  /** Ceiling of the delay after the first failed attempt; doubles. 1 s. */
  readonly backoffBaseMs: number;
  /** Longest ceiling of that delay. 30 s. */
  readonly backoffCapMs: number;
  /** From the end of an engagement to the closing of its sockets: running work sees its signal first. 5 s. */
  readonly closeGraceMs: number;
}

export function supervisionDefaults(options: Partial<SupervisionOptions> = {}): SupervisionOptions {
  return {
    probeIntervalMs: 10_000,
    probeTimeoutMs: 5_000,
    probeFailures: 5,
    degradedIntervalMs: 10_000,
    connectTimeoutMs: 10_000,
    concurrentConnects: 50,
    backoffBaseMs: 1_000,
    backoffCapMs: 30_000,
    closeGraceMs: 5_000,
    ...options,
  };
}
