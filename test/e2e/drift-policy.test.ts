/** What people ask of drift detection, as docs/drift.md says it: modes, what is taken out, ignore rules, InstallOnce. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ApiError, eventually } from '../support/index.ts';
import type { Fleet, KubeObject } from '../support/index.ts';
import { apiRequests, countRequests } from './api-requests.ts';
import { CHARTS, OPT_OUT } from './drift-policy-charts.ts';
import { Drifting, startDriftFleet } from './drifting.ts';
import { operations } from './looks.ts';

type Settings = KubeObject & { data?: Record<string, string> };
type Workload = KubeObject & { spec: { replicas: number; template: { spec: { containers: Container[] } } } };
type Rules = Record<string, unknown> & { ignore?: object[]; quantities?: object[] };

interface Container {
  image: string;
  env?: { name: string; value: string }[];
}

let fleet: Fleet;
let drifting: Drifting;

beforeAll(async () => {
  fleet = await startDriftFleet({ flags: ['--drift-retry-delays=0s,0s,0s,0s'] });
  drifting = new Drifting(fleet);
  // All at once: the index of a repository is not asked for at every look.
  for (const [name, templates] of Object.entries(CHARTS)) drifting.publish(name, '1.0.0', templates);
  // The one whose kinds are watched all the time: what others' watches do can be counted.
  await install('base');
});

afterAll(async () => {
  await fleet.stop();
});

async function install(name: keyof typeof CHARTS, driftDetection?: object): Promise<void> {
  await drifting.install(name, CHARTS[name], driftDetection === undefined ? {} : { driftDetection });
}

function configMapPath(namespace: string, name: string): string {
  return `/api/v1/namespaces/${namespace}/configmaps/${name}`;
}

function deploymentPath(namespace: string, name: string): string {
  return `/apis/apps/v1/namespaces/${namespace}/deployments/${name}`;
}

async function patch(path: string, body: object): Promise<void> {
  await drifting.cluster.api.patch(path, body);
}

async function strategic(namespace: string, object: string, body: object): Promise<void> {
  await drifting.cluster.kubectl(['patch', object, '-n', namespace, '-p', JSON.stringify(body)]);
}

/** Its containers' fields; the other fields of the list's element stay. */
function container(fields: object): object {
  return { spec: { template: { spec: { containers: [{ name: 'app', ...fields }] } } } };
}

async function dataOf(namespace: string, name: string): Promise<Record<string, string> | undefined> {
  return (await drifting.cluster.api.get<Settings>(configMapPath(namespace, name))).data;
}

async function dataIs(namespace: string, name: string, data: Record<string, string>): Promise<void> {
  await drifting.until<Settings>(configMapPath(namespace, name), (object) => expect(object.data).toEqual(data));
}

async function ask(name: string, driftDetection: object): Promise<void> {
  await fleet.patchChartProxy(name, { spec: { driftDetection } });
}

async function watches(): Promise<{ starts: number; open: number }> {
  const { manager } = fleet;
  const cluster = { cluster: `${fleet.namespace}/c1` };
  return {
    starts: await manager.metric('capstan_watch_starts_total', cluster),
    open: await manager.metric('capstan_watches', cluster),
  };
}

async function notLookedAt(name: string): Promise<void> {
  await eventually(async () => {
    expect(await drifting.condition(name)).toBeUndefined();
    expect(await drifting.drift(name)).toEqual({});
  });
}

