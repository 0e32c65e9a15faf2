/** One pass over the objects of one release (DESIGN §5). */
import type { HelmReleaseProxy } from '../../api/index.ts';
import type { Inventory } from '../../drift/index.ts';
import { isHelmError } from '../../helm/index.ts';
import type { ReleaseKey, ReleaseMark, ReleaseReader } from '../../helm/index.ts';
import { isKubeError } from '../../kube/index.ts';
import type { Cluster, ReconcileContext, Reconciler, Request, Result } from '../../runtime/index.ts';
import { errorText } from '../../telemetry/index.ts';
import { collidesWith } from '../release-proxy/collision.ts';
import { claimsOf } from '../release-proxy/parts.ts';
import { clusterKeyOf, clusterNameOf, isDeleting, releaseKeyOf, requestFor, uidOf } from '../release-proxy/proxy.ts';
import { Correcting } from './correcting.ts';
import { DriftNews } from './news.ts';
import { CALL_LIMIT_MS } from './parts.ts';
import type { DriftParts } from './parts.ts';
import type { DriftPolicy } from './policy.ts';
import { unmatchedRules } from './policy.ts';
import { isReported, withReason, withReport, withoutReport } from './report.ts';
import type { Report } from './report.ts';
import type { DriftSession } from './session.ts';
import { isOurs, standingOf } from './standing.ts';
import { Verifying } from './verifying.ts';

/** Limit for the first list of a cluster's release Secrets, and for those of its objects. Milliseconds. */
const READER_SYNC_MS = 30_000;
const TRACKER_SYNC_MS = 10_000;
/** A pass that takes longer says what it has found before it ends. Milliseconds. */
const EARLY_REPORT_MS = 1_000;
/** What is due but could not be done now is looked at again no sooner, milliseconds. */
const MIN_AGAIN_MS = 1_000;

/** The release of one pass, on a connected cluster. */
interface Subject {
  readonly proxy: HelmReleaseProxy;
  readonly policy: DriftPolicy;
  readonly cluster: Cluster;
  readonly release: ReleaseKey;
  readonly reader: ReleaseReader;
  readonly context: ReconcileContext;
}

interface Deployed extends Subject {
  readonly mark: ReleaseMark;
  readonly session: DriftSession;
}

export class DriftReconciler implements Reconciler {
  readonly #parts: DriftParts;

  constructor(parts: DriftParts) {
    this.#parts = parts;
  }

