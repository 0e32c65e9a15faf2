import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FieldDrift, Verification } from '../../src/drift/types.ts';
import { pointerOf } from '../../src/drift/pointer.ts';
import type { Environment } from '../support/index.ts';
import { eventually, startEnvironment } from '../support/index.ts';
import { configMap, deployment, ONE_OF_EACH, widgetCrd } from './drift-manifests.ts';
import { DriftLab } from './drift-release.ts';
import { MutatingWebhook } from './mutating-webhook.ts';

const CONTAINER = '/spec/template/spec/containers/0';

interface Told {
  change: string;
  path: string;
  wanted: unknown;
  live: unknown;
  manager: string | undefined;
}

function told(fields: readonly FieldDrift[]): Told[] {
  return fields.map(({ change, path, wanted, live, author }) => ({
    change,
    path: pointerOf(path),
    wanted,
    live,
    manager: author?.manager,
  }));
}

/** The fields of an object that was found to differ. */
function fields({ verdict }: Verification): Told[] {
  if (verdict.state !== 'Modified') throw new Error(`found to be ${verdict.state}`);
  return told(verdict.fields);
}

describe('an object of a release, compared on a real API server', () => {
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

  for (const helm of [3, 4] as const) {
    it(`finds what helm ${helm} installed in sync, without a dry run, and tells field, values and author of an edit`, async () => {
      const name = `edit-${helm}`;
      const release = await lab.install(name, configMap('settings', { colour: 'blue', size: '1' }), { helm });
      expect((await release.verify('ConfigMap')).verdict).toMatchObject({ state: 'InSync', watch: [] });
      expect(release.dryRuns).toBe(0);

      await release.patch('configmap/settings', { data: { colour: 'red', size: null } });
      const { verdict } = await release.verify('ConfigMap');
      expect(verdict).toMatchObject({ state: 'Modified', applicable: true });
      expect(fields(await release.verify('ConfigMap'))).toEqual([
        { change: 'changed', path: '/data/colour', wanted: 'blue', live: 'red', manager: 'kubectl-patch' },
        { change: 'removed', path: '/data/size', wanted: '1', live: undefined, manager: undefined },
      ]);
    });
  }

  for (const helm of [3, 4] as const) {
    it(`finds one of each kind that helm ${helm} installed in sync, without a dry run, and nothing added`, async () => {
      const release = await lab.install(`each-${helm}`, ONE_OF_EACH, { helm });
      for (const { id } of (await release.inventory()).objects) {
        const { verdict, notes } = await release.verify(id.kind, { extraFields: 'Report' });
        expect({ kind: id.kind, state: verdict.state, notes }).toEqual({ kind: id.kind, state: 'InSync', notes: [] });
      }
      expect(release.dryRuns).toBe(0);
    });
  }

  it('tells missing, going, foreign, excluded and not served apart', async () => {
    const manifest = [
      configMap('gone', {}),
      configMap('going', {}),
      configMap('foreign', {}),
      configMap('annotated', { a: 'b' }),
      configMap('ruled', { a: 'b' }),
    ].join('---\n');
    const release = await lab.install('states', manifest);
    await release.kubectl('delete', 'configmap', 'gone');
    await release.patch('configmap/going', { metadata: { finalizers: ['capstan.test/wait'] } });
    await release.kubectl('delete', 'configmap', 'going', '--wait=false');
    await release.kubectl('annotate', '--overwrite', 'configmap', 'foreign', 'meta.helm.sh/release-name=other');
    const optOut = 'helmreleaseproxy.addons.cluster.x-k8s.io/drift-detection=disabled';
    await release.kubectl('annotate', 'configmap', 'annotated', optOut);
    const ignore = [{ paths: [''], target: { name: 'ruled' } }];

    expect((await release.verify('ConfigMap', { name: 'gone' })).verdict).toEqual({ state: 'Missing' });
    expect((await release.verify('ConfigMap', { name: 'going' })).verdict).toMatchObject({ state: 'Terminating' });
    expect((await release.verify('ConfigMap', { name: 'foreign' })).verdict).toMatchObject({
      state: 'Foreign',
      owner: 'states/other',
    });
    expect((await release.verify('ConfigMap', { name: 'annotated' })).verdict).toMatchObject({ by: 'annotation' });
    expect((await release.verify('ConfigMap', { name: 'ruled', ignore })).verdict).toMatchObject({ by: 'rule' });
    await release.patch('configmap/going', { metadata: { finalizers: null } });
  });

  it('1, 6, 18: defaults, nulls, empty maps and zeroes that the server drops are no drift', async () => {
    const manifest = deployment('web', {
      spec: 'strategy: {}, minReadySeconds: 0, paused: false',
      container:
        'resources: {}, env: [{ name: EMPTY, value: "" }], ports: [{ containerPort: 80 }], ' +
        'livenessProbe: { httpGet: { path: /, port: 80 }, initialDelaySeconds: 0 }, securityContext: null, imagePullPolicy: null',
      pod: 'nodeSelector: {}, affinity: null, tolerations: []',
    });
    const release = await lab.install('defaults', manifest);
    expect((await release.verify('Deployment')).verdict).toMatchObject({ state: 'InSync' });
    expect((await release.verify('Deployment', { extraFields: 'Report' })).verdict).toMatchObject({ state: 'InSync' });
  });

  it('1: a field that the manifest leaves null and somebody set is drift in every mode', async () => {
    const release = await lab.install('nulled', deployment('web', { container: 'imagePullPolicy: null' }));
    await release.patch(
      'deployment/web',
      [{ op: 'replace', path: `${CONTAINER}/imagePullPolicy`, value: 'Never' }],
      'json',
    );
    expect(fields(await release.verify('Deployment'))).toEqual([
      {
        change: 'added',
        path: `${CONTAINER}/imagePullPolicy`,
        wanted: undefined,
        live: 'Never',
        manager: 'kubectl-patch',
      },
    ]);
  });

  it('2: quantities are compared as such, in a custom resource where a rule names the path', async () => {
    const resources =
      'resources: { limits: { cpu: 1000m, memory: 3072Mi }, requests: { cpu: 0.1, memory: 1073741824 } }';
    const release = await lab.install('quantities', deployment('web', { container: resources }));
    expect((await release.verify('Deployment')).verdict).toMatchObject({ state: 'InSync' });

    await lab.cluster.kubectl(['apply', '-f', '-'], { stdin: widgetCrd('quantities.test') });
    const widget = 'apiVersion: quantities.test/v1\nkind: Widget\nmetadata: { name: w }\nspec: { cpu: 500m }\n';
    const custom = await eventually(async () => lab.install('quantities-cr', widget), { what: 'the CRD is served' });
    await custom.patch('widgets.v1.quantities.test/w', { spec: { cpu: '0.5' } });
    expect(fields(await custom.verify('Widget'))).toHaveLength(1);
    const quantities = [{ paths: ['/spec/cpu'], target: { kind: 'Widget' } }];
    expect((await custom.verify('Widget', { quantities })).verdict).toMatchObject({ state: 'InSync' });
  });

  it('3: replicas within the limits of an autoscaler are its own, outside of them they are drift', async () => {
    const release = await lab.install('scaled', deployment('web', { spec: 'replicas: 2' }));
    await release.kubectl('scale', 'deployment/web', '--replicas=5');
    expect(fields(await release.verify('Deployment'))).toMatchObject([{ path: '/spec/replicas', manager: 'kubectl' }]);

    await release.kubectl('autoscale', 'deployment/web', '--min=2', '--max=6', '--cpu=80%');
    expect((await release.verify('Deployment')).verdict).toMatchObject({ state: 'InSync' });
    await release.kubectl('scale', 'deployment/web', '--replicas=9');
    expect(fields(await release.verify('Deployment'))).toMatchObject([{ path: '/spec/replicas', wanted: 2, live: 9 }]);
  });

  it('4: an injected caBundle is no drift where the manifest leaves it open, and is where it sets one', async () => {
    const hook = (name: string, bundle: string): string =>
      `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: { name: ${name} }
webhooks:
  - name: a.capstan.test
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Ignore
    clientConfig: { service: { name: x, namespace: ${name} }${bundle} }
`;
    const release = await lab.install(
      'bundle',
      [hook('bundle-open', ''), hook('bundle-set', ', caBundle: QQ==')].join('---\n'),
    );
    const inject = [{ op: 'add', path: '/webhooks/0/clientConfig/caBundle', value: 'Qg==' }];
    await release.patch('validatingwebhookconfiguration/bundle-open', inject, 'json');
    await release.patch('validatingwebhookconfiguration/bundle-set', inject, 'json');
    const kind = 'ValidatingWebhookConfiguration';
    expect((await release.verify(kind, { name: 'bundle-open' })).verdict).toMatchObject({ state: 'InSync' });
    expect(fields(await release.verify(kind, { name: 'bundle-set' }))).toMatchObject([
      { path: '/webhooks/0/clientConfig/caBundle', change: 'changed' },
    ]);
    await lab.cluster.kubectl(['delete', kind, 'bundle-open', 'bundle-set']);
  });

  it("5: a Secret's stringData and null values are compared as data", async () => {
    const manifest = `apiVersion: v1
kind: Secret
metadata: { name: s }
stringData: { user: admin }
data: { key: c2VjcmV0, nothing: null, empty: "" }
`;
    const release = await lab.install('stringdata', manifest, { helm: 3 });
    expect((await release.verify('Secret')).verdict).toMatchObject({ state: 'InSync' });
    await release.patch('secret/s', { stringData: { user: 'root' } });
    expect(fields(await release.verify('Secret'))).toMatchObject([{ path: '/data/user', change: 'changed' }]);
  });

  it('7: an environment variable that is there twice is compared by position, without server-side apply', async () => {
    const container = 'env: [{ name: A, value: "1" }, { name: B, value: "2" }, { name: A, value: "3" }]';
    const release = await lab.install('twice', deployment('web', { container }), { helm: 3 });
    expect((await release.verify('Deployment')).verdict).toMatchObject({ state: 'InSync' });
    await release.patch('deployment/web', [{ op: 'replace', path: `${CONTAINER}/env/2/value`, value: '4' }], 'json');
    const verification = await release.verify('Deployment');
    expect(verification.verdict).toMatchObject({ state: 'Modified', applicable: false });
    expect(fields(verification)).toMatchObject([{ change: 'changed', wanted: '3', live: '4' }]);
    expect(verification.notes).toHaveLength(1);
  });

  it('8: the order of what is merged by a key does not count, that of arguments does', async () => {
    const container =
      'args: [a, b], ports: [{ containerPort: 80, name: http }, { containerPort: 81, name: other }], env: [{ name: A, value: "1" }, { name: B, value: "2" }]';
    const release = await lab.install('order', deployment('web', { container }));
    const live = await release.live('Deployment');
    const reordered = JSON.parse(JSON.stringify(live)) as {
      metadata: { managedFields?: unknown };
      spec: { template: { spec: { containers: { ports: unknown[]; env: unknown[]; args: string[] }[] } } };
    };
    const [app] = reordered.spec.template.spec.containers;
    app!.ports.reverse();
    delete reordered.metadata.managedFields;
    await lab.cluster.kubectl(['replace', '-f', '-'], { stdin: JSON.stringify(reordered) });
    expect((await release.verify('Deployment')).verdict).toMatchObject({ state: 'InSync' });
    await release.patch('deployment/web', [{ op: 'replace', path: `${CONTAINER}/args`, value: ['b', 'a'] }], 'json');
    expect((await release.verify('Deployment')).verdict).toMatchObject({ state: 'Modified' });
    expect(await release.correct('Deployment')).toMatchObject({ outcome: 'corrected' });
    // $(A) in B means nothing when B comes first (API reference, EnvVar).
    await release.patch(
      'deployment/web',
      [{ op: 'move', from: `${CONTAINER}/env/1`, path: `${CONTAINER}/env/0` }],
      'json',
    );
    expect((await release.verify('Deployment')).verdict).toMatchObject({ state: 'Modified' });
  });

  it("9: an aggregated role's rules are the controller's", async () => {
    const manifest = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: aggregated }
aggregationRule: { clusterRoleSelectors: [{ matchLabels: { no: one } }] }
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: empty }
rules: []
`;
    const release = await lab.install('roles', manifest);
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }];
    await release.patch('clusterrole/aggregated', { rules });
    expect((await release.verify('ClusterRole')).verdict).toMatchObject({ state: 'InSync' });
    expect((await release.verify('Role')).verdict).toMatchObject({ state: 'InSync' });
    await release.kubectl('delete', 'clusterrole', 'aggregated');
  });

  it('10, 19: what only a server sets, in the manifest or in volume claim templates, is no drift', async () => {
    const status = 'status: { acceptedNames: { kind: "", plural: "" }, conditions: [], storedVersions: [] }\n';
    const manifest = `${widgetCrd('status.test', status)}---
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db, creationTimestamp: null }
spec:
  serviceName: db
  selector: { matchLabels: { app: db } }
  template: { metadata: { creationTimestamp: null, labels: { app: db } }, spec: { containers: [{ name: db, image: db }] } }
  volumeClaimTemplates:
    - metadata: { name: data, creationTimestamp: null }
      spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1024Mi } } }
