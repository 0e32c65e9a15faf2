import PQueue from 'p-queue';
import { fullJitter } from '../kube/index.ts';
import { LOCAL_CLUSTER, requestKey } from './cluster-name.ts';
import { FairQueue, PRIORITIES } from './fair-queue.ts';
import type { Rank } from './fair-queue.ts';
import type { QueueMetrics } from './queue-metrics.ts';
import type { ClusterName, Priority, Request } from './types.ts';

/** A pool of places. Work of one lane never takes a place of another. */
export interface LaneOptions {
  /** Requests worked on at a time. */
  readonly concurrency: number;
  /** Of these, for one cluster. A quarter of `concurrency` when absent, at least 1. */
  readonly perCluster?: number;
  /** After so many milliseconds work no longer holds its place (it still counts for its cluster); 5 s when absent. */
  readonly lendAfterMs?: number;
}

export interface WorkQueueOptions {
  readonly lanes: Readonly<Record<string, LaneOptions>>;
  /** Which lane a request belongs to, asked each time it is added. An unknown name means the first lane. */
  readonly lane?: (request: Request) => string;
  /** Ceiling of the first delay after a failure, milliseconds; 500. */
  readonly backoffBaseMs?: number;
  /** Longest delay after a failure, milliseconds; 300,000. */
  readonly backoffCapMs?: number;
  readonly random?: () => number;
  readonly metrics: QueueMetrics;
  /** Does the work; errors are its business. */
  readonly work: (request: Request, failures: number) => Promise<Outcome>;
  /** Told when `work` rejected all the same; the request is then retried with back-off. */
  readonly onBug: (error: unknown) => void;
}

/** What becomes of a request that was worked on. */
export type Outcome =
  /** Nothing more; its failures are forgotten. */
  | { readonly type: 'done' }
  /** Its failures are forgotten; it comes back after a while unless something asks earlier. */
  | { readonly type: 'later'; readonly afterMs: number }
  /** It failed: back with back-off, one failure more. */
  | { readonly type: 'retry' }
  /** At once, and no failure. */
  | { readonly type: 'again' };

/** What runs longer than this waits for something outside; others may have its place meanwhile. */
const LEND_AFTER_MS = 5_000;
/** Places lent at a time, as a multiple of the lane's own: bounds what hangs, and leaves ten sick clusters room to hang in. */
const LENT_PER_PLACE = 4;
const DEFAULT_BACKOFF_BASE_MS = 500;
const DEFAULT_BACKOFF_CAP_MS = 300_000;
/** Full jitter may come out as 0; a retry without any delay would be a loop. */
const MIN_RETRY_MS = 50;
/** setTimeout takes no more than 2^31 - 1 ms. */
const MAX_TIMER_MS = 2_147_000_000;

/** One request that the queue knows something of. At most one of waiting, running, delayed at a time, but running may also be asked for again. */
interface Entry {
  readonly key: string;
  readonly request: Request;
  readonly cluster: ClusterName;
  priority: Priority;
  lane: Lane;
  state: 'idle' | 'waiting' | 'running';
  /** Asked for while running: run again at this priority. */
  again: Priority | undefined;
  timer: NodeJS.Timeout | undefined;
  /** When the timer fires (performance.now). */
  dueAt: number;
  addedAt: number;
  failures: number;
}

interface Lane {
  readonly waiting: FairQueue<Entry>;
  readonly executor: PQueue;
  readonly concurrency: number;
  readonly perCluster: number;
  readonly lendAfterMs: number;
  readonly running: Map<ClusterName, number>;
  /** Of these, the work that takes long and has lent its place. */
  readonly slow: Map<ClusterName, number>;
  held: number;
  lent: number;
}

