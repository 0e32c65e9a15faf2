import { aborted, isAborted, linkSignals } from '../abort.ts';
import { ShardLostError } from '../errors.ts';
import type { ClusterName } from '../types.ts';
import type { Shards } from './types.ts';

/**
 * Runs `work` whenever this replica holds the cluster, each time anew, and stops it (ShardLostError) when it does not any
 * more. Resolves after `signal` aborted and `work` has ended; rejects when `work` rejects before it was stopped. Who
 * calls: parts that are for one replica at a time, e.g. under LOCAL_CLUSTER.
 */
export async function whileHeld(
  shards: Shards,
  cluster: ClusterName,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    if (!shards.holds(cluster)) {
      await change(shards, cluster, true, signal);
      continue;
    }
    using turn = linkSignals(signal);
    const unlisten = shards.onChange(() => {
      if (!shards.holds(cluster)) turn.abort(new ShardLostError(cluster, 'another replica takes it over'));
    });
    try {
      await work(turn.signal);
      // Work that ends by itself has nothing more to do here.
      if (!turn.signal.aborted) await aborted(turn.signal);
    } catch (error) {
      if (!isAborted(turn.signal)) throw error;
    } finally {
      unlisten();
    }
  }
}

/** Resolves when `holds` answers so, or `signal` aborts. */
async function change(shards: Shards, cluster: ClusterName, wanted: boolean, signal: AbortSignal): Promise<void> {
  using changed = linkSignals(signal);
  const unlisten = shards.onChange(() => {
    if (shards.holds(cluster) === wanted) changed.abort(undefined);
  });
  await aborted(changed.signal);
  unlisten();
}
