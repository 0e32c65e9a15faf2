import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pointerOf } from '../../src/drift/pointer.ts';
import type { Environment } from '../support/index.ts';
import { startEnvironment } from '../support/index.ts';
import { DriftLab } from './drift-release.ts';
import type { LabRelease } from './drift-release.ts';

const POD = '/spec/template/spec';
const SECURITY = `${POD}/containers/0/securityContext`;

const DEPLOYMENT = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      automountServiceAccountToken: false
      initContainers: [{ name: first, image: a }, { name: second, image: a }]
      tolerations: [{ key: one, operator: Exists }, { key: two, operator: Exists }]
      containers:
        - name: web
          image: a
          args: [serve]
          env: [{ name: A, value: "1" }, { name: B, value: "2" }]
          securityContext: { allowPrivilegeEscalation: false, runAsUser: 0 }
`;

const NETWORK_POLICY = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: web }
spec:
  podSelector: {}
  ingress:
    - from: [{ podSelector: { matchLabels: { app: web } }, namespaceSelector: {} }]
      ports: [{ port: 80, protocol: TCP }]
`;

/** Lets nothing in, by an explicit empty list. */
const DENY_ALL = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: web }
spec:
  podSelector: {}
  policyTypes: [Ingress]
  ingress: []
`;

const TYPED_LIST = `
apiVersion: v1
kind: ConfigMapList
items:
  - metadata: { name: one }
    data: { colour: blue }
`;

/** Edits that take a false, zero, {} or order from the manifest's fields, or add to a list that is one value. */
const EDITS: [kind: string, edit: object, change: string, path: string][] = [
  ...[`${SECURITY}/allowPrivilegeEscalation`, `${SECURITY}/runAsUser`, `${POD}/automountServiceAccountToken`].map(
    (path): [string, object, string, string] => ['Deployment', { op: 'remove', path }, 'removed', path],
  ),
  ...[`${POD}/initContainers`, `${POD}/tolerations`].map((list): [string, object, string, string] => [
    'Deployment',
    { op: 'move', from: `${list}/0`, path: `${list}/1` },
    'changed',
    list,
  ]),
  [
    'NetworkPolicy',
    { op: 'remove', path: '/spec/ingress/0/from/0/namespaceSelector' },
    'removed',
    '/spec/ingress/0/from/0/namespaceSelector',
  ],
  [
    'Deployment',
    { op: 'add', path: `${POD}/containers/0/args/-`, value: '--debug' },
    'changed',
    `${POD}/containers/0/args`,
  ],
  [
    'NetworkPolicy',
    { op: 'add', path: '/spec/ingress/0/ports/-', value: { port: 81, protocol: 'TCP' } },
    'changed',
    '/spec/ingress/0/ports',
  ],
];

/** A second variable of one name: the last one counts. */
const TWIN = { op: 'add', path: `${POD}/containers/0/env/-`, value: { name: 'A', value: '9' } };

describe('what is easily taken for nothing, on a real API server', () => {
  let environment: Environment;
  let lab: DriftLab;

  beforeAll(async () => {
    environment = await startEnvironment({ clusters: 1, management: false });
    lab = new DriftLab(environment.clusters[0]!);
  });

  afterAll(async () => {
    await lab.stop();
    await environment.stop();
  });

  async function edit(release: LabRelease, kind: string, change: object): Promise<void> {
    await lab.cluster.kubectl([
      'patch',
      kind.toLowerCase(),
      'web',
      '-n',
      release.name,
      '--type=json',
      '-p',
      JSON.stringify([change]),
    ]);
  }

  for (const helm of [3, 4] as const) {
    it(`is no drift as helm ${helm} installed it, is told when it went, and is put back`, async () => {
      const release = await lab.install(`absent-${helm}`, `${DEPLOYMENT}---${NETWORK_POLICY}`, { helm });
      for (const kind of ['Deployment', 'NetworkPolicy']) {
        expect((await release.verify(kind)).verdict).toMatchObject({ state: 'InSync' });
      }
      expect(release.dryRuns).toBe(0);
      for (const [kind, patch, change, path] of EDITS) {
        await edit(release, kind, patch);
        const { verdict } = await release.verify(kind);
        const fields = verdict.state === 'Modified' ? verdict.fields : [];
        expect(fields.map((field) => [field.change, pointerOf(field.path)])).toEqual([[change, path]]);
        expect(await release.correct(kind)).toMatchObject({ outcome: 'corrected' });
        expect((await release.verify(kind)).verdict).toMatchObject({ state: 'InSync' });
      }
    });

    it(`is an empty list that the chart wants empty (helm ${helm})`, async () => {
      const release = await lab.install(`deny-${helm}`, DENY_ALL, { helm });
      expect((await release.verify('NetworkPolicy')).verdict).toMatchObject({ state: 'InSync' });
      await edit(release, 'NetworkPolicy', { op: 'add', path: '/spec/ingress', value: [{}] });
      expect((await release.verify('NetworkPolicy')).verdict).toMatchObject({
        state: 'Modified',
        fields: [{ change: 'changed', path: ['spec', 'ingress'], wanted: [], live: [{}] }],
      });
      expect(await release.correct('NetworkPolicy')).toMatchObject({ outcome: 'corrected' });
      const live = await release.live('NetworkPolicy');
      expect((live['spec'] as { ingress?: unknown[] }).ingress ?? []).toEqual([]);
    });

    it(`is a second variable of a name that the chart has once (helm ${helm})`, async () => {
      const release = await lab.install(`twin-${helm}`, DEPLOYMENT, { helm });
      await edit(release, 'Deployment', TWIN);
      const { verdict } = await release.verify('Deployment');
      const fields = verdict.state === 'Modified' ? verdict.fields : [];
      expect(fields.map((field) => [field.change, pointerOf(field.path)])).toEqual([
        ['changed', `${POD}/containers/0/env`],
      ]);
      expect(await release.correct('Deployment')).toMatchObject({ outcome: 'corrected' });
      expect((await release.verify('Deployment')).verdict).toMatchObject({ state: 'InSync' });
      const { spec } = (await release.live('Deployment')) as unknown as {
        spec: { template: { spec: { containers: { env: unknown }[] } } };
      };
      expect(spec.template.spec.containers[0]?.env).toEqual([
        { name: 'A', value: '1' },
        { name: 'B', value: '2' },
      ]);
    });

    it(`is an item of a typed list that does not say what it is (helm ${helm})`, async () => {
      const release = await lab.install(`list-${helm}`, TYPED_LIST, { helm });
      expect((await release.inventory()).problems).toEqual([]);
      expect((await release.verify('ConfigMap', { name: 'one' })).verdict).toMatchObject({ state: 'InSync' });
      await release.patch('configmap/one', { data: { colour: 'red' } });
      expect((await release.verify('ConfigMap', { name: 'one' })).verdict).toMatchObject({ state: 'Modified' });
    });
  }
});
