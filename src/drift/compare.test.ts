import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compare } from './compare.ts';
import type { CompareOptions } from './compare.ts';
import { leaves } from './document.ts';
import { setAt } from './edits.ts';
import { parsePointer, pointerOf, valueAt } from './pointer.ts';
import type { JsonObject, JsonValue, ObjectId } from './types.ts';

const DEPLOYMENT: ObjectId = { group: 'apps', version: 'v1', kind: 'Deployment', namespace: 'web', name: 'shop' };
const CONFIG_MAP: ObjectId = { group: '', version: 'v1', kind: 'ConfigMap', namespace: 'web', name: 'shop' };
const SECRET: ObjectId = { ...CONFIG_MAP, kind: 'Secret' };
const NETWORK_POLICY: ObjectId = { ...DEPLOYMENT, group: 'networking.k8s.io', kind: 'NetworkPolicy' };
const CUSTOM: ObjectId = { group: 'shop.example', version: 'v1', kind: 'Till', namespace: 'web', name: 'shop' };

function differences(
  wanted: JsonObject,
  live: JsonObject,
  options: Partial<CompareOptions> = {},
): [change: string, path: string][] {
  return compare(wanted, live, { id: DEPLOYMENT, nulls: [], ignore: [], quantities: [], ...options })
    .map(({ change, path }): [string, string] => [change, pointerOf(path)])
    .sort(([, a], [, b]) => (a < b ? -1 : 1));
}

function podSpec(spec: JsonObject): JsonObject {
  return { spec: { template: { spec } } };
}

const container = (fields: JsonObject): JsonObject => podSpec({ containers: [{ name: 'web', ...fields }] });
const AT_CONTAINER = '/spec/template/spec/containers/0';

