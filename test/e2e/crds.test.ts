import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { HelmChartProxySpec, HelmReleaseProxySpec } from '../../src/api/index.ts';
import type { Environment, KubeObject, RestClient, TestCluster } from '../support/index.ts';
import { ensureNamespace, eventually, installCrds, startEnvironment } from '../support/index.ts';
import type { ChartProxyObject, ReleaseProxyObject } from './crds-objects.ts';
import { change, chartProxy, CRD_FILES, DEFAULT_OPTIONS, HCPS, HRPS, NAMESPACE } from './crds-objects.ts';
import { pathOf, refusal, releaseProxy } from './crds-objects.ts';

// What a real API server makes of the CRDs. (What it makes of them over CAAPH's: crds-over-caaph.test.ts.)

let environment: Environment;
let cluster: TestCluster;
let api: RestClient;

beforeAll(async () => {
  environment = await startEnvironment({ clusters: 1, management: false });
  [cluster] = environment.clusters as [TestCluster];
  api = cluster.api;
  await ensureNamespace(api, NAMESPACE);
  await installCrds(api, CRD_FILES);
}, 120_000);

afterAll(async () => {
  await environment.stop();
});

async function createChartProxy(spec: Partial<HelmChartProxySpec> = {}): Promise<ChartProxyObject> {
  return api.create<ChartProxyObject>(HCPS, chartProxy(spec));
}

async function createReleaseProxy(spec: Partial<HelmReleaseProxySpec> = {}): Promise<ReleaseProxyObject> {
  return api.create<ReleaseProxyObject>(HRPS, releaseProxy(spec));
}

describe('W15: what follows from an object with http://', () => {
  it('its HelmReleaseProxies can be created', async () => {
    expect((await createReleaseProxy({ repoURL: 'http://charts.example' })).spec.repoURL).toBe('http://charts.example');
  });

  it('a HelmChartProxy cannot be created with it, nor changed to it', async () => {
    const message =
      'spec.repoURL: Invalid value: "http://charts.example": uses unsupported scheme, must be https or oci';
    expect(await refusal(createChartProxy({ repoURL: 'http://charts.example' }))).toContain(message);
    const good = await createChartProxy();
    expect(await refusal(change(api, good, { repoURL: 'http://charts.example' }))).toContain(message);
  });
});

describe('repoURL', () => {
  const HOST = 'must include a host';
  const URL = 'must be a URL such as';
  const SCHEME = 'uses unsupported scheme';

  it.each([
    ['https://charts.example/stable', ''],
    ['oci://registry.example/charts', ''],
    ['HTTPS://charts.example', ''],
    ['https://user@charts.example:8443/a?b=c', ''],
    ['https://[::1]:8443', ''],
    ['OCI://registry.example/charts', 'must use the lowercase oci scheme'],
    ['http://charts.example', SCHEME],
    ['ftp://charts.example', SCHEME],
    ['file:///charts', SCHEME],
    ['/charts', SCHEME],
    ['charts', URL],
    ['', URL],
    ['https:///charts', HOST],
    ['https://:443', HOST],
    ['oci://:443', HOST],
  ])('of a HelmChartProxy, %j: %j', async (repoURL, expected) => {
    const said = await refusal(createChartProxy({ repoURL }));
    if (expected === '') expect(said).toBe('');
    else expect(said).toContain(`spec.repoURL: Invalid value: ${JSON.stringify(repoURL)}: ${expected}`);
  });

  it.each([
    ['https://charts.example', ''],
    ['oci://registry.example/charts', ''],
    ['HTTP://charts.example', ''],
    ['OCI://registry.example', 'must use the lowercase oci scheme'],
    ['ftp://charts.example', 'uses unsupported scheme, must be https, http or oci'],
    ['charts', URL],
    ['http://:80', HOST],
  ])('of a HelmReleaseProxy, %j: %j', async (repoURL, expected) => {
    const said = await refusal(createReleaseProxy({ repoURL }));
    if (expected === '') expect(said).toBe('');
    else expect(said).toContain(expected);
  });

  it('of a HelmChartProxy may change to another good one', async () => {
    const object = await createChartProxy();
    expect((await change(api, object, { repoURL: 'oci://registry.example/charts' })).spec.repoURL).toContain('oci');
  });
});

