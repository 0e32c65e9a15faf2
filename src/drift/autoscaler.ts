import type { CallOptions, KubeClient, KubeObject, Resource } from '../kube/index.ts';
import { isKubeError } from '../kube/index.ts';
import type { InventoryObject, JsonValue, LiveObject } from './types.ts';
import { child } from './twin.ts';

/** HorizontalPodAutoscaler, autoscaling/v2 (served since Kubernetes 1.23), as far as it is read. */
interface Autoscaler extends KubeObject {
  readonly spec?: {
    readonly scaleTargetRef?: { readonly apiVersion?: string; readonly kind?: string; readonly name?: string };
    readonly minReplicas?: number;
    readonly maxReplicas?: number;
  };
}

const AUTOSCALERS: Resource = {
  group: 'autoscaling',
  version: 'v2',
  plural: 'horizontalpodautoscalers',
  namespaced: true,
};

/** Where every scalable kind that an autoscaler is used with has its count. */
export const REPLICAS = ['spec', 'replicas'] as const;

/** API reference, HorizontalPodAutoscalerSpec: the lower limit when none is set. */
const DEFAULT_MIN_REPLICAS = 1;

/**
 * Whether an autoscaler keeps the object at the replicas that it has: one targets it, and they lie within its limits
 * (drift.md §8, scenario 3; KEDA makes a HorizontalPodAutoscaler, too). Outside of them it was not the autoscaler. One
 * list of the object's namespace; a cluster that serves or allows none has no autoscaler that we could know of.
 */
export async function isAutoscaled(
  client: KubeClient,
  object: InventoryObject,
  live: LiveObject,
  options: CallOptions,
): Promise<boolean> {
  const replicas = child(child(live, 'spec'), 'replicas');
  const { namespace } = object.id;
  if (typeof replicas !== 'number' || namespace === undefined) return false;
  const autoscalers = await listAutoscalers(client, namespace, options);
  return autoscalers.some((autoscaler) => targets(autoscaler, object) && allows(autoscaler, replicas));
}

async function listAutoscalers(client: KubeClient, namespace: string, options: CallOptions): Promise<Autoscaler[]> {
  try {
    const { items } = await client.list<Autoscaler>(AUTOSCALERS, { namespace }, options);
    return items;
  } catch (error) {
    if (isKubeError(error, 'NotFound', 'Forbidden')) return [];
    throw error;
  }
}

/** By group, kind and name: the version in a reference is only how to ask. */
function targets(autoscaler: Autoscaler, object: InventoryObject): boolean {
  const target = autoscaler.spec?.scaleTargetRef;
  if (target?.kind !== object.id.kind || target.name !== object.id.name) return false;
  return groupOf(target.apiVersion ?? '') === object.id.group;
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/');
  return slash === -1 ? '' : apiVersion.slice(0, slash);
}

function allows(autoscaler: Autoscaler, replicas: number): boolean {
  const { minReplicas = DEFAULT_MIN_REPLICAS, maxReplicas = Number.POSITIVE_INFINITY } = autoscaler.spec ?? {};
  // KEDA scales to nothing itself, past its autoscaler, whose lower limit is 1 at least.
  const least = isOfKeda(autoscaler) ? 0 : minReplicas;
  return replicas >= least && replicas <= maxReplicas;
}

function isOfKeda(autoscaler: Autoscaler): boolean {
  return (autoscaler.metadata.ownerReferences ?? []).some(
    ({ apiVersion, kind }) => kind === 'ScaledObject' && groupOf(apiVersion) === 'keda.sh',
  );
}

/** Whether the value is one that an autoscaler may have set: only then is it worth the list. */
export function isReplicas(path: readonly (string | number)[], value: JsonValue | undefined): boolean {
  return path.length === 2 && path[0] === REPLICAS[0] && path[1] === REPLICAS[1] && typeof value === 'number';
}
