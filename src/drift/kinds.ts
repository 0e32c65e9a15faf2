/** What must be known of Kubernetes' own kinds to compare two of their objects. All of it is from the API reference. */
import { isObject } from './twin.ts';
import type { JsonObject, JsonValue, ObjectId, Path } from './types.ts';

/** Of `metadata`, what a manifest can want. */
const WANTED_METADATA: ReadonlySet<string> = new Set(['labels', 'annotations', 'finalizers', 'ownerReferences']);

/** Maps of texts, in which an empty text is a value. */
const TEXT_MAPS: ReadonlySet<string> = new Set(['labels', 'annotations', 'matchLabels', 'nodeSelector', 'selector']);

/** Lists whose elements several managers share (x-kubernetes-list-type: map): what else stands in them is others' business. */
const GRANULAR: ReadonlySet<string> = new Set([
  'containers',
  'initContainers',
  'ephemeralContainers',
  'env',
  'ports',
  'volumes',
  'volumeMounts',
  'volumeDevices',
  'imagePullSecrets',
  'hostAliases',
  'topologySpreadConstraints',
  'resourceClaims',
  'webhooks',
  'secrets',
  'ownerReferences',
  'conditions',
  'matchConditions',
]);

/** Lists of containers: those of a pod, of which each has `ports` that are merged by their keys. */
const CONTAINERS: ReadonlySet<string> = new Set(['containers', 'initContainers', 'ephemeralContainers']);

/**
 * Fields of Kubernetes' own kinds that are pointers and have no default in the API: false, 0, '' or {} is kept as it was
 * written, and means something else than nothing (no `allowPrivilegeEscalation` is true, no `namespaceSelector` is this
 * namespace, and {} is all).
 */
const ABSENT_MEANS_OTHERWISE: ReadonlySet<string> = new Set([
  'allowPrivilegeEscalation',
  'automountServiceAccountToken',
  'hostUsers',
  'runAsNonRoot',
  'fsGroup',
  'runAsGroup',
  'runAsUser',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
  'maxUnavailable',
  'minAvailable',
  'stabilizationWindowSeconds',
  'startingDeadlineSeconds',
  'terminationGracePeriodSeconds',
  'tolerationSeconds',
  'ttlSecondsAfterFinished',
  'storageClassName',
  'labelSelector',
  'namespaceSelector',
  'podSelector',
]);

/** Groups of Kubernetes' own kinds; a custom resource's list of the same name is what its schema says, and that is not known here. */
const BUILT_IN = /^(|apps|batch|autoscaling|policy|(.+\.)?k8s\.io)$/;

/** Placeholders of a caBundle that something else is to fill in (an empty one, and a line break, in base64 too). */
const NO_BUNDLE: ReadonlySet<JsonValue> = new Set<JsonValue>(['', '\n', 'Cg==']);

/** Lists that are sets: order means nothing, and others may add to them. */
export function isSetPath(path: Path): boolean {
  return path.length === 2 && path[0] === 'metadata' && path[1] === 'finalizers';
}

export function isGranularList(id: ObjectId, path: Path): boolean {
  const name = path.at(-1);
  if (typeof name !== 'string') return false;
  if (path.length === 2 && path[0] === 'metadata') return true;
  if (!BUILT_IN.test(id.group) || !GRANULAR.has(name)) return false;
  // Those of a Service and of containers; a NetworkPolicy's, say, are one value.
  return name !== 'ports' || path.length === 2 || CONTAINERS.has(String(path.at(-3)));
}

/** Shared lists that are gone through in their order: a variable can refer to those before it only. */
const SEQUENCES: ReadonlySet<string> = new Set(['initContainers', 'env']);

/**
 * Does the order of a list's elements mean something? Containers are initialised one after the other, and a list that is
 * one value has its order for a part of it (routes of which the first that matches is taken). Server-side apply puts both
 * back in the order that was applied (tried on 1.35).
 */
export function isOrdered(id: ObjectId, path: Path): boolean {
  if (metricKey(id, path) !== undefined) return false;
  return SEQUENCES.has(String(path.at(-1))) || !isGranularList(id, path);
}

