import { describe, expect, it } from 'vitest';
import type { InformerHandler } from '../kube/index.ts';
import { clusterName } from '../runtime/index.ts';
import type { ClusterRecord } from '../runtime/index.ts';
import { RecordBook } from '../runtime/cluster-records.ts';
import { FakeInformer } from '../runtime/fakes.test-support.ts';
import { clusterKeyOfRequest, fleetNameOf, isForeign, providerOf } from './cluster-names.ts';
import { ClustersTogether } from './cluster-view.ts';
import type { CapiCluster } from './shared.ts';

const TARGET = {
  resource: { group: 'cluster.x-k8s.io', version: 'v1beta2', plural: 'clusters', namespaced: true },
  form: 'full',
} as const;
const NAME = clusterName('files#edge+ctx');
const KEY = { namespace: 'fleet', name: NAME };

function world(): { book: RecordBook; view: ClustersTogether; told: string[]; handler: InformerHandler<CapiCluster> } {
  const book = new RecordBook(() => undefined);
  const told: string[] = [];
  const at = ({ metadata }: CapiCluster): string => `${metadata.namespace ?? ''}/${metadata.name}`;
  const handler: InformerHandler<CapiCluster> = {
    add: (object, initial) => told.push(`add ${at(object)}${initial ? ' initial' : ''}`),
    update: (before, object) =>
      told.push(
        `update ${at(object)} ${JSON.stringify(before.metadata.labels)} ${JSON.stringify(object.metadata.labels)}`,
      ),
    delete: (object) => told.push(`delete ${at(object)}`),
  };
  return { book, view: new ClustersTogether(book), told, handler };
}

function about(more: Partial<ClusterRecord> = {}): Partial<ClusterRecord> {
  return { namespace: 'fleet', labels: { tier: 'edge' }, ...more };
}

describe('a cluster of another provider', () => {
  it('is an object in the namespace that may select it, under its name in the fleet', () => {
    const { book, view } = world();
    book.put(NAME, 'files', about());
    expect(view.get('fleet', NAME)).toEqual({
      apiVersion: 'capstan.dev/v1',
      kind: 'Cluster',
      metadata: { namespace: 'fleet', name: NAME, labels: { tier: 'edge' }, uid: undefined },
    });
    expect(view.get('other', NAME)).toBeUndefined();
    expect([view.list('fleet').length, view.list('other').length, view.list().length]).toEqual([1, 0, 1]);
  });

  it('has the kind and UID of what stands for it', () => {
    const { book, view } = world();
    const source = { apiVersion: 'v1', kind: 'Secret', namespace: 'fleet', name: 'two', uid: 'u1' };
    book.put(NAME, 'files', about({ source }));
    expect(view.get('fleet', NAME)).toMatchObject({ apiVersion: 'v1', kind: 'Secret', metadata: { uid: 'u1' } });
  });

  it('that no namespace may select is nobody’s', () => {
    const { book, view } = world();
    book.put(NAME, 'files', { labels: { tier: 'edge' } });
    expect(view.list()).toEqual([]);
  });

  it('is told as it comes, changes, moves and goes', () => {
    const { book, view, told, handler } = world();
    const remove = view.addHandler(handler);
    book.put(NAME, 'files', about());
    book.put(NAME, 'files', about({ labels: { tier: 'hub' } }));
    book.put(NAME, 'files', about({ namespace: 'other' }));
    book.remove(NAME);
    remove();
    book.put(NAME, 'files', about());
    expect(told).toEqual([
      `add fleet/${NAME}`,
      `update fleet/${NAME} {"tier":"edge"} {"tier":"hub"}`,
      `delete fleet/${NAME}`,
      `add other/${NAME}`,
      `delete other/${NAME}`,
    ]);
  });

  it('is told to whoever comes late, as initial', () => {
    const { book, view, told, handler } = world();
    book.put(NAME, 'files', about());
    view.addHandler(handler);
    expect(told).toEqual([`add fleet/${NAME} initial`]);
  });

  it('that is not there is unknown until its provider has told of all, and then gone', () => {
    const { book, view } = world();
    let known = 0;
    view.onKnown(() => (known += 1));
    expect(view.knows(KEY)).toBe(false);
    book.synced('kubeconfig');
    expect([view.knows(KEY), known]).toEqual([false, 1]);
    book.synced('files');
    book.synced('files');
    expect([view.knows(KEY), known]).toEqual([true, 2]);
  });
});

describe('Clusters of Cluster API', () => {
  it('are unknown until they are listed, and may be installed later', () => {
    const { view, told, handler } = world();
    view.addHandler(handler);
    const key = { namespace: 'fleet', name: 'c1' };
    expect([view.knows(key), view.get('fleet', 'c1')]).toEqual([false, undefined]);
    const informer = new FakeInformer<CapiCluster>(TARGET);
    informer.put({ metadata: key });
    view.attach(informer);
    expect([view.knows(key), view.get('fleet', 'c1')?.metadata.name, told]).toEqual([
      true,
      'c1',
      ['add fleet/c1 initial'],
    ]);
  });

  it('are never taken from records: their provider says nothing of them there', () => {
    const { book, view } = world();
    book.put(clusterName('fleet/c1'), 'capi', { labels: {}, namespace: 'fleet' });
    expect(view.list()).toEqual([]);
  });
});

describe('the names of a cluster', () => {
  it.each([
    [{ namespace: 'fleet', name: 'c1' }, 'fleet/c1'],
    [{ namespace: 'fleet', name: 'kubeconfig#fleet/two' }, 'kubeconfig#fleet/two'],
    [{ namespace: 'fleet', name: 'local#in-cluster' }, 'local#in-cluster'],
  ])('%j is %s in the fleet, and back', (key, name) => {
    const cluster = fleetNameOf(key);
    expect(cluster).toBe(name);
    expect(clusterKeyOfRequest({ cluster, namespace: 'fleet', name: 'hcp' })).toEqual(key);
  });

  it('tell the provider', () => {
    expect([isForeign('c1'), isForeign(NAME), providerOf(NAME)]).toEqual([false, true, 'files']);
  });
});