/**
 * The level-based queue of one controller: a key waits once and is worked on by one worker at a time; asked for during
 * its work it comes back. Fair across clusters and bounded per cluster and per lane (FairQueue; p-queue executes). Work
 * that takes long lends its place, so that clusters which accept calls and never answer cannot hold every worker.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #lanes = new Map<string, Lane>();
  readonly #firstLane: Lane;
  readonly #random: () => number;
  #open = false;
  #stopped = false;
  #pumping = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    for (const [name, lane] of Object.entries(options.lanes)) this.#lanes.set(name, makeLane(lane));
    const [first] = this.#lanes.values();
    if (first === undefined) throw new TypeError('a work queue needs a lane');
    this.#firstLane = first;
  }

  /** Requests waiting now; delayed and running ones not counted. */
  get depth(): number {
    let sum = 0;
    for (const lane of this.#lanes.values()) sum += lane.waiting.size;
    return sum;
  }

  /** Requests worked on now. */
  get active(): number {
    let sum = 0;
    for (const lane of this.#lanes.values()) for (const count of lane.running.values()) sum += count;
    return sum;
  }

  /**
   * Asks for a request now or after `afterMs`. Now: wins over a delay, and raises the priority of what waits. Later: the
   * earliest delay wins, and what waits already stays.
   */
  add(request: Request, priority: Priority = 'user', afterMs = 0): void {
    if (this.#stopped) return;
    const entry = this.#entry(request);
    this.#options.metrics.added(entry.cluster);
    if (afterMs > 0) this.#delay(entry, priority, afterMs);
    else this.#addNow(entry, priority);
  }

  /** Begins to hand out work. */
  start(): void {
    this.#open = !this.#stopped;
    this.#schedulePump();
  }

  /** Hands out nothing more; resolves when what runs has ended. What waits is dropped. */
  async stop(): Promise<void> {
    this.#open = false;
    this.#stopped = true;
    for (const entry of this.#entries.values()) clearTimeout(entry.timer);
    await Promise.all([...this.#lanes.values()].map(async (lane) => lane.executor.onIdle()));
    this.#entries.clear();
  }

  #entry(request: Request): Entry {
    const key = requestKey(request);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const entry: Entry = {
      key,
      request,
      cluster: request.cluster,
      priority: 'resync',
      lane: this.#firstLane,
      state: 'idle',
      again: undefined,
      timer: undefined,
      dueAt: 0,
      addedAt: 0,
      failures: 0,
    };
    this.#entries.set(key, entry);
    return entry;
  }

  #addNow(entry: Entry, priority: Priority): void {
    clearTimeout(entry.timer);
    entry.timer = undefined;
    switch (entry.state) {
      case 'running':
        entry.again = higher(entry.again, priority);
        return;
      case 'waiting':
        this.#move(entry, higher(entry.priority, priority));
        return;
      case 'idle':
        entry.state = 'waiting';
        entry.priority = priority;
        entry.lane = this.#laneOf(entry.request);
        entry.addedAt = performance.now();
        entry.lane.waiting.push(entry);
        this.#options.metrics.waiting(entry.cluster, 1);
        this.#schedulePump();
    }
  }

  /** What waits follows its object: to a higher priority, or to another lane since it was put here. */
  #move(entry: Entry, priority: Priority): void {
    const lane = this.#laneOf(entry.request);
    if (entry.lane === lane && entry.priority === priority) return;
    entry.lane.waiting.remove(entry);
    entry.priority = priority;
    entry.lane = lane;
    lane.waiting.push(entry);
    this.#schedulePump();
  }

  #laneOf(request: Request): Lane {
    return this.#lanes.get(this.#options.lane?.(request) ?? '') ?? this.#firstLane;
  }

  #delay(entry: Entry, priority: Priority, afterMs: number): void {
    if (entry.state === 'waiting') return;
    const dueAt = performance.now() + afterMs;
    if (entry.timer !== undefined && entry.dueAt <= dueAt) return;
    clearTimeout(entry.timer);
    entry.dueAt = dueAt;
    entry.timer = setTimeout(
      () => {
        entry.timer = undefined;
        this.#addNow(entry, priority);
      },
      Math.min(afterMs, MAX_TIMER_MS),
    );
  }

  /** In a microtask: what is added in one go is ordered before the first of it is taken. */
  #schedulePump(): void {
    if (this.#pumping || !this.#open) return;
    this.#pumping = true;
    queueMicrotask(() => {
      this.#pumping = false;
      for (const lane of this.#lanes.values()) this.#pump(lane);
    });
  }

  #pump(lane: Lane): void {
    const rank = (cluster: ClusterName): Rank => rankIn(lane, cluster);
    while (this.#open && lane.held < lane.concurrency) {
      const entry = lane.waiting.take(rank);
      if (entry === undefined) return;
      this.#begin(entry, lane);
    }
  }

  #begin(entry: Entry, lane: Lane): void {
    entry.state = 'running';
    lane.held += 1;
    count(lane.running, entry.cluster, 1);
    this.#options.metrics.waiting(entry.cluster, -1);
    lane.executor.add(async () => this.#run(entry, lane)).catch(this.#options.onBug);
  }

  async #run(entry: Entry, lane: Lane): Promise<void> {
    const startedAt = performance.now();
    this.#options.metrics.started(entry.cluster, startedAt - entry.addedAt);
    const giveBack = this.#holdPlace(entry.cluster, lane);
    try {
      this.#settle(entry, await this.#options.work(entry.request, entry.failures));
    } catch (error) {
      this.#options.onBug(error);
      this.#settle(entry, { type: 'retry' });
    } finally {
      giveBack();
      this.#options.metrics.ended(entry.cluster, performance.now() - startedAt);
      count(lane.running, entry.cluster, -1);
      this.#schedulePump();
    }
  }

  /** The place is held until the returned function is called, or, once work takes long, until it can be lent. */
  #holdPlace(cluster: ClusterName, lane: Lane): () => void {
    let lent = false;
    const timer = setInterval(() => {
      if (lane.lent >= lane.concurrency * LENT_PER_PLACE) return;
      clearInterval(timer);
      lent = true;
      lane.lent += 1;
      lane.held -= 1;
      count(lane.slow, cluster, 1);
      this.#schedulePump();
    }, lane.lendAfterMs);
    return () => {
      clearInterval(timer);
      if (!lent) {
        lane.held -= 1;
        return;
      }
      lane.lent -= 1;
      count(lane.slow, cluster, -1);
    };
  }

  #settle(entry: Entry, outcome: Outcome): void {
    entry.state = 'idle';
    const again = entry.again;
    entry.again = undefined;
    if (outcome.type === 'retry') entry.failures += 1;
    else if (outcome.type !== 'again') entry.failures = 0;
    if (this.#stopped) return;
    if (again !== undefined || outcome.type === 'again') this.#addNow(entry, again ?? entry.priority);
    else if (outcome.type === 'later') this.#delay(entry, 'resync', outcome.afterMs);
    else if (outcome.type === 'retry') this.#retry(entry);
    this.#dropIfIdle(entry);
  }

  #retry(entry: Entry): void {
    this.#options.metrics.retried(entry.cluster);
    this.#delay(entry, entry.priority, this.#backoffMs(entry.failures));
  }

  #backoffMs(failures: number): number {
    const delay = fullJitter(failures - 1, {
      baseMs: this.#options.backoffBaseMs ?? DEFAULT_BACKOFF_BASE_MS,
      capMs: this.#options.backoffCapMs ?? DEFAULT_BACKOFF_CAP_MS,
      random: this.#random,
    });
    return Math.max(MIN_RETRY_MS, delay);
  }

  #dropIfIdle(entry: Entry): void {
    if (entry.state !== 'idle' || entry.timer !== undefined || entry.failures > 0) return;
    this.#entries.delete(entry.key);
  }
}

