import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Connection, RestClient } from '../../kube/index.ts';
import type { Resource, WriteGuard } from '../../kube/index.ts';
import { TestApiServer } from '../../kube/api-server.test-support.ts';
import { TestAuthority } from '../../kube/certificates.test-support.ts';
import { createTelemetry } from '../../telemetry/index.ts';
import { clusterName, LOCAL_CLUSTER } from '../cluster-name.ts';
import { metricValues } from '../fakes.test-support.ts';
import { CurrentPermit, managementGuard, workloadGuard } from './current-permit.ts';
import { FakeShards } from './fake-shards.test-support.ts';
import type { Permit } from './types.ts';

const authority = await TestAuthority.create();
const CONFIG_MAPS: Resource = { group: '', version: 'v1', plural: 'configmaps', namespaced: true };
const LEASES: Resource = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', namespaced: true };
const EVENTS: Resource = { group: '', version: 'v1', plural: 'events', namespaced: true };
const [a, b] = [clusterName('ns/a'), clusterName('ns/b')];
const object = { metadata: { namespace: 'ns', name: 'x' } };
const key = { namespace: 'ns', name: 'x' };

let server: TestApiServer;
let shards: FakeShards;
let current: CurrentPermit;
const telemetry = createTelemetry();
const connections: Connection[] = [];

beforeEach(async () => {
  server = await TestApiServer.start(authority);
  shards = new FakeShards(a, LOCAL_CLUSTER);
  current = new CurrentPermit();
});

afterEach(async () => {
  for (const connection of connections.splice(0)) await connection.close();
  await server.stop();
});

function client(guard: WriteGuard): RestClient {
  const kubeconfig = server.kubeconfig({ token: 'first' });
  const connection = Connection.fromKubeconfig(kubeconfig, { clusterName: 'test', telemetry, guard });
  connections.push(connection);
  return new RestClient(connection);
}

function permitFor(name = a): Permit {
  const permit = shards.enter(name);
  if (permit === undefined) throw new Error('not held');
  return permit;
}

const WRITES: Record<string, (rest: RestClient) => Promise<unknown>> = {
  create: async (rest) => rest.create(CONFIG_MAPS, object),
  replace: async (rest) => rest.replace(CONFIG_MAPS, object),
  patch: async (rest) => rest.patch(CONFIG_MAPS, key, { type: 'merge', body: {} }),
  apply: async (rest) => rest.apply(CONFIG_MAPS, object, { fieldManager: 'me' }),
  delete: async (rest) => rest.delete(CONFIG_MAPS, key),
};

