/**
 * The whole contract of the runtime, and the first file to read. From here: `fleet.ts` (cluster life), `controller.ts`
 * (work), `manager.ts` (start and stop order). Providers say which clusters exist; the fleet connects and supervises them;
 * controllers get requests that carry the cluster's name.
 */
import type { Discovery, ForwardedAnswer, ForwardRequest, KubeClient, WatchSet } from '../kube/index.ts';
import type { Logger } from '../telemetry/index.ts';

declare const clusterNameBrand: unique symbol;

/** A cluster's name, unique in the fleet. CAPI: `namespace/name`; with several providers: `provider#name`. */
export type ClusterName = string & { readonly [clusterNameBrand]: true };

/** How to reach a cluster, as a provider knows it. */
export interface ConnectionSpec {
  /** A kubeconfig (YAML or JSON). Never logged. */
  readonly kubeconfig: string;
  /** Context to use; the kubeconfig's current one when absent. */
  readonly context?: string;
}

/** Why a known cluster has no connection. `code` is for programs (e.g. `ControlPlaneNotReady`, `KubeconfigUnavailable`, `Unreachable`, `Unauthorized`), `message` for people. */
export interface NotConnectedReason {
  readonly code: string;
  readonly message: string;
}

/** What a provider knows of a cluster besides how to reach it (docs/providers.md). */
export interface ClusterAbout {
  /** What selectors match. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Of the management cluster: objects of this namespace may select the cluster. */
  readonly namespace?: string;
  /** The object that stands for it, e.g. its Secret; none for a cluster from a file. */
  readonly source?: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace?: string;
    readonly name: string;
    readonly uid?: string;
  };
}

