import PQueue from 'p-queue';
import type { Counter, Gauge } from 'prom-client';
import { counter, forgetCluster, gauge } from '../telemetry/index.ts';
import type { Logger, Telemetry } from '../telemetry/index.ts';
import { aborted, settledWithin } from './abort.ts';
import { LOCAL_CLUSTER, prefixedClusterName } from './cluster-name.ts';
import { RecordBook } from './cluster-records.ts';
import type { ClusterRecords } from './cluster-records.ts';
import type { ConnectionFactory } from './connection.ts';
import { describeState } from './debug-cluster.ts';
import { ClusterNotConnectedError, ClusterNotFoundError } from './errors.ts';
import { say, tell } from './fleet-news.ts';
import type { ClusterChange } from './fleet-news.ts';
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
  Provider,
  Runnable,
} from './types.ts';

export interface FleetOptions {
  readonly factory: ConnectionFactory;
  readonly telemetry: Telemetry;
  readonly supervision?: Partial<SupervisionOptions>;
  readonly random?: () => number;
}

const PHASES: readonly ClusterState['phase'][] = ['discovered', 'connecting', 'engaged', 'degraded'];
/** On stop: sockets have so long to close. */
const STOP_GRACE_MS = 5_000;

interface Member {
  readonly supervisor: Supervisor;
  readonly provider: Provider;
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
    const state = this.state(name);
    switch (state?.phase) {
      case undefined:
      case 'disengaged':
        throw new ClusterNotFoundError(name);
      case 'engaged':
        return state.cluster;
      case 'discovered':
      case 'degraded':
        throw new ClusterNotConnectedError(name, state.reason);
      case 'connecting':
        throw new ClusterNotConnectedError(name, state.lastError ?? { code: 'Connecting', message: 'connecting' });
    }
  }

  state(name: ClusterName): ClusterState | undefined {
    return this.#members.get(name)?.supervisor.state;
  }

  states(): ReadonlyMap<ClusterName, ClusterState> {
    const states = new Map<ClusterName, ClusterState>();
    for (const [name, { supervisor }] of this.#members)
      if (supervisor.state !== undefined) states.set(name, supervisor.state);
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
    const fullName = (name: ClusterName): ClusterName =>
      options.prefix === true ? prefixedClusterName(provider.name, name) : name;
    return {
      discover: (name, reason, about) => this.#declare(provider, fullName(name), name, about)?.discover(reason),
      engage: (name, spec, about) => this.#declare(provider, fullName(name), name, about)?.engage(spec),
      disengage: (name, reason) => this.#remove(provider, fullName(name), reason),
    };
  }

  /** Resolves after `signal` aborted, every engagement has ended and sockets are closed. */
  async run(signal: AbortSignal): Promise<void> {
    await aborted(signal);
    this.#stopped = true;
    for (const supervisor of this.#alive) supervisor.remove('the fleet stops', true);
    this.#members.clear();
    const ended = Promise.allSettled([...this.#alive].map(async (supervisor) => supervisor.done));
    if (!(await settledWithin(ended, STOP_GRACE_MS))) this.#log.warn('connections were slow to close and are left');
    await Promise.allSettled(this.#tidying);
  }

  #declare(
    provider: Provider,
    name: ClusterName,
    bareName: ClusterName,
    about: ClusterAbout | undefined,
  ): Supervisor | undefined {
    const supervisor = this.#supervisorOf(provider, name, bareName);
    if (supervisor !== undefined) this.#records.put(name, provider.name, about);
    return supervisor;
  }

  #supervisorOf(provider: Provider, name: ClusterName, bareName: ClusterName): Supervisor | undefined {
    if (this.#stopped) return undefined;
    const member = this.#members.get(name);
    if (member?.provider === provider) return member.supervisor;
    if (member !== undefined || name === LOCAL_CLUSTER) {
      const owner = member === undefined ? 'the management cluster' : `provider ${member.provider.name}`;
      this.#log.error('a declaration is ignored: the name is taken', { cluster: name, provider: provider.name, owner });
      return undefined;
    }
    return this.#add(provider, name, bareName);
  }

  #add(provider: Provider, name: ClusterName, bareName: ClusterName): Supervisor {
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
    this.#members.set(name, { supervisor, provider });
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
    member.supervisor.remove(reason);
  }

  /** By identity: the name may belong to a successor by now, and then its metrics stay. */
  async #tidyUp(supervisor: Supervisor): Promise<void> {
    await supervisor.done;
    this.#alive.delete(supervisor);
    if (this.#stopped || this.#members.has(supervisor.name)) return;
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
