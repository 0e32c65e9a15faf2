import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { clusterName } from '../cluster-name.ts';
import { testTelemetry } from '../fakes.test-support.ts';
import type { ClusterName } from '../types.ts';
import { LeaseServer, Line } from './lease-server.test-support.ts';
import type { Fate } from './lease-server.test-support.ts';
import { ShardMember } from './member.ts';
import type { Permit } from './types.ts';

const NAMES: readonly ClusterName[] = Array.from({ length: 15 }, (_, i) => clusterName(`fleet/c${i}`));
const STEP_MS = 100;
/** Steps in which everything may happen, and then in which nothing does. */
const WILD_STEPS = 600;
const CALM_STEPS = 250;
/** From the abort of work until another member may hold the cluster: what was sent before has arrived by then. */
const MARGIN_MS = 1_800;

interface Replica {
  readonly member: ShardMember;
  readonly line: Line;
  readonly end: AbortController;
  readonly ended: Promise<void>;
  readonly work: Map<Permit, { endsAt: number }>;
  state: 'runs' | 'stopped' | 'killed' | 'leaves';
  goesOnAt: number;
}

/** Mulberry32: the same seed, the same story. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Several members and all that may happen to them, with what must never be true checked at each step. */
class Story {
  readonly server = new LeaseServer();
  readonly replicas: Replica[] = [];
  /** Where work for a cluster was last right, unless it ended in order. */
  readonly lastWork = new Map<ClusterName, { by: Replica; at: number }>();
  readonly #random: () => number;
  #wild = true;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
  }

  get living(): Replica[] {
    return this.replicas.filter(({ state }) => state !== 'killed' && state !== 'leaves');
  }

  start(): void {
    const line = new Line();
    line.fate = () => this.#fate();
    const end = new AbortController();
    const member = new ShardMember({
      client: this.server.client(line),
      telemetry: testTelemetry().telemetry,
      group: 'g',
      namespace: 'ns',
      identity: `m${this.replicas.length}`,
      weight: this.#pick([1, 1, 1, 2, 0.5]),
    });
    const ended = member.run(end.signal);
    this.replicas.push({ member, line, end, ended, work: new Map(), state: 'runs', goesOnAt: 0 });
  }

  async run(): Promise<void> {
    for (let i = 0; i < 3; i++) this.start();
    for (let step = 0; step < WILD_STEPS + CALM_STEPS; step++) {
      if (step === WILD_STEPS) this.#calm();
      if (this.#wild) this.#happen();
      this.#wakeUp();
      for (const replica of this.replicas) this.#workOf(replica);
      this.#check();
      await vi.advanceTimersByTimeAsync(STEP_MS);
    }
  }

  async end(): Promise<void> {
    for (const { end, line } of this.replicas) {
      line.go();
      end.abort();
    }
    await vi.advanceTimersByTimeAsync(60_000);
    await Promise.all(this.replicas.map(async ({ ended }) => ended));
  }

  #fate(): Fate {
    if (!this.#wild) return {};
    const chance = this.#random();
    if (chance < 0.03) return { lost: 'request' };
    if (chance < 0.06) return { lost: 'answer' };
    if (chance < 0.12) return { requestMs: this.#random() * 6_000, answerMs: this.#random() * 3_000 };
    return { requestMs: this.#random() * 60, answerMs: this.#random() * 60 };
  }

  #happen(): void {
    const running = this.replicas.filter(({ state }) => state === 'runs');
    const chance = this.#random();
    const one = this.#pick(running);
    if (one === undefined || (chance < 0.006 && this.living.length < 5)) this.start();
    else if (chance < 0.012) this.#stop(one, 500 + this.#random() * 20_000);
    else if (chance < 0.015 && running.length > 1) this.#kill(one);
    else if (chance < 0.019 && running.length > 1) this.#leave(one);
  }

  #stop(one: Replica, ms: number): void {
    one.state = 'stopped';
    one.goesOnAt = performance.now() + ms;
    one.line.stop();
  }

  #kill(one: Replica): void {
    one.state = 'killed';
    one.line.stop();
  }

  #leave(one: Replica): void {
    one.state = 'leaves';
    one.end.abort();
  }

  #wakeUp(): void {
    for (const one of this.replicas) {
      if (one.state !== 'stopped' || performance.now() < one.goesOnAt) continue;
      one.state = 'runs';
      one.line.go();
    }
  }

  #calm(): void {
    this.#wild = false;
    for (const one of this.replicas) if (one.state === 'stopped') one.goesOnAt = 0;
  }

  /** Begins some work and ends some; what was aborted is noticed a little later. */
  #workOf(one: Replica): void {
    if (one.state === 'stopped' || one.state === 'killed') return;
    const at = performance.now();
    for (const [permit, work] of one.work) {
      if (permit.signal.aborted) work.endsAt = Math.min(work.endsAt, at + 300);
      if (at < work.endsAt) continue;
      one.work.delete(permit);
      if (permit.valid && this.lastWork.get(permit.cluster)?.by === one) this.lastWork.delete(permit.cluster);
      permit[Symbol.dispose]();
    }
    const name = this.#pick(NAMES);
    const permit = name === undefined ? undefined : one.member.enter(name);
    if (permit !== undefined) one.work.set(permit, { endsAt: at + this.#random() * (this.#wild ? 15_000 : 500) });
  }

  #check(): void {
    const at = performance.now();
    const awake = this.replicas.filter(({ state }) => state !== 'stopped' && state !== 'killed');
    for (const name of NAMES) {
      const able = awake.filter((one) => one.member.holds(name) || isAtWork(one, name));
      const [one, other] = able;
      if (other !== undefined) throw new Error(`${name}: ${one?.member.identity} and ${other.member.identity}`);
      const last = this.lastWork.get(name);
      if (one !== undefined && last !== undefined && last.by !== one && at - last.at < MARGIN_MS)
        throw new Error(`${name}: ${one.member.identity} ${at - last.at} ms after ${last.by.member.identity}`);
      if (one !== undefined && isAtWork(one, name)) this.lastWork.set(name, { by: one, at });
    }
  }

  #pick<T>(all: readonly T[]): T | undefined {
    return all[Math.floor(this.#random() * all.length)];
  }
}

function isAtWork(one: Replica, name: ClusterName): boolean {
  return [...one.work.keys()].some((permit) => permit.cluster === name && permit.valid);
}

beforeEach(() => {
  vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05Z') });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Pauses, deaths, newcomers, lost and late answers, in any order: a cluster is never two members', and in the end each is one's. */
it.each(Array.from({ length: 10 }, (_, i) => i + 1))(
  'never act on the same cluster together, story %i',
  async (seed) => {
    const story = new Story(seed);
    await story.run();
    const living = story.living;
    for (const name of NAMES) expect(living.filter(({ member }) => member.serves(name)).length, name).toBe(1);
    await story.end();
  },
  60_000,
);
