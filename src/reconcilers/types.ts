/**
 * What the reconcilers need from below, and the contract of a strategy: the part of Capstan that third parties plug
 * into. `createReconcilers` (index.ts) makes all controllers from these.
 */
import type { DriftMode, HelmReleaseProxy } from '../api/index.ts';
import type { ChartStore, HelmEngine, ReleaseReader, ReleaseSummary, ValuesRenderer } from '../helm/index.ts';
import type { Cluster, ClusterRecords, EventRecorder, Fleet, ReconcileContext, Sharding } from '../runtime/index.ts';
import type { Telemetry } from '../telemetry/index.ts';

export interface ReconcilerOptions {
  /** Namespace of the management cluster to work in; all when absent. */
  readonly namespace?: string;
  /** Value of the label cluster.x-k8s.io/watch-filter that objects must carry; no filter when absent. */
  readonly watchFilter?: string;
  /** Workers; 10 each, as CAAPH. */
  readonly chartProxyConcurrency: number;
  readonly releaseProxyConcurrency: number;
  /** Of these, how many may wait for workloads (`wait`, `waitForJobs`, `atomic`) at a time, in a pool of their own; 50. */
  readonly waitConcurrency: number;
  /** Milliseconds between resyncs of every object; 600,000 as CAAPH. */
  readonly syncPeriodMs: number;
  /** credentials/caSecret in another namespace than the object's own; false refuses them with a condition (CAAPH allowed all: W35). */
  readonly allowCrossNamespaceSecrets: boolean;
  /** Of releases whose object says nothing about drift. */
  readonly driftDefault: DriftMode;
  /** Releases looked at for drift at a time; 10. */
  readonly driftConcurrency: number;
  /** Milliseconds before the first, second … correction of the same field within the cooldown; after the last one it stops. */
  readonly driftRetryDelaysMs: readonly number[];
  /** Field managers that are Helm: `helm`, `manager` (what CAAPH made) and the base name of the helm binary. */
  readonly helmManagers: readonly string[];
  /** On stop, running work goes on for so long before its signal aborts, milliseconds; the controller's default when absent. */
  readonly graceMs?: number;
}

export interface ReconcilerDependencies {
  /** The management cluster. */
  readonly management: Cluster;
  /** The workload clusters: `namespace/name` of their CAPI Cluster, or `provider#name`. */
  readonly fleet: Fleet;
  /** What other providers than Cluster API's declare; absent where there are none. */
  readonly records?: ClusterRecords;
  readonly engine: HelmEngine;
  readonly charts: ChartStore;
  readonly values: ValuesRenderer;
  readonly strategies: readonly Strategy[];
  readonly events: EventRecorder;
  readonly telemetry: Telemetry;
  readonly options: ReconcilerOptions;
  /** Several replicas share the work; absent: this one does all. */
  readonly sharding?: Sharding;
}

/** What a strategy sees of one release. Connected: the cluster is engaged. */
export interface ReleaseContext {
  readonly proxy: HelmReleaseProxy;
  readonly cluster: Cluster;
  readonly reader: ReleaseReader;
  readonly reconcile: ReconcileContext;
  /** Does what Continuous does: installs or upgrades when desired and observed differ, recovers pending ones, persists a generated name first. */
  installOrUpgrade(): Promise<Deployment>;
  /** Uninstalls what the proxy names; quiet when it is not there. */
  uninstall(): Promise<void>;
}

export interface Deployment {
  readonly release: ReleaseSummary | undefined;
  readonly action: 'none' | 'install' | 'upgrade' | 'wait';
  /** Why an action was taken or what is waited for; for the log and the condition. */
  readonly reason: string;
  readonly requeueAfterMs?: number;
}

/**
 * How a release is kept. Bound in the container by name; `reconcileStrategy` of the object names it. Methods may throw;
 * the caller turns errors into conditions and retries.
 */
export interface Strategy {
  /** '' in an object means Continuous. */
  readonly name: string;
  /** True: the release is out of this strategy's hands; nothing is watched, read, changed or deleted on the cluster for it, and `reconcile` is not called. Asked first, without the cluster. */
  handedOff(proxy: HelmReleaseProxy): boolean;
  reconcile(context: ReleaseContext): Promise<Deployment>;
  /** True: objects of the release that differ from its stored manifest are told and put back, as `driftDetection` asks. */
  readonly detectsDrift?: boolean;
  /** True: deleting the proxy uninstalls the release. */
  readonly uninstallsOnDelete: boolean;
  /** True: a cluster that stops matching loses its HelmReleaseProxy (and so, perhaps, the release). */
  readonly followsSelector: boolean;
}
