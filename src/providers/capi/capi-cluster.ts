import type { KubeObject } from '../../kube/index.ts';

type Conditions = readonly { type?: string; status?: string }[];

/** What discovery reads of a Cluster (cluster.x-k8s.io): v1beta2's field, and what v1beta1 has in its stead. */
export interface CapiCluster extends KubeObject {
  status?: {
    initialization?: { controlPlaneInitialized?: boolean };
    controlPlaneReady?: boolean;
    conditions?: Conditions;
    deprecated?: { v1beta1?: { conditions?: Conditions } };
  };
}

/** Once true, always true; absent means not yet: CAPI never writes `false` (contract of status.initialization). */
export function controlPlaneInitialized({ status = {} }: CapiCluster): boolean {
  if (status.initialization?.controlPlaneInitialized === true || status.controlPlaneReady === true) return true;
  return [status.conditions, status.deprecated?.v1beta1?.conditions].some(initializedIn);
}

function initializedIn(conditions: Conditions = []): boolean {
  return conditions.some(({ type, status }) => type === 'ControlPlaneInitialized' && status === 'True');
}
