import { readLease } from './shard-lease.ts';
import type { MemberRecord, ShardLease } from './shard-lease.ts';
import type { Ranking } from './rendezvous.ts';

/** A Lease that nobody renews is swept after so many of its durations: a member that comes back makes a new one. */
const DEAD_DURATIONS = 10;
/** One that was left in order says so to members that have not looked yet, and is then of no use. */
const LEFT_DURATIONS = 1;

interface Seen {
  readonly record: MemberRecord;
  readonly lease: ShardLease;
  /** When this process saw it change, on its own clock: times that others wrote are never compared with it. */
  changedAt: number;
  /** False once it is missing in a list: somebody deleted it, and its owner may not have noticed. */
  listed: boolean;
}

/** The other members, as their Leases tell. */
export class Peers {
  readonly #seen = new Map<string, Seen>();
  readonly #malformed = new Set<string>();
  readonly #onMalformed: (leaseName: string) => void;
  #live: readonly MemberRecord[] = [];

  constructor(onMalformed: (leaseName: string) => void) {
    this.#onMalformed = onMalformed;
  }

  /** Members that may act as of the last list: their Leases changed within their durations, or they left nothing behind. */
  get live(): readonly MemberRecord[] {
    return this.#live;
  }

  /**
   * Takes a list in. `asked`: before it was sent; `answered`: after it came, milliseconds on the monotonic clock. A
   * change is dated at the answer and age is counted up to the asking, so that time in which this process was stopped
   * never makes another one look dead.
   */
  observe(leases: readonly ShardLease[], asked: number, answered: number): void {
    const missing = new Map(this.#seen);
    for (const lease of leases) {
      missing.delete(lease.metadata.name);
      this.#observeOne(lease, answered);
    }
    for (const seen of missing.values()) seen.listed = false;
    this.#live = [...this.#seen.values()].filter((seen) => this.#isLive(seen, asked)).map((seen) => seen.record);
    for (const [name, seen] of missing) if (!this.#isLive(seen, asked)) this.#seen.delete(name);
  }

  /** Leases to be deleted, at the version that was seen. */
  swept(asked: number): ShardLease[] {
    return [...this.#seen.values()]
      .filter(({ record, listed, changedAt }) => {
        const durations = record.left ? LEFT_DURATIONS : DEAD_DURATIONS;
        return listed && asked - changedAt >= durations * record.durationMs;
      })
      .map(({ lease }) => lease);
  }

  /** Some live member acts, by what it published, as the owner of `name`. */
  claimed(name: string): boolean {
    return this.#live.some(({ identity, view }) => view.owner(name) === identity);
  }

  #observeOne(lease: ShardLease, at: number): void {
    const { name, resourceVersion } = lease.metadata;
    const before = this.#seen.get(name);
    if (before?.lease.metadata.resourceVersion === resourceVersion) {
      if (before !== undefined) before.listed = true;
      return;
    }
    const record = readLease(lease);
    if (record === undefined) {
      if (!this.#malformed.has(name)) this.#onMalformed(name);
      this.#malformed.add(name);
      // What it said before may still be what its member acts on.
      if (before !== undefined) before.listed = false;
      return;
    }
    this.#malformed.delete(name);
    this.#seen.set(name, { record: withView(record, before?.record.view), lease, changedAt: at, listed: true });
  }

  #isLive({ record, changedAt }: Seen, asked: number): boolean {
    return !record.left && asked - changedAt < record.durationMs;
  }
}

/** The same view stays the same object, with the owners that it has worked out. */
function withView(record: MemberRecord, before: Ranking | undefined): MemberRecord {
  return before?.text === record.view.text ? { ...record, view: before } : record;
}
