/** Parsed inventories, as many as fit: a thousand clusters' manifests do not stand in memory. */
import { LRUCache } from 'lru-cache';
import { buildInventory } from '../../drift/index.ts';
import type { Inventory } from '../../drift/index.ts';
import type { ReleaseKey, ReleaseMark, ReleaseReader } from '../../helm/index.ts';
import type { CallOptions } from '../../kube/index.ts';
import type { Cluster } from '../../runtime/index.ts';

/** For the whole process, bytes. */
const MAX_BYTES = 64 * 1024 * 1024;
/** A parsed manifest takes about so many times the bytes of its text: keys, headers of objects, texts of two bytes per character. */
const BYTES_PER_CHARACTER = 6;
/** Of an inventory beside its documents. */
const BYTES_PER_OBJECT = 400;

/** Whose objects. */
export interface InventoryQuestion {
  readonly cluster: Cluster;
  readonly reader: ReleaseReader;
  readonly release: ReleaseKey;
  readonly mark: ReleaseMark;
  readonly includeCRDs: boolean;
}

/** By record and its version: a revision never changes, so an inventory is made once for as long as it fits. */
export class Inventories {
  readonly #kept = new LRUCache<string, Inventory>({ maxSize: MAX_BYTES });

  /**
   * The inventory of a revision; from the cluster where it is not kept (one request, and discovery's where it has to ask).
   * undefined when its record went or changed meanwhile. Rejects with a HelmError (RecordInvalid) or KubeErrors.
   */
  async of(question: InventoryQuestion, call: CallOptions & { signal: AbortSignal }): Promise<Inventory | undefined> {
    return this.#kept.get(keyOf(question)) ?? this.renew(question, call);
  }

  /** As `of`, made anew: other kinds are served now. */
  async renew(
    { cluster, reader, release, mark, includeCRDs }: InventoryQuestion,
    call: CallOptions & { signal: AbortSignal },
  ): Promise<Inventory | undefined> {
    const key = keyOf({ cluster, mark, includeCRDs });
    this.#kept.delete(key);
    const content = await reader.content(mark, { signal: call.signal, limitMs: call.timeoutMs });
    if (content === undefined) return undefined;
    const crds = includeCRDs ? content.crds() : [];
    const { revision, documents, size } = content;
    const inventory = await buildInventory({ release, revision, documents, crds }, cluster.discovery, call);
    const bytes = size * BYTES_PER_CHARACTER + inventory.objects.length * BYTES_PER_OBJECT + 1;
    // What alone is larger than the whole is simply not kept.
    this.#kept.set(key, inventory, { size: bytes });
    return inventory;
  }
}

/** A record's uid is of one cluster, but where it may not be read, or a cluster was cloned. */
function keyOf({ cluster, mark, includeCRDs }: Pick<InventoryQuestion, 'cluster' | 'mark' | 'includeCRDs'>): string {
  return `${cluster.name} ${mark.recordUid} ${mark.recordVersion}${includeCRDs ? ' crds' : ''}`;
}
