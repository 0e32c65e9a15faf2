import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Connection, RestClient } from '../../src/kube/index.ts';
import { clusterName, ShardMember } from '../../src/runtime/index.ts';
import type { ClusterName } from '../../src/runtime/index.ts';
import { createTelemetry } from '../../src/telemetry/index.ts';
import { ensureNamespace, eventually, startEnvironment } from '../support/index.ts';
import type { Environment } from '../support/index.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/capstan/leases';
const NAMES: readonly ClusterName[] = Array.from({ length: 120 }, (_, i) => clusterName(`fleet/c${i}`));

interface Replica {
  readonly member: ShardMember;
  readonly connection: Connection;
  readonly end: AbortController;
  readonly ended: Promise<void>;
}

/** Replicas that share clusters by Leases of a real API server; each has a connection of its own. */
describe('replicas that share the clusters of a fleet', () => {
  let environment: Environment;
  let replicas: Replica[] = [];

  beforeAll(async () => {
    environment = await startEnvironment({ clusters: 0 });
    await ensureNamespace(environment.management.api, 'capstan');
  });
  afterEach(async () => {
    for (const { end } of replicas) end.abort();
    await Promise.all(replicas.map(async ({ ended }) => ended));
    await Promise.all(replicas.map(async ({ connection }) => connection.close()));
    replicas = [];
    for (const { metadata } of await environment.management.api.list(LEASES))
      await environment.management.api.delete(`${LEASES}/${metadata.name}`);
  });
  afterAll(async () => {
    await environment.stop();
  });

  function start(identity: string, weight = 1): Replica {
    const telemetry = createTelemetry();
    const connection = Connection.fromKubeconfig(environment.management.kubeconfig, {
      clusterName: 'local',
      telemetry,
    });
    const client = new RestClient(connection);
    const member = new ShardMember({
      client,
      telemetry,
      group: 'capstan-shards',
      namespace: 'capstan',
      identity,
      weight,
    });
    const end = new AbortController();
    const replica = { member, connection, end, ended: member.run(end.signal) };
    replicas.push(replica);
    return replica;
  }

  function held({ member }: Replica): ClusterName[] {
    return NAMES.filter((name) => member.holds(name));
  }

  /** Each cluster is one replica's, and never two's on the way there. */
  async function shared(...among: Replica[]): Promise<void> {
    await eventually(
      () => {
        const all = among.flatMap((replica) => held(replica));
        if (new Set(all).size < all.length) throw new Error('a cluster is held twice');
        expect(all.length).toBe(NAMES.length);
      },
      { what: `${among.length} replicas share all clusters`, intervalMs: 20 },
    );
  }

  it('share them by weight, and a newcomer takes from each and gives to none', async () => {
    const [a, b] = [start('a'), start('b', 3)];
    await shared(a, b);
    expect(held(b).length).toBeGreaterThan(2 * held(a).length);
    const before = new Map([a, b].map((replica) => [replica, held(replica)]));
    const c = start('c');
    await eventually(() => expect(held(c).length).toBeGreaterThan(0));
    await shared(a, b, c);
    for (const [replica, had] of before) for (const name of held(replica)) expect(had).toContain(name);
  });

  it('hand over in order when one stops, and its Lease goes', async () => {
    const [a, b] = [start('a'), start('b')];
    await shared(a, b);
    const [name] = held(b);
    const permit = b.member.enter(name!);
    b.end.abort();
    await eventually(() => expect(b.member.holds(name!)).toBe(false));
    expect([permit?.valid, a.member.holds(name!)]).toEqual([true, false]);
    permit?.[Symbol.dispose]();
    await shared(a);
    await eventually(async () => expect(await environment.management.api.list(LEASES)).toHaveLength(1));
  });

  it('take over what one had that cannot reach the API server any more, which has stopped by then', async () => {
    const [a, b] = [start('a'), start('b')];
    await shared(a, b);
    const permit = b.member.enter(held(b)[0]!);
    await b.connection.close();
    await shared(a);
    expect([held(b), permit?.valid, permit?.signal.aborted]).toEqual([[], false, true]);
  });

  it('one whose Lease is deleted by hand stops its work and joins again', async () => {
    const a = start('a');
    await shared(a);
    const permit = a.member.enter(NAMES[0]!);
    const [lease] = await environment.management.api.list(LEASES);
    await environment.management.api.delete(`${LEASES}/${lease!.metadata.name}`);
    await eventually(() => expect(permit?.signal.aborted).toBe(true));
    await shared(a);
    expect(permit?.valid).toBe(false);
  });

  it('keep what they have while the API server restarts', async () => {
    const [a, b] = [start('a'), start('b')];
    await shared(a, b);
    const before = held(a);
    await environment.management.restart();
    await shared(a, b);
    expect(held(a)).toEqual(before);
  });
});
