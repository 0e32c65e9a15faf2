/**
 * False positives and false negatives of drift detection that people reported to others (scenarios 1 to 10 of ten and ten):
 * what a server, an autoscaler or a controller makes of a chart is left alone, and what somebody edited beside it is put back.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet, KubeObject } from '../support/index.ts';
import { eventually } from '../support/index.ts';
import { widgetCrd } from './drift-manifests.ts';
import { APP, CHARTS_1, CUSTOM_GROUP } from './drift-scenarios-1-charts.ts';
import { Drifting, startDriftFleet } from './drifting.ts';
import { HELM_VERSIONS } from './helm-versions.ts';

interface Container {
  name: string;
  image: string;
  imagePullPolicy: string;
  args?: string[];
  env?: { name: string; value?: string }[];
  ports?: { name?: string; containerPort: number; protocol: string }[];
  resources: object;
}

type Workload = KubeObject & {
  spec: { replicas: number; template: KubeObject & { spec: { containers: [Container] } } };
};
type Name = keyof typeof CHARTS_1;
type Scaler = KubeObject & { spec: { metrics: { resource: { name: string } }[] } };
type Hook = KubeObject & { webhooks: { failurePolicy: string; clientConfig: { caBundle?: string } }[] };
type Role = KubeObject & { rules: object[] | null };

/** An object, and what throws while it is not as it should be. */
interface Expected<T extends KubeObject> {
  path: string;
  check: (object: T) => void;
}

const HOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const CLUSTER_ROLES = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const CONTAINER = '/spec/template/spec/containers/0';

