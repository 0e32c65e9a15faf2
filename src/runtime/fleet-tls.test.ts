/** The fleet on real sockets: an API server of the test's own, over TLS and HTTP/2. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { sendJson, sendStatus, TestApiServer } from '../kube/api-server.test-support.ts';
import type { Resource, WatchTarget } from '../kube/index.ts';
import { createTelemetry } from '../telemetry/index.ts';
import { clusterName } from './cluster-name.ts';
import { SupervisedFleet } from './fleet.ts';
import { kubeConnectionFactory } from './kube-connection.ts';
import type { ClusterName, ClusterSink, ConnectionSpec, Provider } from './types.ts';

const a = clusterName('ns/a');
const CONFIG_MAPS: Resource = { group: '', version: 'v1', plural: 'configmaps', namespaced: true };
const TARGET: WatchTarget = { resource: CONFIG_MAPS, form: 'full' };
/** More probes than any test lives to see. */
const ALWAYS = 10_000;
const SOON = { timeout: 15_000, interval: 10 };

let server: TestApiServer;
let fleet: SupervisedFleet;
let sink: ClusterSink;
let end: AbortController;
let done: Promise<void>;
/** What the provider reads when it is asked to. */
let newest: ConnectionSpec;
const told: string[] = [];

/** The read that a probe makes; unanswered while `silent`. */
function kubeSystem(of: TestApiServer, silent: () => boolean = () => false): void {
  of.fail(
    'other',
    (response, { authorization }) => {
      if (silent()) return;
      const token = (authorization ?? '').replace('Bearer ', '');
      if (of.tokens?.has(token) === false) sendStatus(response, { code: 401, reason: 'Unauthorized', message: 'no' });
      else sendJson(response, 200, { kind: 'PartialObjectMetadata', metadata: { name: 'kube-system', uid: 'uid-1' } });
    },
    ALWAYS,
  );
}

function spec(token: string): ConnectionSpec {
  return { kubeconfig: server.kubeconfig({ token }) };
}

function phase(name: ClusterName): string | undefined {
  return fleet.state(name)?.phase;
}

beforeEach(async () => {
  server = await TestApiServer.start();
  kubeSystem(server);
  server.tokens = new Set(['one']);
  newest = spec('one');
  told.length = 0;
  const telemetry = createTelemetry();
  fleet = new SupervisedFleet({
    factory: kubeConnectionFactory({ telemetry }),
    telemetry,
    supervision: {
      probeIntervalMs: 50,
      // Long enough for a loaded machine to answer: only the silent server is to be too slow.
      probeTimeoutMs: 2_000,
      probeFailures: 2,
      degradedIntervalMs: 50,
      connectTimeoutMs: 5_000,
      backoffBaseMs: 50,
      closeGraceMs: 10,
    },
  });
  fleet.register({
    engaged: ({ name }) => told.push(`engaged ${name}`),
    degraded: ({ name }) => told.push(`degraded ${name}`),
    disengaged: ({ name }) => told.push(`disengaged ${name}`),
  });
  const provider: Provider = {
    name: 'test',
    run: async () => undefined,
    refresh: (name) => sink.engage(name, newest),
  };
  sink = fleet.sink(provider);
  end = new AbortController();
  done = fleet.run(end.signal);
});
afterEach(async () => {
  end.abort();
  await done;
  await vi.waitFor(() => expect(server.sockets.size).toBe(0), SOON);
  await server.stop();
});

it('swaps credentials under a running watch, and the next call carries the new ones', async () => {
  sink.engage(a, spec('one'));
  await vi.waitFor(() => expect(phase(a)).toBe('engaged'), SOON);
  const cluster = fleet.get(a);
  expect(cluster.uid).toBe('uid-1');
  const informer = cluster.watches.hold({}, TARGET);
  await informer.synced(cluster.signal, 5_000);
  await vi.waitFor(() => expect(server.watches).toHaveLength(1), SOON);
  server.tokens = new Set(['two']);
  newest = spec('two');
  sink.engage(a, newest);
  await vi.waitFor(() => expect(cluster.kubeconfig()).toContain('two'), SOON);
  await cluster.client.list(CONFIG_MAPS, { namespace: 'default' });
  expect(server.seen.at(-1)?.authorization).toBe('Bearer two');
  server.put('late');
  await vi.waitFor(() => expect(informer.get('default', 'late')).toBeDefined(), SOON);
  expect(server.watches.map((watch) => watch.open)).toEqual([true]);
  expect(fleet.get(a)).toBe(cluster);
  expect(told).toEqual(['engaged ns/a']);
});

it('has the credentials read again when a call is refused, and the call succeeds', async () => {
  sink.engage(a, spec('one'));
  await vi.waitFor(() => expect(phase(a)).toBe('engaged'), SOON);
  server.tokens = new Set(['two']);
  newest = spec('two');
  await fleet.get(a).client.list(CONFIG_MAPS, { namespace: 'default' });
  expect(fleet.get(a).kubeconfig()).toContain('two');
  expect(told).toEqual(['engaged ns/a']);
});

it('degrades a server that falls silent while another goes on, and takes it back', async () => {
  const silent = await TestApiServer.start();
  const b = clusterName('ns/b');
  let silence = false;
  try {
    kubeSystem(silent, () => silence);
    sink.engage(a, spec('one'));
    sink.engage(b, { kubeconfig: silent.kubeconfig({ token: 'one' }) });
    await vi.waitFor(() => expect([phase(a), phase(b)]).toEqual(['engaged', 'engaged']), SOON);
    const cluster = fleet.get(b);
    silence = true;
    await vi.waitFor(() => expect(phase(b)).toBe('degraded'), SOON);
    expect(phase(a)).toBe('engaged');
    silence = false;
    await vi.waitFor(() => expect(phase(b)).toBe('engaged'), SOON);
    expect(fleet.get(b)).toBe(cluster);
    expect(told.filter((line) => line.endsWith('/a'))).toEqual(['engaged ns/a']);
  } finally {
    sink.disengage(b, 'the test is over');
    await silent.stop();
  }
});

it('leaves no socket, no watch and no memory behind after a hundred rounds', async () => {
  const clusters: WeakRef<object>[] = [];
  for (let round = 0; round < 100; round += 1) {
    sink.engage(a, spec('one'));
    await vi.waitFor(() => expect(phase(a)).toBe('engaged'), SOON);
    const cluster = fleet.get(a);
    clusters.push(new WeakRef(cluster), new WeakRef(cluster.watches), new WeakRef(cluster.client));
    await cluster.watches.hold({}, TARGET).synced(cluster.signal, 5_000);
    sink.disengage(a, 'round over');
    await vi.waitFor(() => expect(server.sockets.size).toBe(0), SOON);
  }
  expect(server.watches.filter((watch) => watch.open)).toEqual([]);
  expect(told).toHaveLength(200);
  // Whoever still held an engagement would hold its caches too. The last round may stand on the stack yet.
  const collect = garbageCollector();
  await vi.waitFor(() => {
    collect();
    expect(clusters.filter((reference) => reference.deref() !== undefined).length).toBeLessThanOrEqual(3);
  }, SOON);
}, 60_000);

/** V8's own, without starting the runner with a flag. */
function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