describe('the guard of a connection to a workload cluster', () => {
  it.each(Object.keys(WRITES))('sends no %s to a cluster that this replica does not serve', async (verb) => {
    const rest = client(workloadGuard(a, { shards, current }));
    await WRITES[verb]?.(rest);
    const sent = server.seen.length;
    expect(sent).toBeGreaterThan(0);
    shards.fence = false;
    await expect(WRITES[verb]?.(rest)).rejects.toMatchObject({
      code: 'WriteRefused',
      cause: { code: 'CAPSTAN_SHARD_LOST', cluster: a },
    });
    expect(server.seen.length).toBe(sent);
  });

  it('lets reads through', async () => {
    shards.fence = false;
    const rest = client(workloadGuard(a, { shards, current }));
    await expect(rest.get(CONFIG_MAPS, key)).resolves.toMatchObject({ echo: 'GET' });
  });

  it('lets writes through while the cluster is handed over, but none of work that was aborted', async () => {
    const rest = client(workloadGuard(a, { shards, current }));
    const permit = permitFor();
    shards.leave(a);
    await current.run(permit, async () => rest.create(CONFIG_MAPS, object));
    for (const each of shards.permits) each.controller.abort(new Error('waited for long enough'));
    await expect(current.run(permit, async () => rest.create(CONFIG_MAPS, object))).rejects.toMatchObject({
      code: 'WriteRefused',
    });
  });

  it.each([true, false])(
    'asks again when a socket is there: making one may take any time (HTTP/2: %s)',
    async (http2) => {
      let asked = 0;
      const kubeconfig = server.kubeconfig({ token: 'first' });
      const guard = (): void => {
        // The process is stopped while it connects.
        if (++asked > 1) throw new Error('lost meanwhile');
      };
      const connection = Connection.fromKubeconfig(kubeconfig, { clusterName: 'test', telemetry, guard, http2 });
      connections.push(connection);
      await expect(new RestClient(connection).create(CONFIG_MAPS, object)).rejects.toMatchObject({
        code: 'WriteRefused',
        cause: { message: 'lost meanwhile' },
      });
      await expect(
        connection.forward({ method: 'POST', path: '/x', headers: {}, signal: new AbortController().signal }),
      ).rejects.toMatchObject({ code: 'WriteRefused' });
      expect(server.seen).toEqual([]);
      // And the socket is none the worse for it.
      asked = -10;
      await expect(new RestClient(connection).create(CONFIG_MAPS, object)).resolves.toMatchObject({ echo: 'POST' });
    },
  );

  it('asks again before a second attempt is sent', async () => {
    const rest = client(workloadGuard(a, { shards, current }));
    server.tokens = new Set();
    connections[0]?.setUnauthorizedHook(async () => {
      // There are newer credentials, and the fence is lost by the time.
      shards.fence = false;
      return Promise.resolve(true);
    });
    await expect(rest.create(CONFIG_MAPS, object)).rejects.toMatchObject({ code: 'WriteRefused' });
    expect(server.seen).toHaveLength(1);
    expect(await metricValues(telemetry, 'capstan_kube_requests_total')).toMatchObject({
      '{"cluster":"test","verb":"create","code":"WriteRefused"}': expect.any(Number) as number,
    });
  });
});

describe('the guard of the connection to the management cluster', () => {
  it('sends writes of work whose permit is valid, and no others', async () => {
    const rest = client(managementGuard(current, LOCAL_CLUSTER));
    const permit = permitFor();
    await expect(rest.create(CONFIG_MAPS, object)).rejects.toMatchObject({ code: 'WriteRefused' });
    await current.run(permit, async () => rest.create(CONFIG_MAPS, object));
    shards.lose(a);
    await expect(current.run(permit, async () => rest.create(CONFIG_MAPS, object))).rejects.toMatchObject({
      code: 'WriteRefused',
      cause: { cluster: a },
    });
    expect(server.seen).toHaveLength(1);
  });

  it("tells each work's permit from another's that runs at the same time", async () => {
    shards.take(b);
    const rest = client(managementGuard(current, LOCAL_CLUSTER));
    const [first, second] = [permitFor(a), permitFor(b)];
    shards.lose(b);
    const results = await Promise.allSettled([
      current.run(first, async () => rest.create(CONFIG_MAPS, object)),
      current.run(second, async () => rest.create(CONFIG_MAPS, object)),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });

  it('never holds up what the process writes on its own account', async () => {
    shards.fence = false;
    const rest = client(managementGuard(current, LOCAL_CLUSTER));
    await rest.create(LEASES, object);
    await rest.replace(LEASES, object);
    await rest.create(EVENTS, object);
    await rest.patch(EVENTS, key, { type: 'merge', body: {} });
    await rest.raw('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { body: {} });
    await rest.raw('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { body: {} });
    expect(server.seen).toHaveLength(6);
  });

  it('takes no other resource for one of these', async () => {
    const rest = client(managementGuard(current, LOCAL_CLUSTER));
    const lookalike: Resource = { group: 'example.org', version: 'v1', plural: 'events', namespaced: true };
    await expect(rest.create(lookalike, object)).rejects.toMatchObject({ code: 'WriteRefused' });
    const named = { metadata: { namespace: 'events', name: 'leases' } };
    await expect(rest.create(CONFIG_MAPS, named)).rejects.toMatchObject({ code: 'WriteRefused' });
  });
});