describe('the mode', () => {
  it('goes from Disabled to Warn, Correct and back without an upgrade; watches, status and conditions go with it', async () => {
    const spec = { chartName: 'modes', version: '1.0.0', releaseName: 'modes', namespace: 'modes' };
    const before = await watches();
    const clusterSelector = { matchLabels: { idx: '1' } };
    await fleet.createChartProxy('modes', { ...spec, clusterSelector, driftDetection: { mode: 'Disabled' } });
    await fleet.deployed('modes', 1);
    const helm = await operations(fleet, 'upgrade');
    const settings = configMapPath('modes', 'settings');
    await patch(settings, { data: { mode: 'wild' } });
    await drifting.nothingElseCorrected('base');
    await notLookedAt('modes');
    expect(await watches()).toEqual(before);

    await ask('modes', { mode: 'Warn' });
    await drifting.outOfSync('modes');
    expect(await drifting.drift('modes')).toMatchObject({ objects: 2, drifted: 1, corrections: 0 });
    // PodDisruptionBudgets; ConfigMaps are watched for the other release.
    expect(await watches()).toEqual({ starts: before.starts + 1, open: before.open + 1 });
    await patch(settings, { data: { mode: 'wilder' } });
    await eventually(async () => {
      const { details = [] } = await drifting.drift('modes');
      expect(details[0]?.fields?.[0]).toMatchObject({ path: '/data/mode', live: '"wilder"' });
    });
    await drifting.nothingElseCorrected('base');
    expect(await dataOf('modes', 'settings')).toEqual({ mode: 'wilder' });

    await ask('modes', { mode: 'Correct' });
    await dataIs('modes', 'settings', { mode: 'calm' });
    await drifting.inSync('modes');
    expect(await watches()).toEqual({ starts: before.starts + 1, open: before.open + 1 });

    await ask('modes', { mode: 'Disabled' });
    await notLookedAt('modes');
    await eventually(async () => expect(await watches()).toEqual({ starts: before.starts + 1, open: before.open }));
    await patch(settings, { data: { mode: 'free' } });
    await drifting.nothingElseCorrected('base');
    expect(await dataOf('modes', 'settings')).toEqual({ mode: 'free' });
    expect(await operations(fleet, 'upgrade')).toBe(helm);
    expect(await drifting.revision('modes')).toBe(1);
  });
});

describe('an object that its owner takes out', () => {
  it('on the cluster is left alone until the annotation goes', async () => {
    await install('live-out');
    const a = configMapPath('live-out', 'a');
    await drifting.cluster.kubectl(['annotate', 'configmap', 'a', '-n', 'live-out', `${OPT_OUT}=disabled`]);
    await patch(a, { data: { mode: 'wild' } });
    await drifting.nothingElseCorrected('live-out');
    expect(await dataOf('live-out', 'a')).toEqual({ mode: 'wild' });
    await drifting.cluster.kubectl(['annotate', 'configmap', 'a', '-n', 'live-out', `${OPT_OUT}-`]);
    await dataIs('live-out', 'a', { mode: 'calm' });
  });

  it('in the manifest is left alone, edited or deleted', async () => {
    await install('chart-out');
    await patch(configMapPath('chart-out', 'a'), { data: { mode: 'wild' } });
    await drifting.cluster.api.delete(configMapPath('chart-out', 'b'));
    await drifting.nothingElseCorrected('chart-out');
    expect(await dataOf('chart-out', 'a')).toEqual({ mode: 'wild' });
    expect(await drifting.cluster.api.find(configMapPath('chart-out', 'b'))).toBeUndefined();
  });
});

/** `driftDetection` of the examples in docs/drift.md. */
const EXAMPLES = [
  ...readFileSync(join(import.meta.dirname, '../../docs/drift.md'), 'utf8').matchAll(/```yaml\n(.*?)```/gs),
]
  .map(([, text]) => (parse(text ?? '') as { driftDetection?: Rules }).driftDetection)
  .filter((rules) => rules !== undefined);

/** The example that has this text. */
function example(text: string): Rules {
  const found = EXAMPLES.find((rules) => JSON.stringify(rules).includes(text));
  if (found === undefined) throw new Error(`docs/drift.md has no example with ${text}`);
  return { ...found, mode: 'Correct' };
}