status: { replicas: 0 }
`;
    const release = await lab.install('statuses', manifest, { helm: 3 });
    expect((await release.verify('CustomResourceDefinition')).verdict).toMatchObject({ state: 'InSync' });
    expect((await release.verify('StatefulSet')).verdict).toMatchObject({ state: 'InSync' });
  });

  describe('11: with a webhook that changes what Helm applies', () => {
    let webhook: MutatingWebhook;

    beforeAll(async () => {
      webhook = await MutatingWebhook.start();
    });

    afterAll(async () => {
      await webhook.stop();
    });

    for (const dryRuns of [true, false]) {
      for (const helm of [3, 4] as const) {
        it(`finds no drift (helm ${helm}, ${dryRuns ? 'by' : 'without'} a dry run)`, async () => {
          const name = `hooked-${helm}-${dryRuns ? 'tried' : 'untried'}`;
          await lab.cluster.api.create('/api/v1/namespaces', {
            apiVersion: 'v1',
            kind: 'Namespace',
            metadata: { name, labels: { hooked: name } },
          });
          await webhook.register(lab.cluster, { name, dryRuns });
          const release = await lab.install(name, deployment('web', { spec: 'replicas: 1' }), { helm });
          const { spec } = await release.live('Deployment');
          expect(JSON.stringify(spec)).toContain('registry.test/app@sha256');
          const { verdict, notes } = await release.verify('Deployment');
          expect(verdict).toMatchObject({ state: 'InSync' });
          expect(notes).toHaveLength(dryRuns ? 0 : 1);
          await release.kubectl('scale', 'deployment/web', '--replicas=3');
          expect(fields(await release.verify('Deployment'))).toMatchObject([{ path: '/spec/replicas' }]);
          await webhook.unregister(lab.cluster, name);
        });
      }
    }
  });

  it('14: what was added by hand is told when it is asked for, with its author', async () => {
    const release = await lab.install('added', deployment('web', { container: 'env: [{ name: A, value: "1" }]' }));
    await release.kubectl('set', 'env', 'deployment/web', 'EXTRA=yes');
    await release.patch('deployment/web', {
      spec: { template: { spec: { hostAliases: [{ ip: '10.0.0.1', hostnames: ['x'] }] } } },
    });
    await release.kubectl('annotate', 'deployment/web', 'team=blue');
    await release.kubectl('rollout', 'restart', 'deployment/web');
    expect((await release.verify('Deployment')).verdict).toMatchObject({ state: 'InSync' });
    const found = fields(await release.verify('Deployment', { extraFields: 'Report' }));
    expect(found.map(({ path }) => path).sort()).toEqual([
      '/metadata/annotations/team',
      `${CONTAINER}/env/1`,
      '/spec/template/spec/hostAliases',
    ]);
    expect(found.every(({ change, manager }) => change === 'added' && manager?.startsWith('kubectl'))).toBe(true);
    const ignore = [{ paths: ['/spec/template/spec/hostAliases', '/metadata/annotations'] }];
    expect(fields(await release.verify('Deployment', { extraFields: 'Report', ignore }))).toHaveLength(1);
  });

  it('14: a probe that was added is one field, its defaults with it', async () => {
    const release = await lab.install('probe', deployment('web'));
    const probe = { httpGet: { path: '/', port: 80 } };
    await release.patch('deployment/web', [{ op: 'add', path: `${CONTAINER}/livenessProbe`, value: probe }], 'json');
    const found = fields(await release.verify('Deployment', { extraFields: 'Report' }));
    expect(found.map(({ path }) => path)).toEqual([`${CONTAINER}/livenessProbe`]);
  });

  it('16: what cannot be applied together with a live value is told all the same', async () => {
    const container = 'resources: { limits: { memory: 200Mi } }';
    const release = await lab.install('invalid', deployment('web', { container }), { helm: 3 });
    const resources = { limits: { memory: '900Mi' }, requests: { memory: '500Mi' } };
    await release.patch(
      'deployment/web',
      [{ op: 'replace', path: `${CONTAINER}/resources`, value: resources }],
      'json',
    );
    const verification = await release.verify('Deployment');
    expect(verification.verdict).toMatchObject({ state: 'Modified', applicable: false });
    expect(fields(verification)).toMatchObject([{ path: `${CONTAINER}/resources/limits/memory`, live: '900Mi' }]);
  });

  it('18: fields that the server does not know are told once as a mistake in the manifest, and are no drift', async () => {
    await lab.cluster.kubectl(['apply', '-f', '-'], { stdin: widgetCrd('unknown.test') });
    const widget = `apiVersion: unknown.test/v1