describe('immutable fields', () => {
  it.each([
    [undefined, 'Continuous'],
    ['', 'Continuous'],
    ['Continuous', 'InstallOnce'],
    ['InstallOnce', null],
  ])('reconcileStrategy %j cannot become %j, on either kind', async (from, to) => {
    for (const object of [
      await createChartProxy({ reconcileStrategy: from }),
      await createReleaseProxy({ reconcileStrategy: from }),
    ]) {
      const said = await refusal(change(api, object, { reconcileStrategy: to }));
      expect(said).toContain('spec.reconcileStrategy: Invalid value');
      expect(said).toContain('field is immutable');
    }
  });

  it("reconcileStrategy unset and '' are the same", async () => {
    const object = await createChartProxy();
    expect(await refusal(change(api, object, { reconcileStrategy: '' }))).toBe('');
    expect(await refusal(change(api, object, { reconcileStrategy: null }))).toBe('');
  });

  it.each([
    ['repoURL', 'https://elsewhere.example'],
    ['chartName', 'other'],
    ['namespace', 'other'],
    ['namespace', ''],
    ['namespace', null],
  ])('%s of a HelmReleaseProxy cannot become %j', async (field, value) => {
    const object = await createReleaseProxy({ namespace: 'apps' });
    const said = await refusal(change(api, object, { [field]: value }));
    expect(said).toContain(`spec.${field}: Invalid value`);
    expect(said).toContain('field is immutable');
  });

  it("namespace of a HelmReleaseProxy: unset, '' and default are the same", async () => {
    const object = await createReleaseProxy();
    expect(object.spec.namespace).toBe('default');
    expect(await refusal(change(api, object, { namespace: '' }))).toBe('');
    expect(await refusal(change(api, object, { namespace: 'default' }))).toBe('');
    expect(await refusal(change(api, object, { namespace: 'apps' }))).toContain('field is immutable');
  });

  it('the other fields of a HelmReleaseProxy follow the controller', async () => {
    const object = await createReleaseProxy();
    await change(api, object, { releaseName: 'demo-1', version: '2', values: 'a: 1', clusterRef: { uid: 'u' } });
  });

  it('what leads to a reinstall may change on a HelmChartProxy', async () => {
    const object = await createChartProxy();
    const spec = { chartName: 'other', namespace: 'apps', releaseName: 'x', repoURL: 'https://elsewhere.example' };
    expect((await change(api, object, spec)).spec).toMatchObject(spec);
  });
});

describe('defaults', () => {
  it.each([
    ['no options', undefined, DEFAULT_OPTIONS],
    ['empty options', {}, DEFAULT_OPTIONS],
    ['null instead of an object', { install: null, upgrade: null, timeout: null }, DEFAULT_OPTIONS],
    [
      'options that say something else',
      { wait: true, install: { includeCRDs: true } },
      {
        ...DEFAULT_OPTIONS,
        wait: true,
        install: { createNamespace: true, includeCRDs: true },
      },
    ],
  ])('with %s', async (_, options, expected) => {
    const given = options as HelmChartProxySpec['options'];
    for (const { spec } of [await createChartProxy({ options: given }), await createReleaseProxy({ options: given })]) {
      expect(spec.options).toEqual(expected);
      expect(spec.namespace).toBe('default');
    }
  });

  it('W6: createNamespace false and maxHistory 0 stay', async () => {
    const options = { install: { createNamespace: false }, upgrade: { maxHistory: 0 } };
    for (const object of [await createChartProxy({ options }), await createReleaseProxy({ options })]) {
      const changed = await change(api, object, { version: '2' });
      expect(changed.spec.options).toMatchObject(options);
    }
  });

  it('keep atomic and wait as they were written: it is the controller that waits', async () => {
    const { spec } = await createChartProxy({ options: { atomic: true } });
    expect(spec.options).toEqual({ ...DEFAULT_OPTIONS, atomic: true });
  });
});

