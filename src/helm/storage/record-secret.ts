import { validateSelector } from '../../kube/index.ts';
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

/** RFC 1123, as the API server asks it of a namespace's name. */
const NAMESPACE_NAME = /^(?!.{64})[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/**
 * Whether a release can have a record at all. HelmChartProxies may name what no Secret can be labelled with or lie in; asked
 * for that, the API server answers 400 for ever, and what never was there could never be deleted.
 */
export function canBeRecorded(key: ReleaseKey): boolean {
  return (
    NAMESPACE_NAME.test(key.namespace) && validateSelector({ matchLabels: { name: key.name } }, 'release').length === 0
  );
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
