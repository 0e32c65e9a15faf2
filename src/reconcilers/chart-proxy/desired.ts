/** What a HelmReleaseProxy should be, from its HelmChartProxy, its Cluster and the rendered values. Pure. */
import {
  API_GROUP,
  API_VERSION,
  CLUSTER_NAME_ANNOTATION,
  CLUSTER_NAME_LABEL,
  CREDENTIALS_DEFAULT_KEY,
  HCP_KIND,
  HCP_NAME_ANNOTATION,
  HCP_NAME_LABEL,
  HRP_KIND,
  RELEASE_NAME_GENERATED_ANNOTATION,
  VALUES_INPUTS_ANNOTATION,
  WATCH_FILTER_LABEL,
  WORKLOAD_CLUSTER_UID_ANNOTATION,
} from '../../api/index.ts';
import type {
  ChartSpec,
  CredentialsSpec,
  HelmChartProxy,
  HelmOptionsSpec,
  HelmReleaseProxy,
  TlsConfigSpec,
} from '../../api/index.ts';
import { isForeign } from '../cluster-names.ts';
import { deepEqual, isRecord } from '../merge-patch.ts';
import { CLUSTER_KIND } from '../resources.ts';
import type { CapiCluster } from '../shared.ts';
import { labelValue, releaseProxyName } from './naming.ts';

/** What the CRD's defaults fill in; a field that only differs by them does not differ (deploy: CRDs). */
const OPTION_DEFAULTS = { timeout: '10m0s', createNamespace: true, maxHistory: 10 } as const;
const DEFAULT_NAMESPACE = 'default';

/** Values and the digests that say what they were made from. */
export interface RenderedValues {
  readonly text: string;
  readonly inputs: string;
}

export interface Placement {
  readonly chartProxy: HelmChartProxy;
  readonly cluster: CapiCluster;
  /** `group/version` of the Cluster. */
  readonly clusterApiVersion: string;
  /** Value of the watch-filter label, when the manager has one. */
  readonly watchFilter?: string;
}

/** A new HelmReleaseProxy. */
export function newReleaseProxy(placement: Placement, values: RenderedValues): HelmReleaseProxy {
  const { chartProxy, cluster } = placement;
  const namespace = namespaceOf(chartProxy);
  const clusterKey = { namespace: namespaceOf(cluster), name: cluster.metadata.name };
  const bare: HelmReleaseProxy = {
    apiVersion: `${API_GROUP}/${API_VERSION}`,
    kind: HRP_KIND,
    metadata: {
      name: releaseProxyName(chartProxy.spec.chartName, { namespace, name: chartProxy.metadata.name }, clusterKey),
      namespace,
    },
    spec: {
      ...immutablePart(chartProxy.spec),
      clusterRef: { ...kindOf(placement), ...clusterKey },
    },
  };
  return updatedReleaseProxy(bare, placement, values);
}

/** Of what stands for the cluster: a Cluster, or what another provider names. */
function kindOf({ cluster, clusterApiVersion }: Placement): { kind?: string; apiVersion?: string } {
  const { apiVersion, kind, metadata } = cluster;
  return isForeign(metadata.name) ? { kind, apiVersion } : { kind: CLUSTER_KIND, apiVersion: clusterApiVersion };
}

/**
 * `proxy` with everything that may change in place as it should be; the same object when nothing differs. Fields equal
 * up to the CRD's defaults stay as they stand.
 */
export function updatedReleaseProxy(
  proxy: HelmReleaseProxy,
  placement: Placement,
  values: RenderedValues,
): HelmReleaseProxy {
  const { chartProxy, cluster } = placement;
  const wanted = mutablePart(chartProxy);
  const current = proxy.spec;
  const next: HelmReleaseProxy = {
    ...proxy,
    metadata: withOwnership(proxy, placement, values),
    spec: {
      ...current,
      clusterRef: { ...current.clusterRef, uid: cluster.metadata.uid },
      version: textEqual(current.version, wanted.version) ? current.version : wanted.version,
      values: textEqual(current.values, values.text) ? current.values : values.text,
      options: optionsEqual(current.options, wanted.options) ? current.options : wanted.options,
      credentials: deepEqual(current.credentials, wanted.credentials) ? current.credentials : wanted.credentials,
      tlsConfig: tlsEqual(current.tlsConfig, wanted.tlsConfig) ? current.tlsConfig : wanted.tlsConfig,
      driftDetection: deepEqual(current.driftDetection, wanted.driftDetection)
        ? current.driftDetection
        : wanted.driftDetection,
    },
  };
  return deepEqual(next, proxy) ? proxy : next;
}

