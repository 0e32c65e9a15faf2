import { asError, sleep } from '../kube/index.ts';
import { clusterName, kubeConnectionFactory, SupervisedFleet } from '../runtime/index.ts';
import type { Cluster, ClusterName, ClusterSink, ClusterState } from '../runtime/index.ts';
import { createTelemetry, silentLogger } from '../telemetry/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { NotConformingError } from './errors.ts';
import type { ConformanceCluster, ConformanceSubject, ProviderConformanceOptions } from './provider-conformance.ts';

const LOOK_EVERY_MS = 50;
/** A provider has so long from the abort of its signal to the end of its run. */
const STOP_LIMIT_MS = 1_000;
/** Long enough for a call that was under way to come back and be declared by mistake. */
const AFTERMATH_MS = 500;
/** Quick probes: a refused credential is noticed soon, and a check lasts as long as its slowest wait. */
const SUPERVISION = { probeIntervalMs: 1_000, degradedIntervalMs: 1_000, backoffCapMs: 2_000, closeGraceMs: 0 };

interface Run {
  readonly end: AbortController;
  readonly over: Promise<void>;
}

/** One subject before a real fleet: what it declares is watched on the way. */
export class Stage {
  readonly subject: ConformanceSubject;
  readonly fleet: SupervisedFleet;
  /** `engage name`, `discover name`, `disengage name`, in order. */
  readonly declared: string[] = [];
  readonly #options: ProviderConformanceOptions;
  readonly #limitMs: number;
  readonly #signal: AbortSignal;
  readonly #sink: ClusterSink;
  readonly #life = new AbortController();
  readonly #fleetOver: Promise<void>;
  readonly #offences: string[] = [];
  #run: Run | undefined;
  /** From the beginning of a run (a provider may declare at once) to its end. */
  #listening = false;

  constructor(
    subject: ConformanceSubject,
    options: ProviderConformanceOptions,
    limits: { readonly limitMs: number; readonly signal: AbortSignal },
  ) {
    this.subject = subject;
    this.#options = options;
    this.#limitMs = limits.limitMs;
    this.#signal = limits.signal;
    const telemetry: Telemetry = createTelemetry({ log: silentLogger });
    const factory = kubeConnectionFactory({ telemetry });
    this.fleet = new SupervisedFleet({ telemetry, factory, supervision: SUPERVISION });
    this.#sink = this.#watched(this.fleet.sink(subject.provider));
    this.#fleetOver = this.fleet.run(this.#life.signal);
  }

  async cluster(label: string): Promise<ConformanceCluster> {
    return this.#options.startCluster(label);
  }

  /** What most checks begin with: the provider runs and one declared cluster is engaged. */
  async inService(): Promise<{ one: ConformanceCluster; name: ClusterName; before: Cluster }> {
    const one = await this.cluster('one');
    const name = await this.subject.declare('one', one.kubeconfig());
    this.start();
    return { one, name, before: await this.engaged(name) };
  }

  /** Begins a run of the provider. */
  start(): void {
    const end = new AbortController();
    this.#listening = true;
    const over = this.subject.provider.run(this.#sink, end.signal).catch((error: unknown) => {
      // A rejection on the way out is as good as an end.
      if (!end.signal.aborted) this.#offences.push(`its run rejected: ${asError(error).message}`);
    });
    this.#run = { end, over };
  }

  /** Ends the run; what is declared afterwards is an offence. */
  async stop(): Promise<void> {
    const run = this.#run;
    if (run === undefined) return;
    run.end.abort(new Error('the conformance check ends the run'));
    const late = sleep(STOP_LIMIT_MS, this.#signal).then(() => 'late' as const);
    if ((await Promise.race([run.over, late])) === 'late') {
      throw new NotConformingError(`the run goes on ${STOP_LIMIT_MS} ms after its signal aborted`);
    }
    this.#run = undefined;
    this.#listening = false;
  }

  async aftermath(): Promise<void> {
    await sleep(AFTERMATH_MS, this.#signal);
  }

  /** Asks the provider as a fleet does after a 401. Throws when it throws. */
  refresh(name: ClusterName): void {
    try {
      this.subject.provider.refresh?.(name);
    } catch (cause) {
      throw new NotConformingError(`refresh(${name}) threw`, { cause });
    }
  }

  /** Waits until the cluster is in service: the same engagement as before, or another. */
  async engaged(name: ClusterName): Promise<Cluster> {
    return this.until(`${name} is engaged`, () => {
      const state = this.fleet.state(name);
      return state?.phase === 'engaged' ? state.cluster : undefined;
    });
  }

  async gone(name: ClusterName): Promise<void> {
    await this.until(`${name} is disengaged`, () => (this.fleet.state(name) === undefined ? true : undefined));
  }

  /** Looks until there is something; rejects with NotConformingError at the limit. */
  async until<T>(what: string, look: () => T | undefined): Promise<T> {
    const deadline = performance.now() + this.#limitMs;
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      if (performance.now() > deadline)
        throw new NotConformingError(`${what}: not within ${this.#limitMs} ms (${this.#now()})`);
      await sleep(LOOK_EVERY_MS, this.#signal);
    }
  }

  expect(holds: boolean, what: string): void {
    if (!holds) throw new NotConformingError(`${what} (${this.#now()})`);
  }

  expectNoOffence(): void {
    if (this.#offences.length > 0) throw new NotConformingError(this.#offences.join('; '));
  }

  async close(): Promise<void> {
    this.#run?.end.abort(new Error('the conformance check is over'));
    this.#life.abort(new Error('the conformance check is over'));
    await this.#fleetOver;
    await this.subject.dispose();
  }

  #watched(sink: ClusterSink): ClusterSink {
    return {
      discover: (name, reason, about) => this.#pass('discover', name, () => sink.discover(name, reason, about)),
      engage: (name, spec, about) => this.#pass('engage', name, () => sink.engage(name, spec, about)),
      disengage: (name, reason) => this.#pass('disengage', name, () => sink.disengage(name, reason)),
    };
  }

  #pass(verb: string, name: ClusterName, declare: () => void): void {
    this.declared.push(`${verb} ${name}`);
    if (!this.#listening) this.#offences.push(`${verb} ${name} came when no run was under way`);
    try {
      clusterName(name);
      declare();
    } catch (error) {
      this.#offences.push(`${verb} ${name} was refused: ${asError(error).message}`);
    }
  }

  #now(): string {
    const states = [...this.fleet.states()].map(([name, state]) => `${name}: ${describe(state)}`);
    return states.length === 0 ? 'no cluster is declared' : states.join(', ');
  }
}

function describe(state: ClusterState): string {
  const reason = reasonOf(state);
  return reason === undefined ? state.phase : `${state.phase}, ${reason}`;
}

/** What a state says is wrong with the cluster. */
export function reasonOf(state: ClusterState | undefined): string | undefined {
  switch (state?.phase) {
    case 'discovered':
    case 'degraded':
      return state.reason.message;
    case 'connecting':
      return state.lastError?.message;
    case 'engaged':
      return state.warning;
    default:
      return undefined;
  }
}
