import { describe, expect, it } from 'vitest';
import type { Discovery, Resource } from '../kube/index.ts';
import { buildInventory } from './inventory.ts';
import { pointerOf } from './pointer.ts';
import type { Inventory, JsonObject } from './types.ts';

const SERVED: Readonly<Record<string, Resource>> = {
  ConfigMap: { group: '', version: 'v1', plural: 'configmaps', namespaced: true },
  Secret: { group: '', version: 'v1', plural: 'secrets', namespaced: true },
  Namespace: { group: '', version: 'v1', plural: 'namespaces', namespaced: false },
  Deployment: { group: 'apps', version: 'v1', plural: 'deployments', namespaced: true },
};

const discovery: Discovery = {
  find: async ({ kind }) => Promise.resolve(SERVED[kind]),
  versions: async () => Promise.resolve(['v1']),
  invalidate: () => undefined,
};

async function inventory(documents: JsonObject[], crds: JsonObject[] = []): Promise<Inventory> {
  return buildInventory({ release: { namespace: 'web', name: 'shop' }, revision: 3, documents, crds }, discovery);
}

function configMap(fields: JsonObject, metadata: JsonObject = {}): JsonObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', ...metadata }, ...fields };
}

describe('an inventory', () => {
  it('has objects as Helm applied them: namespace, label, annotations', async () => {
    const { objects } = await inventory([configMap({ data: { x: '1' } }, { labels: { own: 'yes' } })]);
    expect(objects[0]?.id).toEqual({ group: '', version: 'v1', kind: 'ConfigMap', namespace: 'web', name: 'a' });
    expect(objects[0]?.wanted).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: 'a',
        namespace: 'web',
        labels: { own: 'yes', 'app.kubernetes.io/managed-by': 'Helm' },
        annotations: { 'meta.helm.sh/release-name': 'shop', 'meta.helm.sh/release-namespace': 'web' },
      },
      data: { x: '1' },
    });
  });

  it('keeps a namespace of its own, and gives none to what has no namespace', async () => {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n', namespace: 'web' } };
    const { objects } = await inventory([configMap({}, { namespace: 'other' }), namespace]);
    expect(objects.map(({ id }) => [id.kind, id.namespace])).toEqual([
      ['Namespace', undefined],
      ['ConfigMap', 'other'],
    ]);
    expect(objects[0]?.wanted['metadata']).not.toHaveProperty('namespace');
  });

  it('is in the order in which Helm installs: unknown kinds last, and within a kind as the manifest has them', async () => {
    const till = { apiVersion: 'shop.example/v1', kind: 'Till', metadata: { name: 't' } };
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'd' } };
    const { objects } = await inventory([till, deployment, configMap({}, { name: 'b' }), configMap({})]);
    expect(objects.map(({ id, order }) => [id.kind, id.name, order])).toEqual([
      ['ConfigMap', 'b', 0],
      ['ConfigMap', 'a', 1],
      ['Deployment', 'd', 2],
      ['Till', 't', 3],
    ]);
    expect(objects[3]?.resource).toBeUndefined();
  });

  it('leaves hooks out, unfolds lists, and of two of one name keeps the last', async () => {
    const hook = configMap({}, { name: 'hook', annotations: { 'helm.sh/hook': 'pre-install' } });
    const list = {
      apiVersion: 'v1',
      kind: 'List',
      items: [configMap({ data: { x: '1' } }), configMap({ data: { x: '2' } })],
    };
    const { objects } = await inventory([hook, list]);
    expect(objects.map(({ wanted }) => wanted['data'])).toEqual([{ x: '2' }]);
  });

  it('unfolds a typed list, whose items need not say what they are', async () => {
    const items: JsonObject[] = [
      { metadata: { name: 'a' }, data: { x: '1' } },
      configMap({}, { name: 'b' }),
      { data: {} },
    ];
    const { objects, problems } = await inventory([{ apiVersion: 'v1', kind: 'ConfigMapList', items }]);
    expect(objects.map(({ id }) => [id.kind, id.version, id.name])).toEqual([
      ['ConfigMap', 'v1', 'a'],
      ['ConfigMap', 'v1', 'b'],
    ]);
    expect(objects[0]?.wanted).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { x: '1' } });
    expect(problems).toEqual(['document 3 of the list in document 1 of the manifest has no metadata.name']);
  });

  it('drops what a server sets, and notes nulls', async () => {
    const document = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'd', creationTimestamp: null, uid: 'x', resourceVersion: '1', labels: null },
      spec: { replicas: null, template: { metadata: { creationTimestamp: null, labels: { a: 'b' } } } },
      status: { replicas: 1 },
    };
    const { objects } = await inventory([document]);
    expect(objects[0]?.wanted).not.toHaveProperty('status');
    expect(objects[0]?.wanted['spec']).toEqual({ template: { metadata: { labels: { a: 'b' } } } });
    expect(Object.keys(objects[0]?.wanted['metadata'] as object).sort()).toEqual([
      'annotations',
      'labels',
      'name',
      'namespace',
    ]);
    expect(objects[0]?.nulls.map(pointerOf)).toEqual(['/spec/replicas']);
  });

  it("has a Secret's texts in its data, as the server keeps them", async () => {
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's' },
      data: { a: 'eA==', none: null },
      stringData: { a: 'geheim' },
    };
    const { objects } = await inventory([secret]);
    expect(objects[0]?.wanted['data']).toEqual({ a: Buffer.from('geheim').toString('base64'), none: '' });
    expect(objects[0]?.wanted).not.toHaveProperty('stringData');
  });

  it('has CRDs of crds/ without Helm’s label, since Helm gives them none', async () => {
    const crd = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'tills.shop.example' },
    };
    const { objects } = await inventory([], [crd]);
    expect(objects[0]).toMatchObject({ fromCrds: true, wanted: { metadata: { name: 'tills.shop.example' } } });
    expect(objects[0]?.wanted['metadata']).not.toHaveProperty('labels');
  });

  it('tells what is no object, and leaves out what could not be put back exactly', async () => {
    const { objects, problems } = await inventory([
      { apiVersion: 'v1', metadata: { name: 'x' } },
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: {} },
      configMap({ spec: { limit: 2 ** 60 } }),
    ]);
    expect(objects).toEqual([]);
    expect(problems).toEqual([
      'document 1 of the manifest has no kind',
      'document 2 of the manifest has no metadata.name',
      'ConfigMap a has an integer beyond 2^53 and is left out: it could not be put back exactly',
    ]);
  });
});
