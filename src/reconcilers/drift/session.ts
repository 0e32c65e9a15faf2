/** What one process knows of a release's drift between passes. A restart forgets it; the first pass looks at everything anew. */
import type { DriftObjectStatus, HelmReleaseProxy } from '../../api/index.ts';
import { Convergence, objectKey } from '../../drift/index.ts';
import type { Inventory } from '../../drift/index.ts';
import type { ReleaseMark } from '../../helm/index.ts';
import type { Cluster } from '../../runtime/index.ts';
import { DRIFT_RETRY_ANNOTATION } from '../../api/index.ts';
import type { Action, Finding } from './finding.ts';
import { keyOfStatus, signatureOf } from './finding.ts';
import type { DriftPolicy } from './policy.ts';
import type { Tracker } from './trackers.ts';

export interface SessionParts {
  readonly uid: string;
  readonly cluster: Cluster;
  readonly tracker: Tracker;
  readonly delaysMs: readonly number[];
}

/** What a pass finds before it looks at any object. */
export interface Surroundings {
  readonly proxy: HelmReleaseProxy;
  readonly policy: DriftPolicy;
  /** Of the deployed revision. */
  readonly mark: ReleaseMark;
  readonly nowMs: number;
}

/** What an upgrade is to mend. */
export interface Upgrading {
  /** The revision that it makes. */
  readonly revision: number;
  readonly sinceMs: number;
  /** By object. */
  readonly findings: Map<string, Finding>;
}

/** Corrected objects that the status goes on naming. */
const MAX_CORRECTED = 10;

/** What waits for a person, or for its time, and is tried at once after a reset. */
const HELD: readonly (Action | undefined)[] = ['Stopped', 'NeedsRecreation', 'Refused', 'Waiting', 'Pending'];

export class DriftSession {
  readonly uid: string;
  readonly cluster: Cluster;
  readonly tracker: Tracker;
  readonly convergence: Convergence;
  /** What is not as it should be, by object. */
  readonly findings = new Map<string, Finding>();
  /** Findings of which people were told, by object: signatures, and what became of them. */
  readonly told = new Map<string, string>();
  readonly toldAction = new Map<string, string>();
  /** Notes on objects that the log has, each once. */
  readonly noted = new Set<string>();
  /** Objects of the inventory that are tracked. */
  objects = 0;
  corrections = 0;
  lastDetectedTime: string | undefined;
  lastCorrectedTime: string | undefined;
  /** The inventory is tracked; false: it is to be. */
  isTracked = false;
  /** Every object was looked at once since then. */
  isSwept = false;
  /** When the tracker first told of what the next pass looks at (epoch, milliseconds). */
  stirredAtMs: number | undefined;
  /** One text per rule that matches nothing. */
  unmatched: readonly string[] = [];
  /** An upgrade was asked for. */
  upgrading: Upgrading | undefined;
  #corrected: DriftObjectStatus[] = [];
  #mark: ReleaseMark | undefined;
  #policy: DriftPolicy | undefined;
  #generation: number | undefined;
  #retry: string | undefined;

  constructor(parts: SessionParts) {
    this.uid = parts.uid;
    this.cluster = parts.cluster;
    this.tracker = parts.tracker;
    this.convergence = new Convergence({ delaysMs: parts.delaysMs });
  }

  /** Objects that the last correcting pass put back. */
  get corrected(): readonly DriftObjectStatus[] {
    return this.#corrected;
  }

  /** The revision that objects are compared with. */
  get mark(): ReleaseMark | undefined {
    return this.#mark;
  }

