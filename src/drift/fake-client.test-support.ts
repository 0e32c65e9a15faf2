import { vi } from 'vitest';
import type { Mocked } from 'vitest';
import type { KubeClient, Resource } from '../kube/index.ts';
import { asObject } from './dry-run.ts';
import { compileRules } from './rules.ts';
import type { ComparisonPolicy, InventoryObject, JsonObject, LiveObject, PathRule } from './types.ts';

/** A client that refuses every call which a test has not given an answer to. */
export function fakeClient(answers: Partial<KubeClient> = {}): Mocked<KubeClient> {
  const unexpected = (name: keyof KubeClient) =>
    vi.fn((): never => {
      throw new Error(`nobody expected ${name}`);
    });
  const refusing: KubeClient = {
    get: unexpected('get'),
    find: unexpected('find'),
    list: unexpected('list'),
    create: unexpected('create'),
    replace: unexpected('replace'),
    patch: unexpected('patch'),
    apply: unexpected('apply'),
    delete: unexpected('delete'),
    raw: unexpected('raw'),
  };
  return vi.mocked({ ...refusing, ...answers });
}

const DEPLOYMENTS: Resource = { group: 'apps', version: 'v1', plural: 'deployments', namespaced: true };

/** A Deployment `web` in namespace `shop`. */
export function deploymentOf(spec: JsonObject, more: Partial<InventoryObject> = {}): InventoryObject {
  return {
    id: { group: 'apps', version: 'v1', kind: 'Deployment', namespace: 'shop', name: 'web' },
    resource: DEPLOYMENTS,
    wanted: { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'shop' }, spec },
    nulls: [],
    order: 0,
    fromCrds: false,
    ...more,
  };
}

/** Who owns what of a live object, as FieldsV1 below `f:spec`. */
export type Owned = Record<string, JsonObject>;

/** Owners are `manager` or `manager Apply`. */
export function liveOf(spec: JsonObject, owned: Owned = {}, metadata: JsonObject = {}): LiveObject {
  const managedFields = Object.entries(owned).map(([who, fields]) => {
    const [manager = '', operation = 'Update'] = who.split(' ');
    return { manager, operation, time: '2026-01-01T00:00:00Z', fieldsV1: { 'f:spec': fields } };
  });
  return asObject({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'shop', uid: 'u1', resourceVersion: '10', managedFields, ...metadata },
    spec,
  });
}

export function policyOf(
  options: { extraFields?: ComparisonPolicy['extraFields']; ignore?: PathRule[] } = {},
): ComparisonPolicy {
  return {
    extraFields: options.extraFields ?? 'Ignore',
    ignore: compileRules(options.ignore ?? [], 'ignore'),
    quantities: compileRules([], 'quantities'),
    helmManagers: new Set(['helm', 'manager']),
  };
}
