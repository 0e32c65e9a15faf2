import type { CallOptions, KubeClient, Resource } from '../kube/index.ts';
import type { Owners } from './owners.ts';
import type { ComparisonPolicy, InventoryObject, LiveObject, PathPattern } from './types.ts';

/** One look at one version of a live object: what its parts share. */
export interface Look {
  readonly client: KubeClient;
  readonly object: InventoryObject;
  readonly resource: Resource;
  readonly policy: ComparisonPolicy;
  readonly live: LiveObject;
  readonly owners: Owners;
  /** The user's rules for this object. */
  readonly ignore: readonly PathPattern[];
  readonly quantities: readonly PathPattern[];
  readonly call: CallOptions & { readonly onDryRun?: () => void };
}

/** Somebody wrote the object while it was looked at. */
export const MOVED = 'moved';
export type Moved = typeof MOVED;
