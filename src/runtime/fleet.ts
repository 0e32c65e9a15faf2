import PQueue from 'p-queue';
import type { Counter, Gauge } from 'prom-client';
import { counter, forgetCluster, gauge } from '../telemetry/index.ts';
import type { Logger, Telemetry } from '../telemetry/index.ts';
import { aborted, settledWithin } from './abort.ts';
import { clusterName, LOCAL_CLUSTER, prefixedClusterName } from './cluster-name.ts';
import { RecordBook } from './cluster-records.ts';
import type { ClusterRecords } from './cluster-records.ts';
import type { ConnectionFactory } from './connection.ts';
import { describeState } from './debug-cluster.ts';
import { ClusterNotConnectedError, ClusterNotFoundError } from './errors.ts';
import { say, tell } from './fleet-news.ts';
import type { ClusterChange } from './fleet-news.ts';
import { prefixedSink } from './prefixed.ts';
import { FleetShards } from './sharding/fleet-shards.ts';
import { identify } from './sharding/identify.ts';
import { NOT_MY_SHARD, plainSink } from './sharding/sharded-sink.ts';
import type { EngagementSink } from './sharding/sharded-sink.ts';
import type { Shards } from './sharding/types.ts';
import { supervisionDefaults } from './supervision-options.ts';
import type { SupervisionOptions } from './supervision-options.ts';
import { Supervisor } from './supervisor.ts';
import type {
  Aware,
  Cluster,
  ClusterAbout,
  ClusterName,
  ClusterSink,
  ClusterState,
  Fleet,
  NotConnectedReason,
  Provider,
  Runnable,
} from './types.ts';

export interface FleetOptions {
  readonly factory: ConnectionFactory;
  readonly telemetry: Telemetry;
  readonly supervision?: Partial<SupervisionOptions>;
  readonly random?: () => number;
  /** Several replicas share the clusters: only what this one serves is engaged. All are known (`records`). */
  readonly shards?: Shards;
}

const PHASES: readonly ClusterState['phase'][] = ['discovered', 'connecting', 'engaged', 'degraded'];
/** On stop: sockets have so long to close. */
const STOP_GRACE_MS = 5_000;

/** No attempt to connect has failed. */
const CONNECTING: NotConnectedReason = { code: 'Connecting', message: 'connecting' };
/** Whose the name LOCAL_CLUSTER is. */
const LOCAL_OWNER = { name: 'the management cluster' } as const;

/** Who declares, and whether his clusters' names carry his own. */
interface Source {
  readonly provider: Provider;
  readonly prefixed: boolean;
}

/** A declared cluster; without a supervisor, another replica serves it. */
interface Member extends Source {
  supervisor?: Supervisor;
}

/**
 * The fleet: one supervisor per declared cluster, and everybody who wants to know. As a Runnable it does nothing but
 * end all engagements when its signal aborts; clusters are supervised from their declaration on.
 */
export class SupervisedFleet implements Fleet, Runnable {
  readonly name = 'fleet';
  readonly #options: FleetOptions;
  readonly #supervision: SupervisionOptions;
  readonly #members = new Map<ClusterName, Member>();
  /** Supervisors until their last socket is closed, also those whose name has a successor by now. */
  readonly #alive = new Set<Supervisor>();
  readonly #tidying = new Set<Promise<void>>();
  readonly #awares = new Set<Required<Aware>>();
  readonly #records: RecordBook;
  readonly #slots: PQueue;
  readonly #sharded: FleetShards | undefined;
  readonly #log: Logger;
  readonly #phases: Gauge<'phase'>;
  readonly #transitions: Counter<'cluster' | 'from' | 'to'>;
  #stopped = false;

