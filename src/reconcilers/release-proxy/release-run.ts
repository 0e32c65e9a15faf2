/** One pass over one release on a connected cluster: what strategies are given. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { HelmReleaseProxy, ReleaseOperation } from '../../api/index.ts';
import type {
  ChartSource,
  DeployRequest,
  HelmOptions,
  HelmTarget,
  OperationControl,
  ReleaseKey,
  ReleaseReader,
  ReleaseSummary,
} from '../../helm/index.ts';
import type { Cluster, NotConnectedReason, ReconcileContext } from '../../runtime/index.ts';
import { ReconcilerError } from '../errors.ts';
import { deepEqual } from '../merge-patch.ts';
import type { Deployment, ReleaseContext } from '../types.ts';
import { notConnectedCondition } from './cluster-access.ts';
import { ClusterNews } from './cluster-news.ts';
import { collidesWith } from './collision.ts';
import { decideByContent, decideByState } from './decide.ts';
import type { Decision } from './decide.ts';
import { ObjectChanged } from './interruption.ts';
import type { ReleaseMemory } from './memory.ts';
import { execute } from './operation.ts';
import type { Operating, OperationParts } from './operation.ts';
import { helmOptions } from './options.ts';
import { claimsOf } from './parts.ts';
import type { Parts } from './parts.ts';
import { prepared } from './preparation.ts';
import type { Age } from './repository-access.ts';
import { isDeleting, recordedIn, releaseKeyOf, releaseNamespaceOf, statusOn, uidOf } from './proxy.ts';

import { clusterAvailable, withFindings } from './proxy-conditions.ts';
import type { Made } from './proxy-conditions.ts';
import { takeover } from './takeover.ts';
import type { Takeover } from './takeover.ts';
import { sameVersion } from './versions.ts';

interface Timing {
  readonly nowMs: number;
  readonly timeoutMs: number;
  readonly keepsHistory: boolean;
}

interface Wanted {
  readonly source: ChartSource;
  readonly valuesDigest: string;
}

/** Beyond `untilMs`, so that the next pass is surely later. Milliseconds. */
const AFTERWARDS_MS = 1_000;

export class ReleaseRun implements ReleaseContext {
  readonly cluster: Cluster;
  readonly reader: ReleaseReader;
  readonly reconcile: ReconcileContext;
  readonly #parts: Parts;
  readonly #options: HelmOptions;
  readonly #memory: ReleaseMemory;
  #proxy: HelmReleaseProxy;
  #outcome: ReleaseSummary | null | undefined;
  #made: Made | undefined;

  /** `reconcile.signal` must also abort when the engagement of `cluster` ends. */
  constructor(parts: Parts, subject: { proxy: HelmReleaseProxy; cluster: Cluster; reconcile: ReconcileContext }) {
    this.#parts = parts;
    this.#proxy = subject.proxy;
    this.cluster = subject.cluster;
    this.reconcile = subject.reconcile;
    this.reader = parts.readers.of(subject.cluster);
    this.#options = helmOptions(subject.proxy.spec.options);
    this.#memory = parts.memories.of(uidOf(subject.proxy));
  }

  /** As last written. */
  get proxy(): HelmReleaseProxy {
    return this.#proxy;
  }

  /** The newest record after Helm ran in this pass; null: there is none; undefined: Helm did not run, or it could not be read. */
  get outcome(): ReleaseSummary | null | undefined {
    return this.#outcome;
  }

  /** From what the newest revision was made, when this pass found that out. */
  get made(): Made | undefined {
    return this.#made;
  }

