import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/drift/types.ts';
import { correctObject } from '../../src/drift/corrector.ts';
import { verifyObject } from '../../src/drift/verifier.ts';
import type { Environment, KubeObject } from '../support/index.ts';
import { eventually, startEnvironment } from '../support/index.ts';
import { configMap, deployment, widgetCrd } from './drift-manifests.ts';
import { DriftLab, policy } from './drift-release.ts';

const CONTAINER = '/spec/template/spec/containers/0';

interface Container {
  image: string;
  env?: { name: string; value?: string }[];
  resources?: JsonObject;
}

type Deployment = KubeObject & {
  spec: {
    replicas: number;
    strategy: JsonObject;
    template: { spec: { containers: Container[]; hostAliases?: unknown } };
  };
};

type ConfigMap = KubeObject & { data?: Record<string, string> };

function containerOf(object: object): Container {
  return (object as Deployment).spec.template.spec.containers[0]!;
}

describe('an object of a release, put back on a real API server', () => {
  let environment: Environment;
  let lab: DriftLab;

  beforeAll(async () => {
    environment = await startEnvironment({ clusters: 1, management: false, controllers: true });
    lab = new DriftLab(environment.clusters[0]!);
  });

  afterAll(async () => {
    await lab.stop();
    await environment.stop();
  });

  const managers = [
    { by: 'helm 3', helm: 3, rename: false },
    { by: 'helm 4', helm: 4, rename: false },
    { by: 'CAAPH', helm: 3, rename: true },
  ] as const;
  for (const { by, helm, rename } of managers) {
    for (const [upgrade, ...args] of [[3], [4], [4, '--server-side=true']] as const) {
      // Helm moves to server-side apply what its own name owns; what CAAPH's owns stays behind, corrected or not.
      if (rename && args.length > 0) continue;
      const how = [upgrade, ...args].join(' ');
      it(`made by ${by}: is as wanted, and helm ${how} upgrades it afterwards as if nothing had been`, async () => {
        const name = `after-${by}-${how}`.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
        const first = [
          configMap('settings', { changed: '1', removed: '1', kept: '1' }),
          deployment('web', { container: 'env: [{ name: A, value: "1" }, { name: GONE, value: "1" }]' }),
        ].join('---\n');
        const release = await lab.install(name, first, { helm });
        if (rename) await renameManager(name);
        await release.patch('configmap/settings', { data: { changed: 'x', removed: 'x', kept: null } });
        await release.kubectl('set', 'env', 'deployment/web', 'A=x', 'GONE=x');

        expect(await release.correct('ConfigMap')).toMatchObject({ outcome: 'corrected', created: false });
        expect(await release.correct('Deployment')).toMatchObject({ outcome: 'corrected', created: false });
        expect((await release.live('ConfigMap'))['data']).toEqual({ changed: '1', removed: '1', kept: '1' });
        expect((await release.verify('ConfigMap')).verdict).toMatchObject({ state: 'InSync' });
        expect((await release.verify('Deployment')).verdict).toMatchObject({ state: 'InSync' });

        const second = [
          configMap('settings', { changed: '2', kept: '1' }),
          deployment('web', { container: 'env: [{ name: A, value: "2" }]' }),
        ].join('---\n');
        await release.helm('upgrade', second, args, upgrade);
        expect((await release.live('ConfigMap'))['data']).toEqual({ changed: '2', kept: '1' });
        expect(containerOf(await release.live('Deployment')).env).toEqual([{ name: 'A', value: '2' }]);
        expect((await release.verify('ConfigMap')).verdict).toMatchObject({ state: 'InSync' });
        expect((await release.verify('Deployment')).verdict).toMatchObject({ state: 'InSync' });
      });
    }
  }

  /** CAAPH's objects are client-side Helm's, under the name of its binary. */
  async function renameManager(namespace: string): Promise<void> {
    for (const path of [
      `/api/v1/namespaces/${namespace}/configmaps/settings`,
      `/apis/apps/v1/namespaces/${namespace}/deployments/web`,
    ]) {
      const object = await lab.cluster.api.get(path);
      const managedFields = (object.metadata as { managedFields?: { manager: string }[] }).managedFields ?? [];
      const renamed = managedFields.map((entry) =>
        entry.manager === 'helm' ? { ...entry, manager: 'manager' } : entry,
      );
      await lab.cluster.api.jsonPatch(path, [{ op: 'replace', path: '/metadata/managedFields', value: renamed }]);
    }
  }

  it('makes what is missing, as Helm owns it', async () => {
    const release = await lab.install('missing', [configMap('a', { b: 'c' }), deployment('web')].join('---\n'));
    const before = await release.live('ConfigMap');
    await release.kubectl('delete', 'configmap/a', 'deployment/web');
    expect(await release.correct('ConfigMap')).toMatchObject({ outcome: 'corrected', created: true });
    expect(await release.correct('Deployment')).toMatchObject({ outcome: 'corrected', created: true });
    const after = await release.live('ConfigMap');
    expect(after['data']).toEqual(before['data']);
    expect(after.metadata.labels).toEqual(before.metadata.labels);
    expect(after.metadata.annotations).toEqual(before.metadata.annotations);
    expect(after.metadata.managedFields).toMatchObject([{ manager: 'helm', operation: 'Apply' }]);
    expect((await release.verify('ConfigMap')).verdict).toMatchObject({ state: 'InSync' });
  });

  it('takes nothing over that appeared meanwhile, and writes over nothing that changed meanwhile', async () => {
    const release = await lab.install('races', [configMap('a', { b: 'c' }), configMap('b', { b: 'c' })].join('---\n'));
    const [a, b] = [await release.object('ConfigMap', 'a'), await release.object('ConfigMap', 'b')];
    const options = { policy: policy() };
    await release.kubectl('delete', 'configmap/b');
    await release.kubectl('create', 'configmap', 'b', '--from-literal=mine=yes');
    expect(await correctObject(lab.client, b, { state: 'Missing' }, options)).toEqual({ outcome: 'conflict' });
    expect((await release.live('ConfigMap', 'b'))['data']).toEqual({ mine: 'yes' });

    await release.patch('configmap/a', { data: { b: 'x' } });
    const { verdict } = await verifyObject(lab.client, a, policy());
    if (verdict.state !== 'Modified') throw new Error(verdict.state);
    await release.patch('configmap/a', { data: { b: 'y' } });
    expect(await correctObject(lab.client, a, verdict, options)).toEqual({ outcome: 'conflict' });
    await release.kubectl('delete', 'configmap/a');
    expect(await correctObject(lab.client, a, verdict, options)).toEqual({ outcome: 'conflict' });
    expect((await release.verify('ConfigMap', { name: 'a' })).verdict).toEqual({ state: 'Missing' });
  });

  it('3: corrects a Deployment without resetting the replicas that an autoscaler keeps or a rule ignores', async () => {
    const release = await lab.install('scaled', deployment('web', { spec: 'replicas: 2' }));
    await release.kubectl('scale', 'deployment/web', '--replicas=5');
    await release.kubectl('set', 'image', 'deployment/web', 'app=registry.test/app:2');
    const ignore = [{ paths: ['/spec/replicas'] }];
    expect(await release.correct('Deployment', { ignore })).toMatchObject({ outcome: 'corrected' });
    expect(await release.live('Deployment')).toMatchObject({ spec: { replicas: 5 } });

    await release.kubectl('autoscale', 'deployment/web', '--min=2', '--max=6', '--cpu=80%');
    await release.kubectl('set', 'image', 'deployment/web', 'app=registry.test/app:2');
    expect(await release.correct('Deployment')).toMatchObject({ outcome: 'corrected' });
    const live = await release.live('Deployment');
    expect(live).toMatchObject({ spec: { replicas: 5 } });
    expect(containerOf(live).image).toBe('registry.test/app:1');
    await release.kubectl('scale', 'deployment/web', '--replicas=6');
    expect((await release.verify('Deployment')).verdict).toMatchObject({ state: 'InSync' });
  });

  it('leaves what a rule ignores, also where Helm applied it once', async () => {
    const release = await lab.install('applied', configMap('settings', { a: '1', ignored: '1' }));
    await release.patch('configmap/settings', { data: { a: 'x' } });
    // The same value by Helm's own manager: still owned by its apply, and not what the manifest says.
    const other = configMap('settings', { ignored: 'theirs' });
    await release.apply(other, '--server-side', '--force-conflicts', '--field-manager=other');
    const ignore = [{ paths: ['/data/ignored'] }];
    expect(await release.correct('ConfigMap', { ignore })).toMatchObject({ outcome: 'corrected' });
    expect((await release.live('ConfigMap'))['data']).toEqual({ a: '1', ignored: 'theirs' });
  });

  it('skips a field that was given up, and corrects the others', async () => {
    const release = await lab.install('skipped', configMap('settings', { a: '1', b: '1' }));
    await release.patch('configmap/settings', { data: { a: 'x', b: 'x' } });
    expect(await release.correct('ConfigMap', { skip: [['data', 'a']] })).toMatchObject({ outcome: 'corrected' });
    expect((await release.live('ConfigMap'))['data']).toEqual({ a: 'x', b: '1' });
  });

  it('7: corrects one of two variables of the same name, and drops none', async () => {
    const container = 'env: [{ name: A, value: "1" }, { name: B, value: "2" }, { name: A, value: "3" }]';
    const release = await lab.install('twice', deployment('web', { container }), { helm: 3 });
    await release.patch(
      'deployment/web',
      [
        { op: 'replace', path: `${CONTAINER}/env/2/value`, value: '4' },
        { op: 'replace', path: `${CONTAINER}/image`, value: 'registry.test/app:2' },
      ],
      'json',
    );
    expect(await release.correct('Deployment')).toMatchObject({ outcome: 'corrected' });
    const env = [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
      { name: 'A', value: '3' },
    ];
    expect(containerOf(await release.live('Deployment'))).toMatchObject({ env, image: 'registry.test/app:1' });
    await release.patch('deployment/web', [{ op: 'remove', path: `${CONTAINER}/env/0` }], 'json');
    expect(await release.correct('Deployment')).toMatchObject({ outcome: 'corrected' });
    expect(containerOf(await release.live('Deployment')).env).toEqual(env);
    await release.kubectl('delete', 'deployment/web');
    expect(await release.correct('Deployment')).toMatchObject({ outcome: 'corrected', created: true });
    expect(containerOf(await release.live('Deployment')).env).toEqual(env);
  });

  it('14: takes away what was added by hand, when that is asked for', async () => {
    const release = await lab.install('added', deployment('web', { container: 'env: [{ name: A, value: "1" }]' }));
    await release.kubectl('set', 'env', 'deployment/web', 'EXTRA=yes', 'A=2');
    await release.patch('deployment/web', {
      spec: { template: { spec: { hostAliases: [{ ip: '10.0.0.1', hostnames: ['x'] }] } } },
    });
    expect(await release.correct('Deployment', { extraFields: 'Report' })).toMatchObject({ outcome: 'corrected' });
    expect(containerOf(await release.live('Deployment')).env).toEqual([
      { name: 'A', value: '1' },
      { name: 'EXTRA', value: 'yes' },
    ]);
    const remove = policy({ extraFields: 'Remove' });
    const object = await release.object('Deployment');
    const { verdict } = await verifyObject(lab.client, object, remove);
    if (verdict.state !== 'Modified') throw new Error(verdict.state);
    await release.kubectl('annotate', 'deployment/web', 'meanwhile=yes');
    expect(await correctObject(lab.client, object, verdict, { policy: remove })).toEqual({ outcome: 'conflict' });
    expect(await release.correct('Deployment', { extraFields: 'Remove' })).toMatchObject({ outcome: 'corrected' });
    const live = (await release.live('Deployment')) as unknown as Deployment;
    expect(containerOf(live).env).toEqual([{ name: 'A', value: '1' }]);
    expect(live.spec.template.spec.hostAliases).toBeUndefined();
    expect((await release.verify('Deployment', { extraFields: 'Report' })).verdict).toMatchObject({ state: 'InSync' });
  });

  it('15: what Helm applied by both of its ways loses no field and reports none', async () => {
    const release = await lab.install('both', configMap('settings', { a: '1', b: '1' }), { helm: 3 });
    await release.patch('configmap/settings', { data: { a: 'x' } });
    await release.correct('ConfigMap');
    const { managedFields } = (await release.live('ConfigMap')).metadata;
    expect(
      managedFields
        ?.filter(({ manager }) => manager === 'helm')
        .map(({ operation }) => operation)
        .sort(),
    ).toEqual(['Apply', 'Update']);
    expect((await release.verify('ConfigMap', { extraFields: 'Report' })).verdict).toMatchObject({ state: 'InSync' });
    await release.patch('configmap/settings', { data: { b: 'x' } });
    await release.correct('ConfigMap', { extraFields: 'Remove' });
    expect((await release.live('ConfigMap'))['data']).toEqual({ a: '1', b: '1' });
  });

  it('16: replaces what is around a field that validation refuses together with a live one', async () => {
    const container = 'resources: { limits: { memory: 200Mi } }';
    const release = await lab.install(
      'together',
      [deployment('web', { container }), deployment('once', { spec: 'strategy: { type: Recreate }' })].join('---\n'),
      { helm: 3 },
    );
    const resources = { limits: { memory: '900Mi' }, requests: { memory: '500Mi' } };
    await release.patch(
      'deployment/web',
      [{ op: 'replace', path: `${CONTAINER}/resources`, value: resources }],
      'json',
    );
    expect(await release.correct('Deployment', { name: 'web' })).toMatchObject({ outcome: 'corrected' });
    expect(containerOf(await release.live('Deployment', 'web')).resources).toMatchObject({
      limits: { memory: '200Mi' },
    });
    expect((await release.verify('Deployment', { name: 'web' })).verdict).toMatchObject({ state: 'InSync' });

    const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 3 } };
    await release.patch('deployment/once', { spec: { strategy } });
    expect(await release.correct('Deployment', { name: 'once' })).toMatchObject({ outcome: 'corrected' });
    const live = (await release.live('Deployment', 'once')) as unknown as Deployment;
    expect(live.spec.strategy).toEqual({ type: 'Recreate' });
  });

  it('17: corrects a custom resource, its atomic lists as wholes', async () => {
    await lab.cluster.kubectl(['apply', '-f', '-'], { stdin: widgetCrd('custom.test') });
    const widget = `apiVersion: custom.test/v1
kind: Widget
metadata: { name: w }
spec: { size: 4, items: [{ name: a, value: "1" }, { name: b, value: "2" }] }
`;
    const release = await eventually(async () => lab.install('custom', widget, { helm: 3 }), { what: 'served' });
    await release.patch('widgets.v1.custom.test/w', { spec: { size: 5, items: [{ name: 'b', value: 'x' }] } });
    expect(await release.correct('Widget')).toMatchObject({ outcome: 'corrected' });
    const items = [
      { name: 'a', value: '1' },
      { name: 'b', value: '2' },
    ];
    expect((await release.live('Widget'))['spec']).toEqual({ size: 4, items });
    expect((await release.verify('Widget')).verdict).toMatchObject({ state: 'InSync' });
  });

  it('takes a port out of a Service and leaves what the server allotted to the others', async () => {
    const manifest = `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: NodePort, selector: { app: web }, ports: [{ name: http, port: 80, targetPort: http }] }
`;
    const release = await lab.install('service', manifest);
    const before = await release.live('Service');
    const edit = [
      { op: 'replace', path: '/spec/ports/0/targetPort', value: 8080 },
      { op: 'add', path: '/spec/ports/-', value: { name: 'x', port: 99 } },
    ];
    await release.patch('service/web', edit, 'json');
    expect(await release.correct('Service', { extraFields: 'Remove' })).toMatchObject({ outcome: 'corrected' });
    expect((await release.live('Service'))['spec']).toEqual(before['spec']);
  });

  it('19: says that an immutable field needs the object made anew, and changes nothing', async () => {
    const manifest = `apiVersion: batch/v1
kind: Job
metadata: { name: job }
spec: { suspend: true, template: { spec: { restartPolicy: Never, containers: [{ name: job, image: "registry.test/job:1" }] } } }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: frozen }
immutable: true
data: { a: "1" }
---
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db }
spec:
  serviceName: db
  replicas: 0
  selector: { matchLabels: { app: db } }
  template: { metadata: { labels: { app: db } }, spec: { containers: [{ name: db, image: db }] } }
  volumeClaimTemplates:
    - metadata: { name: data }
      spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
`;
    const release = await lab.install('immutable', manifest);
    for (const [kind, target, from, to] of [
      ['Job', 'job/job', 'registry.test/job:1', 'registry.test/job:2'],
      ['ConfigMap', 'configmap/frozen', '"1"', '"2"'],
      ['StatefulSet', 'statefulset/db', '"1Gi"', '"2Gi"'],
    ] as const) {
      const object = (await release.object(kind)).wanted;
      await release.kubectl('delete', target);
      const other = JSON.stringify(object).replaceAll(from, to);
      await lab.cluster.kubectl(['create', '-f', '-'], { stdin: other });
      expect(await release.correct(kind), kind).toMatchObject({ outcome: 'needs-recreation' });
      expect(JSON.stringify(await release.live(kind))).toContain(to);
    }
  });

  it('tells what admission and quota refuse, without the values of a Secret', async () => {
    const manifest = `apiVersion: v1
kind: Secret
metadata: { name: s }
stringData: { password: correct-horse }
---
${configMap('counted', {})}`;
    const release = await lab.install('refused', manifest);
    await release.patch('secret/s', { stringData: { password: 'battery-staple' } });
    await release.kubectl('delete', 'configmap', 'counted');
    await release.kubectl('create', 'quota', 'none', '--hard=count/configmaps=0');
    const policyName = 'refused.capstan.test';
    await lab.cluster.kubectl(['apply', '-f', '-'], {
      stdin: `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: ${policyName} }
spec:
  matchConstraints:
    resourceRules: [{ apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [secrets] }]
    namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: refused } }
  validations: [{ expression: "object.metadata.name != 's'", messageExpression: "'no ' + string(object.data.password)" }]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: ${policyName} }
spec: { policyName: ${policyName}, validationActions: [Deny] }
`,
    });
    await eventually(
      async () => {
        const refused = await release.patch('secret/s', { metadata: { labels: { a: String(Math.random()) } } }).then(
          () => false,
          () => true,
        );
        if (!refused) throw new Error('the policy is not in force yet');
      },
      { what: 'the policy is in force' },
    );
    const secret = await release.correct('Secret');
    expect(secret).toMatchObject({ outcome: 'refused', message: expect.stringContaining(policyName) as string });
    const values = ['correct-horse', 'battery-staple'].flatMap((value) => [
      value,
      Buffer.from(value).toString('base64'),
    ]);
    for (const value of values) expect(JSON.stringify(secret)).not.toContain(value);
    // What the controller of quotas would count, had it run.
    const status = { hard: { 'count/configmaps': '0' }, used: { 'count/configmaps': '0' } };
    await release.kubectl(
      'patch',
      'quota',
      'none',
      '--subresource=status',
      '--type=merge',
      '-p',
      JSON.stringify({ status }),
    );
    const counted = await eventually(
      async () => {
        const correction = await release.correct('ConfigMap');
        if (correction.outcome === 'corrected') await release.kubectl('delete', 'configmap', 'counted');
        expect(correction.outcome).toBe('refused');
        return correction;
      },
      { what: 'the quota is in force' },
    );
    expect(counted).toMatchObject({ message: expect.stringContaining('exceeded quota') as string });
    await lab.cluster.kubectl(['delete', 'validatingadmissionpolicy,validatingadmissionpolicybinding', policyName]);
  });

  it('waits while the namespace is going, gone, or the kind is not served', async () => {
    await lab.cluster.kubectl(['apply', '-f', '-'], { stdin: widgetCrd('waiting.test') });
    const widget = 'apiVersion: waiting.test/v1\nkind: Widget\nmetadata: { name: w }\nspec: { size: 4 }\n';
    const manifest = [configMap('a', { b: 'c' }), configMap('holds', {}), widget].join('---\n');
    const release = await eventually(async () => lab.install('waiting', manifest), { what: 'served' });
    const [a, w] = [await release.object('ConfigMap', 'a'), await release.object('Widget')];
    const correct = async (object: typeof a): Promise<string> =>
      (await correctObject(lab.client, object, { state: 'Missing' }, { policy: policy() })).outcome;

    await lab.cluster.kubectl(['delete', 'crd', 'widgets.waiting.test']);
    await eventually(
      async () => {
        expect((await verifyObject(lab.client, w, policy())).verdict).toEqual({ state: 'NotServed' });
      },
      { what: 'the kind is not served' },
    );
    expect(await correct(w)).toBe('waiting');

    await release.patch('configmap/holds', { metadata: { finalizers: ['capstan.test/wait'] } });
    await lab.cluster.kubectl(['delete', 'namespace', 'waiting', '--wait=false']);
    await eventually(
      async () => {
        expect((await verifyObject(lab.client, a, policy())).verdict).toEqual({ state: 'Missing' });
      },
      { what: 'the object is gone' },
    );
    expect(await correct(a)).toBe('waiting');
    await release.patch('configmap/holds', { metadata: { finalizers: null } });
    await eventually(
      async () => {
        await expect(lab.cluster.kubectl(['get', 'namespace', 'waiting'])).rejects.toThrow();
      },
      { what: 'the namespace is gone' },
    );
    expect(await correct(a)).toBe('waiting');
  });

  it('puts labels and annotations back, Helm’s own too', async () => {
    const release = await lab.install('labels', configMap('settings', { a: '1' }));
    await release.kubectl('label', 'configmap', 'settings', 'app.kubernetes.io/managed-by-');
    await release.kubectl('annotate', 'configmap', 'settings', 'meta.helm.sh/release-name-');
    expect(await release.correct('ConfigMap')).toMatchObject({ outcome: 'corrected' });
    const { metadata } = (await release.live('ConfigMap')) as ConfigMap;
    expect(metadata.labels).toMatchObject({ 'app.kubernetes.io/managed-by': 'Helm' });
    expect(metadata.annotations).toMatchObject({ 'meta.helm.sh/release-name': 'labels' });
  });
});