describe('what is no difference', () => {
  const cases: [what: string, wanted: JsonObject, live: JsonObject, id?: ObjectId][] = [
    ['defaults of the server (1)', container({ image: 'a' }), container({ image: 'a', imagePullPolicy: 'Always' })],
    [
      'quantities in other words (2)',
      container({ resources: { requests: { cpu: '1000m', memory: '3072Mi' }, limits: { cpu: 0.5 } } }),
      container({ resources: { requests: { cpu: '1', memory: '3Gi' }, limits: { cpu: '500m' } } }),
    ],
    [
      'quantities in a custom resource (2)',
      { spec: { pod: { resources: { limits: { memory: '1000M' } } } } },
      { spec: { pod: { resources: { limits: { memory: '1G' } } } } },
      CUSTOM,
    ],
    [
      'a bundle that something else fills in (4)',
      { webhooks: [{ name: 'a', clientConfig: { caBundle: 'Cg==' } }] },
      { webhooks: [{ name: 'a', clientConfig: { caBundle: 'QUJD' } }] },
      { group: 'admissionregistration.k8s.io', version: 'v1', kind: 'ValidatingWebhookConfiguration', name: 'a' },
    ],
    ['the same bytes of a Secret (5)', { data: { a: 'YWJj\nZGVm\n' } }, { data: { a: 'YWJjZGVm' } }, SECRET],
    [
      'empty and absent (6)',
      { metadata: { annotations: {} }, ...container({ resources: {}, args: [] }) },
      container({}),
    ],
    [
      'the same variables twice, as they were stored (7)',
      container({
        env: [
          { name: 'A', value: '1' },
          { name: 'A', value: '2' },
        ],
      }),
      container({
        env: [
          { name: 'A', value: '1' },
          { name: 'A', value: '2' },
        ],
      }),
    ],
    [
      'the order of what has keys (8)',
      container({ ports: [{ containerPort: 80 }, { containerPort: 81 }] }),
      container({ ports: [{ containerPort: 81 }, { containerPort: 80 }] }),
    ],
    [
      'metrics that their controller sorted (8)',
      { spec: { metrics: [metric('memory', 60), metric('cpu', 50)] } },
      { spec: { metrics: [metric('cpu', 50), metric('memory', 60)] } },
      { group: 'autoscaling', version: 'v2', kind: 'HorizontalPodAutoscaler', namespace: 'web', name: 'shop' },
    ],
    [
      'rules of an aggregated role (9)',
      { aggregationRule: { clusterRoleSelectors: [] }, rules: [] },
      { aggregationRule: { clusterRoleSelectors: [] }, rules: [{ verbs: ['get'] }] },
      { group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'ClusterRole', name: 'a' },
    ],
    ['status (10)', { status: { replicas: 1 } }, { status: { replicas: 3 } }],
    [
      'a sidecar (11)',
      podSpec({ containers: [{ name: 'web', image: 'a' }] }),
      podSpec({
        containers: [
          { name: 'proxy', image: 'b' },
          { name: 'web', image: 'a' },
        ],
      }),
    ],
    [
      'zero where the server drops it (18)',
      container({ livenessProbe: { initialDelaySeconds: 0 } }),
      container({ livenessProbe: {} }),
    ],
    [
      'what a server adds to a claim (19)',
      { spec: { volumeClaimTemplates: [{ metadata: { name: 'a' }, spec: { accessModes: ['ReadWriteOnce'] } }] } },
      {
        spec: {
          volumeClaimTemplates: [
            {
              kind: 'PersistentVolumeClaim',
              metadata: { name: 'a' },
              spec: { accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem' },
              status: { phase: 'Pending' },
            },
          ],
        },
      },
    ],
    [
      'others’ annotations',
      { metadata: { annotations: { a: '1' } } },
      { metadata: { annotations: { a: '1', b: '2' }, uid: 'x' } },
    ],
  ];
  it.each(cases)('%s', (_what, wanted, live, id = DEPLOYMENT) => {
    expect(differences(wanted, live, { id })).toEqual([]);
  });
});

describe('what is one', () => {
  const cases: [what: string, wanted: JsonObject, live: JsonObject, found: [string, string][], id?: ObjectId][] = [
    ['another value', container({ image: 'a' }), container({ image: 'b' }), [['changed', `${AT_CONTAINER}/image`]]],
    ['a removed field', container({ image: 'a' }), container({}), [['removed', `${AT_CONTAINER}/image`]]],
    ['a removed label', { metadata: { labels: { a: '' } } }, { metadata: {} }, [['removed', '/metadata/labels']]],
    ['an empty text that was data', { data: { a: '' } }, { data: { b: 'x' } }, [['removed', '/data/a']], CONFIG_MAP],
    [
      'text that looks like a quantity',
      { data: { limits: '1000m' } },
      { data: { limits: '1' } },
      [['changed', '/data/limits']],
      CONFIG_MAP,
    ],
    [
      'another quantity',
      container({ resources: { limits: { cpu: '1' } } }),
      container({ resources: { limits: { cpu: '2' } } }),
      [['changed', `${AT_CONTAINER}/resources/limits/cpu`]],
    ],
    [
      'false that is gone, where nothing is true',
      container({ securityContext: { allowPrivilegeEscalation: false, privileged: false } }),
      container({ securityContext: {} }),
      [['removed', `${AT_CONTAINER}/securityContext/allowPrivilegeEscalation`]],
    ],
    [
      'zero that is gone, where nothing is the image’s user',
      podSpec({ securityContext: { runAsUser: 0 } }),
      podSpec({ securityContext: {} }),
      [['removed', '/spec/template/spec/securityContext/runAsUser']],
    ],
    [
      'an empty selector that is gone, where nothing is one namespace',
      { spec: { ingress: [{ from: [{ podSelector: { matchLabels: { a: 'b' } }, namespaceSelector: {} }] }] } },
      { spec: { ingress: [{ from: [{ podSelector: { matchLabels: { a: 'b' } } }] }] } },
      [['removed', '/spec/ingress/0/from/0/namespaceSelector']],
      NETWORK_POLICY,
    ],
    [
      'a port more in a network policy, whose ports are one value',
      { spec: { ingress: [{ ports: [{ port: 80 }] }] } },
      { spec: { ingress: [{ ports: [{ port: 80 }, { port: 81 }] }] } },
      [['changed', '/spec/ingress/0/ports']],
      NETWORK_POLICY,
    ],
    [
      'containers that are initialised in another order',
      podSpec({ initContainers: [{ name: 'a' }, { name: 'b' }] }),
      podSpec({ initContainers: [{ name: 'b' }, { name: 'proxy' }, { name: 'a' }] }),
      [['changed', '/spec/template/spec/initContainers']],
    ],
    [
      'named routes of a custom resource in another order',
      { spec: { http: [{ name: 'a' }, { name: 'b' }] } },
      { spec: { http: [{ name: 'b' }, { name: 'a' }] } },
      [['changed', '/spec/http']],
      CUSTOM,
    ],
    ['a number that became a text', { spec: { port: 80 } }, { spec: { port: '80' } }, [['changed', '/spec/port']]],
    [
      'a variable that another stands before now',
      container({ env: [{ name: 'A', value: '1' }] }),
      container({
        env: [
          { name: 'X', value: '9' },
          { name: 'A', value: '2' },
        ],
      }),
      [['changed', `${AT_CONTAINER}/env/1/value`]],
    ],
    [
      'a removed container',
      podSpec({ containers: [{ name: 'a' }, { name: 'b' }] }),
      podSpec({ containers: [{ name: 'b' }] }),
      [['removed', '/spec/template/spec/containers/0']],
    ],
    [
      'variables in another order: one can refer to those before it (8)',
      container({ env: [{ name: 'A' }, { name: 'B' }] }),
      container({ env: [{ name: 'B' }, { name: 'A' }] }),
      [['changed', `${AT_CONTAINER}/env`]],
    ],
    [
      'an argument more',
      container({ args: ['a'] }),
      container({ args: ['a', 'b'] }),
      [['changed', `${AT_CONTAINER}/args`]],
    ],
    [
      'arguments in another order',
      container({ args: ['a', 'b'] }),
      container({ args: ['b', 'a'] }),
      [
        ['changed', `${AT_CONTAINER}/args/0`],
        ['changed', `${AT_CONTAINER}/args/1`],
      ],
    ],
    [
      'an element more in a list of a custom resource',
      { spec: { hosts: [{ name: 'a' }] } },
      { spec: { hosts: [{ name: 'a' }, { name: 'b' }] } },
      [['changed', '/spec/hosts']],
      CUSTOM,
    ],
    [
      'a bundle that the manifest sets',
      { spec: { caBundle: 'QUJD' } },
      { spec: { caBundle: 'REVG' } },
      [['changed', '/spec/caBundle']],
    ],
    [
      'the second of two variables of one name (7)',
      container({
        env: [
          { name: 'A', value: '1' },
          { name: 'A', value: '2' },
        ],
      }),
      container({
        env: [
          { name: 'A', value: '1' },
          { name: 'A', value: '3' },
        ],
      }),
      [['changed', `${AT_CONTAINER}/env/1/value`]],
    ],
  ];
  it.each(cases)('%s', (...[, wanted, live, found, id = DEPLOYMENT]) => {
    expect(differences(wanted, live, { id })).toEqual(found);
  });

  it('is another order in two answers of a server, too', () => {
    const [wanted, live] = [
      { spec: { http: [{ name: 'a' }, { name: 'b' }] } },
      { spec: { http: [{ name: 'b' }, { name: 'a' }] } },
    ];
    expect(differences(wanted, live, { id: CUSTOM, wantedIsLive: true })).toEqual([['changed', '/spec/http']]);
  });

  it('is a list that is one value as a whole, when there is more in it', () => {
    const wantedIsLive = true;
    const [wanted, live] = [container({ args: ['a'] }), container({ args: ['a', 'b'] })];
    expect(differences(wanted, live, { wantedIsLive })).toEqual([['changed', `${AT_CONTAINER}/args`]]);
    const [one, two] = [container({ env: [{ name: 'A' }] }), container({ env: [{ name: 'A' }, { name: 'B' }] })];
    expect(differences(one, two, { wantedIsLive })).toEqual([['added', `${AT_CONTAINER}/env/1`]]);
    const [more, less] = [{ spec: { hosts: [{ name: 'a' }, { name: 'b' }] } }, { spec: { hosts: [{ name: 'b' }] } }];
    expect(differences(more, less, { id: CUSTOM, wantedIsLive })).toEqual([['removed', '/spec/hosts/0']]);
  });

  it('is what only one of two answers of a server has', () => {
    const wantedIsLive = true;
    expect(differences({ spec: { a: 1 } }, { spec: { a: 1, b: 2 } }, { wantedIsLive })).toEqual([['added', '/spec/b']]);
    expect(
      differences(
        { metadata: { resourceVersion: '1' } },
        { metadata: { resourceVersion: '2', uid: 'x' } },
        { wantedIsLive },
      ),
    ).toEqual([]);
  });
});

describe('rules', () => {
  it('take fields out, by their place or by * for every place', () => {
    const [wanted, live] = [container({ image: 'a', tty: true }), container({ image: 'b', tty: false })];
    const ignore = [parsePointer('/spec/template/spec/containers/*/image')];
    expect(differences(wanted, live, { ignore })).toEqual([['changed', `${AT_CONTAINER}/tty`]]);
    expect(differences(wanted, live, { ignore: [parsePointer('/spec')] })).toEqual([]);
  });

  it('make texts quantities', () => {
    const [wanted, live] = [{ spec: { budget: '1000m' } }, { spec: { budget: '1' } }];
    expect(differences(wanted, live, { id: CUSTOM })).toEqual([['changed', '/spec/budget']]);
    expect(differences(wanted, live, { id: CUSTOM, quantities: [parsePointer('/spec/budget')] })).toEqual([]);
  });
});

const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean());
const { tree } = fc.letrec<{ tree: JsonValue; node: JsonValue }>((tie) => ({
  tree: fc.oneof({ depthSize: 'small' }, leaf, tie('node')),
  node: fc.oneof(
    fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), tie('tree'), { maxKeys: 4 }),
    fc.array(tie('tree'), { maxLength: 3 }),
  ),
}));
const objects = fc
  .dictionary(fc.stringMatching(/^[a-z]{1,6}$/), tree, { maxKeys: 5 })
  .map((spec): JsonObject => ({ spec }));