kind: Widget
metadata: { name: w }
spec: { size: 4, "no.such/field": 1, items: [{ name: a, value: b, wrong: true }] }
`;
    const release = await eventually(async () => lab.install('unknown', widget, { helm: 3 }), { what: 'served' });
    const { verdict, notes } = await release.verify('Widget');
    expect(verdict).toMatchObject({ state: 'InSync' });
    expect(notes.join()).toContain('/spec/no.such~1field');
    expect(notes.join()).toContain('/spec/items/0/wrong');
    await release.patch('widgets.v1.unknown.test/w', { spec: { size: 5 } });
    expect(fields(await release.verify('Widget'))).toMatchObject([{ path: '/spec/size', wanted: 4, live: 5 }]);
  });

  it('ignores what a rule names, and nothing else', async () => {
    const release = await lab.install('ignored', deployment('web', { spec: 'replicas: 1' }));
    await release.kubectl('scale', 'deployment/web', '--replicas=4');
    await release.kubectl('set', 'image', 'deployment/web', 'app=registry.test/app:2');
    const ignore = [{ paths: ['/spec/replicas'], target: { kind: 'Deployment' } }];
    expect(fields(await release.verify('Deployment', { ignore })).map(({ path }) => path)).toEqual([
      `${CONTAINER}/image`,
    ]);
    const all = [{ paths: ['/spec/replicas', '/spec/template/spec/containers/*/image'] }];
    expect((await release.verify('Deployment', { ignore: all })).verdict).toMatchObject({ state: 'InSync' });
  });

  it('names the managers that own a wanted field with an equal value, whose edits have to be seen', async () => {
    const release = await lab.install('watched', configMap('settings', { colour: 'blue' }));
    const manifest = configMap('settings', { colour: 'blue' });
    await release.apply(manifest, '--server-side', '--field-manager=other');
    expect((await release.verify('ConfigMap')).verdict).toMatchObject({ state: 'InSync', watch: ['other'] });
  });
});
