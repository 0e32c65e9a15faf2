/**
 * The contract of the room `helm`. Nothing here says that Helm is a process: the engine that runs the real binary is
 * one implementation, one that renders and applies natively is to follow.
 */

import type { ForwardedAnswer, ForwardRequest } from '../kube/index.ts';

/** A release on one cluster. */
export interface ReleaseKey {
  readonly namespace: string;
  readonly name: string;
}

/** The cluster that an operation goes to. */
export interface HelmTarget {
  /** For spans, logs and fairness. */
  readonly cluster: string;
  /** A self-contained kubeconfig, asked for when the operation starts. */
  kubeconfig(): string;
  /**
   * Helm's requests go through this process, each while the permit is valid: what is stopped, or has lost the cluster to
   * another replica, thereby stops its helm. Absent: helm connects by itself.
   */
  readonly passage?: HelmPassage;
}

/** The way of one operation's requests to its cluster. */
export interface HelmPassage {
  forward(request: ForwardRequest): Promise<ForwardedAnswer>;
  readonly permit: { readonly signal: AbortSignal; readonly valid: boolean };
}

/** Contents read from Secrets, as Helm wants them. Never logged. */
export interface RepositoryCredentials {
  /** A Docker config.json, e.g. of kubernetes.io/dockerconfigjson; used for OCI and, by host name, for HTTPS. */
  readonly dockerConfigJson?: string;
  readonly username?: string;
  readonly password?: string;
  /** PEM certificates that the repository's certificate must chain to. */
  readonly ca?: string;
  readonly insecureSkipTLSVerify?: boolean;
}

/** Which chart. `repoURL` is https://, http:// (as older objects have) or oci://. */
export interface ChartSource {
  readonly repoURL: string;
  readonly chartName: string;
  /** '' or absent: the latest stable one. A semver range is resolved. */
  readonly version?: string;
  readonly access: RepositoryCredentials;
}

/** A chart in the local cache. */
export interface ChartArchive {
  /** For the engine only; valid until `release()`. */
  readonly path: string;
  readonly name: string;
  readonly version: string;
  readonly appVersion?: string;
  /** sha256:… of the archive's bytes. */
  readonly digest: string;
}

/** HelmChartProxy's options that concern one operation, with defaults filled in (caaph §1.2, §1.11). */
export interface HelmOptions {
  readonly disableHooks?: boolean;
  readonly wait?: boolean;
  readonly waitForJobs?: boolean;
  readonly dependencyUpdate?: boolean;
  /** Milliseconds. */
  readonly timeoutMs: number;
  readonly skipCRDs?: boolean;
  readonly subNotes?: boolean;
  readonly disableOpenAPIValidation?: boolean;
  readonly atomic?: boolean;
  readonly takeOwnership?: boolean;
  readonly install: { readonly createNamespace: boolean; readonly includeCRDs?: boolean };
  readonly upgrade: {
    readonly force?: boolean;
    readonly resetValues?: boolean;
    readonly reuseValues?: boolean;
    readonly resetThenReuseValues?: boolean;
    readonly recreate?: boolean;
    /** 0: no limit. */
    readonly maxHistory: number;
    readonly cleanupOnFail?: boolean;
  };
  readonly uninstall: { readonly keepHistory?: boolean; readonly description?: string };
}

/** Helm's own status words. */
export type ReleaseStatus =
  | 'unknown'
  | 'deployed'
  | 'uninstalled'
  | 'superseded'
  | 'failed'
  | 'uninstalling'
  | 'pending-install'
  | 'pending-upgrade'
  | 'pending-rollback';

/** What a release's newest record says, without its manifest: small enough to keep for every release. */
export interface ReleaseSummary extends ReleaseKey {
  readonly revision: number;
  readonly status: ReleaseStatus;
  readonly chartName: string;
  readonly chartVersion: string;
  /** Digest of the user-supplied values in canonical form: 1 and 1.0 are equal, map order is nothing, no values is {}. */
  readonly valuesDigest: string;
  /** When Helm says that the revision was last written (RFC 3339). */
  readonly lastDeployed: string;
  readonly description: string;
  /** Who merges on the release's objects: Helm 4's record says `server` or `client`; Helm 3 and CAAPH are always `client`. An upgrade goes on as it began. */
  readonly applyMethod?: 'server' | 'client';
  /** Of the record in storage. */
  readonly recordUid: string;
  readonly recordVersion: string;
}

/** Status as labels tell it, without reading a record. */
export interface ReleaseMark extends ReleaseKey {
  readonly revision: number;
  readonly status: ReleaseStatus;
  readonly recordUid: string;
  readonly recordVersion: string;
}

/** Ends an operation early, or at its limit (milliseconds over and above Helm's own --timeout). */
export interface OperationControl {
  readonly signal: AbortSignal;
  readonly limitMs?: number;
}

export interface DeployRequest {
  readonly release: ReleaseKey;
  readonly chart: ChartArchive;
  /** YAML of the user's values; '' for none. */
  readonly values: string;
  readonly options: HelmOptions;
  /**
   * For upgrades: true when the newest record's `applyMethod` is `server`. Then what is done again by the server is left
   * out, and fields that others took are taken back. Absent: as for a release that began on the client's side.
   */
  readonly serverSide?: boolean;
  /** For installs: go over an uninstalled release whose history was kept, or over one that only ever failed. */
  readonly replace?: boolean;
}