function makeLane(options: LaneOptions): Lane {
  return {
    waiting: new FairQueue<Entry>(),
    // The pump hands out at most `concurrency` places; the executor's bound is those and the lent ones.
    executor: new PQueue({ concurrency: options.concurrency * (1 + LENT_PER_PLACE) }),
    concurrency: options.concurrency,
    perCluster: options.perCluster ?? Math.max(1, Math.floor(options.concurrency / 4)),
    lendAfterMs: options.lendAfterMs ?? LEND_AFTER_MS,
    running: new Map(),
    slow: new Map(),
    held: 0,
    lent: 0,
  };
}

/** A cluster with work that takes long stands behind those without: what it begins next will likely take long as well. */
function rankIn(lane: Lane, cluster: ClusterName): Rank {
  // The management cluster is not one of many: the lane's own bound is its bound.
  if (cluster === LOCAL_CLUSTER) return 'front';
  if ((lane.running.get(cluster) ?? 0) >= lane.perCluster) return 'out';
  return lane.slow.has(cluster) ? 'back' : 'front';
}

function count(counts: Map<ClusterName, number>, cluster: ClusterName, by: 1 | -1): void {
  const now = (counts.get(cluster) ?? 0) + by;
  if (now === 0) counts.delete(cluster);
  else counts.set(cluster, now);
}

function higher(a: Priority | undefined, b: Priority): Priority {
  if (a === undefined) return b;
  return PRIORITIES.indexOf(a) <= PRIORITIES.indexOf(b) ? a : b;
}