describe('the ignore rules of the documentation', () => {
  it('are taken by the API', async () => {
    expect(EXAMPLES.length).toBeGreaterThanOrEqual(6);
    for (const [index, driftDetection] of EXAMPLES.entries()) {
      await fleet.api.create(`${fleet.path('helmchartproxies')}?dryRun=All`, {
        apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
        kind: 'HelmChartProxy',
        metadata: { name: `example-${index}` },
        spec: { clusterSelector: {}, chartName: 'a', repoURL: fleet.charts.url, driftDetection },
      });
    }
  });

  it('leave the number of replicas to others, also when another field is put back', async () => {
    await install('replicas', example('/spec/replicas'));
    const web = deploymentPath('replicas', 'web');
    await drifting.cluster.kubectl(['scale', 'deployment', 'web', '-n', 'replicas', '--replicas=5']);
    await drifting.nothingElseCorrected('replicas');
    await strategic('replicas', 'deployment/web', container({ image: 'registry.test/app:2' }));
    await drifting.until<Workload>(web, ({ spec }) => {
      expect(spec.template.spec.containers[0]?.image).toBe('registry.test/app:1');
    });
    expect((await drifting.cluster.api.get<Workload>(web)).spec.replicas).toBe(5);
    await drifting.inSync('replicas');
  });

  it("leave an operator's annotation and sidecars' images to others", async () => {
    await install('scanned', example('last-scan'));
    await patch(deploymentPath('scanned', 'web'), { metadata: { annotations: { 'example.com/last-scan': 'today' } } });
    await strategic('scanned', 'deployment/web', container({ image: 'registry.test/app:2' }));
    await drifting.nothingElseCorrected('scanned');
    await strategic('scanned', 'deployment/web', container({ env: [{ name: 'MODE', value: 'wild' }] }));
    const live = await drifting.until<Workload>(deploymentPath('scanned', 'web'), ({ spec }) => {
      expect(spec.template.spec.containers[0]?.env).toEqual([{ name: 'MODE', value: 'calm' }]);
    });
    expect(live.spec.template.spec.containers[0]?.image).toBe('registry.test/app:2');
    expect(live.metadata.annotations).toMatchObject({ 'example.com/last-scan': 'today' });
  });

  it('leave Secrets that are filled in, and one ConfigMap altogether, to others', async () => {
    await install('filled', example('generated-'));
    const path = '/api/v1/namespaces/filled/secrets/generated-one';
    await patch(path, { stringData: { key: 'filled', more: 'keys' } });
    await drifting.cluster.api.delete(configMapPath('filled', 'theirs'));
    await drifting.nothingElseCorrected('filled');
    await patch(path, { metadata: { labels: { a: 'c' } } });
    const live = await drifting.until<Settings>(path, ({ metadata }) =>
      expect(metadata.labels).toMatchObject({ a: 'b' }),
    );
    expect(live.data).toEqual({ key: btoa('filled'), more: btoa('keys') });
    expect(await drifting.cluster.api.find(configMapPath('filled', 'theirs'))).toBeUndefined();
  });

  it('leave what a Job fills into webhooks to others', async () => {
    await install('hooked', example('caBundle'));
    const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/drift-hook';
    const { ca } = drifting.cluster;
    const filled = [
      { op: 'add', path: '/webhooks/0/clientConfig/caBundle', value: btoa(ca) },
      { op: 'replace', path: '/webhooks/0/failurePolicy', value: 'Fail' },
    ];
    await drifting.cluster.api.jsonPatch(path, filled);
    await drifting.nothingElseCorrected('hooked');
    const url = [{ op: 'replace', path: '/webhooks/0/clientConfig/url', value: 'https://hook.test/b' }];
    await drifting.cluster.api.jsonPatch(path, url);
    await drifting.until<KubeObject & { webhooks: object[] }>(path, ({ webhooks }) => {
      const clientConfig = { url: 'https://hook.test/a', caBundle: btoa(ca) };
      expect(webhooks).toMatchObject([{ clientConfig, failurePolicy: 'Fail' }]);
    });
  });

  it("compare a custom resource's quantities as such", async () => {
    const crd = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'caches.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'caches', kind: 'Cache' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          },
        ],
      },
    };
    await drifting.cluster.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(crd) });
    await drifting.cluster.kubectl(['wait', '--for=condition=Established', 'crd/caches.example.com']);
    await install('cached', example('cacheSize'));
    const path = '/apis/example.com/v1/namespaces/cached/caches/one';
    await patch(path, { spec: { cacheSize: '1024Mi', shards: [{ memory: '1.5' }] } });
    await drifting.nothingElseCorrected('cached');
    // Neither another amount nor a field that no rule names.
    for (const spec of [{ cacheSize: '2Gi' }, { cpu: '1' }]) {
      const count = await drifting.corrections('cached');
      await patch(path, { spec });
      expect((await drifting.corrected('cached', count + 1)).corrections).toBe(count + 1);
    }
    expect(await drifting.cluster.api.get(path)).toMatchObject({ spec: { cpu: '1000m' } });
  });
});