  /** Takes in the surroundings of a pass: another record or policy means that nothing is verified any more. */
  adopt(now: Surroundings): void {
    const { mark, policy, proxy } = now;
    if (this.#mark === undefined) this.#resume(now);
    else if (this.#mark.recordUid !== mark.recordUid) this.#newRevision(mark);
    if (!isSame(this.#mark, mark) || this.#policy?.text !== policy.text) this.#forgetObjects();
    this.#mark = mark;
    this.#policy = policy;
    this.#followSpec(proxy, now.nowMs);
  }

  /**
   * The inventory was made anew: what was found of objects that are not in it is void. One of a kind that was not served
   * has another key once it is: whether it has a namespace was not known.
   */
  tracked(inventory: Inventory): void {
    this.isTracked = true;
    this.objects = inventory.objects.length;
    const keys = new Set(inventory.objects.map(({ id }) => objectKey(id)));
    for (const map of [this.findings, this.told, this.toldAction]) {
      for (const key of map.keys()) if (!keys.has(key)) map.delete(key);
    }
  }

  /** A pass that corrects something begins: what was corrected before is history. */
  beginCorrecting(): void {
    this.#corrected = [];
  }

  noteCorrected(status: DriftObjectStatus, time: string): void {
    this.corrections += 1;
    this.lastCorrectedTime = time;
    if (this.#corrected.length < MAX_CORRECTED) this.#corrected.push({ ...status, action: 'Corrected' });
  }

  /** What an upgrade that has been made was to mend of this object. Asked once. */
  takeUpgraded(key: string): { readonly finding: Finding; readonly sinceMs: number } | undefined {
    const { revision, findings, sinceMs } = this.upgrading ?? {};
    if (revision === undefined || findings === undefined || sinceMs === undefined) return undefined;
    const finding = revision === this.#mark?.revision ? findings.get(key) : undefined;
    if (finding === undefined) return undefined;
    findings.delete(key);
    return { finding, sinceMs };
  }

  /** The earliest time at which something is to be looked at (epoch, milliseconds). */
  dueAtMs(): number | undefined {
    const times = [...this.findings.values()].flatMap(({ dueAtMs }) => (dueAtMs === undefined ? [] : [dueAtMs]));
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** When what is looked at stirred, or `nowMs` for what no event told. Asked once per pass. */
  takeStirredAt(nowMs: number): number {
    const at = this.stirredAtMs ?? nowMs;
    this.stirredAtMs = undefined;
    return at;
  }

  /** A process before this one told of these already. */
  #resume({ proxy, mark }: Surroundings): void {
    const before = proxy.status?.drift;
    if (before?.revision !== mark.revision) return;
    this.corrections = before.corrections ?? 0;
    this.lastDetectedTime = before.lastDetectedTime;
    this.lastCorrectedTime = before.lastCorrectedTime;
    const details = before.details ?? [];
    this.#corrected = details.filter(({ action }) => action === 'Corrected');
    for (const status of details) {
      if (status.action === 'Corrected') continue;
      this.told.set(keyOfStatus(status), signatureOf(status));
      this.toldAction.set(keyOfStatus(status), status.action ?? '');
    }
  }

  /** Corrections count anew, unless the revision is itself the correction: else an upgrade that mends nothing would be made for ever. */
  #newRevision(mark: ReleaseMark): void {
    this.corrections = 0;
    this.#corrected = [];
    this.noted.clear();
    if (this.upgrading?.revision === mark.revision) return;
    this.upgrading = undefined;
    this.convergence.reset();
    this.told.clear();
    this.toldAction.clear();
  }

  #forgetObjects(): void {
    this.findings.clear();
    this.isTracked = false;
    this.isSwept = false;
  }

  /** Whoever edits the object, or changes the annotation, wants it tried again. */
  #followSpec(proxy: HelmReleaseProxy, nowMs: number): void {
    const { generation } = proxy.metadata;
    const retry = proxy.metadata.annotations?.[DRIFT_RETRY_ANNOTATION];
    const isFirst = this.#generation === undefined;
    const isSameWish = this.#generation === generation && this.#retry === retry;
    this.#generation = generation;
    this.#retry = retry;
    if (isFirst || isSameWish) return;
    this.convergence.reset();
    for (const [key, finding] of this.findings) {
      if (HELD.includes(finding.status.action)) this.findings.set(key, { ...finding, dueAtMs: nowMs });
    }
  }
}

function isSame(a: ReleaseMark | undefined, b: ReleaseMark): boolean {
  return a?.recordUid === b.recordUid && a.recordVersion === b.recordVersion;
}
