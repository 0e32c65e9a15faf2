import type { Counter, Gauge } from 'prom-client';
import type { KubeClient } from '../../kube/index.ts';
import { counter, gauge } from '../../telemetry/index.ts';
import type { Logger, Telemetry } from '../../telemetry/index.ts';
import { isAborted, linkSignals, pause } from '../abort.ts';
import type { ClusterName } from '../types.ts';
import { ChangeListeners } from './change-listeners.ts';
import { Fence, now } from './fence.ts';
import type { Instant } from './fence.ts';
import { OwnLease } from './own-lease.ts';
import { Peers } from './peers.ts';
import { Permits } from './permits.ts';
import { Ranking } from './rendezvous.ts';
import { GROUP_LABEL, LEASES } from './shard-lease.ts';
import type { ShardLease } from './shard-lease.ts';
import { shardingDefaults } from './sharding-options.ts';
import type { Permit, Shards, ShardingOptions } from './types.ts';

export interface ShardMemberOptions extends ShardingOptions {
  /** Of the cluster that the Leases live in. */
  readonly client: KubeClient;
  readonly telemetry: Telemetry;
  /** For tests: this process's clocks. */
  readonly clock?: () => Instant;
}

const LIST_LIMIT_MS = 2_000;
/** After work was aborted, its cluster is claimed for so long: its writes are refused, but a request that it had sent may still arrive. */
const SETTLE_MS = 2_000;
/** Between looks while members do not act on the same view yet: a hand-over is waited for on one side. */
const UNSETTLED_PERIOD_MS = 300;
/** The calls of leaving, beside the hand-over itself. */
const LEAVE_MARGIN_MS = 3_000;

/**
 * One replica among several. Each publishes in its Lease the members by whose ranking it acts, and then looks at what
 * the others published: of two that claim the same cluster, whichever published last sees the other and waits. A
 * cluster changes hands in this order: its old owner begins nothing new for it, lets what runs end, publishes that it
 * claims it no more, and the new owner sees that. Whoever cannot renew its Lease stops by its own clocks before the
 * others take it for dead (docs/sharding.md).
 */
export class ShardMember implements Shards {
  readonly name = 'shard member';
  readonly identity: string;
  readonly #options: Required<ShardingOptions> & ShardMemberOptions;
  readonly #fence: Fence;
  readonly #permits: Permits;
  readonly #peers: Peers;
  readonly #lease: OwnLease;
  readonly #log: Logger;
  readonly #members: Gauge;
  readonly #lapses: Counter;
  readonly #listeners: ChangeListeners;
  /** What may be published, oldest first: usually one. While an attempt to publish has not been followed by a look at the others, only what all of them say is claimed. */
  #views: readonly Ranking[] = [Ranking.EMPTY];
  /** The ranking of the members that live. Differs from the views while clusters are handed over. */
  #target = Ranking.EMPTY;
  /** True until it is published that nothing is claimed. */
  #lapsed = true;
  #leaving = false;
  /** Until then nothing that was claimed is given up. */
  #settledAt = 0;
  #wake: () => void = () => undefined;
  #fenceTimer: NodeJS.Timeout | undefined;