describe('a wrong rule', () => {
  const rule = (target: object): object => ({ mode: 'Correct', ignore: [{ paths: ['/data/other'], target }] });

  async function rules(wanted: { status: string; reason: string }): Promise<string> {
    const subject = { chartProxy: 'ruled', index: 1 };
    return (await fleet.conditionOf(subject, { type: 'DriftRulesValid', ...wanted })).message;
  }

  it('is told in the condition by its name; nothing is put back meanwhile that it might have been about', async () => {
    await install('ruled', rule({ kind: 'ConfigMap', name: 'a(' }));
    expect(await rules({ status: 'False', reason: 'IgnoreRuleInvalid' })).toContain('ignore[0].target.name');
    await patch(configMapPath('ruled', 'a'), { data: { mode: 'wild' } });
    expect((await drifting.outOfSync('ruled')).message).toContain('ignore rule cannot be read');
    await ask('ruled', rule({ kind: 'ConfigMap', name: 'a' }));
    await rules({ status: 'True', reason: 'Valid' });
    await dataIs('ruled', 'a', { mode: 'calm' });
  });

  it('that matches nothing is told, and keeps nothing from being put back', async () => {
    await ask('ruled', rule({ kind: 'Deployment' }));
    const message = await rules({ status: 'False', reason: 'IgnoreRuleMatchesNothing' });
    expect(message).toContain('ignore[0].target');
    await patch(configMapPath('ruled', 'a'), { data: { mode: 'wild' } });
    await dataIs('ruled', 'a', { mode: 'calm' });
    await fleet.patchChartProxy('ruled', { spec: { driftDetection: null } });
    await eventually(async () => {
      expect(await drifting.condition('ruled', 'DriftRulesValid')).toBeUndefined();
    });
    await drifting.nothingElseCorrected('ruled');
  });

  it.each(['spec/replicas', '/a~2b'])('whose path is no JSON pointer (%s) is refused by the API', async (path) => {
    const refused = fleet.patchChartProxy('ruled', { spec: { driftDetection: { ignore: [{ paths: [path] }] } } });
    await expect(refused).rejects.toThrow(ApiError);
    await expect(refused).rejects.toThrow('paths');
  });
});

describe('a release with InstallOnce', () => {
  it('is never looked at: no request about its objects reaches the API server', async () => {
    const before = await watches();
    await fleet.createChartProxy('once', {
      chartName: 'once',
      version: '1.0.0',
      releaseName: 'once',
      namespace: 'once',
      reconcileStrategy: 'InstallOnce',
      clusterSelector: { matchLabels: { idx: '1' } },
      driftDetection: { mode: 'Correct' },
    });
    await fleet.deployed('once', 1);
    const path = '/apis/networking.k8s.io/v1/namespaces/once/networkpolicies';
    const requests = async (): Promise<number> =>
      countRequests(await apiRequests(drifting.cluster), ({ resource }) => resource === 'networkpolicies');
    const count = await requests();
    await patch(`${path}/one`, { spec: { policyTypes: ['Egress'] } });
    await drifting.cluster.api.delete(`${path}/two`);
    await drifting.nothingElseCorrected('base');
    expect(await requests()).toBe(count + 2);
    expect(await watches()).toEqual(before);
    await notLookedAt('once');
    expect(await drifting.cluster.api.find(`${path}/two`)).toBeUndefined();
  });
});
