/**
 * Several replicas share the clusters of one fleet. Each replica is a member with a Lease of its own; rendezvous hashing
 * says whose a cluster is, and a fence per cluster says whether this process may work on it at this very moment.
 */
import type { ClusterName, Runnable } from '../types.ts';

/** Members by identity, with their weights: what ownership is computed from. */
export type View = ReadonlyMap<string, number>;

/** The right to work on one cluster, for one piece of work. Dispose of it when the work has ended: a hand-over waits for that. */
export interface Permit extends Disposable {
  readonly cluster: ClusterName;
  /** Aborts (ShardLostError) when the fence is lost, or when a hand-over has waited long enough. */
  readonly signal: AbortSignal;
  /** False from the moment when the fence is lost, by the clock and not by a timer: a process that was paused must not go on. */
  readonly valid: boolean;
}

/**
 * What this replica may work on. Every answer is of now, by this process's clock, and for any name: also for a cluster
 * that nobody declares any more. LOCAL_CLUSTER is a name like any other: whoever holds it does the fleet-wide work.
 */
export interface Shards extends Runnable {
  /** Of this process among the members. */
  readonly identity: string;
  /** New work for the cluster may begin. */
  holds(cluster: ClusterName): boolean;
  /** As `holds`, and also while the cluster is being handed over: what runs may end, and its connection is kept. */
  serves(cluster: ClusterName): boolean;
  /** Begins work; undefined when the cluster is not held. */
  enter(cluster: ClusterName): Permit | undefined;
  /** Told whenever an answer of `holds` or `serves` may have changed. Returns the removal, by identity. */
  onChange(listener: () => void): () => void;
  /** Joins, renews, and leaves when `signal` aborts: in order, after what ran has ended. Call once. */
  run(signal: AbortSignal): Promise<void>;
}

export interface ShardingOptions {
  /** Prefix of the members' Leases; all replicas of one installation have the same. */
  readonly group: string;
  readonly namespace: string;
  /** Unique among the members. */
  readonly identity: string;
  /** Share of the clusters relative to other members; 1. 0: takes none. */
  readonly weight?: number;
  /** Others take a member's clusters when its Lease has not changed for so long, milliseconds; 8 s. */
  readonly leaseDurationMs?: number;
  /** This process stops working when no renewal succeeded for so long, milliseconds; 5 s. What is left until the duration is for ending what runs. */
  readonly renewDeadlineMs?: number;
  /** Between renewals, milliseconds; 1.5 s. */
  readonly periodMs?: number;
  /** A planned hand-over lets running work end for so long before it is aborted, milliseconds; 10 s. */
  readonly handOverMs?: number;
}
