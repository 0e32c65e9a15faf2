import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FakeWatchSet, FakeStore } from '../../runtime/fakes.test-support.ts';
import { clusterName, LOCAL_CLUSTER } from '../../runtime/index.ts';
import type { Cluster, ClusterSink } from '../../runtime/index.ts';
import { LOCAL_TARGET, LocalProvider } from './local-provider.ts';

let told: string[];
let credentials: () => string;
let end: AbortController;
let provider: LocalProvider;
let done: Promise<void>;

const sink: ClusterSink = {
  discover: (name, { code, message }) => void told.push(`discover ${name} ${code}: ${message}`),
  engage: (name, { kubeconfig }, about) => void told.push(`engage ${name} ${kubeconfig} ${JSON.stringify(about)}`),
  disengage: (name) => void told.push(`disengage ${name}`),
};

beforeEach(() => {
  vi.useFakeTimers();
  told = [];
  credentials = () => 'k1';
  const management: Cluster = {
    name: LOCAL_CLUSTER,
    uid: undefined,
    client: new FakeStore().client,
    discovery: {
      versions: async () => Promise.resolve([]),
      find: async () => Promise.resolve(undefined),
      invalidate: () => undefined,
    },
    watches: new FakeWatchSet(),
    signal: new AbortController().signal,
    degraded: false,
    kubeconfig: () => credentials(),
  };
  provider = new LocalProvider({ management, labels: { tier: 'hub' } });
  end = new AbortController();
  done = provider.run(sink, end.signal);
});
afterEach(async () => {
  end.abort(new Error('the test is over'));
  await done;
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

it('declares the management cluster under a name that is not the runtime’s own for it', () => {
  expect(told).toEqual(['engage in-cluster k1 {"labels":{"tier":"hub"}}']);
  expect(LOCAL_TARGET).not.toBe(LOCAL_CLUSTER);
});

it('follows the manager’s credentials, at once when they are refused', async () => {
  credentials = () => 'k2';
  await vi.advanceTimersByTimeAsync(30_000);
  expect(told.at(-1)).toContain('k2');
  credentials = () => 'k3';
  provider.refresh(clusterName('another'));
  await vi.advanceTimersByTimeAsync(0);
  expect(told.at(-1)).toContain('k2');
  provider.refresh(clusterName(LOCAL_TARGET));
  await vi.advanceTimersByTimeAsync(0);
  expect(told.at(-1)).toContain('k3');
});

it('tells why when they cannot be read, and goes on', async () => {
  credentials = () => {
    throw new Error('no such file');
  };
  await vi.advanceTimersByTimeAsync(30_000);
  expect(told.at(-1)).toBe(
    "discover in-cluster KubeconfigUnavailable: the manager's own credentials cannot be read: no such file",
  );
  credentials = () => 'k2';
  await vi.advanceTimersByTimeAsync(30_000);
  expect(told.at(-1)).toContain('engage in-cluster k2');
});

it('declares nothing after its end', async () => {
  end.abort(new Error('stop'));
  await done;
  provider.refresh(clusterName(LOCAL_TARGET));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(told).toHaveLength(1);
});
