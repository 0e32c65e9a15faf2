import { isKubeError } from '../../kube/index.ts';
import type { KubeClient } from '../../kube/index.ts';
import { LEASES, leaseNameOf, leaseOf } from './shard-lease.ts';
import type { MemberRecord, ShardLease } from './shard-lease.ts';

/** One call; two of them and a pause fit into the fence's limit, so that one lost answer costs nothing. */
const CALL_LIMIT_MS = 2_000;

/** `stored`: it is what the store has now. `gone`: somebody deleted it, and members that look now know nothing of us. */
export type StoreOutcome = 'stored' | 'gone';

/** This member's own Lease. It is only ever written at a version that was read: a write that was late is refused. */
export class OwnLease {
  readonly name: string;
  readonly #client: KubeClient;
  readonly #place: { readonly group: string; readonly namespace: string };
  #stored: ShardLease | undefined;

  constructor(client: KubeClient, place: { readonly group: string; readonly namespace: string }, identity: string) {
    this.#client = client;
    this.#place = place;
    this.name = leaseNameOf(place.group, identity);
  }

  /** It was stored, as far as is known. */
  get exists(): boolean {
    return this.#stored !== undefined;
  }

  /** Renews it with what `record` says, or makes it. Rejects when the outcome is not known. */
  async store(record: MemberRecord): Promise<StoreOutcome> {
    try {
      return await (this.#stored === undefined ? this.#create(record) : this.#replace(record, this.#stored));
    } catch (error) {
      if (!isKubeError(error, 'NotFound')) throw error;
      this.#stored = undefined;
      return 'gone';
    }
  }

  async #create(record: MemberRecord): Promise<StoreOutcome> {
    try {
      this.#stored = await this.#client.create(LEASES, leaseOf(record, this.#place), { timeoutMs: CALL_LIMIT_MS });
      return 'stored';
    } catch (error) {
      // An earlier attempt whose answer was lost: no other process has this identity.
      if (isKubeError(error, 'AlreadyExists')) return this.#overwrite(record);
      throw error;
    }
  }

  async #replace(record: MemberRecord, before: ShardLease): Promise<StoreOutcome> {
    try {
      const lease = leaseOf(record, this.#place, before);
      this.#stored = await this.#client.replace(LEASES, lease, { timeoutMs: CALL_LIMIT_MS });
      return 'stored';
    } catch (error) {
      if (isKubeError(error, 'Conflict')) return this.#overwrite(record, before);
      throw error;
    }
  }

  /** Written meanwhile by an attempt whose answer was lost, or by somebody's hand. One of another UID is not the one that members saw. */
  async #overwrite(record: MemberRecord, before?: ShardLease): Promise<StoreOutcome> {
    const key = { namespace: this.#place.namespace, name: this.name };
    const found = await this.#client.get<ShardLease>(LEASES, key, { timeoutMs: CALL_LIMIT_MS });
    this.#stored = found;
    if (before !== undefined && found.metadata.uid !== before.metadata.uid) return 'gone';
    const lease = leaseOf(record, this.#place, found);
    this.#stored = await this.#client.replace(LEASES, lease, { timeoutMs: CALL_LIMIT_MS });
    return 'stored';
  }
}