  async installOrUpgrade(): Promise<Deployment> {
    const key = releaseKeyOf(this.#proxy);
    if (key !== undefined) this.#refuseCollision(key);
    const observed = key === undefined ? undefined : await this.observe(key);
    const state = decideByState(observed, () => this.#takeover(observed));
    if (state.action === 'wait') return this.#wait(state, observed);
    const valuesDigest = this.#valuesDigest();
    const asked = { valuesDigest, source: await this.#source('recent') };
    const decision = this.#orWanted(state.action === 'compare' ? await this.#compare(asked, observed) : state);
    if (decision.action === 'wait') return this.#wait(decision, observed);
    if (decision.action === 'none') return { release: observed, action: 'none', reason: decision.reason };
    return this.#operate(decision, observed, { valuesDigest, source: await this.#source('fresh') });
  }

  async uninstall(): Promise<void> {
    const key = releaseKeyOf(this.#proxy);
    if (key === undefined || this.#rival(key) !== undefined) return;
    await this.#guarded(key, async (control) =>
      this.#parts.deps.engine.uninstall(this.#target(), { release: key, options: this.#options }, control),
    );
    this.reconcile.log.info('release uninstalled', { release: spelled(key) });
    this.#say('Normal', 'HelmUninstalled', `uninstalled release ${spelled(key)} from cluster ${this.cluster.name}`);
  }

  /** The newest record: from the watch, unless that is known to be behind. */
  async observe(key: ReleaseKey): Promise<ReleaseSummary | undefined> {
    if (this.#memory.isAheadOf(this.reader.marks(key)[0])) return this.refresh(key);
    const summary = await this.reader.newest(key, this.#control());
    this.#memory.saw(summary);
    return summary;
  }

  /** The newest record as the server has it. */
  async refresh(key: ReleaseKey): Promise<ReleaseSummary | undefined> {
    const summary = await this.reader.refresh(key, this.#control());
    this.#memory.saw(summary);
    return summary;
  }

  /** The object that keeps the release from this one. */
  #rival(key: ReleaseKey): HelmReleaseProxy | undefined {
    return collidesWith(this.#proxy, claimsOf(this.#parts.caches, this.cluster.name, key));
  }

  #refuseCollision(key: ReleaseKey): void {
    const rival = this.#rival(key);
    if (rival === undefined) return;
    const owner = `HelmReleaseProxy ${rival.metadata.namespace ?? ''}/${rival.metadata.name}`;
    throw new ReconcilerError({
      code: 'ReleaseNameCollision',
      class: 'Wait',
      message: `release ${spelled(key)} on cluster ${this.cluster.name} belongs to ${owner}`,
    });
  }

  #takeover(observed: ReleaseSummary | undefined): Takeover {
    if (observed === undefined) return { free: true, why: 'there is no release' };
    const nowMs = this.#parts.tools.now();
    return takeover({
      observed,
      recorded: statusOn(this.#proxy, this.cluster),
      nowMs,
      timeoutMs: this.#options.timeoutMs,
      firstSeenMs: this.#memory.heldSince(observed, nowMs),
    });
  }

  #wait(decision: Extract<Decision, { action: 'wait' }>, release: ReleaseSummary | undefined): Deployment {
    const until = new Date(decision.untilMs).toISOString();
    return {
      release,
      action: 'wait',
      reason: `${decision.reason}; it is taken over at ${until}`,
      requeueAfterMs: Math.max(0, decision.untilMs - this.#parts.tools.now()) + AFTERWARDS_MS,
    };
  }

  async #source(age: Age): Promise<ChartSource> {
    const { repoURL, chartName, version } = this.#proxy.spec;
    return { repoURL, chartName, version, access: await this.#parts.access.read(this.#proxy, age) };
  }

  async #resolve(source: ChartSource, observed: ReleaseSummary): Promise<{ version: string; digest?: string }> {
    try {
      return await this.#parts.deps.charts.resolve(source, this.#control());
    } catch (error) {
      // A repository that is down is no reason to call a release bad that has just the version that is asked for.
      if (this.reconcile.signal.aborted || !sameVersion(source.version ?? '', observed.chartVersion)) throw error;
      this.reconcile.log.warn('the chart repository does not answer; the release has the version that is wanted', {
        err: error,
      });
      return { version: observed.chartVersion };
    }
  }

  #valuesDigest(): string {
    const { generation } = this.#proxy.metadata;
    const compute = (): string => this.#parts.tools.valuesDigest(this.#proxy.spec.values ?? '');
    return generation === undefined ? compute() : this.#memory.valuesDigest(generation, compute);
  }

  async #compare(wanted: Wanted, observed: ReleaseSummary | undefined): Promise<Decision> {
    if (observed === undefined) return { action: 'install', reason: 'the release is not there' };
    const { valuesDigest } = wanted;
    const { version, digest } = await this.#resolve(wanted.source, observed);
    const recorded = recordedIn(statusOn(this.#proxy, this.cluster));
    const decision = decideByContent({ chartVersion: version, chartDigest: digest, valuesDigest }, observed, recorded);
    if (decision.action === 'none') {
      const known = recorded.revision === observed.revision ? recorded.chartDigest : undefined;
      this.#made = { chartDigest: digest ?? known, valuesDigest };
    }
    return decision;
  }

  /** The release is as it should be, but its objects are not, and an upgrade is to put them right. */
  #orWanted(decision: Decision): Decision {
    const reason = this.#memory.wantedUpgrade;
    return decision.action === 'none' && reason !== undefined ? { action: 'upgrade', reason } : decision;
  }

  async #operate(decision: Operating, observed: ReleaseSummary | undefined, wanted: Wanted): Promise<Deployment> {
    const chart = await this.#parts.deps.charts.acquire(wanted.source, this.#control());
    try {
      const key = await this.#persist(decision, observed);
      const { archive } = chart;
      const values = this.#proxy.spec.values ?? '';
      const request = { release: key, chart: archive, values, options: this.#options };
      await this.#guarded(key, async (control) => execute(this.#operation(control), decision, { observed, request }));
      const release = await this.refresh(key);
      this.#outcome = release ?? null;
      this.#made = { chartDigest: archive.digest, valuesDigest: wanted.valuesDigest };
      return this.#done(decision, release, request);
    } finally {
      chart.release();
    }
  }

  /**
   * Writes down the release's name, where it is to be generated, and the operation, before Helm runs: whatever becomes of
   * this process, the next one knows which release and which revision are its own (caaph W16, W17).
   */
  async #persist(decision: Operating, observed: ReleaseSummary | undefined): Promise<ReleaseKey> {
    const before = this.#proxy;
    const nowMs = this.#parts.tools.now();
    const name = before.spec.releaseName ?? '';
    const generated = name === '' ? this.#parts.names.generate(before.spec.chartName, nowMs) : undefined;
    const { timeoutMs, uninstall } = this.#options;
    const keepsHistory = uninstall.keepHistory === true;
    const operation = operationOf(decision, observed, { nowMs, timeoutMs, keepsHistory });
    const wanted = (current: HelmReleaseProxy): HelmReleaseProxy =>
      prepared(current, { generated, operation, now: new Date(nowMs), clusterUID: this.cluster.uid });
    const after = await this.#parts.writer.update(before, wanted, { signal: this.reconcile.signal, observe: false });
    const spec = { ...before.spec, releaseName: generated ?? name };
    if (after === undefined || isDeleting(after) || !deepEqual(after.spec, spec)) throw new ObjectChanged();
    this.#proxy = after;
    return { namespace: releaseNamespaceOf(after), name: spec.releaseName };
  }

  /** Runs an operation whose own changes are no news, and none of which is taken for drift; after a failure at least reads what it left behind. */
  async #guarded(key: ReleaseKey, operation: (control: OperationControl) => Promise<void>): Promise<void> {
    const unlock = await this.#parts.locks.lock(this.cluster.name, key, this.reconcile.signal);
    try {
      await this.#guardedAlone(key, operation);
    } finally {
      unlock();
    }
  }

  async #guardedAlone(key: ReleaseKey, operation: (control: OperationControl) => Promise<void>): Promise<void> {
    const news = new ClusterNews(async (reason) => this.#tellCluster(reason), this.reconcile.log);
    const unwanted = this.#memory.begin(news.tell);
    try {
      // Whatever the operation is: if it fails, the release's state asks for another one.
      this.#memory.wantUpgrade(undefined);
      await operation({ signal: AbortSignal.any([this.reconcile.signal, unwanted]) });
    } catch (error) {
      if (unwanted.aborted) throw new ObjectChanged();
      await this.#lookAfterFailure(key);
      throw error;
    } finally {
      this.#memory.end();
      await news.settled();
    }
  }

  /** Says of the cluster what it says between passes; the operation and its generation stay under way. */
  async #tellCluster(reason: NotConnectedReason | undefined): Promise<void> {
    const condition = reason === undefined ? clusterAvailable : notConnectedCondition(this.#proxy, reason);
    if (condition === undefined) return;
    const now = new Date(this.#parts.tools.now());
    const wanted = (current: HelmReleaseProxy): HelmReleaseProxy =>
      withFindings(current, { conditions: [condition] }, now);
    const { signal } = this.reconcile;
    // What comes next is compared with this: from the state before, being back would be no change.
    this.#proxy = (await this.#parts.writer.update(this.#proxy, wanted, { signal, observe: false })) ?? this.#proxy;
  }

  async #lookAfterFailure(key: ReleaseKey): Promise<void> {
    if (this.reconcile.signal.aborted) return;
    try {
      this.#outcome = (await this.refresh(key)) ?? null;
    } catch (error) {
      this.reconcile.log.debug('the release cannot be read after the failure', { err: error });
    }
  }

  #done(decision: Operating, release: ReleaseSummary | undefined, request: DeployRequest): Deployment {
    const installed = decision.action === 'install' || decision.action === 'reinstall';
    const { chart, release: key } = request;
    const fields = { release: spelled(key), revision: release?.revision, chart: chart.name, version: chart.version };
    this.reconcile.log.info(installed ? 'release installed' : 'release upgraded', {
      ...fields,
      reason: decision.reason,
    });
    this.#say(
      'Normal',
      installed ? 'HelmInstalled' : 'HelmUpgraded',
      `${installed ? 'installed' : 'upgraded'} release ${spelled(key)} on cluster ${this.cluster.name} ` +
        `with chart ${chart.name} ${chart.version}, revision ${release?.revision ?? 0}: ${decision.reason}`,
    );
    const action = installed ? 'install' : 'upgrade';
    // Somebody changed the release between our last look and the end of the operation.
    const changed = this.#memory.isNews(this.reader, key);
    return { release, action, reason: decision.reason, ...(changed && { requeueAfterMs: AFTERWARDS_MS }) };
  }

