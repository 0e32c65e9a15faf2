import { describe, expect, it } from 'vitest';
import type { ReleaseReader } from '../../helm/index.ts';
import { ConnectionClosedError, TimedOutError } from '../../kube/index.ts';
import { clusterName } from '../../runtime/index.ts';
import type { Cluster } from '../../runtime/index.ts';
import { ReleaseReaders } from './readers.ts';

const LIMIT_MS = 1_000;

/** A cluster whose records are listed when `list` settles; a reader that is closed rejects, as a stopped watch does. */
function world(): {
  readers: ReleaseReaders;
  cluster: Cluster;
  list: PromiseWithResolvers<undefined>;
  made: () => number;
} {
  const list = Promise.withResolvers<undefined>();
  let made = 0;
  const readers = new ReleaseReaders(() => {
    made += 1;
    const closed = Promise.withResolvers<never>();
    closed.promise.catch(() => undefined);
    const reader: Partial<ReleaseReader> = {
      synced: async () => Promise.race([list.promise, closed.promise]),
      onChange: () => () => undefined,
      close: () => closed.reject(new ConnectionClosedError('the watch of secrets was stopped')),
    };
    return reader as ReleaseReader;
  });
  return { readers, cluster: { name: clusterName('fleet/c1') } as Cluster, list, made: () => made };
}

describe('waiting for the records of a cluster', () => {
  it('ends when they are listed', async () => {
    const { readers, cluster, list } = world();
    const waiting = readers.ready(cluster, new AbortController().signal, LIMIT_MS);
    list.resolve(undefined);
    expect(await waiting).toBe(true);
  });

  it('ends quietly, and watches nothing anew, when nothing is left to be looked at on the cluster', async () => {
    const { readers, cluster, made } = world();
    const waiting = readers.ready(cluster, new AbortController().signal, LIMIT_MS);
    readers.release(cluster.name);
    expect([await waiting, made()]).toEqual([false, 1]);
  });

  it('fails with what kept them from being listed', async () => {
    const { readers, cluster, list } = world();
    const waiting = readers.ready(cluster, new AbortController().signal, LIMIT_MS);
    list.reject(new TimedOutError('not within 1 s'));
    await expect(waiting).rejects.toThrow('not within 1 s');
  });

  it('fails when the engagement ended: that is no quiet end', async () => {
    const { readers, cluster } = world();
    const gone = new AbortController();
    const waiting = readers.ready(cluster, gone.signal, LIMIT_MS);
    gone.abort();
    readers.disengaged(cluster);
    await expect(waiting).rejects.toThrow('was stopped');
  });
});