describe.each(HELM_VERSIONS)('on $name', ({ name: version, binary }) => {
  let fleet: Fleet;
  let drifting: Drifting;

  beforeAll(async () => {
    // Objects are edited several times: without a pause between corrections nobody has to wait.
    fleet = await startDriftFleet({ helm: binary, flags: ['--drift-retry-delays=0s,0s,0s,0s'] });
    drifting = new Drifting(fleet);
    for (const [name, templates] of Object.entries(CHARTS_1)) drifting.publish(name, '1.0.0', templates);
    await drifting.cluster.kubectl(['apply', '-f', '-'], { stdin: widgetCrd(CUSTOM_GROUP) });
    await drifting.cluster.kubectl(['wait', '--for=condition=Established', `crd/widgets.${CUSTOM_GROUP}`]);
  });

  afterAll(async () => {
    await fleet.stop();
  });

  /** Installed as the chart has it, nothing of that is drift, and nothing was written once more. */
  async function install(name: Name, driftDetection?: object): Promise<void> {
    await drifting.install(name, CHARTS_1[name], driftDetection && { driftDetection });
    const { drifted = 0, corrections = 0 } = await drifting.drift(name);
    expect({ drifted, corrections }).toEqual({ drifted: 0, corrections: 0 });
  }

  /** One edit is one correction, after which the object is as it should be. */
  async function putBack<T extends KubeObject>(
    name: Name,
    edit: () => Promise<unknown>,
    expected: Expected<T>,
  ): Promise<void> {
    const before = await drifting.corrections(name);
    await edit();
    expect((await drifting.corrected(name, before + 1)).corrections).toBe(before + 1);
    await drifting.until(expected.path, expected.check);
    await drifting.inSync(name);
  }

  function deployment(name: Name): string {
    return `/apis/apps/v1/namespaces/${name}/deployments/web`;
  }

  function widget(name: Name): string {
    return `/apis/${CUSTOM_GROUP}/v1/namespaces/${name}/widgets/one`;
  }

  async function web(name: Name): Promise<Workload> {
    return drifting.cluster.api.get<Workload>(deployment(name));
  }

  async function merge(path: string, body: object): Promise<void> {
    await drifting.cluster.api.patch(path, body);
  }

  async function set(path: string, pointer: string, value: unknown): Promise<void> {
    await drifting.cluster.api.jsonPatch(path, [{ op: 'add', path: pointer, value }]);
  }

  async function scale(name: Name, replicas: number): Promise<void> {
    await drifting.cluster.kubectl(['scale', 'deployment/web', '-n', name, `--replicas=${String(replicas)}`]);
  }

  function imageIsBack({ spec }: Workload): void {
    expect(spec.template.spec.containers[0].image).toBe(APP);
  }

  it("1: the server's defaults are no drift, and another value of such a field is", async () => {
    await install('defaults', { mode: 'Correct', extraFields: 'Remove' });
    const installed = await web('defaults');
    expect(installed.metadata.generation).toBe(1);
    await putBack('defaults', async () => merge(widget('defaults'), { spec: { size: 5 } }), {
      path: widget('defaults'),
      check: (object: KubeObject) => expect(object).toMatchObject({ spec: { size: 3, cpu: '500m' } }),
    });
    for (const [pointer, value] of [
      [`${CONTAINER}/terminationMessagePolicy`, 'FallbackToLogsOnError'],
      ['/spec/strategy', { type: 'Recreate' }],
    ] as const) {
      await putBack('defaults', async () => set(deployment('defaults'), pointer, value), {
        path: deployment('defaults'),
        check: (object: Workload) => expect(object.spec).toEqual(installed.spec),
      });
    }
  });

  it('1: a field that the chart leaves null is drift in every mode when somebody sets it', async () => {
    await install('nulled');
    const { spec } = await web('nulled');
    await putBack('nulled', async () => set(deployment('nulled'), `${CONTAINER}/imagePullPolicy`, 'Never'), {
      path: deployment('nulled'),
      check: (object: Workload) => expect(object.spec).toEqual(spec),
    });
  });

  it('2: the same amount in other words is no drift, in custom resources by a rule; another amount is', async () => {
    const quantities = [{ paths: ['/spec/cpu'], target: { kind: 'Widget' } }];
    await install('amounts', { mode: 'Correct', quantities });
    const installed = await web('amounts');
    expect(installed.metadata.generation).toBe(1);

    await merge(widget('amounts'), { spec: { cpu: '0.5' } });
    await drifting.nothingElseCorrected('amounts');
    expect(await drifting.cluster.api.get(widget('amounts'))).toMatchObject({ spec: { cpu: '0.5' } });
    await putBack('amounts', async () => merge(widget('amounts'), { spec: { cpu: '0.6' } }), {
      path: widget('amounts'),
      check: (object: KubeObject) => expect(object).toMatchObject({ spec: { cpu: '500m' } }),
    });
    await putBack('amounts', async () => set(deployment('amounts'), `${CONTAINER}/resources/limits/memory`, '4Gi'), {
      path: deployment('amounts'),
      check: (object: Workload) => expect(object.spec).toEqual(installed.spec),
    });
  });

  it("3: replicas within an autoscaler's limits are its own, also while something else is put back", async () => {
    await install('scaled');
    await scale('scaled', 5);
    await drifting.nothingElseCorrected('scaled');
    await putBack('scaled', async () => set(deployment('scaled'), `${CONTAINER}/image`, 'registry.test/app:2'), {
      path: deployment('scaled'),
      check: imageIsBack,
    });
    expect((await web('scaled')).spec.replicas).toBe(5);
    await putBack('scaled', async () => scale('scaled', 9), {
      path: deployment('scaled'),
      check: ({ spec }: Workload) => expect(spec.replicas).toBe(2),
    });
  });

  it("3: KEDA's autoscaler may go down to nothing, and nobody without one", async () => {
    await install('keda');
    await putBack('keda', async () => scale('keda', 0), {
      path: deployment('keda'),
      check: ({ spec }: Workload) => expect(spec.replicas).toBe(2),
    });
    await drifting.cluster.api.create('/apis/autoscaling/v2/namespaces/keda/horizontalpodautoscalers', {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: {
        name: 'keda-hpa-web',
        ownerReferences: [{ apiVersion: 'keda.sh/v1alpha1', kind: 'ScaledObject', name: 'web', uid: 'no-such-uid' }],
      },
      spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, maxReplicas: 3 },
    });
    await scale('keda', 0);
    await drifting.nothingElseCorrected('keda');
    expect((await web('keda')).spec.replicas).toBe(0);
  });

  it('4: a caBundle that somebody fills in stays, and one that the chart sets is put back', async () => {
    await install('bundles');
    const bundle = btoa(drifting.cluster.ca);
    const injected = [
      [`${HOOKS}/bundle-absent`, '/webhooks/0/clientConfig/caBundle'],
      [`${HOOKS}/bundle-placeholder`, '/webhooks/0/clientConfig/caBundle'],
      [`${CRDS}/widgets.bundles.test`, '/spec/conversion/webhook/clientConfig/caBundle'],
    ] as const;
    for (const [path, pointer] of injected) await set(path, pointer, bundle);
    await drifting.nothingElseCorrected('bundles');

    for (const name of ['bundle-absent', 'bundle-placeholder']) {
      await putBack('bundles', async () => set(`${HOOKS}/${name}`, '/webhooks/0/failurePolicy', 'Fail'), {
        path: `${HOOKS}/${name}`,
        check: ({ webhooks }: Hook) =>
          expect(webhooks).toMatchObject([{ failurePolicy: 'Ignore', clientConfig: { caBundle: bundle } }]),
      });
    }
    await putBack('bundles', async () => set(`${HOOKS}/bundle-set`, '/webhooks/0/clientConfig/caBundle', bundle), {
      path: `${HOOKS}/bundle-set`,
      check: ({ webhooks }: Hook) => expect(webhooks[0]?.clientConfig.caBundle).toBe('QQ=='),
    });
    expect(await drifting.cluster.api.get(`${CRDS}/widgets.bundles.test`)).toMatchObject({
      spec: { conversion: { webhook: { clientConfig: { caBundle: bundle } } } },
    });
  });

  it("5: a Secret's stringData, empty and null values are what the server makes of them; edits are put back unseen", async () => {
    await install('secrets');
    const path = '/api/v1/namespaces/secrets/secrets/one';
    const installed = await drifting.cluster.api.get<KubeObject & { data: object }>(path);
    expect(installed.data).toMatchObject({ user: btoa('admin'), key: btoa('secret'), empty: '' });
    await drifting.nothingElseCorrected('secrets');
    for (const stringData of [{ user: 'root' }, { key: 'stolen' }, { empty: 'full' }]) {
      await putBack('secrets', async () => merge(path, { stringData }), {
        path,
        check: ({ data }: typeof installed) => expect(data).toEqual(installed.data),
      });
    }
    const told = JSON.stringify(await drifting.proxy('secrets'));
    for (const value of ['admin', 'secret', 'root', 'stolen', 'full']) expect(told).not.toContain(btoa(value));
  });

  it('6: null and empty are absent: nothing is written, no pod is rolled', async () => {
    await install('empties', { mode: 'Correct', extraFields: 'Remove' });
    const installed = await web('empties');
    expect(installed.metadata.generation).toBe(1);
    await drifting.nothingElseCorrected('empties');
    expect((await web('empties')).metadata.generation).toBe(1);
    await putBack('empties', async () => set(deployment('empties'), `${CONTAINER}/image`, 'registry.test/app:2'), {
      path: deployment('empties'),
      check: (object: Workload) => expect(object.spec).toEqual(installed.spec),
    });
    // The edit's and the correction's.
    expect((await web('empties')).metadata.generation).toBe(3);
  });

  if (version === 'helm 3') {
    it('7: a variable and a port that are there twice are put back both, and none is dropped', async () => {
      await install('twice');
      const [{ env, ports }] = (await web('twice')).spec.template.spec.containers;
      expect(env?.map(({ name, value }) => `${name}=${value ?? ''}`)).toEqual(['A=1', 'B=2', 'A=3']);
      expect(ports).toHaveLength(2);
      const edits = [
        ['/env/2/value', '4'],
        ['/env/0/value', '4'],
        ['/image', 'registry.test/app:2'],
      ] as const;
      for (const [pointer, value] of edits) {
        await putBack('twice', async () => set(deployment('twice'), `${CONTAINER}${pointer}`, value), {
          path: deployment('twice'),
          check: ({ spec }: Workload) =>
            expect(spec.template.spec.containers[0]).toMatchObject({ image: APP, env, ports }),
        });
      }
    });
  } else {
    it('7: a variable that is there twice cannot be applied, and the release says so', async () => {
      const spec = { chartName: 'twice', version: '1.0.0', releaseName: 'twice', namespace: 'twice' };
      await fleet.createChartProxy('twice', { ...spec, clusterSelector: { matchLabels: { idx: '1' } } });
      const subject = { chartProxy: 'twice', index: 1 };
      await eventually(
        async () => {
          const { message } = await fleet.conditionOf(subject, { type: 'HelmReleaseReady', status: 'False' });
          expect(message).toMatch(/duplicate/);
        },
        { timeoutMs: 60_000, what: 'the release says what cannot be applied' },
      );
      expect(await drifting.condition('twice')).not.toMatchObject({ status: 'True' });
    });
  }

  it('8: the order of what goes by keys means nothing, that of arguments does', async () => {
    await install('order');
    const hpa = '/apis/autoscaling/v2/namespaces/order/horizontalpodautoscalers/web';
    const scaler = await drifting.cluster.api.get<Scaler>(hpa);
    await set(hpa, '/spec/metrics', scaler.spec.metrics.toReversed());
    const [{ ports = [] }] = (await web('order')).spec.template.spec.containers;
    await set(deployment('order'), `${CONTAINER}/ports`, ports.toReversed());
    await drifting.nothingElseCorrected('order');
    expect((await drifting.cluster.api.get<Scaler>(hpa)).spec.metrics).toEqual(scaler.spec.metrics.toReversed());

    await putBack('order', async () => set(deployment('order'), `${CONTAINER}/args`, ['b', 'a']), {
      path: deployment('order'),
      check: ({ spec }: Workload) => expect(spec.template.spec.containers[0].args).toEqual(['a', 'b']),
    });
  });

  it('8: the order of environment variables counts, as they refer to each other', async () => {
    await install('variables');
    const [{ env = [] }] = (await web('variables')).spec.template.spec.containers;
    await putBack('variables', async () => set(deployment('variables'), `${CONTAINER}/env`, env.toReversed()), {
      path: deployment('variables'),
      check: ({ spec }: Workload) => expect(spec.template.spec.containers[0].env).toEqual(env),
    });
  });

  it("9: an aggregated role's rules are the controller's; no rules are none", async () => {
    await install('roles');
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }];
    for (const name of ['aggregated-empty', 'aggregated-absent']) await merge(`${CLUSTER_ROLES}/${name}`, { rules });
    await drifting.nothingElseCorrected('roles');
    for (const name of ['aggregated-empty', 'aggregated-absent']) {
      const path = `${CLUSTER_ROLES}/${name}`;
      await putBack('roles', async () => merge(path, { metadata: { labels: { kept: 'no' } } }), {
        path,
        check: (role: Role) => expect(role).toMatchObject({ metadata: { labels: { kept: 'yes' } }, rules }),
      });
    }
    const granted = '/apis/rbac.authorization.k8s.io/v1/namespaces/roles/roles/none';
    await putBack('roles', async () => merge(granted, { rules }), {
      path: granted,
      check: (role: Role) => expect(role.rules ?? []).toEqual([]),
    });
  });

  it("10: a status in the manifest is nobody's wish, and stays the controller's", async () => {
    await install('statuses');
    const database = '/apis/apps/v1/namespaces/statuses/statefulsets/db';
    await merge(`${database}/status`, { status: { replicas: 2, observedGeneration: 1 } });
    await drifting.nothingElseCorrected('statuses');
    await putBack('statuses', async () => merge(database, { spec: { replicas: 4 } }), {
      path: database,
      check: (object: KubeObject) => expect(object).toMatchObject({ spec: { replicas: 1 }, status: { replicas: 2 } }),
    });
    const crd = `${CRDS}/widgets.statuses.test`;
    await putBack('statuses', async () => merge(crd, { metadata: { labels: { kept: 'no' } } }), {
      path: crd,
      check: (object: KubeObject & { status: object }) => {
        expect(object.metadata.labels).toMatchObject({ kept: 'yes' });
        expect(object.status).toMatchObject({ storedVersions: ['v1'], acceptedNames: { kind: 'Widget' } });
      },
    });
  });
});
