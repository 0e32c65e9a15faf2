import type { CallOptions, Discovery, KubeObject, Resource } from '../kube/index.ts';
import { compareKinds } from './install-order.ts';
import { isObject } from './twin.ts';
import type { Inventory, InventoryObject, JsonObject, JsonValue, ObjectId, Path } from './types.ts';

export interface InventorySource {
  readonly release: { readonly namespace: string; readonly name: string };
  readonly revision: number;
  /** The stored manifest's documents. */
  readonly documents: readonly JsonObject[];
  /** The chart's crds/, where they are looked at, too. */
  readonly crds: readonly JsonObject[];
}

/** What Helm adds to every object of a manifest (helm: pkg/action/validate.go). */
const HELM_LABEL = 'app.kubernetes.io/managed-by';
const HELM_LABEL_VALUE = 'Helm';
const RELEASE_NAME = 'meta.helm.sh/release-name';
const RELEASE_NAMESPACE = 'meta.helm.sh/release-namespace';
/** Objects with it are hooks: Helm keeps them apart, and so do we. */
const HOOK_ANNOTATION = 'helm.sh/hook';

/** The label selector that finds what Helm installed. */
export const HELM_SELECTOR = `${HELM_LABEL}=${HELM_LABEL_VALUE}`;

/** Does that selector find it? */
export function hasHelmLabel({ metadata }: KubeObject): boolean {
  return metadata.labels?.[HELM_LABEL] === HELM_LABEL_VALUE;
}

/** What only a server sets. */
const SERVER_METADATA: ReadonlySet<string> = new Set([
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
  'managedFields',
  'resourceVersion',
  'selfLink',
  'uid',
]);

/** Where a manifest is known to carry an empty creationTimestamp that a generator left there. */
const TEMPLATE_PATHS: readonly Path[] = [
  ['spec', 'template', 'metadata'],
  ['spec', 'jobTemplate', 'metadata'],
  ['spec', 'jobTemplate', 'spec', 'template', 'metadata'],
];

/** From what Helm stored to what should be there; asks discovery which kinds are served, and where. Rejects with its KubeErrors. */
export async function buildInventory(
  source: InventorySource,
  discovery: Discovery,
  options: CallOptions = {},
): Promise<Inventory> {
  const problems: string[] = [];
  const raw = [
    ...documentsOf(source.crds, 'crds/', problems).map((document) => ({ document, fromCrds: true })),
    ...documentsOf(source.documents, 'the manifest', problems)
      .filter((document) => !isHook(document))
      .map((document) => ({ document, fromCrds: false })),
  ];
  const found = new Map<string, Omit<InventoryObject, 'order'>>();
  for (const { document, fromCrds } of raw) {
    const kind = kindOf(document);
    const resource = await discovery.find(kind, options);
    const object = objectOf(document, { kind, resource, fromCrds, release: source.release });
    // Of duplicates the last one holds; a CRD that crds/ and a template both have is the template's.
    found.set(objectKey(object.id), object);
  }
  // Within a kind the manifest's order holds, as in Helm.
  const objects = [...found.values()]
    .sort((a, b) => compareKinds(a.id.kind, b.id.kind))
    .map((object, order): InventoryObject => ({ ...object, order }));
  return { release: source.release, revision: source.revision, objects, problems };
}

/** Equal for ids of the same object, whatever the version. */
export function objectKey({ group, kind, namespace, name }: ObjectId): string {
  return `${group}/${kind}/${namespace ?? ''}/${name}`;
}

/** For people: `Deployment web/shop`. */
export function objectName({ kind, namespace, name }: ObjectId): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}

function isHook(document: JsonObject): boolean {
  return recordAt(recordAt(document, 'metadata'), 'annotations')[HOOK_ANNOTATION] !== undefined;
}

/** Lists are their items; what is no object is told and left out. */
function documentsOf(documents: readonly JsonObject[], where: string, problems: string[]): JsonObject[] {
  return documents.flatMap((document, index) => {
    const items = itemsOf(document);
    if (items !== undefined) return documentsOf(items, `the list in document ${index + 1} of ${where}`, problems);
    const { kind } = document;
    const name = textAt(recordAt(document, 'metadata'), 'name');
    if (typeof kind === 'string' && name !== undefined && hasUnsafeInteger(document)) {
      problems.push(`${kind} ${name} has an integer beyond 2^53 and is left out: it could not be put back exactly`);
      return [];
    }
    if (typeof kind === 'string' && name !== undefined) return [document];
    problems.push(`document ${index + 1} of ${where} has no ${typeof kind === 'string' ? 'metadata.name' : 'kind'}`);
    return [];
  });
}

/** What a list holds. Items of a typed one (ConfigMapList) need not say what they are (apimachinery: unstructured lists). */
function itemsOf({ apiVersion, kind, items }: JsonObject): JsonObject[] | undefined {
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) return undefined;
  const own = kind.slice(0, -'List'.length);
  const inherited: JsonObject = own === '' || typeof apiVersion !== 'string' ? {} : { apiVersion, kind: own };
  return items
    .filter(isObject)
    .map((item) => (item['kind'] === undefined && item['apiVersion'] === undefined ? { ...inherited, ...item } : item));
}

