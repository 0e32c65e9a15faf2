import type { KubeObject, Resource, WatchTarget } from '../../kube/index.ts';
import { configDigest } from '../values-digest.ts';
import type { ReleaseKey, ReleaseMark, ReleaseSummary } from '../types.ts';
import { releaseStatus } from './record.ts';
import type { ReleaseRecord } from './record.ts';

/** The Secret that holds one record (helm, pkg/storage/driver/secrets.go). */
export interface RecordSecret extends KubeObject {
  type?: string;
  data?: Record<string, string>;
}

export const SECRETS: Resource = { group: '', version: 'v1', plural: 'secrets', namespaced: true };

/** Helm's own label; nothing but records carries it with the name prefix below. */
const OWNER_SELECTOR = 'owner=helm';

const NAME_PREFIX = 'sh.helm.release.v1.';

/** Every record on a cluster, by metadata alone. */
export const RECORDS: WatchTarget = { resource: SECRETS, form: 'metadata', labelSelector: OWNER_SELECTOR };

/** The records of one release. */
export function selectorOf(key: ReleaseKey): string {
  return `${OWNER_SELECTOR},name=${key.name}`;
}

/** What a record's labels tell; undefined for a Secret that is no record. */
export function markOf(secret: KubeObject): ReleaseMark | undefined {
  const { name: secretName, namespace = '', labels = {}, uid = '', resourceVersion = '' } = secret.metadata;
  const { name, version, status = '' } = labels;
  const revision = Number(version);
  if (!secretName.startsWith(NAME_PREFIX) || name === undefined || !Number.isSafeInteger(revision)) return undefined;
  return {
    namespace,
    name,
    revision,
    status: releaseStatus(status),
    recordUid: uid,
    recordVersion: resourceVersion,
  };
}

/** Name of the Secret that holds a revision. */
export function recordName(mark: Pick<ReleaseMark, 'name' | 'revision'>): string {
  return `${NAME_PREFIX}${mark.name}.v${String(mark.revision)}`;
}

export function summaryOf(secret: RecordSecret, record: ReleaseRecord): ReleaseSummary {
  const { metadata } = record.chart;
  return {
    namespace: record.namespace === '' ? (secret.metadata.namespace ?? '') : record.namespace,
    name: record.name,
    revision: record.version,
    status: record.info.status,
    chartName: metadata.name,
    chartVersion: metadata.version,
    valuesDigest: configDigest(record.config),
    lastDeployed: record.info.lastDeployed,
    description: record.info.description,
    applyMethod: record.applyMethod,
    recordUid: secret.metadata.uid ?? '',
    recordVersion: secret.metadata.resourceVersion ?? '',
  };
}