export interface RenderRequest extends DeployRequest {
  readonly kubeVersion?: string;
  readonly apiVersions?: readonly string[];
}

/**
 * Does Helm's work on a cluster. Rejects with a HelmError (errors.ts) whose message is Helm's own, bounded, without
 * values. An aborted operation may leave a `pending-*` record, which the next pass recovers.
 */
export interface HelmEngine {
  /** "3" or "4", and the full version. */
  version(control: OperationControl): Promise<{ major: number; full: string }>;
  install(target: HelmTarget, request: DeployRequest, control: OperationControl): Promise<void>;
  upgrade(target: HelmTarget, request: DeployRequest, control: OperationControl): Promise<void>;
  rollback(
    target: HelmTarget,
    request: { release: ReleaseKey; revision: number; options: HelmOptions; serverSide?: boolean },
    control: OperationControl,
  ): Promise<void>;
  /** Resolves also when the release is not there. */
  uninstall(
    target: HelmTarget,
    request: { release: ReleaseKey; options: HelmOptions },
    control: OperationControl,
  ): Promise<void>;
  test(
    target: HelmTarget,
    request: { release: ReleaseKey; timeoutMs: number },
    control: OperationControl,
  ): Promise<void>;
  /** Renders without a cluster; returns the manifest. */
  template(request: RenderRequest, control: OperationControl): Promise<string>;
  /** Ends everything that runs, within `graceMs`, and takes nothing new: for draining. */
  close(graceMs?: number): Promise<void>;
}

/** Finds and keeps charts: one download per chart and version however many clusters ask. */
export interface ChartStore {
  /**
   * Resolves the version (index by ETag, OCI tags) without downloading the chart. `digest` is undefined where the
   * repository tells none. Exact versions that are cached ask the network nothing.
   */
  resolve(source: ChartSource, control: OperationControl): Promise<{ version: string; digest?: string }>;
  /** The chart in the cache, held until `release` is called. Concurrent callers share one download. */
  acquire(source: ChartSource, control: OperationControl): Promise<{ archive: ChartArchive; release(): void }>;
  /** Ends what is under way and removes what is kept. For the end of the process. */
  close?(): Promise<void>;
}

/** One values template to render in one context. */
export interface TemplateJob {
  /** Names the context in errors, e.g. the cluster. */
  readonly id: string;
  readonly template: string;
  readonly context: Readonly<Record<string, unknown>>;
}

export type TemplateOutcome =
  | { readonly id: string; readonly ok: true; readonly text: string }
  | { readonly id: string; readonly ok: false; readonly error: string };

/** Renders values templates in Go's template engine with Sprig, many at a time; jobs asked for together share a process. */
export interface ValuesRenderer {
  render(job: TemplateJob, control: OperationControl): Promise<TemplateOutcome>;
  /** Ends what is under way. For the end of the process. */
  close?(): Promise<void>;
}

/** JSON as a manifest's documents hold it. */
type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** What a release consists of, as one record stores it. Holds Secrets: never logged. */
export interface StoredContent {
  readonly revision: number;
  readonly recordUid: string;
  readonly recordVersion: string;
  readonly applyMethod: 'server' | 'client';
  /** Characters of the manifest: a measure of the memory that the documents take. */
  readonly size: number;
  /** The manifest's documents, read as Helm's YAML; without hooks, which Helm stores apart. */
  readonly documents: readonly { [key: string]: Json }[];
  /** CRDs in the chart's own folder crds/; those of its dependencies are not stored. */
  crds(): readonly { [key: string]: Json }[];
}

/**
 * Reads Helm's storage on one cluster natively: a metadata-only watch on `owner=helm` Secrets tells every change, a
 * record is fetched only when its version changed. Made per engaged cluster; the watch is held by this object and
 * released by `close`.
 */
export interface ReleaseReader {
  /** Resolves when the first list of release Secrets is in. */
  synced(signal: AbortSignal, timeoutMs: number): Promise<void>;
  /** All records of a release by their labels, newest revision first. No request. */
  marks(key: ReleaseKey): readonly ReleaseMark[];
  /** The newest record, decoded; undefined when the release has none. One request, and only when the record changed since it was last asked for. */
  newest(key: ReleaseKey, control: OperationControl): Promise<ReleaseSummary | undefined>;
  /** As `newest`, read from the server and not from the watch: after an own operation, whose event may still be on its way. */
  refresh(key: ReleaseKey, control: OperationControl): Promise<ReleaseSummary | undefined>;
  /** What the marked record's revision consists of; undefined when the record has gone or changed meanwhile. One request. Rejects with RecordInvalid. */
  content(mark: ReleaseMark, control: OperationControl): Promise<StoredContent | undefined>;
  /** Rewrites a `pending-*` or otherwise stuck record to `failed`, under optimistic lock on the version in `summary`; Helm then accepts a new operation. */
  markFailed(summary: ReleaseSummary, why: string, control: OperationControl): Promise<void>;
  /** Told the release whose records changed. Returns the removal. */
  onChange(handler: (key: ReleaseKey) => void): () => void;
  close(): void;
}