  #say(type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#parts.deps.events.record(this.#proxy, { type, reason, message });
  }

  #operation(control: OperationControl): OperationParts {
    return {
      engine: this.#parts.deps.engine,
      reader: this.reader,
      target: this.#target(),
      control,
      recovered: (release, why) => {
        const what = `marked revision ${release.revision} of release ${spelled(release)} failed`;
        this.#say('Warning', 'RecoveredPending', `${what}: ${why}`);
      },
    };
  }

  #control(): OperationControl {
    return { signal: this.reconcile.signal };
  }

  /** Where several replicas share the clusters, helm's requests go only while this work's permit is valid. */
  #passage(): Pick<HelmTarget, 'passage'> {
    const permit = this.#parts.deps.sharding?.current.get();
    const { cluster } = this;
    const forward = cluster.forward?.bind(cluster);
    if (permit === undefined || forward === undefined) return {};
    // Helm's requests arrive in the context of whoever opened the port: they belong to this work, its permit and its trace.
    return { passage: { permit, forward: AsyncLocalStorage.bind(forward) } };
  }

  #target(): HelmTarget {
    const { cluster } = this;
    return { cluster: cluster.name, kubeconfig: () => cluster.kubeconfig(), ...this.#passage() };
  }
}

/** What is written down of an operation (caaph W16). */
function operationOf(decision: Operating, observed: ReleaseSummary | undefined, time: Timing): ReleaseOperation {
  const installs = decision.action === 'install' || decision.action === 'reinstall';
  // An uninstall takes the history along, unless it is to be kept.
  const anew = observed === undefined || (observed.status === 'uninstalling' && !time.keepsHistory);
  return {
    type: installs ? 'install' : 'upgrade',
    revision: anew ? 1 : observed.revision + 1,
    startedAt: new Date(time.nowMs).toISOString(),
    timeoutSeconds: Math.ceil(time.timeoutMs / 1000),
  };
}

function spelled(key: ReleaseKey): string {
  return `${key.namespace}/${key.name}`;
}
