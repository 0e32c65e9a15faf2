/** Releases whose objects are looked at, in memory: verdicts and corrections are what a test says. For the tests of this folder. */
import type { DriftDetectionSpec, DriftMode, HelmReleaseProxy } from '../../api/index.ts';
import { correctableFields, objectKey } from '../../drift/index.ts';
import type {
  Correctable,
  Correction,
  CorrectOptions,
  FieldDrift,
  Inventory,
  InventoryObject,
  JsonObject,
  LiveObject,
  ObjectId,
  Settled,
  Stirred,
  Verdict,
} from '../../drift/index.ts';
import type { ReleaseStatus } from '../../helm/index.ts';
import type { KubeClient, KubeObject, Scope } from '../../kube/index.ts';
import { clusterName } from '../../runtime/index.ts';
import type { Cluster, Request } from '../../runtime/index.ts';
import { silentLogger } from '../../telemetry/index.ts';
import { requestFor } from '../release-proxy/proxy.ts';
import { World } from '../release-proxy/world.test-support.ts';
import { Inventories } from './inventories.ts';
import { DriftMetrics } from './metrics.ts';
import type { DriftParts } from './parts.ts';
import { Policies } from './policy.ts';
import { DriftReconciler } from './reconciler.ts';
import { RequestGate } from './request-gate.ts';
import { Sessions } from './sessions.ts';
import type { Tracker } from './trackers.ts';
import { Trackers } from './trackers.ts';

export const C1 = clusterName('fleet/c1');
export const KEY = { namespace: 'apps', name: 'app' };

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** A tracker that is told by hand. */
export class FakeTracker implements Tracker {
  readonly releases = new Map<string, { inventory: Inventory; stirred: Map<number, Stirred['kind']> }>();
  readonly tracked: { readonly wide: boolean; readonly keep: boolean }[] = [];
  readonly settled: (Settled & { readonly name: string })[] = [];
  outdated = false;
  refusals: string[] = [];
  closed = false;
  syncFailure: Error | undefined;

  track(uid: string, inventory: Inventory, options: { wide: boolean; keep: boolean }): void {
    this.tracked.push(options);
    this.outdated = false;
    const known = options.keep ? this.releases.get(uid)?.stirred : undefined;
    const all = inventory.objects.map((_object, index): [number, Stirred['kind']] => [index, 'unverified']);
    this.releases.set(uid, { inventory, stirred: known ?? new Map(all) });
  }

  forget(uid: string): void {
    this.releases.delete(uid);
  }

  async synced(): Promise<void> {
    if (this.syncFailure !== undefined) throw this.syncFailure;
  }

  take(uid: string): readonly Stirred[] {
    const { inventory, stirred } = this.#of(uid);
    return [...stirred].flatMap(([index, kind]) => {
      const object = inventory.objects[index];
      return object === undefined ? [] : [{ index, id: object.id, kind }];
    });
  }

  settle(uid: string, id: ObjectId, verified: Settled): void {
    this.settled.push({ ...verified, name: id.name });
    this.#of(uid).stirred.delete(this.#indexOf(uid, id.name));
  }

  unsettle(uid: string, id: ObjectId): void {
    this.stir(uid, id.name, 'unverified');
  }

  stir(uid: string, name: string, kind: Stirred['kind'] = 'changed'): void {
    this.#of(uid).stirred.set(this.#indexOf(uid, name), kind);
  }

  isOutdated(): boolean {
    return this.outdated;
  }

  problems(): string[] {
    return this.refusals;
  }

  close(): void {
    this.closed = true;
  }

  #of(uid: string): { inventory: Inventory; stirred: Map<number, Stirred['kind']> } {
    const release = this.releases.get(uid);
    if (release === undefined) throw new Error(`${uid} is not tracked`);
    return release;
  }

  #indexOf(uid: string, name: string): number {
    return this.#of(uid).inventory.objects.findIndex(({ id }) => id.name === name);
  }
}

export function configMap(name: string): JsonObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { mode: 'calm' } };
}

export function deployment(name: string): JsonObject {
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name }, spec: { replicas: 1 } };
}

