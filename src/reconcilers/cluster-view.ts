import type { Informer, InformerHandler, Lister } from '../kube/index.ts';
import type { ClusterName, ClusterRecord, ClusterRecords } from '../runtime/index.ts';
import { BARE_CLUSTER, fleetNameOf, isForeign, providerOf } from './cluster-names.ts';
import type { ClusterKey } from './cluster-names.ts';
import type { CapiCluster } from './shared.ts';

/** Clusters as selectors see them. */
export interface ClusterView extends Pick<Lister<CapiCluster>, 'get' | 'list'> {
  /** Handlers that come late are told `add` (initial) of what is there, synchronously. Returns the removal, by identity. */
  addHandler(handler: InformerHandler<CapiCluster>): () => void;
  /** What is not there is gone, and not merely unknown yet. */
  knows(key: ClusterKey): boolean;
  /** Told once more clusters that are not there are known to be gone. Returns the removal, by identity. */
  onKnown(listener: () => void): () => void;
}

/**
 * The Clusters of Cluster API and the clusters of every other provider, as one. The latter are made up from what their
 * providers declare: an object with their labels, in the namespace that may select them. Reads are of memory alone.
 */
export class ClustersTogether implements ClusterView {
  readonly #records: ClusterRecords | undefined;
  readonly #foreign = new Map<ClusterName, CapiCluster>();
  readonly #handlers = new Set<{ readonly handler: InformerHandler<CapiCluster> }>();
  readonly #listeners = new Set<{ readonly tell: () => void }>();
  readonly #removals: (() => void)[] = [];
  #capi: Informer<CapiCluster> | undefined;

  /** `records`: of the fleet; absent where Cluster API's is the only provider. */
  constructor(records: ClusterRecords | undefined) {
    this.#records = records;
    if (records === undefined) return;
    this.#removals.push(
      records.listen((name, record) => this.#recorded(name, record)),
      records.onSynced(() => this.#known()),
    );
  }

  /** Cluster API's, once they are listed: also after the others, where it is installed later. */
  attach(informer: Informer<CapiCluster>): void {
    this.#capi = informer;
    const tell = (act: (handler: InformerHandler<CapiCluster>) => void): void => {
      for (const { handler } of [...this.#handlers]) act(handler);
    };
    const removal = informer.addHandler({
      add: (object, initial) => tell((handler) => handler.add?.(object, initial)),
      update: (before, object) => tell((handler) => handler.update?.(before, object)),
      delete: (object) => tell((handler) => handler.delete?.(object)),
    });
    this.#removals.push(removal);
    this.#known();
  }

  get(namespace: string | undefined, name: string): CapiCluster | undefined {
    if (!isForeign(name)) return this.#capi?.get(namespace, name);
    const found = this.#foreign.get(fleetNameOf({ namespace: namespace ?? '', name }));
    return found?.metadata.namespace === namespace ? found : undefined;
  }

  list(namespace?: string): CapiCluster[] {
    const foreign = [...this.#foreign.values()];
    const here = namespace === undefined ? foreign : foreign.filter(({ metadata }) => metadata.namespace === namespace);
    return [...(this.#capi?.list(namespace) ?? []), ...here];
  }

  addHandler(handler: InformerHandler<CapiCluster>): () => void {
    const entry = { handler };
    this.#handlers.add(entry);
    for (const object of this.list()) handler.add?.(object, true);
    return () => {
      this.#handlers.delete(entry);
    };
  }

  knows({ name }: ClusterKey): boolean {
    return isForeign(name) ? this.#records?.isSynced(providerOf(name)) === true : this.#capi !== undefined;
  }

  onKnown(listener: () => void): () => void {
    const entry = { tell: listener };
    this.#listeners.add(entry);
    return () => {
      this.#listeners.delete(entry);
    };
  }

  close(): void {
    for (const remove of this.#removals) remove();
  }

  #recorded(name: ClusterName, record: ClusterRecord | undefined): void {
    if (!isForeign(name)) return;
    const before = this.#foreign.get(name);
    const now = record?.namespace === undefined ? undefined : objectOf(record, record.namespace);
    if (now === undefined) this.#foreign.delete(name);
    else this.#foreign.set(name, now);
    for (const { handler } of [...this.#handlers]) tell(handler, before, now);
  }

  #known(): void {
    for (const { tell } of [...this.#listeners]) tell();
  }
}

/** In another namespace it is another cluster to whoever selects. */
function tell(
  handler: InformerHandler<CapiCluster>,
  before: CapiCluster | undefined,
  now: CapiCluster | undefined,
): void {
  const stays = before !== undefined && now?.metadata.namespace === before.metadata.namespace;
  if (stays && now !== undefined) {
    handler.update?.(before, now);
    return;
  }
  if (before !== undefined) handler.delete?.(before);
  if (now !== undefined) handler.add?.(now, false);
}

/** What stands for a cluster of another provider. Its UID is that of its source: one made anew is another cluster. */
function objectOf(record: ClusterRecord, namespace: string): CapiCluster {
  const { name, labels, source } = record;
  const { apiVersion, kind } = source ?? BARE_CLUSTER;
  return { apiVersion, kind, metadata: { namespace, name, labels: { ...labels }, uid: source?.uid } };
}