  constructor(options: FleetOptions) {
    const { metrics, log } = options.telemetry;
    this.#options = options;
    this.#supervision = supervisionDefaults(options.supervision);
    this.#slots = new PQueue({ concurrency: this.#supervision.concurrentConnects });
    this.#log = log;
    this.#records = new RecordBook((cluster, err) => {
      log.error('a listener of the records threw; the others go on', { cluster, err });
    });
    this.#phases = gauge(metrics, 'capstan_clusters', 'Clusters of the fleet by phase', ['phase']);
    for (const phase of PHASES) this.#phases.set({ phase }, 0);
    this.#sharded = options.shards && new FleetShards(options.shards, metrics);
    this.#transitions = counter(
      metrics,
      'capstan_cluster_transitions_total',
      'Changes of a cluster from one phase to another',
      ['cluster', 'from', 'to'],
    );
  }

  /** What providers declare of the clusters besides how to reach them. */
  get records(): ClusterRecords {
    return this.#records;
  }

  get(name: ClusterName): Cluster {
    // By the clock, at each hand-out: what is engaged still may be another's by now.
    if (this.#sharded?.shards.serves(name) === false) throw new ClusterNotConnectedError(name, NOT_MY_SHARD);
    const state = this.state(name);
    if (state?.phase === 'engaged') return state.cluster;
    throw this.#whyNot(name, state);
  }

  #whyNot(name: ClusterName, state: Exclude<ClusterState, { phase: 'engaged' }> | undefined): Error {
    switch (state?.phase) {
      case undefined:
        return this.#members.has(name)
          ? new ClusterNotConnectedError(name, CONNECTING)
          : new ClusterNotFoundError(name);
      case 'disengaged':
        return new ClusterNotFoundError(name);
      case 'discovered':
      case 'degraded':
        return new ClusterNotConnectedError(name, state.reason);
      case 'connecting':
        return new ClusterNotConnectedError(name, state.lastError ?? CONNECTING);
    }
  }

  async identify(name: ClusterName, signal: AbortSignal): Promise<string | undefined> {
    const spec = this.#sharded?.specOf(name);
    if (spec === undefined) return this.get(name).uid;
    const { factory, telemetry } = this.#options;
    try {
      return await identify(name, spec, { factory, limitMs: this.#supervision.connectTimeoutMs, signal });
    } finally {
      if (this.state(name) === undefined) await forgetCluster(telemetry.metrics, name);
    }
  }

  state(name: ClusterName): ClusterState | undefined {
    return this.#members.get(name)?.supervisor?.state;
  }

  states(): ReadonlyMap<ClusterName, ClusterState> {
    const states = new Map<ClusterName, ClusterState>();
    for (const [name, { supervisor }] of this.#members)
      if (supervisor?.state !== undefined) states.set(name, supervisor.state);
    return states;
  }

  debug(): unknown {
    return [...this.states()].map(([name, state]) => describeState(name, state));
  }

  register(aware: Aware): () => void {
    // An object of its own, so that the same party may register twice and each removal takes its own.
    const entry: Required<Aware> = {
      engaged: (cluster) => aware.engaged?.(cluster),
      degraded: (cluster, reason) => aware.degraded?.(cluster, reason),
      disengaged: (cluster, reason) => aware.disengaged?.(cluster, reason),
      changed: (name, state) => aware.changed?.(name, state),
    };
    this.#awares.add(entry);
    for (const [name, now] of this.states())
      this.#tell(entry, this.#log.with({ cluster: name }), { name, before: undefined, now });
    return () => {
      this.#awares.delete(entry);
    };
  }

  /** Where `provider` declares. With `prefix`, its clusters are named `provider#name`: needed as soon as there are several providers. */
  sink(provider: Provider, options: { prefix?: boolean } = {}): ClusterSink {
    const source: Source = { provider, prefixed: options.prefix === true };
    const side: EngagementSink = {
      declared: (name, about) => this.#declared(source, name, about),
      discover: (name, reason) => this.#supervisorOf(provider, name)?.discover(reason),
      engage: (name, spec) => this.#supervisorOf(provider, name)?.engage(spec),
      withdraw: (name, reason) => this.#withdraw(provider, name, reason),
      disengage: (name, reason) => this.#remove(provider, name, reason),
      synced: () => this.#records.synced(provider.name),
    };
    const sink = this.#sharded?.sink(side) ?? plainSink(side);
    return source.prefixed ? prefixedSink(sink, (bare) => prefixedClusterName(provider.name, bare)) : sink;
  }

  /** Resolves after `signal` aborted, every engagement has ended and sockets are closed. */
  async run(signal: AbortSignal): Promise<void> {
    await aborted(signal);
    this.#stopped = true;
    this.#sharded?.close();
    for (const supervisor of this.#alive) supervisor.remove('the fleet stops', true);
    this.#members.clear();
    const ended = Promise.allSettled([...this.#alive].map(async (supervisor) => supervisor.done));
    if (!(await settledWithin(ended, STOP_GRACE_MS))) this.#log.warn('connections were slow to close and are left');
    await Promise.allSettled(this.#tidying);
  }

  /** False when the name is another provider's. */
  #declared(source: Source, name: ClusterName, about: ClusterAbout | undefined): boolean {
    const { provider } = source;
    if (this.#stopped) return false;
    const owner = name === LOCAL_CLUSTER ? LOCAL_OWNER : this.#members.get(name)?.provider;
    if (owner !== undefined && owner !== provider) {
      this.#log.error('a declaration is ignored: the name is taken', {
        cluster: name,
        provider: provider.name,
        owner: owner === LOCAL_OWNER ? owner.name : `provider ${owner.name}`,
      });
      return false;
    }
    if (owner === undefined) this.#members.set(name, { ...source });
    this.#records.put(name, provider.name, about);
    return true;
  }

  #supervisorOf(provider: Provider, name: ClusterName): Supervisor | undefined {
    const member = this.#members.get(name);
    if (this.#stopped || member?.provider !== provider) return undefined;
    return (member.supervisor ??= this.#supervise(member, name));
  }

  #supervise({ provider, prefixed }: Source, name: ClusterName): Supervisor {
    const bareName = prefixed ? clusterName(name.slice(provider.name.length + 1)) : name;
    const log = this.#log.with({ cluster: name });
    const supervisor: Supervisor = new Supervisor(name, {
      factory: this.#options.factory,
      options: this.#supervision,
      random: this.#options.random ?? Math.random,
      log,
      slots: this.#slots,
      onChange: (before, now) => this.#onChange(name, before, now),
      refresh: () => {
        this.#guard(log, 'refresh of credentials', () => provider.refresh?.(bareName));
        return provider.refresh !== undefined;
      },
    });
    this.#alive.add(supervisor);
    const tidy = this.#tidyUp(supervisor).finally(() => this.#tidying.delete(tidy));
    this.#tidying.add(tidy);
    return supervisor;
  }

  #remove(provider: Provider, name: ClusterName, reason: string): void {
    const member = this.#members.get(name);
    if (member?.provider !== provider) return;
    // Gone from the map before anybody is told: a party that asks is told "not found".
    this.#members.delete(name);
    this.#records.remove(name);
    member.supervisor?.remove(reason);
  }

  /** Another replica serves it: here it stays known. */
  #withdraw(provider: Provider, name: ClusterName, reason: string): void {
    const member = this.#members.get(name);
    if (member?.provider !== provider) return;
    const { supervisor } = member;
    delete member.supervisor;
    supervisor?.remove(reason);
  }

  /** By identity: the name may belong to a successor by now, and then its metrics stay. */
  async #tidyUp(supervisor: Supervisor): Promise<void> {
    await supervisor.done;
    this.#alive.delete(supervisor);
    if (this.#stopped || this.#members.get(supervisor.name)?.supervisor !== undefined) return;
    await forgetCluster(this.#options.telemetry.metrics, supervisor.name);
  }

  #onChange(name: ClusterName, before: ClusterState | undefined, now: ClusterState): void {
    if (before?.phase !== now.phase) this.#count(name, before, now);
    const log = this.#log.with({ cluster: name });
    say(log, { name, before, now });
    for (const aware of [...this.#awares]) this.#tell(aware, log, { name, before, now });
  }

  #count(name: ClusterName, before: ClusterState | undefined, now: ClusterState): void {
    if (before !== undefined) this.#phases.dec({ phase: before.phase });
    if (now.phase !== 'disengaged') this.#phases.inc({ phase: now.phase });
    this.#transitions.inc({ cluster: name, from: before?.phase ?? '', to: now.phase });
  }

  #tell(aware: Required<Aware>, log: Logger, change: ClusterChange): void {
    this.#guard(log, 'a party of the fleet', () => tell(aware, change));
  }

  #guard(log: Logger, who: string, fn: () => void): void {
    try {
      fn();
    } catch (err) {
      log.error(`${who} threw; the others go on`, { err });
    }
  }
}
