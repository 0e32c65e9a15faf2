import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { NetworkError } from '../../kube/index.ts';
import type { KubeObject, Resource } from '../../kube/index.ts';
import { FakeStore, FakeWatchSet, testTelemetry } from '../../runtime/fakes.test-support.ts';
import { clusterName, LOCAL_CLUSTER } from '../../runtime/index.ts';
import type { Cluster, ClusterAbout, ClusterSink } from '../../runtime/index.ts';
import { KUBECONFIG_LABEL, KubeconfigSecretProvider } from './secret-provider.ts';
import type { KubeconfigSecretProviderOptions } from './secret-provider.ts';

const SECRETS: Resource = { group: '', version: 'v1', plural: 'secrets', namespaced: true };
const after = async (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

let told: string[];
let abouts: Map<string, ClusterAbout | undefined>;
let store: FakeStore;
let watches: FakeWatchSet;
let provider: KubeconfigSecretProvider;
let end: AbortController;
let done: Promise<void>;

const sink: ClusterSink = {
  discover: (name, { code, message }) => void told.push(`discover ${name} ${code}: ${message}`),
  engage: (name, { kubeconfig }, about) => {
    told.push(`engage ${name} ${kubeconfig}`);
    abouts.set(name, about);
  },
  disengage: (name) => void told.push(`disengage ${name}`),
};

function put(name: string, data: Record<string, string>, labels: Record<string, string> = {}): void {
  const encoded = Object.fromEntries(Object.entries(data).map(([key, text]) => [key, btoa(text)]));
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': 'hush' };
  const metadata = { namespace: 'ns', name, uid: `uid-of-${name}`, annotations, labels };
  const stored = store.put<KubeObject & { data: object }>(SECRETS, { metadata, data: encoded });
  watches.of({ resource: SECRETS, form: 'metadata' }).put({ metadata: stored.metadata });
}

function remove(name: string): void {
  store.remove(SECRETS, { namespace: 'ns', name });
  watches.of({ resource: SECRETS, form: 'metadata' }).remove('ns', name);
}

async function start(options: Partial<KubeconfigSecretProviderOptions> = {}): Promise<void> {
  const management: Cluster = {
    name: LOCAL_CLUSTER,
    uid: undefined,
    client: store.client,
    discovery: {
      versions: async () => Promise.resolve([]),
      find: async () => Promise.resolve(undefined),
      invalidate: () => undefined,
    },
    watches,
    signal: new AbortController().signal,
    degraded: false,
    kubeconfig: () => '',
  };
  provider = new KubeconfigSecretProvider({ management, telemetry: testTelemetry().telemetry, ...options });
  await run();
}

async function run(): Promise<void> {
  end = new AbortController();
  done = provider.run(sink, end.signal);
  done.catch(() => undefined);
  await after(0);
}

async function stop(): Promise<void> {
  end.abort(new Error('the test is over'));
  await after(0);
  await done;
}

beforeEach(() => {
  vi.useFakeTimers();
  told = [];
  abouts = new Map();
  store = new FakeStore();
  watches = new FakeWatchSet();
});
afterEach(async () => {
  await stop();
  expect(watches.owners.size).toBe(0);
  expect([...watches.informers.values()].every(({ handlers }) => handlers === 0)).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe('a labelled Secret', () => {
  it('is a cluster of its name with its labels, and nothing of its annotations', async () => {
    await start({ namespaces: ['ns'] });
    put('a', { kubeconfig: 'k1' }, { [KUBECONFIG_LABEL]: 'true', tier: 'edge' });
    await after(0);
    expect(told).toEqual(['engage a k1']);
    expect(abouts.get('a')).toEqual({
      labels: { [KUBECONFIG_LABEL]: 'true', tier: 'edge' },
      namespace: 'ns',
      source: { apiVersion: 'v1', kind: 'Secret', namespace: 'ns', name: 'a', uid: 'uid-of-a' },
    });
    expect(watches.of({ resource: SECRETS, form: 'metadata' }).target).toMatchObject({
      form: 'metadata',
      namespace: 'ns',
    });
  });

  it.each([[undefined], [['ns', 'other']]])(
    'has its namespace in its name when %j are looked at',
    async (namespaces) => {
      await start({ namespaces });
      put('a', { value: 'k1' });
      await after(0);
      expect(told).toEqual(['engage ns/a k1']);
      expect(store.calls).toEqual(['find ns/a']);
    },
  );

  it('is read once per change, also of its labels', async () => {
    await start();
    put('a', { kubeconfig: 'k1', value: 'not asked for' });
    await after(60_000);
    expect(store.calls).toHaveLength(1);
    put('a', { kubeconfig: 'k1' }, { tier: 'core' });
    put('a', { kubeconfig: 'k2' }, { tier: 'core' });
    await after(0);
    expect(told).toEqual(['engage ns/a k1', 'engage ns/a k2']);
    expect(abouts.get('ns/a')?.labels).toEqual({ tier: 'core' });
  });

  it('without a kubeconfig is told as a reason, and mended it is engaged', async () => {
    await start();
    put('a', { other: 'k1', kubeconfig: '' });
    await after(0);
    expect(told).toEqual(['discover ns/a KubeconfigUnavailable: Secret ns/a has none of the keys kubeconfig, value']);
    put('a', { kubeconfig: 'k1' });
    await after(0);
    expect(told.slice(1)).toEqual(['engage ns/a k1']);
  });

  it('that is gone or has lost its label disengages, once', async () => {
    await start();
    put('a', { kubeconfig: 'k1' });
    await after(0);
    remove('a');
    await after(60_000);
    expect(told.slice(1)).toEqual(['disengage ns/a']);
  });

  it('that cannot be read is tried again, and stays what it was', async () => {
    await start();
    put('a', { kubeconfig: 'k1' });
    await after(0);
    let failing = true;
    store.before = () => {
      if (failing) throw new NetworkError('refused');
    };
    put('a', { kubeconfig: 'k2' });
    await after(5_000);
    expect(told).toEqual(['engage ns/a k1']);
    failing = false;
    await after(60_000);
    expect(told.slice(1)).toEqual(['engage ns/a k2']);
  });

  it('that went while it was read is left to the watch', async () => {
    await start();
    store.before = () => {
      store.remove(SECRETS, { namespace: 'ns', name: 'a' });
    };
    put('a', { kubeconfig: 'k1' });
    await after(60_000);
    expect(told).toEqual([]);
  });

  it('is read at once after a refusal, whatever its version', async () => {
    await start({ namespaces: ['ns'] });
    put('a', { kubeconfig: 'k1' });
    await after(0);
    provider.refresh(clusterName('a'));
    provider.refresh(clusterName('nobody'));
    await after(0);
    expect(told).toEqual(['engage a k1', 'engage a k1']);
  });
});

describe('a run', () => {
  it('after another learns what came and what went', async () => {
    await start();
    put('a', { kubeconfig: 'ka' });
    put('b', { kubeconfig: 'kb' });
    await after(0);
    await stop();
    remove('a');
    put('c', { kubeconfig: 'kc' });
    await run();
    expect(told.slice(2).sort()).toEqual(['disengage ns/a', 'engage ns/c kc']);
  });

  it('that is stopped in the middle of a read declares nothing any more', async () => {
    await start();
    const hanging = Promise.withResolvers<undefined>();
    store.before = async () => hanging.promise;
    put('a', { kubeconfig: 'k1' });
    await after(0);
    end.abort(new Error('stop'));
    hanging.resolve(undefined);
    await after(0);
    expect(told).toEqual([]);
  });
});
