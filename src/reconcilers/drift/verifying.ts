/** The first half of a pass: looks at what stirred, and keeps what differs as findings. */
import PQueue from 'p-queue';
import { HELM_SELECTOR, objectKey } from '../../drift/index.ts';
import type { Inventory, InventoryObject, LiveObject, Stirred, Verification } from '../../drift/index.ts';
import { isKubeError } from '../../kube/index.ts';
import type { KubeClient } from '../../kube/index.ts';
import { CLUSTER_ATTRIBUTE, errorText, inSpan } from '../../telemetry/index.ts';
import { UNVERIFIED, findingOf, signatureOf, unverified } from './finding.ts';
import type { Differing, Finding } from './finding.ts';
import type { DriftNews } from './news.ts';
import { pauseOutOfSight } from './out-of-sight.ts';
import { CALL_LIMIT_MS } from './parts.ts';
import type { DriftParts } from './parts.ts';
import type { DriftPolicy } from './policy.ts';
import { GatedClient } from './request-gate.ts';
import type { DriftSession } from './session.ts';

/** An object that differs, as it was just seen. */
export interface Seen {
  readonly object: InventoryObject;
  readonly verdict: Differing;
  readonly finding: Finding;
}

export interface LookSubject {
  readonly session: DriftSession;
  readonly policy: DriftPolicy;
  readonly inventory: Inventory;
  readonly news: DriftNews;
  /** Ends with the pass or the engagement. */
  readonly signal: AbortSignal;
}

/** Objects of a pass looked at, or corrected, at a time. */
export const AT_A_TIME = 4;

/** So many of one kind and namespace are read by one list; fewer one by one. */
const LIST_FROM = 4;

/** A sweep gives way after so long, that what stirs meanwhile does not wait for its end. Milliseconds. */
const SLICE_MS = 2_000;

export class Verifying {
  readonly #parts: DriftParts;
  readonly #subject: LookSubject;
  readonly #onDryRun: () => void;

  constructor(parts: DriftParts, subject: LookSubject) {
    this.#parts = parts;
    this.#subject = subject;
    this.#onDryRun = () => parts.metrics.dryRun(subject.session.cluster.name);
  }