  async reconcile(request: Request, context: ReconcileContext): Promise<Result> {
    const cached = this.#parts.caches.releaseProxies.get(request.namespace, request.name);
    if (cached === undefined) return {};
    const proxy = this.#parts.writer.freshest(cached);
    if (!isOurs(this.#parts, proxy, request)) return {};
    const standing = standingOf(this.#parts, proxy);
    if (standing === 'watched') return this.#watched(proxy, context);
    // Paused objects are not touched, not even their status.
    this.#parts.sessions.close(uidOf(proxy));
    if (standing === 'off') await this.#clear(proxy, context);
    return {};
  }

  async #watched(proxy: HelmReleaseProxy, context: ReconcileContext): Promise<Result> {
    const { namespace, name } = clusterKeyOf(proxy);
    // The other controller says so of a Cluster that is not there.
    if (this.#parts.caches.clusters.get(namespace, name) === undefined) return {};
    const cluster = this.#parts.deps.fleet.get(clusterNameOf(proxy));
    const release = releaseKeyOf(proxy);
    if (release === undefined || this.#isAnothers(proxy, cluster, release)) {
      this.#parts.sessions.close(uidOf(proxy));
      await this.#clear(proxy, context);
      return {};
    }
    const signal = AbortSignal.any([context.signal, cluster.signal]);
    const reader = this.#parts.readers.of(cluster);
    if (!(await this.#parts.readers.ready(cluster, signal, READER_SYNC_MS))) return {};
    const policy = this.#parts.policies.of(proxy.spec.driftDetection);
    await this.#release({ proxy, policy, cluster, release, reader, context: { ...context, signal } });
    return {};
  }

  /** Two objects name one release: it is looked at for the one that has it. */
  #isAnothers(proxy: HelmReleaseProxy, cluster: Cluster, release: ReleaseKey): boolean {
    return collidesWith(proxy, claimsOf(this.#parts.caches, cluster.name, release)) !== undefined;
  }

  async #release(subject: Subject): Promise<void> {
    const { proxy, cluster, release, reader } = subject;
    const mark = reader.marks(release)[0];
    const uid = uidOf(proxy);
    // Each of these ends with an event of storage or of the lock. The watches stay: an upgrade mostly keeps its kinds.
    if (this.#parts.locks.isLocked(cluster.name, release) || this.#parts.memories.of(uid).isAheadOf(mark)) return;
    if (mark === undefined) {
      this.#parts.sessions.close(uid);
      await this.#clear(proxy, subject.context);
      return;
    }
    if (mark.status !== 'deployed') {
      if (!mark.status.startsWith('pending-')) await this.#notComparable(subject, mark);
      return;
    }
    const session = this.#parts.sessions.of(uid, cluster, requestFor(proxy));
    session.adopt({ proxy, policy: subject.policy, mark, nowMs: this.#parts.tools.now() });
    const inventory = await this.#inventory({ ...subject, mark, session });
    if (inventory !== undefined) await this.#pass({ ...subject, mark, session }, inventory);
  }

  /** What should be there, tracked. undefined: the record went meanwhile, or cannot be read, which is said. */
  async #inventory(subject: Deployed): Promise<Inventory | undefined> {
    const { session, policy, context, mark } = subject;
    const { uid, tracker } = session;
    const call = { signal: context.signal, timeoutMs: CALL_LIMIT_MS };
    const question = { ...subject, includeCRDs: policy.includeCRDs };
    const isOutdated = session.isTracked && tracker.isOutdated(uid);
    let inventory: Inventory | undefined;
    try {
      inventory = await this.#parts.inventories[isOutdated ? 'renew' : 'of'](question, call);
    } catch (error) {
      if (!isHelmError(error, 'RecordInvalid')) throw error;
      await this.#say(subject, `revision ${mark.revision} cannot be read: ${errorText(error)}`);
    }
    if (inventory === undefined || (session.isTracked && !isOutdated)) return inventory;
    const wide = policy.comparison.extraFields !== 'Ignore';
    tracker.track(uid, inventory, { wide, keep: session.isTracked });
    session.tracked(inventory);
    session.unmatched = unmatchedRules(policy, inventory.objects);
    await this.#synced(session, context.signal);
    return inventory;
  }

  /** So that what cannot be watched is known; a list that hangs keeps nothing from being looked at. */
  async #synced(session: DriftSession, signal: AbortSignal): Promise<void> {
    try {
      await session.tracker.synced(session.uid, signal, TRACKER_SYNC_MS);
    } catch (error) {
      if (signal.aborted || !isKubeError(error, 'TimedOut')) throw error;
    }
  }

  async #pass(subject: Deployed, inventory: Inventory): Promise<void> {
    const { session, context, proxy } = subject;
    const news = new DriftNews(this.#parts, { session, proxy, log: context.log });
    const stirredAtMs = session.takeStirredAt(this.#parts.tools.now());
    const report = async (): Promise<void> => this.#report(subject, inventory);
    const endEarly = this.#reportsEarly(subject, report);
    try {
      const look = { session, policy: subject.policy, inventory, news, signal: context.signal };
      const verifying = new Verifying(this.#parts, look);
      const seen = await verifying.run();
      news.flush();
      await new Correcting(this.#parts, { ...look, ...this.#wishes(subject), stirredAtMs }, verifying).run(seen);
    } finally {
      news.flush();
      await endEarly();
    }
    await report();
    this.#schedule(subject);
  }

  #wishes(
    subject: Deployed,
  ): Pick<
    ConstructorParameters<typeof Correcting>[1],
    'release' | 'reader' | 'isStillWanted' | 'wantUpgrade' | 'isUpgradeWanted'
  > {
    const { proxy, release, reader } = subject;
    const { memories } = this.#parts;
    return {
      release,
      reader,
      isStillWanted: () => this.#isStillWanted(proxy),
      wantUpgrade: (reason) => memories.wantUpgrade(proxy, reason),
      isUpgradeWanted: () => memories.of(uidOf(proxy)).wantedUpgrade !== undefined,
    };
  }

  #isStillWanted(proxy: HelmReleaseProxy): boolean {
    const now = this.#parts.caches.releaseProxies.get(proxy.metadata.namespace, proxy.metadata.name);
    if (now === undefined || uidOf(now) !== uidOf(proxy) || isDeleting(now)) return false;
    return standingOf(this.#parts, now) === 'watched' && now.metadata.generation === proxy.metadata.generation;
  }

  /** Whoever waits for a long pass to end is told what it has found so far. Returns what ends that, when it has been written. */
  #reportsEarly({ context }: Deployed, report: () => Promise<void>): () => Promise<void> {
    let writing: Promise<void> = Promise.resolve();
    const timer = setTimeout(() => {
      writing = report().catch((err: unknown) => context.log.debug('the early report cannot be written', { err }));
    }, EARLY_REPORT_MS);
    return async () => {
      clearTimeout(timer);
      await writing;
    };
  }

  #schedule({ session, proxy }: Deployed): void {
    const request = requestFor(proxy);
    // The sweep was cut: what stirred meanwhile goes first.
    if (!session.isSwept) this.#parts.later(request, 1);
    const dueAtMs = session.dueAtMs();
    if (dueAtMs === undefined) return;
    this.#parts.later(request, Math.max(MIN_AGAIN_MS, dueAtMs - this.#parts.tools.now()));
  }

  async #report({ session, policy, mark, proxy, context }: Deployed, inventory: Inventory): Promise<void> {
    const report: Report = {
      policy,
      revision: mark.revision,
      objects: session.objects,
      corrections: session.corrections,
      lastDetectedTime: session.lastDetectedTime,
      lastCorrectedTime: session.lastCorrectedTime,
      findings: [...session.findings.values()],
      corrected: session.corrected,
      isSwept: session.isSwept,
      problems: [...inventory.problems, ...session.tracker.problems(session.uid)],
      unmatched: session.unmatched,
    };
    const now = new Date(this.#parts.tools.now());
    await this.#write(proxy, (current) => withReport(current, report, now), context);
  }

  async #notComparable(subject: Subject, mark: ReleaseMark): Promise<void> {
    await this.#say(subject, `the newest revision, ${mark.revision}, is ${mark.status}`);
  }

  async #say({ proxy, context }: Subject, message: string): Promise<void> {
    const now = new Date(this.#parts.tools.now());
    await this.#write(proxy, (current) => withReason(current, message, now), context);
  }

  async #clear(proxy: HelmReleaseProxy, context: ReconcileContext): Promise<void> {
    if (isReported(proxy)) await this.#write(proxy, withoutReport, context);
  }

  async #write(
    proxy: HelmReleaseProxy,
    wanted: (current: HelmReleaseProxy) => HelmReleaseProxy,
    { signal }: ReconcileContext,
  ): Promise<void> {
    const freshest = this.#parts.writer.freshest(proxy);
    await this.#parts.writer.update(freshest, wanted, { signal, observe: false });
  }
}
