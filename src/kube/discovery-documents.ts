import { isKubeError } from './errors.ts';
import type { KubeClient } from './types.ts';

/** A kind as a server serves it. */
export interface ServedKind {
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

/** A group's versions, preferred first. `kinds` is undefined where it has to be asked for. */
export interface ApiGroup {
  readonly name: string;
  readonly versions: readonly { readonly version: string; readonly kinds: readonly ServedKind[] | undefined }[];
}

type Raw = Pick<KubeClient, 'raw'>;

/** KEP-3352; v2 since 1.30, v2beta1 since 1.26; older servers answer the last with the old documents. */
const AGGREGATED_ACCEPT = [
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
  'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList',
  'application/json',
].join(',');

interface AggregatedList {
  readonly kind?: string;
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string };
    readonly versions?: readonly {
      readonly version: string;
      readonly resources?: readonly {
        readonly resource: string;
        readonly scope: string;
        readonly responseKind?: { readonly kind?: string };
      }[];
    }[];
  }[];
}

/** All groups with their kinds, in two requests; undefined when the server does not aggregate. */
export async function readAggregated(client: Raw): Promise<ApiGroup[] | undefined> {
  const [core, named] = await Promise.all([
    client.raw<AggregatedList>('GET', '/api', { accept: AGGREGATED_ACCEPT }),
    client.raw<AggregatedList>('GET', '/apis', { accept: AGGREGATED_ACCEPT }),
  ]);
  if (core.kind !== 'APIGroupDiscoveryList' || named.kind !== 'APIGroupDiscoveryList') return undefined;
  return [...(core.items ?? []), ...(named.items ?? [])].map((group) => ({
    name: group.metadata?.name ?? '',
    versions: (group.versions ?? []).map(({ version, resources = [] }) => ({
      version,
      kinds: resources.map((entry) => ({
        kind: entry.responseKind?.kind ?? '',
        plural: entry.resource,
        namespaced: entry.scope === 'Namespaced',
      })),
    })),
  }));
}

interface OldGroups {
  readonly groups?: readonly {
    readonly name: string;
    readonly preferredVersion?: { readonly version: string };
    readonly versions?: readonly { readonly version: string }[];
  }[];
}

/** The old documents: groups and versions, without kinds. */
export async function readGroups(client: Raw): Promise<ApiGroup[]> {
  const [core, named] = await Promise.all([
    client.raw<{ versions?: readonly string[] }>('GET', '/api'),
    client.raw<OldGroups>('GET', '/apis'),
  ]);
  const groups = (named.groups ?? []).map((group) => {
    const versions = (group.versions ?? []).map(({ version }) => version);
    const preferred = group.preferredVersion?.version;
    return bare(
      group.name,
      preferred === undefined ? versions : [preferred, ...versions.filter((v) => v !== preferred)],
    );
  });
  return [bare('', core.versions ?? []), ...groups];
}

function bare(name: string, versions: readonly string[]): ApiGroup {
  return { name, versions: versions.map((version) => ({ version, kinds: undefined })) };
}

interface OldResources {
  readonly resources?: readonly { readonly name: string; readonly namespaced: boolean; readonly kind: string }[];
}

/** The kinds of one group version by the old document; undefined when the server does not serve it (any more, or right now). */
export async function readResources(client: Raw, group: string, version: string): Promise<ServedKind[] | undefined> {
  const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  try {
    const { resources = [] } = await client.raw<OldResources>('GET', path);
    // Names with a slash are subresources.
    return resources
      .filter(({ name }) => !name.includes('/'))
      .map(({ name, namespaced, kind }) => ({ kind, plural: name, namespaced }));
  } catch (error) {
    // 503: an aggregated API whose server is away must not hide all the others.
    if (isKubeError(error, 'NotFound', 'Server')) return undefined;
    throw error;
  }
}