  /**
   * Looks at what an event told of and at what is due, then, while there is time, at what was never looked at. Resolves to
   * what differs, in install order. Rejects when the cluster cannot be asked; what was not looked at stays to be.
   */
  async run(): Promise<Seen[]> {
    const { session } = this.#subject;
    const stirred = session.tracker.take(session.uid).filter((one) => !this.#waits(one));
    const urgent = new Set(stirred.filter(({ kind }) => kind !== 'unverified').map(({ index }) => index));
    for (const index of this.#due()) urgent.add(index);
    const { client } = session.cluster;
    const seen = await this.#all(
      [...urgent].sort(ascending).flatMap((index) => this.#objectAt(index)),
      client,
    );
    const rest = stirred.filter(({ index }) => !urgent.has(index)).flatMap(({ index }) => this.#objectAt(index));
    return [...seen, ...(await this.#sweep(rest))].sort((a, b) => a.object.order - b.object.order);
  }

  /** Looks at one object. undefined: it is as it should be, taken out, or could not be looked at. */
  async one(object: InventoryObject, client: KubeClient, live?: LiveObject): Promise<Seen | undefined> {
    const { session, policy, signal, news } = this.#subject;
    const options = { signal, timeoutMs: CALL_LIMIT_MS, onDryRun: this.#onDryRun, ...(live !== undefined && { live }) };
    try {
      const verification = await inSpan(
        this.#parts.deps.telemetry.tracer,
        'drift verify',
        attributesOf(session, object),
        async () => this.#parts.tools.verify(client, object, policy.comparison, options),
      );
      news.notes(objectKey(object.id), object.id, verification.notes);
      return this.#take(object, verification);
    } catch (error) {
      if (isLost(error, signal)) throw error;
      this.#unverifiable(object, error);
      return undefined;
    }
  }

  async #all(objects: readonly InventoryObject[], client: KubeClient): Promise<Seen[]> {
    const seen = await inParallel(objects, async (object) => this.one(object, client));
    return seen.filter((one) => one !== undefined);
  }

  async #sweep(objects: readonly InventoryObject[]): Promise<Seen[]> {
    const { session } = this.#subject;
    const client = new GatedClient(session.cluster.client, this.#parts.gate, session.cluster.name);
    const until = this.#parts.tools.now() + SLICE_MS;
    const seen: Seen[] = [];
    for (const group of groupsOf(objects)) {
      if (this.#parts.tools.now() > until) return seen;
      const lives = await this.#list(group, client);
      const found = await inParallel(group, async (object) => this.one(object, client, lives.get(keyOf(object.id))));
      seen.push(...found.filter((one) => one !== undefined));
    }
    session.isSwept = true;
    return seen;
  }

  /** What a list does not tell (it may lack Helm's label) is asked for by itself. */
  async #list(group: readonly InventoryObject[], client: KubeClient): Promise<ReadonlyMap<string, LiveObject>> {
    const [first] = group;
    if (first?.resource === undefined || group.length < LIST_FROM) return new Map();
    const scope = { namespace: first.id.namespace, labelSelector: HELM_SELECTOR };
    try {
      const call = { signal: this.#subject.signal, timeoutMs: CALL_LIMIT_MS };
      const { items } = await client.list<LiveObject>(first.resource, scope, call);
      return new Map(items.map((live) => [keyOf(live.metadata), live]));
    } catch (error) {
      // Who may get may not always list.
      if (isKubeError(error, 'Forbidden', 'NotFound')) return new Map();
      throw error;
    }
  }

  #take(object: InventoryObject, { verdict }: Verification): Seen | undefined {
    const { session, news } = this.#subject;
    const key = objectKey(object.id);
    if (verdict.state === 'InSync' || verdict.state === 'Excluded') {
      const watch = verdict.state === 'InSync' ? verdict.watch : [];
      const wide = verdict.state === 'InSync' && verdict.unowned === true;
      session.tracker.settle(session.uid, object.id, { live: verdict.live, watch, wide });
      session.findings.delete(key);
      session.convergence.settled(key);
      news.settled(key);
      const upgraded = session.takeUpgraded(key);
      if (upgraded !== undefined) news.corrected(upgraded.finding, this.#parts.tools.now() - upgraded.sinceMs);
      return undefined;
    }
    const live = 'live' in verdict ? verdict.live : undefined;
    const watch = verdict.state === 'Modified' ? verdict.watch : [];
    const notServed = verdict.state === 'NotServed';
    session.tracker.settle(session.uid, object.id, { live, watch, wide: true, notServed });
    const finding = this.#finding(object, verdict);
    session.takeUpgraded(key);
    session.findings.set(key, finding);
    news.found(finding);
    return { object, verdict, finding };
  }

  /** What became of the same finding before still holds; that of another one is decided anew. */
  #finding(object: InventoryObject, verdict: Differing): Finding {
    const finding = findingOf(object.id, verdict, this.#next(verdict));
    const known = this.#subject.session.findings.get(finding.key);
    const before = known !== undefined && signatureOf(known.status) === signatureOf(finding.status) ? known : undefined;
    if (finding.status.action === 'Reported') return this.#reported(object, { finding, verdict, before });
    if (before === undefined || finding.status.action !== 'Pending') return finding;
    return { ...before, dueAtMs: finding.dueAtMs };
  }

  #reported(
    object: InventoryObject,
    { finding, verdict, before }: { finding: Finding; verdict: Differing; before: Finding | undefined },
  ): Finding {
    const unseenMs = pauseOutOfSight(object, verdict, before?.unseenMs);
    if (unseenMs === undefined) return finding;
    return { ...finding, unseenMs, dueAtMs: this.#parts.tools.now() + unseenMs };
  }

  /** What is to be corrected stays due until it is: a pass that is broken off is made good by the next one. */
  #next(verdict: Differing): { action: Finding['status']['action']; dueAtMs?: number } {
    if (verdict.state === 'NotServed' || verdict.state === 'Terminating') return { action: 'Waiting' };
    if (verdict.state === 'Foreign' || !this.#subject.policy.mayCorrect) return { action: 'Reported' };
    return { action: 'Pending', dueAtMs: this.#parts.tools.now() };
  }

  #unverifiable(object: InventoryObject, error: unknown): void {
    const { session, news } = this.#subject;
    const key = objectKey(object.id);
    const dueAtMs = session.convergence.refused(key, this.#parts.tools.now());
    const finding = unverified(object.id, textOf(object, error), dueAtMs);
    session.findings.set(key, finding);
    news.notes(key, object.id, [finding.status.message ?? '']);
  }

  /** An object that could not be looked at waits for its time, whatever else of its release is looked at. */
  #waits({ id }: Stirred): boolean {
    const finding = this.#subject.session.findings.get(objectKey(id));
    return finding?.status.state === UNVERIFIED && (finding.dueAtMs ?? 0) > this.#parts.tools.now();
  }

  #due(): number[] {
    const nowMs = this.#parts.tools.now();
    const { session, inventory } = this.#subject;
    const due = [...session.findings.values()].filter(({ dueAtMs }) => dueAtMs !== undefined && dueAtMs <= nowMs);
    if (due.length === 0) return [];
    const keys = new Set(due.map(({ key }) => key));
    return inventory.objects.flatMap(({ id }, index) => (keys.has(objectKey(id)) ? [index] : []));
  }

  #objectAt(index: number): InventoryObject[] {
    const object = this.#subject.inventory.objects[index];
    return object === undefined ? [] : [object];
  }
}

/** Can the cluster not be asked, or may we not go on? Then the pass is over; what else a server says is about the object. */
export function isLost(error: unknown, signal: AbortSignal): boolean {
  if (signal.aborted) return true;
  if (isKubeError(error, 'Network', 'ConnectionClosed', 'Unauthorized', 'TooManyRequests', 'WriteRefused')) return true;
  // A server that says so itself waited for a webhook, say; one that says nothing is away.
  return isKubeError(error, 'TimedOut') && error.status === undefined;
}

/** What the server said can quote values. */
export function textOf({ id }: Pick<InventoryObject, 'id'>, error: unknown): string {
  const isSecret = id.group === '' && id.kind === 'Secret';
  return isSecret && isKubeError(error) ? `the server answered ${error.code}` : errorText(error);
}

export function attributesOf(session: DriftSession, { id }: InventoryObject): Record<string, string> {
  return { [CLUSTER_ATTRIBUTE]: session.cluster.name, 'capstan.object': objectKey(id) };
}

/** All of them, a few at a time. After a failure none is begun; rejects with it when those have ended that run. */
export async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const queue = new PQueue({ concurrency: AT_A_TIME });
  const results: R[] = [];
  const failures: unknown[] = [];
  const one = async (item: T): Promise<void> => {
    if (failures.length > 0) return;
    try {
      results.push(await work(item));
    } catch (error) {
      failures.push(error);
    }
  };
  await Promise.all(items.map(async (item) => queue.add(async () => one(item))));
  if (failures.length > 0) throw failures[0];
  return results;
}

/** Neighbours in the install order that one list can tell of. */
function groupsOf(objects: readonly InventoryObject[]): InventoryObject[][] {
  const groups = new Map<string, InventoryObject[]>();
  for (const object of objects) {
    const { resource, id, fromCrds } = object;
    const where = resource === undefined ? '' : `${resource.group}/${resource.version}/${resource.plural}`;
    // Those of crds/ have no label to be listed by.
    const key = `${where} ${id.namespace ?? ''}${fromCrds ? ` ${id.name}` : ''}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [object]);
    else group.push(object);
  }
  return [...groups.values()];
}

function keyOf({ namespace, name }: { namespace?: string; name: string }): string {
  return `${namespace ?? ''}/${name}`;
}

function ascending(a: number, b: number): number {
  return a - b;
}
