/** The objects that values templates see as .ControlPlane and .InfraCluster: fetched only when a template names them, and watched from then on. */
import type { UnstructuredObject, Informer, Resource, WatchTarget } from '../../kube/index.ts';
import { requestKey } from '../../runtime/index.ts';
import type { Cluster, Request } from '../../runtime/index.ts';
import { ReconcilerError } from '../errors.ts';
import type { CapiCluster, CapiReference } from '../shared.ts';
import { VALUES_FAILED } from './contracts.ts';
import type { ContractVersions, KindName } from './contracts.ts';

export type Builtin = 'ControlPlane' | 'InfraCluster';

/** Where a Cluster says its part is. */
export interface PartReference extends KindName {
  readonly namespace: string;
  readonly name: string;
}

/** A first list of a provider's kind: usually a few objects. */
const SYNC_LIMIT_MS = 30_000;

interface Watch {
  /** Holds the watch in the cluster's watch set. */
  readonly owner: object;
  readonly informer: Informer<UnstructuredObject>;
  readonly removeHandler: () => void;
  /** Placements that read it, by the object they read (`namespace/name`), then by placement. */
  readonly users: Map<string, Map<string, Request>>;
}

/** What one placement reads. */
interface Need {
  readonly watchKey: string;
  readonly objectKey: string;
}

/** Keeps one informer per kind for as long as any placement needs it. */
export class Builtins {
  readonly #management: Cluster;
  readonly #contracts: ContractVersions;
  readonly #changed: (request: Request) => void;
  readonly #watches = new Map<string, Watch>();
  readonly #needs = new Map<string, readonly Need[]>();

  /** `changed` is told each placement whose object changed. */
  constructor(management: Cluster, contracts: ContractVersions, changed: (request: Request) => void) {
    this.#management = management;
    this.#contracts = contracts;
    this.#changed = changed;
  }

  /**
   * The objects that a placement's template names; a part to which its Cluster has no reference is left out, as in CAAPH.
   * Watches that it no longer needs are given back. Rejects with a ReconcilerError when one is missing.
   */
  async resolve(
    request: Request,
    cluster: CapiCluster,
    wanted: readonly Builtin[],
    signal: AbortSignal,
  ): Promise<Partial<Record<Builtin, UnstructuredObject>>> {
    const parts: { builtin: Builtin; reference: PartReference; resource: Resource }[] = [];
    for (const builtin of wanted) {
      const reference = referenceOf(cluster, builtin);
      if (reference === undefined) continue;
      parts.push({ builtin, reference, resource: await this.#contracts.resource(reference, signal) });
    }
    const informers = this.#need(request, parts);
    const found: Partial<Record<Builtin, UnstructuredObject>> = {};
    for (const [index, { builtin, reference }] of parts.entries()) {
      found[builtin] = await read(informers[index], builtin, reference, signal);
    }
    return found;
  }

  /** The placement reads nothing any more. */
  release(request: Request): void {
    this.#need(request, []);
  }

  /** A HelmChartProxy is gone: none of its placements reads anything any more. */
  releaseAll(namespace: string, name: string): void {
    for (const [placement, needs] of this.#needs) {
      if (!placement.endsWith(` ${namespace} ${name}`)) continue;
      for (const need of needs) this.#drop(need, placement);
      this.#needs.delete(placement);
    }
  }

  /** Gives everything back. */
  close(): void {
    for (const key of [...this.#watches.keys()]) this.#stop(key);
    this.#needs.clear();
  }

  get size(): number {
    return this.#watches.size;
  }

  #need(
    request: Request,
    parts: readonly { reference: PartReference; resource: Resource }[],
  ): Informer<UnstructuredObject>[] {
    const placement = requestKey(request);
    const before = this.#needs.get(placement) ?? [];
    const needs: Need[] = [];
    const informers: Informer<UnstructuredObject>[] = [];
    for (const { reference, resource } of parts) {
      const need = { watchKey: watchKeyOf(resource), objectKey: `${reference.namespace}/${reference.name}` };
      informers.push(this.#use(need, resource, placement, request));
      needs.push(need);
    }
    for (const old of before) {
      if (!needs.some((need) => need.watchKey === old.watchKey && need.objectKey === old.objectKey))
        this.#drop(old, placement);
    }
    if (needs.length === 0) this.#needs.delete(placement);
    else this.#needs.set(placement, needs);
    return informers;
  }

  #use(need: Need, resource: Resource, placement: string, request: Request): Informer<UnstructuredObject> {
    const watch = this.#watches.get(need.watchKey) ?? this.#start(need.watchKey, resource);
    const readers = watch.users.get(need.objectKey) ?? new Map<string, Request>();
    readers.set(placement, request);
    watch.users.set(need.objectKey, readers);
    return watch.informer;
  }

  #start(key: string, resource: Resource): Watch {
    const owner = {};
    const target: WatchTarget = { resource, form: 'full' };
    const informer = this.#management.watches.hold<UnstructuredObject>(owner, target);
    const users: Watch['users'] = new Map();
    const tell = (object: UnstructuredObject): void => {
      for (const request of users.get(`${object.metadata.namespace ?? ''}/${object.metadata.name}`)?.values() ?? []) {
        this.#changed(request);
      }
    };
    const removeHandler = informer.addHandler({ add: tell, update: (_previous, object) => tell(object), delete: tell });
    const watch = { owner, informer, removeHandler, users };
    this.#watches.set(key, watch);
    return watch;
  }

  #drop(need: Need, placement: string): void {
    const watch = this.#watches.get(need.watchKey);
    const readers = watch?.users.get(need.objectKey);
    readers?.delete(placement);
    if (readers?.size === 0) watch?.users.delete(need.objectKey);
    if (watch?.users.size === 0) this.#stop(need.watchKey);
  }

  #stop(key: string): void {
    const watch = this.#watches.get(key);
    if (watch === undefined) return;
    this.#watches.delete(key);
    watch.removeHandler();
    this.#management.watches.release(watch.owner);
  }
}

/** Where the Cluster says that its part is; undefined when it names none. v1beta2 references have a group and no namespace, v1beta1 ones the reverse. */
export function referenceOf(cluster: CapiCluster, builtin: Builtin): PartReference | undefined {
  const reference = builtin === 'ControlPlane' ? cluster.spec?.controlPlaneRef : cluster.spec?.infrastructureRef;
  return reference === undefined ? undefined : partOf(reference, cluster.metadata.namespace ?? '');
}

function partOf(reference: CapiReference, clusterNamespace: string): PartReference | undefined {
  const { kind = '', name = '', namespace = clusterNamespace } = reference;
  return kind === '' || name === '' ? undefined : { group: groupOf(reference), kind, namespace, name };
}

function groupOf({ apiGroup, apiVersion = '' }: CapiReference): string {
  return apiGroup ?? (apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '');
}

async function read(
  informer: Informer<UnstructuredObject> | undefined,
  builtin: Builtin,
  reference: PartReference,
  signal: AbortSignal,
): Promise<UnstructuredObject> {
  await informer?.synced(signal, SYNC_LIMIT_MS);
  const object = informer?.get(reference.namespace, reference.name);
  if (object !== undefined) return object;
  // Its arrival is an event: no retry on a timer.
  throw new ReconcilerError({
    code: VALUES_FAILED,
    class: 'Wait',
    message: `${reference.kind} ${reference.namespace}/${reference.name}, which the template reads as .${builtin}, does not exist`,
  });
}

function watchKeyOf({ group, version, plural }: Resource): string {
  return `${plural}.${version}.${group}`;
}