/** Is false, 0 or an empty value at this path something else than none? */
export function absentMeansOtherwise(id: ObjectId, path: Path): boolean {
  return BUILT_IN.test(id.group) && ABSENT_MEANS_OTHERWISE.has(String(path.at(-1)));
}

/** Is an empty text at this path a value, and every text just what it is? */
export function isText(id: ObjectId, path: Path): boolean {
  const [first] = path;
  const parent = path.at(-2);
  if (isDataKind(id) && (first === 'data' || first === 'binaryData')) return path.length > 1;
  return typeof parent === 'string' && TEXT_MAPS.has(parent);
}

/** Is there a map of such texts at this path? */
export function isTextMap(id: ObjectId, path: Path): boolean {
  return isText(id, [...path, '']);
}

/** The same bytes of a Secret in base64, however it is broken into lines. */
export function sameBytes(id: ObjectId, path: Path, [a, b]: readonly [JsonValue, JsonValue]): boolean {
  const isBytes = isDataKind(id) && path.length === 2 && path[0] === (id.kind === 'Secret' ? 'data' : 'binaryData');
  if (!isBytes || typeof a !== 'string' || typeof b !== 'string') return false;
  return Buffer.from(a, 'base64').equals(Buffer.from(b, 'base64'));
}

/** What is not compared at all: what only a server sets, and what others are meant to fill in. */
export function isAside(
  id: ObjectId,
  path: Path,
  { value, wanted, live }: { value: JsonValue; wanted: JsonObject; live: JsonObject },
): boolean {
  const [first, second] = path;
  if (path.length === 1) return first === 'status' || (first === 'rules' && isAggregated(id, wanted, live));
  if (path.length === 2 && first === 'metadata') return !WANTED_METADATA.has(String(second));
  return path.at(-1) === 'caBundle' && NO_BUNDLE.has(typeof value === 'string' ? value.trim() : value);
}

/**
 * What the manifest sets that others are meant to fill in: paths into the wanted object. Not comparing it is half of it:
 * putting another field back must not put the placeholder back with it.
 */
export function asidePaths(id: ObjectId, wanted: JsonObject, live: JsonObject): Path[] {
  const find = (value: JsonValue, path: Path): Path[] => {
    if (path[0] === 'metadata') return [];
    if (typeof path.at(-1) === 'string' && isAside(id, path, { value, wanted, live })) return [path];
    if (Array.isArray(value)) return value.flatMap((item, index) => find(item, [...path, index]));
    return isObject(value) ? Object.entries(value).flatMap(([key, item]) => find(item, [...path, key])) : [];
  };
  return find(wanted, []);
}

/** A controller fills the rules of an aggregated ClusterRole in. */
function isAggregated(id: ObjectId, wanted: JsonObject, live: JsonObject): boolean {
  return id.kind === 'ClusterRole' && [wanted, live].some((role) => isObject(role['aggregationRule']));
}

/** What the metrics of a HorizontalPodAutoscaler are told apart by: their controller sorts them (k8s #74099). */
export function metricKey(id: ObjectId, path: Path): ((element: JsonValue) => string) | undefined {
  if (id.kind === 'HorizontalPodAutoscaler' && path.length === 2 && path[1] === 'metrics') return metricIdentity;
  return id.kind === 'Endpoints' && path.length === 1 && path[0] === 'subsets' ? JSON.stringify : undefined;
}

function metricIdentity(element: JsonValue): string {
  if (!isObject(element)) return JSON.stringify(element);
  const type = typeof element['type'] === 'string' ? element['type'] : '';
  const source = element[type.charAt(0).toLowerCase() + type.slice(1)];
  if (!isObject(source)) return type;
  const metric = isObject(source['metric']) ? source['metric'] : {};
  const described = isObject(source['describedObject']) ? source['describedObject'] : {};
  return [type, source['name'], source['container'], metric['name'], described['kind'], described['name']]
    .map((part) => (typeof part === 'string' ? part : ''))
    .join('/');
}

function isDataKind(id: ObjectId): boolean {
  return id.group === '' && (id.kind === 'ConfigMap' || id.kind === 'Secret');
}