export function live(name: string, resourceVersion = '1'): LiveObject {
  const labels = { 'app.kubernetes.io/managed-by': 'Helm' };
  const object: KubeObject = { metadata: { namespace: 'apps', name, resourceVersion, labels } };
  return object as LiveObject;
}

export function field(path: readonly string[], manager?: string): FieldDrift {
  const author = manager === undefined ? {} : { author: { manager, operation: 'Update' as const } };
  return { change: 'changed', path, wanted: 'calm', live: 'wild', ...author };
}

export function modified(
  name: string,
  fields: readonly FieldDrift[] = [field(['data', 'mode'], 'kubectl-edit')],
): Verdict {
  return { state: 'Modified', live: live(name), watch: [], fields, applicable: true };
}

type Answer = Correction | Error;

export interface DriftWorldOptions {
  readonly mode?: DriftMode;
  readonly documents?: readonly JsonObject[];
  readonly delaysMs?: readonly number[];
  readonly spec?: DriftDetectionSpec;
}

/** One deployed release, `p`, on one cluster. */
export class DriftWorld {
  readonly base = new World();
  readonly parts: DriftParts;
  readonly reconciler: DriftReconciler;
  readonly trackers: FakeTracker[] = [];
  /** By object's name; InSync when absent. A function is asked each time. */
  readonly verdicts = new Map<string, Verdict | Error | (() => Verdict)>();
  /** What corrections come to, by object's name and in turn; corrected when there is none. */
  readonly answers = new Map<string, Answer[]>();
  readonly verified: string[] = [];
  readonly lists: Scope[] = [];
  readonly corrected: { readonly name: string; readonly skip: readonly string[]; readonly locked: boolean }[] = [];
  readonly later: { readonly name: string; readonly afterMs: number }[] = [];
  readonly stirred: string[] = [];
  /** Kinds that are served by now. */
  readonly served = new Set<string>();
  /** What a list of the workload cluster tells. */
  listed: LiveObject[] = [];
  /** Called in the middle of each correction, and of each verification. */
  during: ((name: string) => void | Promise<void>) | undefined;
  duringVerify: ((name: string) => void) | undefined;
  notes: readonly string[] = [];

  constructor(options: DriftWorldOptions = {}) {
    const { base } = this;
    const trackers = new Trackers(() => {
      const tracker = new FakeTracker();
      this.trackers.push(tracker);
      return tracker;
    });
    const parts: Mutable<DriftParts> = {
      ...base.parts,
      policies: new Policies({ mode: options.mode ?? 'Correct', helmManagers: ['helm'] }),
      inventories: new Inventories(),
      sessions: new Sessions(trackers, options.delaysMs ?? [0, 2_000, 6_000]),
      gate: new RequestGate(),
      metrics: new DriftMetrics(base.parts.deps.telemetry.metrics),
      tools: {
        createTracker: () => new FakeTracker(),
        verify: async (_client, object, _policy, options) => this.#verify(object, options?.live),
        correct: async (_client, object, verdict, { skip }) => this.#correct(object, verdict, skip ?? []),
        correctable: correctableFields,
        now: () => base.nowMs,
        random: () => 0.5,
      },
      later: ({ name }, afterMs) => this.later.push({ name, afterMs }),
    };
    this.parts = parts;
    this.reconciler = new DriftReconciler(parts);
    this.addCluster();
    this.deploy(1, options.documents ?? [configMap('settings'), deployment('web')]);
    base.addProxy('p', { driftDetection: options.spec });
  }

  get tracker(): FakeTracker {
    const tracker = this.trackers.at(-1);
    if (tracker === undefined) throw new Error('nothing is tracked');
    return tracker;
  }