/** `proxy` with nothing changed but the uid of its Cluster (and of its workload cluster, when known): for one that is handed off. */
export function adoptedReleaseProxy(
  proxy: HelmReleaseProxy,
  clusterUid: string | undefined,
  workloadUid: string | undefined,
): HelmReleaseProxy {
  const annotations = { ...proxy.metadata.annotations };
  if (workloadUid !== undefined) annotations[WORKLOAD_CLUSTER_UID_ANNOTATION] ??= workloadUid;
  return {
    ...proxy,
    metadata: { ...proxy.metadata, annotations },
    spec: { ...proxy.spec, clusterRef: { ...proxy.spec.clusterRef, uid: clusterUid } },
  };
}

/**
 * The fields that differ though they cannot change in place: the release must be removed and installed anew (caaph §1.6).
 * A name that Helm's rules generated only counts when the user asks for another one.
 */
export function immutableChanges(chartProxy: HelmChartProxy, proxy: HelmReleaseProxy): string[] {
  const [wanted, current] = [chartProxy.spec, proxy.spec];
  const changed: string[] = [];
  if (wanted.chartName !== current.chartName) changed.push('chartName');
  if (wanted.repoURL !== current.repoURL) changed.push('repoURL');
  if (nameChanged(wanted.releaseName ?? '', proxy)) changed.push('releaseName');
  if (releaseNamespace(wanted) !== releaseNamespace(current)) changed.push('namespace');
  if (strategyName(wanted) !== strategyName(current)) changed.push('reconcileStrategy');
  return changed;
}

/** '' and absent mean Continuous (caaph §1.2). */
export function strategyName(spec: ChartSpec): string {
  const name = spec.reconcileStrategy ?? '';
  return name === '' ? 'Continuous' : name;
}

/** Does this object's controller owner reference name that HelmChartProxy? By uid: a successor of the same name is another. */
export function isOwnedBy(proxy: HelmReleaseProxy, chartProxy: HelmChartProxy): boolean {
  return ownerOfProxy(proxy)?.uid === chartProxy.metadata.uid;
}

/** The HelmChartProxy that controls it, if one does. */
export function ownerOfProxy(proxy: HelmReleaseProxy): { name: string; uid: string } | undefined {
  return proxy.metadata.ownerReferences?.find(
    (owner) => owner.controller === true && owner.kind === HCP_KIND && owner.apiVersion.startsWith(`${API_GROUP}/`),
  );
}

function nameChanged(wanted: string, proxy: HelmReleaseProxy): boolean {
  const current = proxy.spec.releaseName ?? '';
  if (wanted === current) return false;
  const generated = proxy.metadata.annotations?.[RELEASE_NAME_GENERATED_ANNOTATION] !== undefined;
  return !generated || wanted !== '';
}

function immutablePart(spec: ChartSpec): ChartSpec {
  const { chartName, repoURL, releaseName, reconcileStrategy } = spec;
  return { chartName, repoURL, releaseName, namespace: releaseNamespace(spec), reconcileStrategy };
}

/** Defaults are written here and nowhere else: the user's own object stays as the user wrote it (caaph W14). */
function mutablePart(
  chartProxy: HelmChartProxy,
): Pick<ChartSpec, 'version' | 'options' | 'credentials' | 'tlsConfig' | 'driftDetection'> {
  const { version, options, credentials, tlsConfig, driftDetection } = chartProxy.spec;
  const namespace = namespaceOf(chartProxy);
  return {
    version,
    options,
    credentials: filledCredentials(credentials, namespace),
    tlsConfig: filledTls(tlsConfig, namespace),
    driftDetection,
  };
}

