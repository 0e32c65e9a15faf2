import type { Gauge } from 'prom-client';
import { isKubeError } from '../kube/index.ts';
import type { KubeClient, KubeObject, Resource } from '../kube/index.ts';
import { gauge } from '../telemetry/index.ts';
import type { Logger, Telemetry } from '../telemetry/index.ts';
import { isAborted, pause } from './abort.ts';
import { LeadershipLostError } from './errors.ts';
import { jittered } from './jitter.ts';

export interface LeaderElectionOptions {
  /** Of the cluster that the Lease lives in. */
  readonly client: KubeClient;
  readonly telemetry: Telemetry;
  readonly namespace: string;
  /** The Lease's name: whoever uses the same one takes turns with us. */
  readonly leaseName: string;
  /** Of this process, unique among the candidates. */
  readonly identity: string;
  /**
   * Several processes hold the Lease together under this one identity: a renewal by any of them counts for all, and it is
   * not given back, since the others go on. It keeps others away; what each of them may do is not told by it.
   */
  readonly shared?: boolean;
  /** Others wait for so long after the last renewal that they saw; 15 s. */
  readonly leaseDurationMs?: number;
  /** Leadership is given up when no renewal succeeded for so long; 10 s. Shorter than the duration: we stop before others start. */
  readonly renewDeadlineMs?: number;
  /** Between attempts; 2 s. */
  readonly retryPeriodMs?: number;
  readonly random?: () => number;
}

/** coordination.k8s.io/v1 Lease; times are MicroTime. */
interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string;
    leaseDurationSeconds?: number;
    acquireTime?: string;
    renewTime?: string;
    leaseTransitions?: number;
  };
}

const LEASES: Resource = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', namespaced: true };
/** One call must not use up the whole deadline. */
const CALL_LIMIT_MS = 5_000;
/** Periods and their jitter must fit into the deadline (as client-go checks). */
const JITTER = 0.2;

/**
 * Leader election on a Lease, by client-go's rules, so that both kinds of candidates can share one: a Lease may be taken
 * when its holder is empty, or when it has not changed for its duration. "Has not changed" is measured on this process's
 * clock from the moment the change was seen; times written by others are never compared with it.
 */
export class LeaderElector {
  readonly identity: string;
  readonly #options: LeaderElectionOptions;
  readonly #durationMs: number;
  readonly #deadlineMs: number;
  readonly #retryMs: number;
  readonly #log: Logger;
  readonly #status: Gauge<'name'>;
  #seen: { version: string | undefined; at: number } | undefined;
  #saidHolder: string | undefined;

  /** Throws RangeError when the times do not fit together. */
  constructor(options: LeaderElectionOptions) {
    this.identity = options.identity;
    this.#options = options;
    this.#durationMs = options.leaseDurationMs ?? 15_000;
    this.#deadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryMs = options.retryPeriodMs ?? 2_000;
    if (this.#durationMs <= this.#deadlineMs)
      throw new RangeError('leader election: the lease duration must be longer than the renew deadline');
    if (this.#deadlineMs <= this.#retryMs * (1 + JITTER))
      throw new RangeError(
        `leader election: the renew deadline must be longer than the retry period by ${JITTER * 100} %`,
      );
    this.#log = options.telemetry.log.with({ lease: `${options.namespace}/${options.leaseName}` });
    this.#status = gauge(options.telemetry.metrics, 'leader_election_master_status', '1 while this process leads', [
      'name',
    ]);
    this.#status.set({ name: options.leaseName }, 0);
  }

