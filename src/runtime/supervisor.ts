import type PQueue from 'p-queue';
import { fullJitter, linkAbort } from '../kube/index.ts';
import type { LinkedAbort } from '../kube/index.ts';
import type { Logger } from '../telemetry/index.ts';
import { aborted, isAborted, pause } from './abort.ts';
import { nearBeat } from './beat.ts';
import { step } from './cluster-state.ts';
import type { ClusterEvent } from './cluster-state.ts';
import type { ClusterConnection, ConnectionFactory } from './connection.ts';
import { Connector } from './connector.ts';
import { EngagedCluster } from './engaged-cluster.ts';
import { StoppingError } from './errors.ts';
import { FreshCredentials } from './fresh-credentials.ts';
import { jittered } from './jitter.ts';
import { OwnedConnections } from './owned-connections.ts';
import { KUBECONFIG_INVALID, probe, UNAUTHORIZED, UNREACHABLE } from './probe.ts';
import type { ProbeResult } from './probe.ts';
import type { SupervisionOptions } from './supervision-options.ts';
import type { ClusterName, ClusterState, ConnectionSpec, NotConnectedReason } from './types.ts';

export interface SupervisorDependencies {
  readonly factory: ConnectionFactory;
  readonly options: SupervisionOptions;
  readonly random: () => number;
  readonly log: Logger;
  /** Bounds the attempts to connect of the whole fleet. */
  readonly slots: PQueue;
  /** Told after each change, synchronously. */
  readonly onChange: (before: ClusterState | undefined, now: ClusterState) => void;
  /** Asks the provider to read the credentials again; false when it cannot. Must not throw. */
  readonly refresh: () => boolean;
}

/** After a 401 the next probe comes soon: either there are new credentials by then, or the cluster is out of service. */
const AFTER_401_MS = 2_000;
/** 401s in a row until degraded. Unlike a time-out, a refusal does not happen by chance. */
const REFUSALS = 2;
/** Failing probes in a row after which sockets are dropped: a dead HTTP/2 session is otherwise used for ever (undici #5787). */
const RESET_AFTER = 2;
/** No retry sooner, whatever the jitter says. */
const MIN_RETRY_MS = 200;
/** Credentials are read again at most this often: every watch of the cluster meets the same 401. */
const REFRESH_EVERY_MS = 2_000;
/** A call that met a 401 waits so long for newer credentials, and less than a probe's limit: a probe must see its 401. */
const FRESH_WAIT_MS = 3_000;
/** After an error of its own. */
const AFTER_BUG_MS = 1_000;

interface Engagement {
  readonly cluster: EngagedCluster;
  spec: ConnectionSpec;
}

/**
 * One cluster's life. Declarations come in synchronously and only note what is wanted; a loop does one thing at a time
 * (connect, take over a newer declaration, probe) and is interrupted by the next declaration. Nothing here waits for
 * another cluster, except for a turn among the attempts to connect, and each of those has a time limit.
 */
export class Supervisor {
  readonly name: ClusterName;
  /** Resolves when it is over: removed, told, every socket closed. */
  readonly done: Promise<void>;
  readonly #deps: SupervisorDependencies;
  readonly #life = new AbortController();
  readonly #fresh = new FreshCredentials();
  readonly #connections: OwnedConnections;
  readonly #connector: Connector;
  #state: ClusterState | undefined;
  #wanted: ConnectionSpec | undefined;
  #current: Engagement | undefined;
  #turn: LinkedAbort | undefined;
  #failures = 0;
  #refusals = 0;
  #refreshedAt = -Infinity;
  /** The provider was asked for newer credentials and has not answered yet. */
  #asked = false;
  /** Attempts to take over a newer declaration, and when the next may be made (performance.now). */
  #takeovers = 0;
  #takeoverAt = 0;
  /** When the next probe is due (performance.now): no interruption puts it off. */
  #probeAt = 0;