function hasUnsafeInteger(value: JsonValue): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some(hasUnsafeInteger);
}

function kindOf(document: JsonObject): { group: string; version: string; kind: string } {
  const [first = '', second] = (textAt(document, 'apiVersion') ?? '').split('/');
  const kind = textAt(document, 'kind') ?? '';
  return second === undefined ? { group: '', version: first, kind } : { group: first, version: second, kind };
}

function objectOf(
  document: JsonObject,
  about: {
    kind: { group: string; version: string; kind: string };
    resource: Resource | undefined;
    fromCrds: boolean;
    release: { readonly namespace: string; readonly name: string };
  },
): Omit<InventoryObject, 'order'> {
  const { kind, resource, fromCrds, release } = about;
  const nulls: Path[] = [];
  const wanted = withoutNulls(document, [], nulls) as JsonObject;
  delete wanted['status'];
  const metadata = ownMetadata(wanted);
  const namespace = namespaceFor(recordAt(wanted, 'metadata'), resource, release.namespace);
  wanted['metadata'] = {
    ...metadata,
    ...(namespace !== undefined && { namespace }),
    ...(!fromCrds && helmMetadata(metadata, release)),
  };
  for (const path of TEMPLATE_PATHS) dropCreationTimestamp(wanted, path);
  if (kind.group === '' && kind.kind === 'Secret') foldStringData(wanted, nulls);
  const name = textAt(metadata, 'name') ?? '';
  const id = { ...kind, ...(namespace !== undefined && { namespace }), name };
  return { id, resource, wanted, nulls: nulls.filter(isUserNull), fromCrds };
}

function ownMetadata(wanted: JsonObject): JsonObject {
  const entries = Object.entries(recordAt(wanted, 'metadata'));
  return Object.fromEntries(entries.filter(([field]) => field !== 'namespace' && !SERVER_METADATA.has(field)));
}

/** A kind that is not served yet has the namespace that the manifest says; it is looked at again when it is served. */
function namespaceFor(metadata: JsonObject, resource: Resource | undefined, fallback: string): string | undefined {
  const own = textAt(metadata, 'namespace');
  if (resource === undefined) return own;
  return resource.namespaced ? (own ?? fallback) : undefined;
}

function helmMetadata(
  metadata: JsonObject,
  release: { readonly namespace: string; readonly name: string },
): JsonObject {
  return {
    labels: { ...recordAt(metadata, 'labels'), [HELM_LABEL]: HELM_LABEL_VALUE },
    annotations: {
      ...recordAt(metadata, 'annotations'),
      [RELEASE_NAME]: release.name,
      [RELEASE_NAMESPACE]: release.namespace,
    },
  };
}

/** A null where generators write one, where it says no more than an absent map, or in a Secret's data, wants nothing removed. */
function isUserNull(path: Path): boolean {
  const [first] = path;
  if (first === 'status' || first === 'data' || first === 'stringData' || first === 'binaryData') return false;
  const last = path.at(-1);
  return last !== 'creationTimestamp' && last !== 'labels' && last !== 'annotations' && path.length > 1;
}

/** A copy without nulls, whose places are told. In lists a null stays: its neighbours' places count. */
function withoutNulls(value: JsonValue, path: Path, nulls: Path[]): JsonValue {
  if (Array.isArray(value)) return value.map((item, index) => withoutNulls(item, [...path, index], nulls));
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const [key, item] of Object.entries(value)) {
    if (item === null) nulls.push([...path, key]);
    else copy[key] = withoutNulls(item, [...path, key], nulls);
  }
  return copy;
}

function dropCreationTimestamp(wanted: JsonObject, path: Path): void {
  let value: JsonValue | undefined = wanted;
  for (const segment of path) value = isObject(value) ? value[String(segment)] : undefined;
  if (isObject(value)) delete value['creationTimestamp'];
}

/** As the API server does: `stringData` overwrites `data` and is never read back; a null value is an empty one. */
function foldStringData(wanted: JsonObject, nulls: readonly Path[]): void {
  const data: JsonObject = { ...recordAt(wanted, 'data') };
  for (const [first, key] of nulls) if (first === 'data' && key !== undefined) data[String(key)] = '';
  for (const [key, text] of Object.entries(recordAt(wanted, 'stringData'))) {
    data[key] = Buffer.from(typeof text === 'string' ? text : JSON.stringify(text)).toString('base64');
  }
  for (const [first, key] of nulls) if (first === 'stringData' && key !== undefined) data[String(key)] = '';
  delete wanted['stringData'];
  if (Object.keys(data).length > 0) wanted['data'] = data;
}

function recordAt(object: JsonObject, key: string): JsonObject {
  const value = object[key];
  return isObject(value) ? value : {};
}

function textAt(object: JsonObject, key: string): string | undefined {
  const value = object[key];
  return typeof value === 'string' && value !== '' ? value : undefined;
}
