import { join } from 'node:path';
import type { HelmChartProxySpec, HelmReleaseProxySpec } from '../../src/api/index.ts';
import { HCP_FINALIZER, HRP_FINALIZER } from '../../src/api/index.ts';
import type { KubeObject, RestClient } from '../support/index.ts';
import { ApiError } from '../support/index.ts';

export const CRD_DIRECTORY = join(import.meta.dirname, '../../src/api/crds');
export const PLURALS = ['helmchartproxies', 'helmreleaseproxies'];
export const CRD_FILES = PLURALS.map((plural) => join(CRD_DIRECTORY, `${plural}.yaml`));
export const NAMESPACE = 'fleet';
export const API = `/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/${NAMESPACE}`;
export const HCPS = `${API}/helmchartproxies`;
export const HRPS = `${API}/helmreleaseproxies`;

const VERSION = 'addons.cluster.x-k8s.io/v1alpha1';

/** What the server fills in where an object says nothing. */
export const DEFAULT_OPTIONS = {
  enableClientCache: false,
  install: { createNamespace: true },
  timeout: '10m0s',
  upgrade: { maxHistory: 10 },
};

export type ChartProxyObject = KubeObject & { spec: HelmChartProxySpec };
export type ReleaseProxyObject = KubeObject & { spec: HelmReleaseProxySpec };

/** A small valid HelmChartProxy with `spec` over it; one with a name carries the finalizer. */
export function chartProxy(spec: Partial<HelmChartProxySpec>, name?: string): ChartProxyObject {
  return {
    apiVersion: VERSION,
    kind: 'HelmChartProxy',
    metadata: name === undefined ? { generateName: 'hcp-' } : { name, finalizers: [HCP_FINALIZER] },
    spec: { chartName: 'demo', repoURL: 'https://charts.example', clusterSelector: {}, ...spec },
  };
}

/** As chartProxy. */
export function releaseProxy(spec: Partial<HelmReleaseProxySpec>, name?: string): ReleaseProxyObject {
  const clusterRef = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', namespace: NAMESPACE, name: 'one' };
  return {
    apiVersion: VERSION,
    kind: 'HelmReleaseProxy',
    metadata: name === undefined ? { generateName: 'hrp-' } : { name, finalizers: [HRP_FINALIZER] },
    spec: { chartName: 'demo', repoURL: 'https://charts.example', clusterRef, ...spec },
  };
}

export function pathOf(object: KubeObject): string {
  return `${object.kind === 'HelmChartProxy' ? HCPS : HRPS}/${object.metadata.name ?? ''}`;
}

export async function change<T extends KubeObject>(api: RestClient, object: T, spec: object): Promise<T> {
  return api.patch<T>(pathOf(object), { spec });
}

/** The message with which the server refuses, as invalid; '' where it does not. */
export async function refusal(outcome: Promise<unknown>): Promise<string> {
  try {
    await outcome;
    return '';
  } catch (error) {
    if (error instanceof ApiError && error.status === 422) return error.message;
    throw error;
  }
}
