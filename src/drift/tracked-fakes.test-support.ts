import type { Discovery, Follower, Informer, KubeObject, Resource, WatchSet, WatchTarget } from '../kube/index.ts';
import type { Inventory, InventoryObject } from './types.ts';

/** Test support: a watch set that the test plays the server of. */
export class FakeFollows implements WatchSet {
  /** By plural, with ` *` where there is no selector. */
  readonly followed = new Map<string, { owner: object; target: WatchTarget; follower: Follower }>();
  readonly history: string[] = [];

  get size(): number {
    return this.followed.size;
  }

  follow(owner: object, target: WatchTarget, follower: Follower): void {
    const name = nameOf(target);
    if (this.followed.has(name)) throw new Error(`${name} is followed already`);
    this.history.push(`+${name}`);
    this.followed.set(name, { owner, target, follower });
  }

  unfollow(): void {
    throw new Error('not expected');
  }

  release(owner: object): void {
    for (const [name, followed] of this.followed) {
      if (followed.owner !== owner) continue;
      this.followed.delete(name);
      this.history.push(`-${name}`);
    }
  }

  set(): void {
    throw new Error('not expected');
  }

  hold<T extends KubeObject>(): Informer<T> {
    throw new Error('not expected');
  }

  get(): undefined {
    return undefined;
  }

  of(name: string): Follower {
    const followed = this.followed.get(name);
    if (followed === undefined) throw new Error(`${name} is not followed`);
    return followed.follower;
  }

  list(name: string, ...objects: KubeObject[]): void {
    const follower = this.of(name);
    follower.notice({ type: 'init' });
    for (const object of objects) follower.notice({ type: 'initApply', object });
    follower.notice({ type: 'initDone', resourceVersion: '1' });
  }

  apply(name: string, object: KubeObject): void {
    this.of(name).notice({ type: 'apply', object });
  }

  delete(name: string, object: KubeObject): void {
    this.of(name).notice({ type: 'delete', object });
  }
}

function nameOf({ resource, labelSelector }: WatchTarget): string {
  return labelSelector === undefined ? `${resource.plural} *` : resource.plural;
}

export class FakeDiscovery implements Discovery {
  readonly served = new Map<string, Resource>();
  invalidations = 0;
  failure: Error | undefined;

  async find({ kind }: { kind: string }): Promise<Resource | undefined> {
    if (this.failure !== undefined) throw this.failure;
    return this.served.get(kind);
  }

  async versions(): Promise<readonly string[]> {
    return [];
  }

  invalidate(): void {
    this.invalidations += 1;
  }
}

export const CONFIG_MAPS: Resource = { group: '', version: 'v1', plural: 'configmaps', namespaced: true };

export function configMap(name: string, more: Partial<InventoryObject> = {}): InventoryObject {
  return {
    id: { group: '', version: 'v1', kind: 'ConfigMap', namespace: 'ns', name },
    resource: CONFIG_MAPS,
    wanted: {},
    nulls: [],
    order: 0,
    fromCrds: false,
    ...more,
  };
}

export function inventory(...objects: InventoryObject[]): Inventory {
  return { release: { namespace: 'ns', name: 'app' }, revision: 1, objects, problems: [] };
}

/** A live ConfigMap; `write` stands for the time of the newest write of Helm's manager, `others` for those of others: `manager time`. */
export function live(
  name: string,
  version: number,
  state: { write?: number; uid?: string; others?: readonly string[]; generation?: number } = {},
): KubeObject {
  const { write = 1, uid = name, others = [], generation } = state;
  const entries = [`helm ${write}`, ...others].map((text) => {
    const [manager, time] = text.split(' ');
    return { manager, operation: 'Apply', apiVersion: 'v1', time, fieldsV1: { 'f:data': {} } } as const;
  });
  return {
    metadata: { name, namespace: 'ns', uid, resourceVersion: String(version), managedFields: entries, generation },
  };
}