describe('W9: clusterSelector', () => {
  const requirement = (operator: string, values?: string[]): object => ({
    matchExpressions: [
      { key: 'a', operator: 'Exists' },
      { key: 'env', operator, values },
    ],
  });

  it.each([
    ['an unknown operator', requirement('Includes', ['x']), 'operator must be In, NotIn, Exists or DoesNotExist'],
    ['In without values', requirement('In'), 'operators In and NotIn need at least one entry in values'],
    ['NotIn with no value', requirement('NotIn', []), 'operators In and NotIn need at least one entry in values'],
    ['Exists with a value', requirement('Exists', ['x']), 'operators Exists and DoesNotExist take no values'],
    ['DoesNotExist with a value', requirement('DoesNotExist', ['x']), 'DoesNotExist take no values'],
  ])('with %s is refused, when created and when changed to', async (_, clusterSelector, expected) => {
    const selector = clusterSelector as HelmChartProxySpec['clusterSelector'];
    expect(await refusal(createChartProxy({ clusterSelector: selector }))).toContain(expected);
    const said = await refusal(change(api, await createChartProxy(), { clusterSelector }));
    expect(said).toContain('spec.clusterSelector.matchExpressions: Invalid value');
    expect(said).toContain(expected);
  });

  it.each([
    ['In', ['a', 'b']],
    ['NotIn', ['a']],
    ['Exists', []],
    ['DoesNotExist', undefined],
  ])('with operator %s and values %j is let in', async (operator, values) => {
    const clusterSelector = requirement(operator, values) as HelmChartProxySpec['clusterSelector'];
    expect(await refusal(createChartProxy({ clusterSelector }))).toBe('');
  });

  it('a large one is let in', async () => {
    const values = Array.from({ length: 200 }, (_, index) => `cluster-${String(index)}`);
    const matchExpressions = Array.from({ length: 20 }, () => ({ key: 'name', operator: 'In' as const, values }));
    const object = await createChartProxy({ clusterSelector: { matchExpressions } });
    await change(api, object, { version: '2' });
  });
});

describe('the rest of the schema', () => {
  it.each(['', 'Continuous', 'InstallOnce', 'example.com/BlueGreen', 'my-strategy_2'])(
    'lets any strategy be named: %j',
    async (reconcileStrategy) => {
      expect(await refusal(createChartProxy({ reconcileStrategy }))).toBe('');
      expect(await refusal(createReleaseProxy({ reconcileStrategy }))).toBe('');
    },
  );

  it.each(['Install Once', '-once', 'once\n', 'x'.repeat(254)])('but not %j', async (reconcileStrategy) => {
    expect(await refusal(createChartProxy({ reconcileStrategy }))).toContain('spec.reconcileStrategy');
  });

  it.each(['90s', '10m0s', '1h30m', '1.5h', '250ms', '0'])('takes the timeout %j', async (timeout) => {
    expect(await refusal(createChartProxy({ options: { timeout } }))).toBe('');
  });

  it.each(['', '10', 'ten minutes', '5 m', '1d'])('refuses the timeout %j, as CAAPH does', async (timeout) => {
    expect(await refusal(createChartProxy({ options: { timeout } }))).toContain('spec.options.timeout');
  });

  it.each(['chartName', 'repoURL', 'clusterSelector'])('wants %s of a HelmChartProxy', async (field) => {
    const object = { ...chartProxy({}), spec: { ...chartProxy({}).spec, [field]: undefined } };
    expect(await refusal(api.create(HCPS, object))).toContain(`spec.${field}: Required value`);
  });

  it('wants a spec', async () => {
    expect(await refusal(api.create(HCPS, { ...chartProxy({}), spec: undefined }))).toContain('spec: Required value');
  });

  it('bounds conditions as CAAPH does, and keeps the status fields of both', async () => {
    const object = await createReleaseProxy();
    const condition = { type: 'Ready', status: 'True', reason: 'Ready', lastTransitionTime: '2026-01-01T00:00:00Z' };
    const write = (status: object): Promise<KubeObject> => api.patch(`${pathOf(object)}/status`, { status });
    const withMessage = (length: number): object => ({ conditions: [{ ...condition, message: 'x'.repeat(length) }] });
    expect(await refusal(write(withMessage(32_769)))).toContain('message');
    expect(await refusal(write(withMessage(32_768)))).toBe('');
    expect(await refusal(write({ conditions: [{ ...condition, message: '', reason: 'two words' }] }))).toContain(
      'reason',
    );
    const status = {
      conditions: [{ ...condition, message: '' }],
      observedGeneration: 1,
      status: 'deployed',
      revision: 3,
      chartVersion: '1.2.3',
      chartDigest: 'sha256:0',
      valuesDigest: 'sha256:1',
      clusterUID: 'uid',
      operation: { type: 'upgrade', revision: 4, startedAt: '2026-01-01T00:00:00Z', timeoutSeconds: 600 },
    };
    expect((await write(status)).status).toEqual(status);
  });
});

