/**
 * The room `runtime`: many clusters, supervised, and controllers that work on them. A newcomer reads `types.ts` (the
 * contract), then `fleet.ts` and `supervisor.ts` (a cluster's life), `controller.ts` and `work-queue.ts` (a request's
 * life), `manager.ts` (start and stop order).
 */
export type * from './types.ts';
export * from './errors.ts';
export {
  clusterName,
  LOCAL_CLUSTER,
  namespacedClusterName,
  prefixedClusterName,
  requestKey,
  splitClusterName,
} from './cluster-name.ts';
export { CLUSTER_PREFIX_SEPARATOR, prefixed } from './prefixed.ts';
export type { ClusterRecords, RecordListener } from './cluster-records.ts';
export { Controller } from './controller.ts';
export type { ControllerLane, ControllerOptions, Source } from './controller.ts';
export type { LaneOptions } from './lane.ts';
export { SupervisedFleet } from './fleet.ts';
export type { FleetOptions } from './fleet.ts';
export type { SupervisionOptions } from './supervision-options.ts';
export { createCluster } from './engaged-cluster.ts';
export type { ClusterConnection, ConnectionFactory, ConnectionHooks } from './connection.ts';
export { clusterConnection, kubeConnectionFactory } from './kube-connection.ts';
export type { KubeConnectionOptions } from './kube-connection.ts';
export { KubeEventRecorder } from './event-recorder.ts';
export type { EventRecorderOptions } from './event-recorder.ts';
export { LeaderElector } from './leader.ts';
export type { LeaderElectionOptions } from './leader.ts';
export { Manager } from './manager.ts';
export type { ManagedCache, ManagerOptions, ManagerPhase } from './manager.ts';
export { ShardMember } from './sharding/member.ts';
export type { ShardMemberOptions } from './sharding/member.ts';
export { CurrentPermit, managementGuard, workloadGuard } from './sharding/current-permit.ts';
export type { Sharding } from './sharding/current-permit.ts';
export type { ShardedWork } from './sharding/dispatch.ts';
export { whileHeld } from './sharding/while-held.ts';
export type { Permit, Shards, ShardingOptions } from './sharding/types.ts';
