import { hash } from 'node:crypto';
import type { KubeObject, Resource } from '../../kube/index.ts';
import { Ranking } from './rendezvous.ts';

/** coordination.k8s.io/v1 Lease; times are MicroTime. */
export interface ShardLease extends KubeObject {
  spec?: { holderIdentity?: string; leaseDurationSeconds?: number; acquireTime?: string; renewTime?: string };
}

export const LEASES: Resource = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', namespaced: true };
/** On every member's Lease: the group's name. */
export const GROUP_LABEL = 'capstan.dev/shard-group';
/** The members by whose ranking this member acts, as JSON: identity to weight. */
export const VIEW_ANNOTATION = 'capstan.dev/shard-view';
export const WEIGHT_ANNOTATION = 'capstan.dev/shard-weight';
/** Characters of the identity's hash in a Lease's name: identities may hold what names may not. */
const HASH_LENGTH = 12;

/** What a member says of itself in its Lease. */
export interface MemberRecord {
  readonly identity: string;
  readonly weight: number;
  readonly view: Ranking;
  readonly durationMs: number;
  /** It has left, and claims nothing: nobody waits for it. */
  readonly left: boolean;
}

export function leaseNameOf(group: string, identity: string): string {
  return `${group}-${hash('sha256', identity).slice(0, HASH_LENGTH)}`;
}

/** The whole Lease as it is to be stored; `before` keeps its identity in the store and the time when it was joined. */
export function leaseOf(
  record: MemberRecord,
  place: { readonly group: string; readonly namespace: string },
  before?: ShardLease,
): ShardLease {
  const time = `${new Date().toISOString().slice(0, -1)}000Z`;
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      ...kept(before),
      namespace: place.namespace,
      name: leaseNameOf(place.group, record.identity),
      labels: { ...before?.metadata.labels, [GROUP_LABEL]: place.group },
      annotations: {
        ...before?.metadata.annotations,
        [VIEW_ANNOTATION]: record.view.text,
        [WEIGHT_ANNOTATION]: String(record.weight),
      },
    },
    spec: {
      holderIdentity: record.left ? '' : record.identity,
      leaseDurationSeconds: Math.ceil(record.durationMs / 1_000),
      acquireTime: before?.spec?.acquireTime ?? time,
      renewTime: time,
    },
  };
}

/** Makes the write conditional: on the same object, at the version that was read. */
function kept(before: ShardLease | undefined): { uid?: string; resourceVersion?: string } {
  const { uid, resourceVersion } = before?.metadata ?? {};
  return { ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }) };
}

/** Undefined when it is not a member's: somebody wrote it by hand. `left` members have no identity any more. */
export function readLease(lease: ShardLease): MemberRecord | undefined {
  const { annotations } = lease.metadata;
  const view = Ranking.parse(annotations?.[VIEW_ANNOTATION] ?? '');
  const weight = Number(annotations?.[WEIGHT_ANNOTATION]);
  const { holderIdentity: identity, leaseDurationSeconds } = lease.spec ?? {};
  if (view === undefined || !Number.isFinite(weight) || weight < 0) return undefined;
  if (identity === undefined || leaseDurationSeconds === undefined) return undefined;
  return { identity, weight, view, durationMs: leaseDurationSeconds * 1_000, left: identity === '' };
}