describe('kubectl', () => {
  const columns = async (args: string[]): Promise<string[]> =>
    ((await cluster.kubectl(['get', ...args, '-n', NAMESPACE])).split('\n')[0] ?? '').trim().split(/ {2,}/);

  it('knows the short names and prints the columns', async () => {
    await createChartProxy();
    await createReleaseProxy();
    expect(await columns(['hcp'])).toEqual(['NAME', 'READY', 'REASON']);
    expect(await columns(['hcp', '-o', 'wide'])).toEqual(['NAME', 'READY', 'REASON', 'MESSAGE', 'INSYNC']);
    expect(await columns(['hrp'])).toEqual(['NAME', 'CLUSTER', 'READY', 'REASON', 'STATUS', 'REVISION']);
    expect(await columns(['hrp', '-o', 'wide'])).toContain('MESSAGE');
  });

  it('prints what is in the status', async () => {
    const object = await createReleaseProxy();
    const condition = { type: 'Ready', status: 'True', reason: 'InfoReported', message: '' };
    await api.patch(`${pathOf(object)}/status`, {
      status: {
        conditions: [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }],
        status: 'deployed',
        revision: 7,
      },
    });
    const line = await cluster.kubectl(['get', 'hrp', object.metadata.name ?? '', '-n', NAMESPACE, '--no-headers']);
    expect(line.trim().split(/\s+/).slice(1)).toEqual(['one', 'True', 'InfoReported', 'deployed', '7']);
  });

  it.each([
    ['hcp', 'HelmChartProxy puts one Helm chart onto every Cluster'],
    ['hcp.spec.options.timeout', 'as a Go duration'],
    ['hcp.spec.clusterSelector', 'Labels of the Clusters'],
    ['hrp.spec.values', 'Values of the release'],
    ['hrp.status.operation', 'The Helm operation that is running'],
  ])('explains %s', async (field, expected) => {
    // The server publishes a changed schema a little after it goes by it.
    await eventually(async () => {
      expect((await cluster.kubectl(['explain', field])).replaceAll(/\s+/g, ' ')).toContain(expected);
    });
  });

  it('deletes by selector and waits for readiness as users script it', async () => {
    const object = await createChartProxy();
    await api.patch(pathOf(object), { metadata: { labels: { case: 'delete' } } });
    const condition = { type: 'Ready', status: 'True', reason: 'InfoReported', message: '' };
    await api.patch(`${pathOf(object)}/status`, {
      status: { conditions: [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }] },
    });
    const name = object.metadata.name ?? '';
    await cluster.kubectl(['wait', `hcp/${name}`, '-n', NAMESPACE, '--for=condition=Ready', '--timeout=5s']);
    await cluster.kubectl(['delete', 'hcp', '-n', NAMESPACE, '-l', 'case=delete']);
    expect(await api.find(pathOf(object))).toBeUndefined();
  });
});