  constructor(name: ClusterName, deps: SupervisorDependencies) {
    this.name = name;
    this.#deps = deps;
    this.#connections = new OwnedConnections(deps.log);
    this.#connector = new Connector(name, {
      ...deps,
      limitMs: deps.options.connectTimeoutMs,
      connections: this.#connections,
      onUnauthorized: async (connection, signal) => this.#onUnauthorized(connection, signal),
    });
    this.done = this.#run();
  }

  get state(): ClusterState | undefined {
    return this.#state;
  }

  discover(reason: NotConnectedReason): void {
    this.#wanted = this.#current?.spec;
    this.#answered(false);
    this.#apply({ type: 'declared', reason });
    this.#apply({ type: 'warned', warning: reason.message });
    this.#interrupt();
  }

  engage(spec: ConnectionSpec): void {
    if (sameSpec(spec, this.#wanted)) {
      // Read again and found the same: whoever waits for better credentials waits in vain.
      this.#answered(false);
      if (!this.#isPending()) this.#apply({ type: 'cleared' });
      return;
    }
    // Back to what serves: nothing is left to take over.
    this.#wanted = sameSpec(spec, this.#current?.spec) ? this.#current?.spec : spec;
    this.#takeovers = 0;
    this.#takeoverAt = 0;
    this.#apply({ type: this.#isPending() || this.#current === undefined ? 'specified' : 'cleared' });
    this.#interrupt();
  }

  /** Ends it: the signal aborts now, sockets close after the grace, or at once when `hurry` is set (also later). */
  remove(reason: string, hurry = false): void {
    if (hurry) this.#connections.hurry();
    if (this.#life.signal.aborted) return;
    this.#life.abort(new StoppingError(`cluster ${this.name}`));
    this.#answered(false);
    const ended = this.#current;
    this.#current = undefined;
    ended?.cluster.end(reason);
    this.#apply({ type: 'removed', reason });
    if (ended !== undefined) this.#connections.close(ended.cluster.connection, this.#deps.options.closeGraceMs);
  }

  async #run(): Promise<void> {
    // The constructor's caller declares first.
    await Promise.resolve();
    while (!this.#life.signal.aborted) {
      const turn = linkAbort(this.#life.signal);
      this.#turn = turn;
      try {
        await this.#oneTurn(turn.signal);
      } catch (err) {
        this.#deps.log.error('supervision met an error of its own', { err });
        await pause(AFTER_BUG_MS, this.#life.signal);
      } finally {
        turn.unlink();
        this.#closeUnused();
      }
    }
    await this.#connections.closed();
  }

  async #oneTurn(turn: AbortSignal): Promise<void> {
    const [current, wanted] = [this.#current, this.#wanted];
    if (current === undefined) await (wanted === undefined ? aborted(turn) : this.#connect(wanted, turn));
    else if (wanted !== undefined && this.#isPending() && performance.now() >= this.#takeoverAt)
      await this.#takeOver(current, wanted, turn);
    else await this.#watchOver(current, turn);
  }

  /** True when something newer is declared than what serves. */
  #isPending(): boolean {
    return this.#current !== undefined && this.#wanted !== this.#current.spec;
  }

  async #connect(spec: ConnectionSpec, turn: AbortSignal): Promise<void> {
    const number = this.#state?.phase === 'connecting' ? this.#state.attempt : 1;
    const attempt = await this.#connector.attempt(spec, number, turn);
    if (attempt === undefined || isAborted(turn)) return;
    if (attempt.ok) {
      this.#begin(attempt.connection, spec, attempt.uid);
      return;
    }
    this.#closeUnused();
    this.#apply({ type: 'connectFailed', reason: attempt.reason });
    if (attempt.reason.code === UNAUTHORIZED) this.#refresh();
    // Only another kubeconfig helps there, and that interrupts.
    await (attempt.reason.code === KUBECONFIG_INVALID ? aborted(turn) : pause(this.#retryMs(number), turn));
  }

  /** Puts a connection in service; what served before ends. */
  #begin(connection: ClusterConnection, spec: ConnectionSpec, uid: string | undefined): void {
    const before = this.#current;
    const cluster = new EngagedCluster(this.name, connection, uid);
    this.#current = { cluster, spec };
    this.#failures = 0;
    this.#refusals = 0;
    this.#probeIn(this.#probeDelayMs(cluster));
    before?.cluster.end('another connection took its place');
    this.#apply({ type: 'connected', cluster });
    this.#answered(true);
    if (before !== undefined) this.#connections.close(before.cluster.connection, this.#deps.options.closeGraceMs);
  }

  /** A newer declaration is tried out before anything changes; the old connection serves until then, and on if it fails. */
  async #takeOver(current: Engagement, wanted: ConnectionSpec, turn: AbortSignal): Promise<void> {
    const attempt = await this.#connector.attempt(wanted, 1, turn);
    if (attempt === undefined || isAborted(turn)) return;
    const sameServer = attempt.connection?.identity === current.cluster.connection.identity;
    if (attempt.ok && !(sameServer && current.cluster.confirm(attempt.uid)))
      this.#begin(attempt.connection, wanted, attempt.uid);
    // Refused with the old credentials, nothing is lost by the new ones, even if the server cannot be asked just now.
    else if (attempt.ok || (sameServer && this.#refusals > 0)) this.#swap(current, wanted, attempt.ok);
    else this.#keepOld(attempt.reason);
  }

  #swap(current: Engagement, spec: ConnectionSpec, proved: boolean): void {
    current.cluster.connection.swap(spec);
    current.spec = spec;
    this.#refusals = 0;
    this.#deps.log.info('credentials were swapped in place');
    this.#apply({ type: 'cleared' });
    if (proved) this.#alive(current);
    this.#answered(true);
  }

  #keepOld(reason: NotConnectedReason): void {
    this.#takeovers += 1;
    const waitMs = reason.code === KUBECONFIG_INVALID ? Infinity : this.#retryMs(this.#takeovers);
    this.#takeoverAt = performance.now() + waitMs;
    const warning = `the new kubeconfig does not work, the connection before it serves on: ${reason.message}`;
    this.#apply({ type: 'warned', warning });
  }

  async #watchOver(current: Engagement, turn: AbortSignal): Promise<void> {
    const takeOverAt = this.#isPending() ? this.#takeoverAt : Infinity;
    await pause(Math.min(this.#probeAt, takeOverAt) - performance.now(), turn);
    if (isAborted(turn) || takeOverAt < this.#probeAt) return;
    const result = await probe(current.cluster.connection, this.#deps.options.probeTimeoutMs, turn);
    if (isAborted(turn)) return;
    this.#settleProbe(current, result);
    this.#probeIn(this.#probeDelayMs(current.cluster));
  }

  #settleProbe(current: Engagement, result: ProbeResult): void {
    if (!result.ok) this.#failed(current, result.reason);
    else if (current.cluster.confirm(result.uid)) this.#alive(current);
    // Another cluster answers at the same address: another engagement, on sockets and caches of its own.
    else this.#begin(this.#connector.open(current.spec), current.spec, result.uid);
  }

  #probeIn(ms: number): void {
    this.#probeAt = performance.now() + ms;
  }

  #probeDelayMs(cluster: EngagedCluster): number {
    const { options, random } = this.#deps;
    if (cluster.degraded) return jittered(options.degradedIntervalMs, 0.3, random);
    if (this.#refusals > 0) return AFTER_401_MS;
    return nearBeat(jittered(options.probeIntervalMs, 0.1, random), options.probeIntervalMs);
  }

  #alive(current: Engagement): void {
    this.#failures = 0;
    this.#refusals = 0;
    if (!current.cluster.degraded) return;
    current.cluster.setDegraded(false);
    this.#apply({ type: 'recovered' });
  }

  #failed(current: Engagement, reason: NotConnectedReason): void {
    const { probeFailures } = this.#deps.options;
    this.#failures += 1;
    if (reason.code === UNAUTHORIZED) this.#refused();
    else this.#refusals = 0;
    const dropSockets = this.#failures === RESET_AFTER || this.#failures % probeFailures === 0;
    if (reason.code === UNREACHABLE && dropSockets) current.cluster.connection.reset(reason.message);
    if (this.#failures < probeFailures && this.#refusals < REFUSALS) return;
    current.cluster.setDegraded(true);
    this.#apply({ type: 'lost', reason });
  }

  #refused(): void {
    this.#refusals += 1;
    // With a newer kubeconfig at hand there is nothing to ask for, and no reason to be choosy.
    if (this.#isPending()) this.#takeoverAt = 0;
    else this.#refresh();
  }

  /** A call of the cluster met a 401. True when it is worth trying again. */
  async #onUnauthorized(connection: ClusterConnection, signal: AbortSignal): Promise<boolean> {
    if (this.#current?.cluster.connection !== connection) return false;
    if (this.#refusals === 0) {
      this.#refused();
      this.#probeIn(AFTER_401_MS);
      this.#interrupt();
    } else if (!this.#isPending()) this.#refresh();
    if (!this.#asked && !this.#isPending()) return false;
    return this.#fresh.wait(signal, Math.min(FRESH_WAIT_MS, this.#deps.options.probeTimeoutMs / 2));
  }

  #refresh(): void {
    const now = performance.now();
    if (now - this.#refreshedAt < REFRESH_EVERY_MS) return;
    this.#refreshedAt = now;
    // The answer may come before the question returns.
    this.#asked = true;
    this.#asked = this.#deps.refresh() && this.#asked;
  }

  /** The provider has answered, or what it was asked for is in place. */
  #answered(fresh: boolean): void {
    this.#asked = false;
    this.#fresh.settle(fresh);
  }

  #retryMs(failures: number): number {
    const { backoffBaseMs: baseMs, backoffCapMs: capMs } = this.#deps.options;
    return Math.max(MIN_RETRY_MS, fullJitter(failures - 1, { baseMs, capMs, random: this.#deps.random }));
  }

  #interrupt(): void {
    this.#turn?.abort(new Error(`a newer declaration of ${this.name}`));
  }

  #apply(event: ClusterEvent): void {
    const before = this.#state;
    const now = step(before, event);
    if (now === before) return;
    this.#state = now;
    this.#deps.onChange(before, now);
  }

  #closeUnused(): void {
    this.#connections.closeAllBut(this.#current?.cluster.connection);
  }
}

function sameSpec(a: ConnectionSpec, b: ConnectionSpec | undefined): boolean {
  return a.kubeconfig === b?.kubeconfig && a.context === b.context;
}
