/** Objects for the tests of this directory. */
import { HCP_FINALIZER } from '../../api/index.ts';
import type { HelmChartProxy, HelmChartProxySpec, HelmReleaseProxy } from '../../api/index.ts';
import type { CapiCluster } from '../shared.ts';
import type { Strategy } from '../types.ts';
import { continuousStrategy } from '../install/index.ts';
import { installOnceStrategy } from '../install-once/index.ts';
import { newReleaseProxy } from './desired.ts';

export const T0 = '2026-01-01T00:00:00Z';
export const T1 = '2026-01-01T00:01:00Z';

export const continuous: Strategy = continuousStrategy;
export const installOnce: Strategy = installOnceStrategy;

export function chartProxy(
  spec: Partial<HelmChartProxySpec> = {},
  metadata: Partial<HelmChartProxy['metadata']> = {},
): HelmChartProxy {
  return {
    apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
    kind: 'HelmChartProxy',
    metadata: {
      name: 'hcp',
      namespace: 'fleet',
      uid: 'hcp-uid',
      generation: 1,
      finalizers: [HCP_FINALIZER],
      creationTimestamp: T0,
      ...metadata,
    },
    spec: {
      chartName: 'nginx',
      repoURL: 'https://charts.test',
      releaseName: 'web',
      namespace: 'apps',
      clusterSelector: { matchLabels: { addon: 'yes' } },
      ...spec,
    },
  };
}

export function cluster(
  name = 'w1',
  metadata: Partial<CapiCluster['metadata']> = {},
  spec: CapiCluster['spec'] = {},
): CapiCluster {
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Cluster',
    metadata: {
      name,
      namespace: 'fleet',
      uid: `${name}-uid`,
      labels: { addon: 'yes' },
      creationTimestamp: T0,
      generation: 1,
      ...metadata,
    },
    spec,
  };
}

export const VALUES = { text: 'a: 1\n', inputs: 'in.put' };

/** The HelmReleaseProxy that a HelmChartProxy makes for a cluster, as the API server would store it. */
export function releaseProxy(
  of: HelmChartProxy = chartProxy(),
  on: CapiCluster = cluster(),
  metadata: Partial<HelmReleaseProxy['metadata']> = {},
): HelmReleaseProxy {
  const made = newReleaseProxy({ chartProxy: of, cluster: on, clusterApiVersion: 'cluster.x-k8s.io/v1beta2' }, VALUES);
  return {
    ...made,
    metadata: {
      ...made.metadata,
      uid: `${made.metadata.name}-uid`,
      generation: 1,
      creationTimestamp: T0,
      ...metadata,
      annotations: { ...made.metadata.annotations, ...metadata.annotations },
    },
  };
}