function filledCredentials(credentials: CredentialsSpec | undefined, namespace: string): CredentialsSpec | undefined {
  if (credentials === undefined) return undefined;
  const { secret, key } = credentials;
  return {
    ...credentials,
    secret: { ...secret, namespace: filled(secret.namespace, namespace) },
    key: filled(key, CREDENTIALS_DEFAULT_KEY),
  };
}

function filledTls(tls: TlsConfigSpec | undefined, namespace: string): TlsConfigSpec | undefined {
  if (tls?.caSecret === undefined) return tls;
  return { ...tls, caSecret: { ...tls.caSecret, namespace: filled(tls.caSecret.namespace, namespace) } };
}

function withOwnership(
  proxy: HelmReleaseProxy,
  placement: Placement,
  values: RenderedValues,
): HelmReleaseProxy['metadata'] {
  const { chartProxy, cluster, watchFilter } = placement;
  const clusterName = labelValue(cluster.metadata.name);
  const chartProxyName = labelValue(chartProxy.metadata.name);
  return {
    ...proxy.metadata,
    labels: {
      ...proxy.metadata.labels,
      [CLUSTER_NAME_LABEL]: clusterName.value,
      [HCP_NAME_LABEL]: chartProxyName.value,
      ...(watchFilter !== undefined && { [WATCH_FILTER_LABEL]: watchFilter }),
    },
    annotations: {
      ...proxy.metadata.annotations,
      [VALUES_INPUTS_ANNOTATION]: values.inputs,
      ...(!clusterName.exact && { [CLUSTER_NAME_ANNOTATION]: cluster.metadata.name }),
      ...(!chartProxyName.exact && { [HCP_NAME_ANNOTATION]: chartProxy.metadata.name }),
    },
    ownerReferences: isOwnedBy(proxy, chartProxy)
      ? proxy.metadata.ownerReferences
      : [...(proxy.metadata.ownerReferences ?? []), controllerReference(chartProxy)],
  };
}

function controllerReference(
  chartProxy: HelmChartProxy,
): NonNullable<HelmReleaseProxy['metadata']['ownerReferences']>[number] {
  return {
    apiVersion: `${API_GROUP}/${API_VERSION}`,
    kind: HCP_KIND,
    name: chartProxy.metadata.name,
    uid: chartProxy.metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** Equal once the CRD's defaults are filled in; false, '' and {} are what the API server leaves out. `createNamespace: false` and `maxHistory: 0` are neither (caaph W6). */
function optionsEqual(a: HelmOptionsSpec | undefined, b: HelmOptionsSpec | undefined): boolean {
  return deepEqual(normalOptions(a ?? {}), normalOptions(b ?? {}));
}

function normalOptions(options: HelmOptionsSpec): unknown {
  const { createNamespace, ...install } = options.install ?? {};
  const { maxHistory, ...upgrade } = options.upgrade ?? {};
  return {
    rest: withoutEmpty({ ...options, install, upgrade, timeout: filled(options.timeout, OPTION_DEFAULTS.timeout) }),
    createNamespace: createNamespace ?? OPTION_DEFAULTS.createNamespace,
    maxHistory: maxHistory ?? OPTION_DEFAULTS.maxHistory,
  };
}

function tlsEqual(a: TlsConfigSpec | undefined, b: TlsConfigSpec | undefined): boolean {
  return deepEqual(withoutEmpty(a ?? {}), withoutEmpty(b ?? {}));
}

function withoutEmpty(value: object): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value) as [string, unknown][]) {
    const kept = isRecord(item) ? withoutEmpty(item) : item;
    const empty =
      kept === undefined || kept === false || kept === '' || (isRecord(kept) && Object.keys(kept).length === 0);
    if (!empty) out[key] = kept;
  }
  return out;
}

function releaseNamespace(spec: ChartSpec): string {
  return filled(spec.namespace, DEFAULT_NAMESPACE);
}

function filled(text: string | undefined, fallback: string): string {
  return text === undefined || text === '' ? fallback : text;
}

function textEqual(a: string | undefined, b: string | undefined): boolean {
  return (a ?? '') === (b ?? '');
}

function namespaceOf(object: { metadata: { namespace?: string } }): string {
  return object.metadata.namespace ?? DEFAULT_NAMESPACE;
}
