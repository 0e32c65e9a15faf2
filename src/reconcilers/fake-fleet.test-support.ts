import { LOCAL_CLUSTER, clusterName } from '../runtime/index.ts';
import type { Aware, Cluster, ClusterName, ClusterState, EventRecorder, Fleet } from '../runtime/index.ts';
import { FakeServer } from './fakes.test-support.ts';

/** The management cluster over a FakeServer. */
export function fakeManagement(server: FakeServer): Cluster {
  return {
    name: LOCAL_CLUSTER,
    uid: 'management',
    client: server.client,
    discovery: server.discovery,
    watches: server.watches,
    signal: new AbortController().signal,
    degraded: false,
    kubeconfig: () => '',
  };
}

/** A fleet whose clusters are engaged by hand. */
export class FakeFleet implements Fleet {
  readonly #states = new Map<ClusterName, ClusterState>();
  readonly #awares = new Set<Aware>();

  engage(name: string, uid: string | undefined): void {
    const cluster: Cluster = { ...fakeManagement(new FakeServer()), name: clusterName(name), uid };
    this.#states.set(cluster.name, { phase: 'engaged', cluster });
    for (const aware of this.#awares) aware.engaged?.(cluster);
  }

  get(name: ClusterName): Cluster {
    const state = this.#states.get(name);
    if (state?.phase !== 'engaged') throw new Error(`${name} is not engaged`);
    return state.cluster;
  }

  state(name: ClusterName): ClusterState | undefined {
    return this.#states.get(name);
  }

  states(): ReadonlyMap<ClusterName, ClusterState> {
    return this.#states;
  }

  register(aware: Aware): () => void {
    this.#awares.add(aware);
    return () => this.#awares.delete(aware);
  }
}

/** Keeps what was recorded. */
export class FakeEvents implements EventRecorder {
  readonly recorded: string[] = [];

  record(about: { metadata: { name: string } }, event: { type: string; reason: string; message: string }): void {
    this.recorded.push(`${event.type} ${about.metadata.name} ${event.reason}: ${event.message}`);
  }
}