  /** Throws RangeError when the times do not fit together. */
  constructor(options: ShardMemberOptions) {
    const { telemetry, group, namespace } = options;
    this.#options = { ...options, ...shardingDefaults(options) };
    this.identity = options.identity;
    this.#fence = new Fence(this.#options.renewDeadlineMs, options.clock ?? now);
    this.#permits = new Permits(
      () => this.#fence.valid,
      () => this.#wakeWhenHandedOver(),
    );
    this.#lease = new OwnLease(options.client, { group, namespace }, options.identity);
    this.#log = telemetry.log.with({ lease: `${namespace}/${this.#lease.name}`, group });
    this.#peers = new Peers((lease) =>
      this.#log.warn('a Lease with the label of our group is none of a member', { lease }),
    );
    this.#listeners = new ChangeListeners((err) =>
      this.#log.error('a listener of the shards threw; the others go on', { err }),
    );
    this.#members = gauge(
      telemetry.metrics,
      'capstan_shard_members',
      'Replicas that share the clusters, as this one sees them; 0 while it is no member',
      [],
    );
    this.#members.set(0);
    this.#lapses = counter(
      telemetry.metrics,
      'capstan_shard_lapses_total',
      'Times when this replica could not renew its membership and stopped its work',
      [],
    );
  }

  /** This process is a member now: its Lease is renewed, and it has seen the others. */
  get joined(): boolean {
    return this.#fence.valid && !this.#leaving && this.#target !== Ranking.EMPTY;
  }

  holds(cluster: ClusterName): boolean {
    return this.serves(cluster) && this.#target.owner(cluster) === this.identity && !this.#peers.claimed(cluster);
  }

  serves(cluster: ClusterName): boolean {
    return this.#fence.valid && this.#views.every((view) => view.owner(cluster) === this.identity);
  }

  enter(cluster: ClusterName): Permit | undefined {
    return this.holds(cluster) ? this.#permits.issue(cluster) : undefined;
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        const settled = await this.#beat();
        if (!isAborted(signal)) await this.#rest(settled ? this.#options.periodMs : UNSETTLED_PERIOD_MS, signal);
      }
      await this.#leave();
    } finally {
      clearTimeout(this.#fenceTimer);
      this.#fence.drop();
      this.#permits.loseAll('this replica stops');
      this.#members.set(0);
      this.#tell();
    }
  }

  /** Publishes, then looks: in this order, so that of two members that claim the same at least one sees the other. True when all act on the same view. */
  async #beat(): Promise<boolean> {
    try {
      // A new view is acted on at once; what its publication brings up is left to the next beat.
      for (let turn = 0; turn < 2; turn++) {
        this.#heedLapse();
        if (this.#settleMs > 0 || !(await this.#publish())) return false;
        await this.#look();
        this.#tell();
        if (this.#next() === this.#published) break;
      }
    } catch (err) {
      this.#log.warn("the members' Leases could not be read or written; trying again", {
        err,
        leftMs: this.#fence.leftMs,
      });
      return false;
    }
    return this.#target === this.#published && this.#peers.live.every(({ view }) => view.text === this.#target.text);
  }

  /** What was published last, or may have been. */
  get #published(): Ranking {
    return this.#views.at(-1) ?? Ranking.EMPTY;
  }

  /** What is to be published: the target, once nothing runs any more for what it takes from us. */
  #next(): Ranking {
    if (this.#target === this.#published) return this.#target;
    return this.#isHandedOver() ? this.#target : this.#published;
  }

  #isHandedOver(): boolean {
    return this.#permits.handedOver((cluster) => this.#target.owner(cluster) === this.identity, {
      at: performance.now(),
      limitMs: this.#options.handOverMs,
      settleMs: SETTLE_MS,
    });
  }

  /** False when the Lease was gone or the answer came too late: what was claimed may be another's. */
  async #publish(left = false): Promise<boolean> {
    const view = this.#next();
    if (view !== this.#published) this.#views = [...this.#views, view];
    const { identity, weight, leaseDurationMs: durationMs } = this.#options;
    const at = this.#fence.mark();
    const outcome = await this.#lease.store({ identity, weight, view, durationMs, left });
    if (outcome === 'gone') this.#fence.drop();
    else if (this.#lapsed) this.#rejoin(at);
    else this.#fence.extend(at);
    this.#heedLapse();
    this.#armFenceTimer();
    return !this.#lapsed;
  }

  #rejoin(at: Instant): void {
    this.#fence.begin(at);
    // An answer that was too late to begin with changes nothing.
    if (this.#fence.valid) this.#lapsed = false;
  }

  async #look(): Promise<void> {
    const { client, namespace, group } = this.#options;
    const asked = performance.now();
    const { items } = await client.list<ShardLease>(
      LEASES,
      { namespace, labelSelector: `${GROUP_LABEL}=${group}` },
      { timeoutMs: LIST_LIMIT_MS },
    );
    const others = items.filter(({ metadata }) => metadata.name !== this.#lease.name);
    this.#peers.observe(others, asked, performance.now());
    this.#views = [this.#published];
    this.#aim();
    for (const lease of this.#peers.swept(asked)) await this.#sweep(lease);
  }

  #aim(): void {
    if (this.#leaving) return;
    const members = this.#peers.live.map(({ identity, weight }) => [identity, weight] as const);
    const target = this.#known(new Ranking([...members, [this.identity, this.#options.weight]]));
    if (target === this.#target) return;
    const [before, after] = [this.#target.members, target.members];
    this.#target = target;
    this.#members.set(after.size);
    this.#log.info('the members of the shard group changed', {
      members: after.size,
      joined: [...after.keys()].filter((identity) => !before.has(identity)),
      left: [...before.keys()].filter((identity) => !after.has(identity)),
    });
  }

  /** The same members are the same object, with the owners that it has worked out. */
  #known(ranking: Ranking): Ranking {
    const known = [...this.#views, this.#target, ...this.#peers.live.map(({ view }) => view)];
    return known.find(({ text }) => text === ranking.text) ?? ranking;
  }

  /** The Lease of a member that has left, or died long ago. */
  async #sweep({ metadata }: ShardLease): Promise<void> {
    try {
      const { namespace, name, uid, resourceVersion } = metadata;
      await this.#options.client.delete(
        LEASES,
        { namespace, name },
        {
          ...(uid === undefined ? {} : { uid }),
          ...(resourceVersion === undefined ? {} : { resourceVersion }),
          timeoutMs: LIST_LIMIT_MS,
        },
      );
    } catch (err) {
      this.#log.debug('a Lease that nobody renews could not be deleted', { other: metadata.name, err });
    }
  }

  /** The fence lapsed: nothing is claimed any more, and what runs is aborted. */
  #heedLapse(): void {
    if (this.#lapsed || this.#fence.valid) return;
    this.#lapsed = true;
    this.#fence.drop();
    this.#views = [Ranking.EMPTY];
    this.#target = Ranking.EMPTY;
    this.#members.set(0);
    const aborted = this.#loseAll('this replica could not renew its Lease in time');
    if (this.#leaving) return;
    this.#lapses.inc();
    this.#log.warn('this replica is no member any more, as it could not renew its Lease in time; it joins again', {
      aborted,
    });
    this.#tell();
  }

  #loseAll(why: string): number {
    const lost = this.#permits.loseAll(why);
    if (lost > 0) this.#settledAt = performance.now() + SETTLE_MS;
    return lost;
  }

  get #settleMs(): number {
    return Math.max(0, this.#settledAt - performance.now());
  }

  /** For a process that runs: one that was stopped notices by its clocks. */
  #armFenceTimer(): void {
    clearTimeout(this.#fenceTimer);
    if (this.#lapsed) return;
    this.#fenceTimer = setTimeout(() => {
      if (this.#fence.valid) this.#armFenceTimer();
      else this.#heedLapse();
    }, this.#fence.leftMs + 1);
  }

  #wakeWhenHandedOver(): void {
    if (this.#target !== this.#published && this.#isHandedOver()) this.#wake();
  }

  async #rest(ms: number, signal: AbortSignal): Promise<void> {
    using resting = linkSignals(signal);
    this.#wake = () => resting.abort('woken');
    await pause(ms, resting.signal);
    this.#wake = () => undefined;
  }

  /** In order: nothing new, what runs may end, and then the others are told, who need not wait for the Lease to run out. */
  async #leave(): Promise<void> {
    this.#leaving = true;
    this.#target = Ranking.EMPTY;
    this.#tell();
    const until = performance.now() + this.#options.handOverMs + SETTLE_MS + LEAVE_MARGIN_MS;
    while (!this.#lapsed && this.#next() !== Ranking.EMPTY && performance.now() < until) {
      await this.#beat();
      await this.#rest(UNSETTLED_PERIOD_MS, new AbortController().signal);
    }
    this.#loseAll('this replica stops');
    if (!this.#lease.exists) return;
    await this.#rest(this.#settleMs, new AbortController().signal);
    try {
      await this.#publish(true);
      this.#log.info('this replica has left the shard group');
    } catch (err) {
      this.#log.warn('the others could not be told that this replica stops; they wait until its Lease runs out', {
        err,
      });
    }
  }

  #tell(): void {
    const told = [
      this.#fence.valid,
      this.#target.text,
      ...this.#views.map(({ text }) => text),
      ...this.#peers.live.map(({ identity, view }) => `${identity} ${view.text}`),
    ].join('\n');
    this.#listeners.tell(told);
  }
}
