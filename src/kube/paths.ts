import type { Form, ObjectKey, Resource } from './types.ts';

/** A query: undefined values are left out. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Kubernetes documentation, "Receiving resources as Tables" and "metadata-only": one object, or an event of a watch. */
const METADATA_ACCEPT = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json';
const METADATA_LIST_ACCEPT = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';

/** The Accept header for one object or a watch. Servers that know no metadata form send the whole object: callers strip it. */
export function acceptOne(form: Form | undefined): string {
  return form === 'metadata' ? METADATA_ACCEPT : 'application/json';
}

/** The Accept header for a list. */
export function acceptList(form: Form | undefined): string {
  return form === 'metadata' ? METADATA_LIST_ACCEPT : 'application/json';
}

/** The collection's path, all namespaces when none is named. */
export function collectionPath(resource: Resource, namespace: string | undefined): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const within = resource.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${within}/${resource.plural}`;
}

/** Throws a TypeError for a namespaced resource without a namespace: the path would be another resource's. */
export function objectPath(resource: Resource, key: ObjectKey, subresource?: string): string {
  if (resource.namespaced && key.namespace === undefined) {
    throw new TypeError(`${resource.plural} "${key.name}": a namespace is needed`);
  }
  if (key.name === '') throw new TypeError(`${resource.plural}: a name is needed`);
  const path = `${collectionPath(resource, key.namespace)}/${encodeURIComponent(key.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

export function withQuery(path: string, query: Query | undefined): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) params.append(name, String(value));
  const text = params.toString();
  return text === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${text}`;
}

/** A path with the names of namespaces and objects left out, for spans: few distinct values per server. */
export function pathTemplate(path: string): string {
  const [bare = ''] = path.split('?');
  const match = /^(\/api\/[^/]+|\/apis\/[^/]+\/[^/]+)(\/namespaces\/[^/]+(?=\/))?\/([^/]+)(\/[^/]+)?(\/.+)?$/.exec(
    bare,
  );
  if (match === null) return bare;
  const [, root = '', namespace, plural = '', name, rest = ''] = match;
  return `${root}${namespace === undefined ? '' : '/namespaces/{namespace}'}/${plural}${name === undefined ? '' : '/{name}'}${rest}`;
}
