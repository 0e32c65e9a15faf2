import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName, ClusterNotFoundError, silentLogger } from 'capstan';
import type { Cluster, Fleet, kube } from 'capstan';
import { ClusterFacts, clusterFactsSource, KEY } from './cluster-facts.ts';

const name = clusterName('eu-1');
const context = { signal: new AbortController().signal, log: silentLogger, failures: 0 };

/** A fleet of one cluster whose ConfigMap has `data`; what is applied is noted. */
function fleetWith(data: Record<string, string> | undefined): { fleet: Fleet; applied: unknown[]; cluster: Cluster } {
  const applied: unknown[] = [];
  const stored = data === undefined ? undefined : { metadata: KEY, data };
  const cluster = {
    name,
    watches: {
      get: () => ({ get: () => stored }),
      hold: () => ({
        addHandler: (handler: kube.InformerHandler<kube.KubeObject>) => handler.add?.({ metadata: KEY }, true),
      }),
      release: () => applied.push('released'),
    },
    client: { apply: async (_: unknown, object: { data: unknown }) => Promise.resolve(applied.push(object.data)) },
  } as unknown as Cluster;
  const fleet = {
    get: () => cluster,
    register: (aware: { engaged(one: Cluster): void }) => {
      aware.engaged(cluster);
      return () => undefined;
    },
  } as unknown as Fleet;
  return { fleet, applied, cluster };
}

for (const [what, data, writes] of [
  ['is written where it is missing', undefined, 1],
  ['is put back where somebody changed it', { cluster: 'other', fleet: 'f' }, 1],
  ['is left alone where it is right, with what others put beside', { cluster: 'eu-1', fleet: 'f', more: 'x' }, 0],
] as const) {
  test(`the ConfigMap ${what}`, async () => {
    const { fleet, applied } = fleetWith(data);
    await new ClusterFacts(fleet, 'f').reconcile({ cluster: name, ...KEY }, context);
    assert.deepEqual(applied, Array<unknown>(writes).fill({ cluster: 'eu-1', fleet: 'f' }));
  });
}

test('a cluster that is gone ends the request with the error that the runtime knows', async () => {
  const fleet = {
    get: () => {
      throw new ClusterNotFoundError(name);
    },
  } as unknown as Fleet;
  await assert.rejects(
    new ClusterFacts(fleet, 'f').reconcile({ cluster: name, ...KEY }, context),
    ClusterNotFoundError,
  );
});

test('work is asked for when a cluster comes into service and when its ConfigMap changes, until the end', () => {
  const { fleet, applied } = fleetWith(undefined);
  const stop = new AbortController();
  const asked: string[] = [];
  void clusterFactsSource(fleet)({ enqueue: ({ cluster }) => asked.push(cluster) }, stop.signal);
  assert.deepEqual(asked, ['eu-1', 'eu-1']);
  stop.abort();
  assert.deepEqual(applied, ['released']);
});