  /** An engagement of the one cluster. */
  addCluster(): Cluster {
    const cluster = { ...this.base.addCluster('c1'), client: this.#client() };
    const engaged: Cluster = {
      ...cluster,
      discovery: {
        find: async ({ group, version = 'v1', kind }) =>
          kind === 'Unserved' && !this.served.has(kind)
            ? undefined
            : { group, version, plural: `${kind.toLowerCase()}s`, namespaced: true },
        versions: async () => [],
        invalidate: () => undefined,
      },
    };
    this.base.fleet.engaged.set(C1, engaged);
    return engaged;
  }

  deploy(revision: number, documents?: readonly JsonObject[], status: ReleaseStatus = 'deployed'): void {
    const storage = this.base.storage(C1);
    if (documents !== undefined) storage.manifests.set('apps/app', documents);
    storage.put(KEY, { revision, status });
  }

  proxy(): HelmReleaseProxy {
    return this.base.proxy('p');
  }

  request(): Request {
    return requestFor(this.proxy());
  }

  async pass(signal = new AbortController().signal): Promise<void> {
    const log = {
      ...silentLogger,
      info: (message: string): void => {
        this.base.logged.push(message);
      },
      with: () => log,
    };
    await this.reconciler.reconcile(this.request(), { signal, log, failures: 0 });
  }

  /** An event, and the pass upon it. */
  async event(name: string, verdict: Verdict | Error | undefined, kind: Stirred['kind'] = 'changed'): Promise<void> {
    if (verdict === undefined) this.verdicts.delete(name);
    else this.verdicts.set(name, verdict);
    this.tracker.stir('uid of p', name, kind);
    await this.pass();
  }

  edit(change: (proxy: HelmReleaseProxy) => HelmReleaseProxy): void {
    this.base.edit('p', change);
  }

  ask(driftDetection: DriftDetectionSpec): void {
    this.edit((proxy) => ({ ...proxy, spec: { ...proxy.spec, driftDetection } }));
  }

  annotate(annotations: Record<string, string>): void {
    this.edit((proxy) => ({ ...proxy, metadata: { ...proxy.metadata, annotations } }));
  }

  inSync(): string | undefined {
    const condition = this.base.condition('p', 'ReleaseInSync');
    return condition && `${condition.status} ${condition.reason}: ${condition.message}`;
  }

  events(): string[] {
    return this.base.events.map(({ reason, message }) => `${reason} ${message}`);
  }

  writes(): number {
    return this.base.api.writes.length;
  }

  /** What the metrics count, all clusters together. */
  async counted(name: string): Promise<number> {
    const metric = this.base.parts.deps.telemetry.metrics.getSingleMetric(name);
    const { values } = (await metric?.get()) ?? { values: [] };
    return values.reduce((sum, { value }) => sum + value, 0);
  }

  #verify(object: InventoryObject, given: LiveObject | undefined): { verdict: Verdict; notes: readonly string[] } {
    const { name } = object.id;
    this.verified.push(given === undefined ? name : `${name} (given)`);
    this.duringVerify?.(name);
    const told = this.verdicts.get(name) ?? { state: 'InSync', live: given ?? live(name), watch: [] };
    if (told instanceof Error) throw told;
    return { verdict: typeof told === 'function' ? told() : told, notes: this.notes };
  }

  async #correct(
    object: InventoryObject,
    _verdict: Correctable,
    skip: NonNullable<CorrectOptions['skip']>,
  ): Promise<Correction> {
    const { name } = object.id;
    const locked = this.parts.locks.isLocked(C1, KEY);
    this.corrected.push({ name, skip: skip.map((path) => `/${path.join('/')}`), locked });
    await this.during?.(name);
    const answer = this.answers.get(name)?.shift() ?? { outcome: 'corrected', live: live(name, '2'), created: false };
    if (answer instanceof Error) throw answer;
    // A fight goes on when the test gave a function.
    if (answer.outcome === 'corrected' && typeof this.verdicts.get(name) !== 'function') this.verdicts.delete(name);
    return answer;
  }

  #client(): KubeClient {
    return {
      ...this.base.api.client(),
      list: (async (_resource: unknown, scope: Scope) => {
        this.lists.push(scope);
        return { items: this.listed, resourceVersion: '9' };
      }) as KubeClient['list'],
    };
  }
}

/** As sessions and findings have it. */
export function keyOf(kind: string, name: string): string {
  return objectKey({ group: kind === 'Deployment' ? 'apps' : '', version: 'v1', kind, namespace: 'apps', name });
}
