import { fullJitter } from '../kube/index.ts';
import { upToBeat } from './beat.ts';
import { requestKey } from './cluster-name.ts';
import { PRIORITIES } from './fair-queue.ts';
import { Lane } from './lane.ts';
import type { LaneOptions } from './lane.ts';
import type { QueueMetrics } from './queue-metrics.ts';
import type { ClusterName, Priority, Request } from './types.ts';

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
  /** Its failures are forgotten; it comes back after a while, on the beat (beat.ts), unless something asks earlier. */
  | { readonly type: 'later'; readonly afterMs: number }
  /** It failed: back with back-off, one failure more. */
  | { readonly type: 'retry' }
  /** At once, and no failure. */
  | { readonly type: 'again' };

/** One request, as people see it. */
export interface QueuedRequest extends Request {
  readonly state: string;
  readonly priority: Priority;
  readonly failures: number;
  readonly ageSeconds: number;
  readonly dueInSeconds?: number;
}

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
  lane: Lane<Entry>;
  state: 'idle' | 'waiting' | 'running';
  /** Asked for while running: run again at this priority. */
  again: Priority | undefined;
  timer: NodeJS.Timeout | undefined;
  /** When the timer fires (performance.now). */
  dueAt: number;
  addedAt: number;
  failures: number;
}

/**
 * The level-based queue of one controller: a key waits once and is worked on by one worker at a time; asked for during
 * its work it comes back. Fair across clusters and bounded per cluster and per lane (FairQueue; p-queue executes). Work
 * that takes long lends its place, so that clusters which accept calls and never answer cannot hold every worker.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #lanes = new Map<string, Lane<Entry>>();
  readonly #firstLane: Lane<Entry>;
  readonly #random: () => number;
  #open = false;
  #stopped = false;
  #pumping = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    for (const [name, lane] of Object.entries(options.lanes))
      this.#lanes.set(name, new Lane<Entry>(lane, () => this.#schedulePump()));
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

  /** What is known of requests, those that run or failed most first; `most` at a time, as there may be 100,000. */
  debug(most: number): QueuedRequest[] {
    const now = performance.now();
    const told = [...this.#entries.values()].map((entry) => ({
      ...entry.request,
      state: entry.state === 'idle' ? 'delayed' : entry.state,
      priority: entry.priority,
      failures: entry.failures,
      ageSeconds: Math.round((now - entry.addedAt) / 1_000),
      ...(entry.timer === undefined ? {} : { dueInSeconds: Math.round((entry.dueAt - now) / 1_000) }),
    }));
    const rank = ({ state, failures }: QueuedRequest): number => (state === 'running' ? 1e6 : 0) + failures;
    return told.sort((a, b) => rank(b) - rank(a)).slice(0, most);
  }

  /** Requests worked on now. */
  get active(): number {
    let sum = 0;
    for (const lane of this.#lanes.values()) sum += lane.active;
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
    await Promise.all([...this.#lanes.values()].map(async (lane) => lane.idle()));
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

  #laneOf(request: Request): Lane<Entry> {
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

  #pump(lane: Lane<Entry>): void {
    while (this.#open) {
      const entry = lane.take();
      if (entry === undefined) return;
      entry.state = 'running';
      this.#options.metrics.waiting(entry.cluster, -1);
      lane
        .run(entry, async () => this.#run(entry))
        .then(
          () => this.#schedulePump(),
          (error: unknown) => this.#options.onBug(error),
        );
    }
  }

  async #run(entry: Entry): Promise<void> {
    const startedAt = performance.now();
    this.#options.metrics.started(entry.cluster, startedAt - entry.addedAt);
    try {
      this.#settle(entry, await this.#options.work(entry.request, entry.failures));
    } catch (error) {
      this.#options.onBug(error);
      this.#settle(entry, { type: 'retry' });
    } finally {
      this.#options.metrics.ended(entry.cluster, performance.now() - startedAt);
    }
  }

  #settle(entry: Entry, outcome: Outcome): void {
    entry.state = 'idle';
    const again = entry.again;
    entry.again = undefined;
    if (outcome.type === 'retry') entry.failures += 1;
    else if (outcome.type !== 'again') entry.failures = 0;
    if (this.#stopped) return;
    if (again !== undefined || outcome.type === 'again') this.#addNow(entry, again ?? entry.priority);
    else if (outcome.type === 'later') this.#delay(entry, 'resync', upToBeat(outcome.afterMs));
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

function higher(a: Priority | undefined, b: Priority): Priority {
  if (a === undefined) return b;
  return PRIORITIES.indexOf(a) <= PRIORITIES.indexOf(b) ? a : b;
}