/** A declared cluster, as selectors see it. `provider` is the name of the provider that declares it. */
export interface ClusterRecord extends ClusterAbout {
  readonly name: ClusterName;
  readonly provider: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Where a provider declares. Every method returns at once and never throws: the fleet does the work. `about` may change from one declaration to the next; without it, what was said before holds. */
export interface ClusterSink {
  /** The cluster exists but cannot be connected to yet, and why (no kubeconfig, control plane not ready). One already engaged stays in service. */
  discover(name: ClusterName, reason: NotConnectedReason, about?: ClusterAbout): void;
  /** The cluster can be reached so. Called again with other credentials it swaps them in place; with another server or CA it re-engages. Same spec: nothing happens. */
  engage(name: ClusterName, spec: ConnectionSpec, about?: ClusterAbout): void;
  /** The cluster is gone. Its signal aborts; requests for it end quietly. */
  disengage(name: ClusterName, reason: string): void;
  /** Everything that there is has been declared since the run began: what is not among it is gone, and not merely unknown yet. Absent in sinks that do not ask. */
  synced?(): void;
}

/** Discovers clusters. Implementations stay small: discovery only. */
export interface Provider {
  readonly name: string;
  /** True: its clusters' names stand in the fleet as they are, also beside other providers (CAPI's `namespace/name`, and what `prefixed` made). */
  readonly bare?: boolean;
  /** Runs until `signal` aborts. A rejection is logged and the provider is started again with back-off; its clusters stay engaged meanwhile. */
  run(sink: ClusterSink, signal: AbortSignal): Promise<void>;
  /** Called by the fleet after a 401: read the credentials again now, and declare. Must not block. */
  refresh?(name: ClusterName): void;
}

/** An engaged (or degraded) cluster. An object of this type is one engagement: a re-engaged cluster is another object. */
export interface Cluster {
  readonly name: ClusterName;
  /** UID of the kube-system namespace: what tells a cluster from its successor of the same name. Undefined where it may not be read. */
  readonly uid: string | undefined;
  readonly client: KubeClient;
  readonly discovery: Discovery;
  readonly watches: WatchSet;
  /** Aborts when this engagement ends. Everything done for the cluster takes it. */
  readonly signal: AbortSignal;
  /** True while probes fail. */
  readonly degraded: boolean;
  /** A self-contained kubeconfig with the newest credentials, for programs. Never logged. */
  kubeconfig(): string;
  /** Sends another program's request with the cluster's credentials, as it is; resolves with any answer. Rejects as calls do. */
  forward?(request: ForwardRequest): Promise<ForwardedAnswer>;
}

/** A party that starts and stops work with clusters. Methods return at once and must not throw. */
export interface Aware {
  /** A cluster is in service: newly engaged, back from degraded (the same object), or already there when this party registered. */
  engaged?(cluster: Cluster): void;
  /** Probes fail: calls would likely fail too. Watches and caches stay. */
  degraded?(cluster: Cluster, reason: NotConnectedReason): void;
  /** The engagement ended; `cluster.signal` is aborted already. */
  disengaged?(cluster: Cluster, reason: string): void;
  /** Any change of a cluster's state, also of one without an engagement; after the more specific call. The last one has phase `disengaged`. */
  changed?(name: ClusterName, state: ClusterState): void;
}

/** Discovered clusters and their life (docs/lifecycle.md). */
export interface Fleet {
  /** Throws ClusterNotFoundError (nobody declared it) or ClusterNotConnectedError (with the reason; degraded counts as not connected). */
  get(name: ClusterName): Cluster;
  /** What is known of a cluster, or undefined. */
  state(name: ClusterName): ClusterState | undefined;
  states(): ReadonlyMap<ClusterName, ClusterState>;
  /**
   * Asks a cluster that another replica serves for its `uid`; undefined where that may not be read. Rejects as `get` throws.
   * Absent: there are no other replicas.
   */
  identify?(name: ClusterName, signal: AbortSignal): Promise<string | undefined>;
  /** What is in service now is told at once (`engaged`, and `degraded` after it where that holds). Returns the removal, by identity. */
  register(aware: Aware): () => void;
}

/** One cluster's life; `step` in cluster-state.ts is the only way from one to the next. */
export type ClusterState =
  /** Declared without a connection. Next: connecting, when the provider has one. */
  | { readonly phase: 'discovered'; readonly reason: NotConnectedReason }
  /** Being connected to; `lastError` tells why the last attempt failed. Next: engaged. */
  | { readonly phase: 'connecting'; readonly attempt: number; readonly lastError?: NotConnectedReason }
  /** In service. Next: degraded after failing probes. `warning`: e.g. a new kubeconfig was refused and the old connection serves on. */
  | { readonly phase: 'engaged'; readonly cluster: Cluster; readonly warning?: string }
  /** Probes fail; its requests wait. Next: engaged when one succeeds. */
  | { readonly phase: 'degraded'; readonly cluster: Cluster; readonly reason: NotConnectedReason }
  /** Over. */
  | { readonly phase: 'disengaged'; readonly reason: string };

/** What to reconcile: an object and the cluster that the work is for (not necessarily where the object lives). */
export interface Request {
  readonly cluster: ClusterName;
  readonly namespace: string;
  readonly name: string;
}

/** Higher goes first within a cluster; clusters take turns. */
export type Priority = 'user' | 'drift' | 'resync';

/** `requeueAfterMs`: reconcile again then (resync priority), unless something asks earlier. Absent: wait for events. */
export interface Result {
  readonly requeueAfterMs?: number;
}

export interface ReconcileContext {
  /** Aborts on shutdown, when the cluster of the request disengages or goes to another replica, and at the controller's time limit. */
  readonly signal: AbortSignal;
  /** Carries controller, cluster and object. */
  readonly log: Logger;
  /** Failures of this request since it last succeeded. */
  readonly failures: number;
}

/**
 * Level-based: told what to look at, never what happened. Rejections: ClusterNotFoundError ends quietly;
 * ClusterNotConnectedError parks the request until the cluster is engaged again; TerminalError is logged and not
 * retried; anything else is retried with back-off.
 */
export interface Reconciler {
  reconcile(request: Request, context: ReconcileContext): Promise<Result>;
}

/** Something with a life of its own that the manager owns: controllers, providers, servers. Resolves after `signal` aborts and all its work has stopped. */
export interface Runnable {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
  /** What it is about, for people who look for a fault: bounded, JSON, without values and secrets. */
  debug?(): unknown;
}

/** Writes Kubernetes Events; returns at once, bounded, never fails its caller. */
export interface EventRecorder {
  record(
    about: { apiVersion: string; kind: string; metadata: { name: string; namespace?: string; uid?: string } },
    event: { type: 'Normal' | 'Warning'; reason: string; message: string; action?: string },
  ): void;
}

/** A running controller's queue, as event handlers see it. */
export interface Enqueuer {
  enqueue(request: Request, options?: { priority?: Priority; afterMs?: number }): void;
}