  /** Resolves true when this process leads, false when `signal` aborted before. Waits as long as it takes. */
  async acquire(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      if ((await this.#try(signal, CALL_LIMIT_MS)) === 'mine') {
        this.#log.info('this process leads', { identity: this.identity });
        this.#status.set({ name: this.#options.leaseName }, 1);
        return true;
      }
      await pause(jittered(this.#retryMs, JITTER, this.#options.random), signal);
    }
    return false;
  }

  /** Renews until `signal` aborts, then gives the Lease back and resolves. Rejects with LeadershipLostError. */
  async hold(signal: AbortSignal): Promise<void> {
    let renewedAt = performance.now();
    try {
      while (!signal.aborted) {
        await pause(this.#retryMs, signal);
        if (isAborted(signal)) break;
        const startedAt = performance.now();
        // Who shares it stops by other means when it can reach nobody, and asks again whether others are still held off.
        const leftMs = this.#options.shared === true ? CALL_LIMIT_MS : renewedAt + this.#deadlineMs - startedAt;
        if (leftMs <= 0) throw this.#lost('it could not be renewed in time');
        const outcome = await this.#try(signal, Math.min(CALL_LIMIT_MS, leftMs));
        if (outcome === 'mine') renewedAt = startedAt;
        if (outcome === 'theirs') throw this.#lost('another process holds it');
      }
    } finally {
      this.#status.set({ name: this.#options.leaseName }, 0);
    }
    if (this.#options.shared !== true) await this.#release();
  }

  #lost(why: string): LeadershipLostError {
    return new LeadershipLostError(`lost the lease ${this.#options.namespace}/${this.#options.leaseName}: ${why}`);
  }

  /** `unknown`: no answer, or somebody else wrote at the same time. */
  async #try(signal: AbortSignal, limitMs: number): Promise<'mine' | 'theirs' | 'unknown'> {
    try {
      return await this.#takeOrRenew(signal, limitMs);
    } catch (err) {
      if (isKubeError(err, 'Conflict', 'AlreadyExists'))
        this.#log.debug('another process wrote the lease first', { err });
      else if (!signal.aborted) this.#log.warn('the lease could not be read or written', { err });
      return 'unknown';
    }
  }

  async #takeOrRenew(signal: AbortSignal, timeoutMs: number): Promise<'mine' | 'theirs'> {
    const { client, namespace, leaseName: name } = this.#options;
    const lease = await client.find<Lease>(LEASES, { namespace, name }, { signal, timeoutMs });
    if (lease === undefined) {
      const created = { metadata: { namespace, name }, spec: this.#spec(undefined) };
      this.#observe(await client.create<Lease>(LEASES, { ...KIND, ...created }, { signal, timeoutMs }));
      return 'mine';
    }
    const before = this.#seen?.version;
    this.#observe(lease);
    if (this.#isRenewed(lease, before)) return 'mine';
    if (!this.#mayTake(lease)) return 'theirs';
    const taken = { ...lease, ...KIND, spec: this.#spec(lease.spec) };
    this.#observe(await client.replace<Lease>(LEASES, taken, { signal, timeoutMs }));
    return 'mine';
  }

  /** By another process that holds it with us, since we last looked. */
  #isRenewed({ metadata, spec }: Lease, before: string | undefined): boolean {
    if (this.#options.shared !== true || before === undefined) return false;
    return spec?.holderIdentity === this.identity && metadata.resourceVersion !== before;
  }

  #observe(lease: Lease): void {
    const version = lease.metadata.resourceVersion;
    if (this.#seen?.version !== version) this.#seen = { version, at: performance.now() };
  }

  #mayTake({ spec = {} }: Lease): boolean {
    const holder = spec.holderIdentity ?? '';
    if (holder === '' || holder === this.identity) return true;
    if (this.#saidHolder !== holder) this.#log.info('another process leads', { holder });
    this.#saidHolder = holder;
    const seenAt = this.#seen?.at ?? performance.now();
    return performance.now() >= seenAt + (spec.leaseDurationSeconds ?? this.#durationMs / 1000) * 1000;
  }

  #spec(before: Lease['spec']): NonNullable<Lease['spec']> {
    const now = microTime(new Date());
    const kept = before?.holderIdentity === this.identity;
    return {
      holderIdentity: this.identity,
      leaseDurationSeconds: Math.ceil(this.#durationMs / 1000),
      acquireTime: kept ? (before.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: (before?.leaseTransitions ?? 0) + (kept || before === undefined ? 0 : 1),
    };
  }

  /** An empty holder lets the next one in at once. A failure costs the others the lease's duration, no more. */
  async #release(): Promise<void> {
    const { client, namespace, leaseName: name } = this.#options;
    const limits = { timeoutMs: CALL_LIMIT_MS };
    try {
      const lease = await client.find<Lease>(LEASES, { namespace, name }, limits);
      if (lease?.spec?.holderIdentity !== this.identity) return;
      const spec = { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(new Date()) };
      await client.replace<Lease>(LEASES, { ...lease, ...KIND, spec }, limits);
      this.#log.info('the lease is given back');
    } catch (err) {
      this.#log.warn('the lease could not be given back; others wait until it runs out', { err });
    }
  }
}

const KIND = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };

/** metav1.MicroTime: RFC 3339 with six digits. */
function microTime(date: Date): string {
  return date.toISOString().replace('Z', '000Z');
}
