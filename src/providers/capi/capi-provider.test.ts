import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Discovery, KubeObject, Resource } from '../../kube/index.ts';
import { NetworkError } from '../../kube/index.ts';
import { FakeStore, FakeWatchSet, testTelemetry } from '../../runtime/fakes.test-support.ts';
import type { FakeInformer } from '../../runtime/fakes.test-support.ts';
import { clusterName, LOCAL_CLUSTER } from '../../runtime/index.ts';
import type { Cluster, ClusterSink } from '../../runtime/index.ts';
import type { CapiCluster } from './capi-cluster.ts';
import { CapiProvider } from './capi-provider.ts';

const SECRETS: Resource = { group: '', version: 'v1', plural: 'secrets', namespaced: true };
const READY = { initialization: { controlPlaneInitialized: true } };
const after = async (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

let told: string[];
let store: FakeStore;
let watches: FakeWatchSet;
let versions: string[];
let provider: CapiProvider;
let end: AbortController;
let done: Promise<void>;
let log: ReturnType<typeof testTelemetry>['log'];

const sink: ClusterSink = {
  discover: (name, { code }) => void told.push(`discover ${name} ${code}`),
  engage: (name, { kubeconfig }) => void told.push(`engage ${name} ${kubeconfig}`),
  disengage: (name, reason) => void told.push(`disengage ${name}: ${reason}`),
};

function clusters(): FakeInformer<CapiCluster> {
  const resource: Resource = { group: 'cluster.x-k8s.io', version: 'v1beta2', plural: 'clusters', namespaced: true };
  return watches.of({ resource, form: 'full' });
}

function cluster(name: string, parts: Partial<CapiCluster> = {}, uid = `uid-of-${name}`): CapiCluster {
  return { metadata: { namespace: 'ns', name, uid }, status: READY, ...parts };
}

/** A Secret of a Cluster, as CAPI makes it: labelled, so that its metadata is seen. */
function putSecret(name: string, kubeconfig: string | undefined, labelled = true): void {
  const data = kubeconfig === undefined ? {} : { value: Buffer.from(kubeconfig).toString('base64') };
  const metadata = { namespace: 'ns', name: `${name}-kubeconfig`, uid: 'secret' };
  const stored = store.put<KubeObject & { data: object }>(SECRETS, { metadata, data });
  if (labelled) watches.of({ resource: SECRETS, form: 'metadata' }).put({ metadata: stored.metadata });
}

function removeSecret(name: string): void {
  store.remove(SECRETS, { namespace: 'ns', name: `${name}-kubeconfig` });
  watches.of({ resource: SECRETS, form: 'metadata' }).remove('ns', `${name}-kubeconfig`);
}

function start(): void {
  end = new AbortController();
  done = provider.run(sink, end.signal);
  done.catch(() => undefined);
}

async function stop(): Promise<void> {
  end.abort(new Error('the test is over'));
  await after(0);
  await Promise.allSettled([done]);
}

beforeEach(async () => {
  vi.useFakeTimers();
  told = [];
  store = new FakeStore();
  watches = new FakeWatchSet();
  versions = ['v1beta1', 'v1beta2'];
  const test = testTelemetry();
  log = test.log;
  const discovery: Discovery = {
    versions: async () => Promise.resolve(versions),
    find: async ({ group, version = '' }) =>
      Promise.resolve({ group, version, plural: 'clusters', namespaced: true } satisfies Resource),
    invalidate: () => undefined,
  };
  const management: Cluster = {
    name: LOCAL_CLUSTER,
    uid: undefined,
    client: store.client,
    discovery,
    watches,
    signal: new AbortController().signal,
    degraded: false,
    kubeconfig: () => '',
  };
  provider = new CapiProvider({ management, telemetry: test.telemetry });
  start();
  await after(0);
});
afterEach(async () => {
  await stop();
  expect(watches.owners.size).toBe(0);
  expect([...watches.informers.values()].map((informer) => informer.handlers)).toEqual(
    [...watches.informers.values()].map(() => 0),
  );
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe('a Cluster', () => {
  it('that is ready and has its Secret is engaged under namespace/name', async () => {
    putSecret('a', 'kubeconfig-1');
    clusters().put(cluster('a'));
    await after(0);
    expect(told).toEqual(['engage ns/a kubeconfig-1']);
    expect(store.calls).toEqual(['find ns/a-kubeconfig']);
  });

  it('that is not initialized yet is discovered with the reason, and engaged when it is', async () => {
    putSecret('a', 'kubeconfig-1');
    clusters().put(cluster('a', { status: {} }));
    await after(0);
    expect(told).toEqual(['discover ns/a ControlPlaneNotReady']);
    clusters().put(cluster('a'));
    await after(0);
    expect(told.slice(1)).toEqual(['engage ns/a kubeconfig-1']);
  });

  it.each<[string, CapiCluster['status'], boolean]>([
    ['nothing said', {}, false],
    ['v1beta2 false', { initialization: { controlPlaneInitialized: false } }, false],
    ['v1beta2 true', READY, true],
    ['v1beta1 condition', { conditions: [{ type: 'ControlPlaneInitialized', status: 'True' }] }, true],
    ['v1beta1 condition false', { conditions: [{ type: 'ControlPlaneInitialized', status: 'False' }] }, false],
    ['v1beta1 field', { controlPlaneReady: true }, true],
    [
      'v1beta1 condition in a v1beta2 object',
      { deprecated: { v1beta1: { conditions: [{ type: 'ControlPlaneInitialized', status: 'True' }] } } },
      true,
    ],
  ])('with %s: ready is %s', async (_what, status, ready) => {
    putSecret('a', 'k');
    clusters().put(cluster('a', { status }));
    await after(0);
    expect(told).toEqual([ready ? 'engage ns/a k' : 'discover ns/a ControlPlaneNotReady']);
  });

  it('that is being deleted or paused stays engaged; its deletion disengages it', async () => {
    putSecret('a', 'k');
    clusters().put(cluster('a'));
    await after(0);
    const { metadata } = cluster('a');
    clusters().put({ ...cluster('a'), metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
    clusters().put({ ...cluster('a'), spec: { paused: true } } as CapiCluster);
    await after(60_000);
    expect(told).toEqual(['engage ns/a k']);
    clusters().remove('ns', 'a');
    await after(0);
    expect(told.slice(1)).toEqual(['disengage ns/a: its Cluster object was deleted']);
  });

  it('of the same name as one before is another cluster', async () => {
    putSecret('a', 'k');
    clusters().put(cluster('a'));
    await after(0);
    clusters().remove('ns', 'a');
    clusters().put(cluster('a', {}, 'another-uid'));
    await after(0);
    expect(told.slice(1)).toEqual(['disengage ns/a: its Cluster object was replaced', 'engage ns/a k']);
  });

  it('whose other fields change costs nothing', async () => {
    putSecret('a', 'k');
    clusters().put(cluster('a'));
    await after(0);
    const { calls } = store;
    const before = calls.length;
    clusters().put(cluster('a', { status: { ...READY, phase: 'Provisioned' } as CapiCluster['status'] }));
    await after(0);
    expect(calls).toHaveLength(before);
    expect(told).toHaveLength(1);
  });
});

describe('a kubeconfig Secret', () => {
  it('that appears later is acted on at once', async () => {
    clusters().put(cluster('a'));
    await after(20_000);
    expect(told).toEqual(['discover ns/a KubeconfigUnavailable']);
    putSecret('a', 'k');
    await after(0);
    expect(told.slice(1)).toEqual(['engage ns/a k']);
  });

  it('without its key is said to be so, and acted on at once when it is mended', async () => {
    putSecret('a', undefined);
    clusters().put(cluster('a'));
    await after(0);
    expect(told).toEqual(['discover ns/a KubeconfigUnavailable']);
    putSecret('a', 'k');
    await after(0);
    expect(told.slice(1)).toEqual(['engage ns/a k']);
  });

  it('that is rotated is read again and declared', async () => {
    putSecret('a', 'k1');
    clusters().put(cluster('a'));
    await after(0);
    putSecret('a', 'k2');
    await after(0);
    expect(told).toEqual(['engage ns/a k1', 'engage ns/a k2']);
    expect(store.calls).toHaveLength(2);
  });

  it('that is deleted is told as a reason only', async () => {
    putSecret('a', 'k');
    clusters().put(cluster('a'));
    await after(0);
    removeSecret('a');
    await after(0);
    expect(told).toEqual(['engage ns/a k', 'discover ns/a KubeconfigUnavailable']);
  });

  it('without the label is found by its name, and looked at every 30 s', async () => {
    putSecret('a', 'k1', false);
    clusters().put(cluster('a'));
    await after(0);
    putSecret('a', 'k2', false);
    await after(29_999);
    expect(told).toEqual(['engage ns/a k1']);
    await after(1);
    expect(told).toEqual(['engage ns/a k1', 'engage ns/a k2']);
  });

  it('that cannot be read is tried again', async () => {
    let failing = true;
    store.before = () => {
      if (failing) throw new NetworkError('refused');
    };
    putSecret('a', 'k');
    clusters().put(cluster('a'));
    await after(2_000);
    expect(told).toEqual([]);
    failing = false;
    await after(30_000);
    expect(told).toEqual(['engage ns/a k']);
  });

  it('is read at once after a refusal, whatever its version', async () => {
    putSecret('a', 'k');
    clusters().put(cluster('a'));
    await after(0);
    provider.refresh(clusterName('ns/a'));
    await after(0);
    expect(store.calls).toHaveLength(2);
    expect(told).toEqual(['engage ns/a k', 'engage ns/a k']);
  });

  it('of no Cluster, or of another kind, is nothing to us', async () => {
    putSecret('stranger', 'k');
    const metadata = { namespace: 'ns', name: 'a-ca', labels: { 'cluster.x-k8s.io/cluster-name': 'a' } };
    watches.of({ resource: SECRETS, form: 'metadata' }).put({ metadata });
    await after(60_000);
    expect(told).toEqual([]);
    expect(store.calls).toEqual([]);
  });
});

describe('a run', () => {
  it('waits for Cluster API to be installed, and says so once', async () => {
    await stop();
    versions = [];
    start();
    await after(60_000);
    expect(log.of('waiting for it')).toHaveLength(1);
    versions = ['v1beta1'];
    putSecret('a', 'k');
    await after(10_000);
    clusters().put(cluster('a'));
    await after(0);
    expect(told).toEqual(['engage ns/a k']);
  });

  it('prefers v1beta2', () => {
    expect(clusters().target.resource.version).toBe('v1beta2');
  });

  it('after a failed one disengages what vanished meanwhile, and engages nothing anew', async () => {
    putSecret('a', 'k');
    putSecret('b', 'k');
    clusters().put(cluster('a'));
    clusters().put(cluster('b'));
    await after(0);
    await stop();
    expect(told).toEqual(['engage ns/a k', 'engage ns/b k']);
    clusters().remove('ns', 'a');
    start();
    await after(0);
    expect(told.slice(2)).toEqual(['disengage ns/a: its Cluster object was deleted']);
  });
});