describe('any object', () => {
  it('is the same as itself', () => {
    fc.assert(
      fc.property(
        objects,
        (object) =>
          compare(object, structuredClone(object), { id: CUSTOM, nulls: [], ignore: [], quantities: [] }).length === 0,
      ),
    );
  });

  it('has a difference that a rule for its path takes away', () => {
    fc.assert(
      fc.property(objects, objects, (wanted, live) => {
        const options = { id: CUSTOM, nulls: [], quantities: [] };
        const found = compare(wanted, live, { ...options, ignore: [] });
        const ignore = found.map(({ path }) => path.map(String));
        expect(compare(wanted, live, { ...options, ignore })).toEqual([]);
      }),
    );
  });

  it('with one other value has one difference, at its place', () => {
    // What an element is told apart by: with another one it is another element.
    const keys = new Set<string | number | undefined>(['ip', 'key', 'name', 'port', 'type', 'uid']);
    fc.assert(
      fc.property(objects, fc.nat(), (object, pick) => {
        // An empty map wants nothing, so that nothing in it differs.
        const paths = leaves(object).filter(
          (path) => path.length > 1 && typeof valueAt(object, path) !== 'object' && !keys.has(path.at(-1)),
        );
        const path = paths[pick % paths.length];
        fc.pre(path !== undefined);
        const live = structuredClone(object);
        setAt(live, path, { other: 'value' });
        const [difference, ...others] = compare(object, live, { id: CUSTOM, nulls: [], ignore: [], quantities: [] });
        expect(others).toEqual([]);
        expect(difference).toMatchObject({ change: 'changed', path, live: { other: 'value' } });
      }),
    );
  });

  it('is the same with what has keys in another order', () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,6}$/), { minLength: 1, maxLength: 6 });
    const shuffled = names.chain((of) => fc.tuple(fc.constant(of), fc.shuffledSubarray(of, { minLength: of.length })));
    fc.assert(
      fc.property(shuffled, fc.constantFrom('containers', 'volumes', 'imagePullSecrets'), ([before, after], list) => {
        const spec = (of: string[]): JsonObject => ({
          spec: { [list]: of.map((name) => ({ name, value: `of ${name}` })) },
        });
        expect(differences(spec(before), spec(after))).toEqual([]);
      }),
    );
  });

  it('is not changed by being compared', () => {
    fc.assert(
      fc.property(objects, objects, (wanted, live) => {
        const before = structuredClone([wanted, live]);
        compare(wanted, live, { id: CUSTOM, nulls: [], ignore: [], quantities: [], wantedIsLive: true });
        expect([wanted, live]).toEqual(before);
      }),
    );
  });
});

function metric(name: string, averageUtilization: number): JsonObject {
  return { type: 'Resource', resource: { name, target: { type: 'Utilization', averageUtilization } } };
}
