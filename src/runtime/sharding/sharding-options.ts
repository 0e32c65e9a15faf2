import type { ShardingOptions } from './types.ts';

const DEFAULTS = {
  weight: 1,
  /** What a dead member's clusters wait for; long enough for the fence, what runs, and a slow API server. */
  leaseDurationMs: 8_000,
  /** Three renewals and a slow answer. */
  renewDeadlineMs: 5_000,
  periodMs: 1_500,
  /** An upgrade without wait takes about one; longer ones are begun again by the new owner. */
  handOverMs: 10_000,
};
/** Between the lapse of the fence and the expiry of the Lease: aborted work ends, and requests under way arrive. */
const MIN_MARGIN_MS = 2_000;

/** Defaults filled in. Throws RangeError when the times do not fit together. */
export function shardingDefaults(options: ShardingOptions): Required<ShardingOptions> {
  const whole = { ...DEFAULTS, ...options };
  if (!Number.isFinite(whole.weight) || whole.weight < 0)
    throw new RangeError('sharding: the weight must be a number of 0 or more');
  if (whole.leaseDurationMs < whole.renewDeadlineMs + MIN_MARGIN_MS)
    throw new RangeError(
      `sharding: the lease duration must be longer than the renew deadline by ${MIN_MARGIN_MS / 1_000} s`,
    );
  if (whole.renewDeadlineMs < 2 * whole.periodMs)
    throw new RangeError('sharding: the renew deadline must be at least two periods');
  return whole;
}
