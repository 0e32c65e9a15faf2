import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clusterPath, eventually, Fleet, setLabels, simpleChart } from '../support/index.ts';
import type { Proxy } from '../support/index.ts';
import { apiRequests, countRequests } from './api-requests.ts';
import { chartOf, configMap } from './chart-files.ts';
import { Hauling } from './hauling.ts';

/** Values: what a user writes in valuesTemplate arrives at the chart as it would with CAAPH, or the user is told. */
describe('a platform engineer who writes values', () => {
  let fleet: Fleet;
  let hauling: Hauling;

  beforeAll(async () => {
    fleet = await Fleet.start({
      clusters: 2,
      declare: (index) => ({
        controlPlane: { spec: { version: `v1.3${index}.0`, replicas: 3 } },
        // The endpoint of the second one appears later.
        infraCluster: { spec: index === 1 ? { endpoint: { host: 'one.example.com', port: 6443 } } : {} },
      }),
    });
    hauling = new Hauling(fleet);
    fleet.charts.publish(simpleChart({ name: 'app', values: { message: 'hello', nested: { a: 1, b: 2 }, list: [1] } }));
  });

  afterAll(async () => {
    await fleet.stop();
  });

  /** All values as the chart saw them: its own, overlaid by the user's. */
  async function seen(name: string): Promise<Record<string, unknown>> {
    return JSON.parse((await hauling.configMap(name, '0'))?.data['values'] ?? '{}') as Record<string, unknown>;
  }

  it('has numbers, booleans and text stay what they are', async () => {
    const name = 'scalars';
    await hauling.install(name, {
      chartName: 'app',
      valuesTemplate: [
        'int: 42',
        'bigInt: 9007199254740991',
        'float: 1.5',
        'wholeFloat: 1.0',
        'exponent: 1e3',
        'textExponent: "1e3"',
        'textOctal: "0777"',
        'octal: 0777',
        'negative: -7',
        'yes: yes',
        'off: off',
        'textYes: "yes"',
        'truth: true',
        'date: 2026-12-01',
        'time: 12:30:45',
        'version: 1.20',
        'textVersion: "1.20"',
        'empty: ""',
        'tilde: ~',
        'multiline: |',
        '  first',
        '  second',
        '',
      ].join('\n'),
    });
    expect(await seen(name)).toMatchObject({
      int: 42,
      bigInt: 9007199254740991,
      float: 1.5,
      wholeFloat: 1,
      exponent: 1000,
      textExponent: '1e3',
      textOctal: '0777',
      octal: 511,
      negative: -7,
      // YAML 1.1, as Helm has it: a key `yes` is the boolean true.
      true: true,
      false: false,
      textYes: 'yes',
      truth: true,
      date: '2026-12-01',
      time: '12:30:45',
      version: 1.2,
      textVersion: '1.20',
      empty: '',
      multiline: 'first\nsecond\n',
    });
    await fleet.removeChartProxy(name);
  });

  it('has a null take a default of the chart away, and no values leave the defaults', async () => {
    await hauling.install('nulls', {
      chartName: 'app',
      valuesTemplate: 'message: null\nnested: { a: null }\nlist: []\n',
    });
    expect(await seen('nulls')).toEqual({ nested: { b: 2 }, list: [] });
    for (const [name, valuesTemplate] of Object.entries({
      empty: '',
      blank: '\n  \n',
      comment: '# nothing\n',
      braces: '{}\n',
      'is-null': 'null\n',
      vanishing: '{{ if false }}message: x{{ end }}\n',
    })) {
      await hauling.install(name, { chartName: 'app', valuesTemplate });
      expect(await seen(name), name).toEqual({ message: 'hello', nested: { a: 1, b: 2 }, list: [1] });
      await fleet.removeChartProxy(name);
    }
    await fleet.removeChartProxy('nulls');
  });

  it('has any script and emoji arrive whole, in values and in keys', async () => {
    const name = 'unicode';
    await hauling.install(name, {
      chartName: 'app',
      valuesTemplate: 'message: "grüß 世界 🚢 \\u0000x\\t{{ "⎈" }}"\n"clé": "значение"\nrtl: "שלום"\n'.replace(
        '\\u0000x',
        '',
      ),
    });
    expect((await hauling.configMap(name, '0'))?.data['message']).toBe('grüß 世界 🚢 \t⎈');
    expect(await seen(name)).toMatchObject({ clé: 'значение', rtl: 'שלום' });
    await fleet.removeChartProxy(name);
  });

  it.each([
    ['several documents', 'message: one\n---\nmessage: two\n', /document/],
    ['a tab for indentation', 'nested:\n\ta: 1\n', /[Tt]ab|character/],
    ['a list where a map is wanted', '{{ range list 1 2 }}- item: {{ . }}\n{{ end }}', /list, not a map/],
    ['a single value', 'just a text\n', /single value, not a map|not a map/],
    ['a bracket left open', 'list: [1, 2\n', /line|values/],
  ])('is told of %s, with nothing of the values, and is served once it is mended', async (_, valuesTemplate, words) => {
    const name = 'mistaken';
    await hauling.create(name, { chartName: 'app', valuesTemplate });
    await hauling.refused(name, words);
    await hauling.upgrade(name, { valuesTemplate: 'message: mended\n' }, 1);
    expect((await hauling.configMap(name, '0'))?.data['message']).toBe('mended');
    await fleet.removeChartProxy(name);
  });

  it('may begin values with a document marker, and repeat a key: the last one holds, as with CAAPH', async () => {
    const name = 'lenient';
    await hauling.install(name, { chartName: 'app', valuesTemplate: '---\nmessage: first\nmessage: last\n' });
    expect(await seen(name)).toMatchObject({ message: 'last' });
    await fleet.removeChartProxy(name);
  });

  it('has a template that fails in one cluster fail there alone', async () => {
    const name = 'one-fails';
    await fleet.createChartProxy(name, {
      chartName: 'app',
      releaseName: name,
      namespace: name,
      valuesTemplate: '{{ if eq .Cluster.metadata.name "c1" }}{{ fail "not here" }}{{ end }}message: fine\n',
    });
    await fleet.deployed(name, 2);
    const told = await fleet.conditionOf(
      { chartProxy: name },
      { type: 'HelmReleaseProxySpecsUpToDate', status: 'False', reason: 'ValueParsingFailed' },
    );
    expect(told.message).toMatch(/cluster c1[^]*not here/);
    expect(told.message).not.toContain('c2');
    expect((await fleet.releaseProxies(name)).map((proxy) => proxy.spec.clusterRef?.name)).toEqual(['c2']);
    await fleet.patchChartProxy(name, { spec: { valuesTemplate: 'message: fine\n' } });
    await fleet.deployed(name, 1);
    await fleet.conditionOf({ chartProxy: name }, { type: 'Ready', status: 'True' });
    await fleet.removeChartProxy(name);
  });

  it('may read the control plane and the infrastructure, and has the values follow when an endpoint appears', async () => {
    const name = 'endpoint';
    const template = `message: "{{ .InfraCluster.spec.endpoint.host }}:{{ .InfraCluster.spec.endpoint.port }} {{ .ControlPlane.spec.version }}"\n`;
    await fleet.createChartProxy(name, {
      chartName: 'app',
      releaseName: name,
      namespace: name,
      valuesTemplate: template,
    });
    expect((await fleet.deployed(name, 1)).spec.values).toBe('message: "one.example.com:6443 v1.31.0"\n');
    // Nothing there yet: as with CAAPH, and no error.
    expect((await fleet.deployed(name, 2)).spec.values).toMatch(/^message: "(<no value>)?:(<no value>)? v1\.32\.0"\n$/);
    await fleet.api.patch(infraPath('c2'), { spec: { endpoint: { host: 'two.example.com', port: 7443 } } });
    expect((await fleet.deployed(name, 2, { revision: 2 })).spec.values).toBe(
      'message: "two.example.com:7443 v1.32.0"\n',
    );
    expect((await fleet.releaseProxy(name, 1)).status?.revision).toBe(1);
    await fleet.removeChartProxy(name);
  });

  it('waits for a control plane that is not there yet, and is served as soon as it comes', async () => {
    const name = 'late-plane';
    const path = `/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/${fleet.namespace}/testcontrolplanes`;
    await fleet.api.patch(clusterPath({ name: 'c1', namespace: fleet.namespace }), {
      spec: { controlPlaneRef: { name: 'late' } },
    });
    await hauling.create(name, { chartName: 'app', valuesTemplate: 'message: "{{ .ControlPlane.spec.version }}"\n' });
    const told = await fleet.conditionOf(
      { chartProxy: name },
      { type: 'HelmReleaseProxySpecsUpToDate', status: 'False', reason: 'ValueParsingFailed' },
    );
    expect(told.message).toMatch(/TestControlPlane fleet\/late[^]*does not exist/);
    await fleet.api.create(path, {
      apiVersion: 'controlplane.cluster.x-k8s.io/v1beta2',
      kind: 'TestControlPlane',
      metadata: { name: 'late' },
      spec: { version: 'v9.9.9' },
    });
    expect((await fleet.deployed(name, 1)).spec.values).toBe('message: "v9.9.9"\n');
    await fleet.removeChartProxy(name);
    await fleet.api.patch(clusterPath({ name: 'c1', namespace: fleet.namespace }), {
      spec: { controlPlaneRef: { name: 'c1' } },
    });
  });

  it('is told of a provider whose CRD names no contract only where a template reads it', async () => {
    const reference = clusterPath({ name: 'c1', namespace: fleet.namespace });
    await fleet.api.patch(reference, { spec: { infrastructureRef: { kind: 'UnlabelledCluster' } } });
    await hauling.install('does-not-read', {
      chartName: 'app',
      valuesTemplate: 'message: "{{ .Cluster.metadata.name }}"\n',
    });
    await hauling.create('reads', {
      chartName: 'app',
      valuesTemplate: 'message: "{{ .InfraCluster.metadata.name }}"\n',
    });
    const told = await fleet.conditionOf(
      { chartProxy: 'reads' },
      { type: 'HelmReleaseProxySpecsUpToDate', status: 'False', reason: 'ValueParsingFailed' },
    );
    expect(told.message).toMatch(/unlabelledclusters\.infrastructure[^]*cluster\.x-k8s\.io\/v1beta2/);
    await fleet.api.patch(reference, { spec: { infrastructureRef: { kind: 'TestCluster' } } });
    await fleet.deployed('reads', 1);
    for (const name of ['reads', 'does-not-read']) await fleet.removeChartProxy(name);
  });

  it("pays for no read of a provider's objects that no template names", async () => {
    const reads = async (): Promise<number> =>
      countRequests(
        await apiRequests(fleet.environment.management),
        ({ group, verb }) => /^(controlplane|infrastructure)\./.test(group) && ['GET', 'LIST', 'WATCH'].includes(verb),
      );
    // Of the templates before: their watches are gone with the HelmChartProxies.
    const before = await reads();
    const starts = await fleet.manager.metric('capstan_watch_starts_total');
    await hauling.install('frugal', { chartName: 'app', valuesTemplate: 'message: "{{ .Cluster.metadata.uid }}"\n' });
    expect(await reads()).toBe(before);
    await fleet.removeChartProxy('frugal');
    expect(starts).toBeGreaterThan(0);
  });

  it('may use random values: rendered once, and not again for a change of status, a resync or a restart', async () => {
    const name = 'random';
    const valuesTemplate = 'message: "{{ randAlphaNum 16 }} {{ uuidv4 }} {{ now | unixEpoch }}"\n';
    const before = await hauling.install(name, { chartName: 'app', valuesTemplate });
    const renders = await fleet.manager.metric('capstan_values_renders_total');
    const path = clusterPath({ name: 'c1', namespace: fleet.namespace });
    await fleet.api.patch(`${path}/status`, { status: { phase: 'Provisioned', observedGeneration: 77 } });
    await setLabels(fleet.api, { name: 'c1', namespace: fleet.namespace }, { unrelated: 'label' });
    await sentinel('after-status');
    expect(await fleet.manager.metric('capstan_values_renders_total')).toBe(renders);
    await same(name, before);

    await fleet.manager.stop();
    await fleet.startManager();
    await sentinel('after-restart');
    expect(await fleet.manager.metric('capstan_values_renders_total')).toBe(0);
    expect(await fleet.manager.metric('capstan_helm_operations_total', { operation: 'upgrade' })).toBe(0);
    await same(name, before);

    // And again when the user asks for something else.
    const after = await hauling.upgrade(name, { valuesTemplate: `${valuesTemplate}more: true\n` }, 2);
    expect(after.spec.values).not.toContain((before.spec.values ?? '').trim());
    await fleet.removeChartProxy(name);
  });

  /** Text without an action, which renders nothing: served after what was asked for before it. */
  async function sentinel(name: string): Promise<void> {
    await hauling.install(name, { chartName: 'app', valuesTemplate: 'message: sentinel\n' });
    await fleet.removeChartProxy(name);
  }

  async function same(name: string, before: Proxy): Promise<void> {
    const after = await fleet.releaseProxy(name, 1);
    expect([after.spec.values, after.status?.revision]).toEqual([before.spec.values, 1]);
  }

  it('has the functions of Sprig, but none that look at the machine', async () => {
    const name = 'sprig';
    await hauling.install(name, {
      chartName: 'app',
      valuesTemplate: [
        'message: {{ list "a" "b" | join "-" | upper | quote }}',
        'sum: {{ add 40 2 }}',
        'hash: {{ "x" | sha256sum | trunc 8 }}',
        'encoded: {{ "hello" | b64enc }}',
        'fallback: {{ default "none" (get .Cluster.metadata.labels "no-such-label") }}',
        'index: {{ index .Cluster.metadata.labels "idx" | quote }}',
        'replicas: {{ .ControlPlane.spec.replicas }}',
        'semver: {{ semver .ControlPlane.spec.version | toString | quote }}',
        'data: {{ dict "a" 1 | toJson }}',
        'labels:',
        '{{ range $k, $v := .Cluster.metadata.labels }}{{ if eq $k "fleet" }}  {{ $k }}: {{ $v | quote }}{{ end }}{{ end }}',
        '',
      ].join('\n'),
    });
    expect(await seen(name)).toMatchObject({
      message: 'A-B',
      sum: 42,
      hash: '2d711642',
      encoded: 'aGVsbG8=',
      fallback: 'none',
      index: '1',
      replicas: 3,
      semver: '1.31.0',
      data: { a: 1 },
      labels: { fleet: 'yes' },
    });
    await fleet.removeChartProxy(name);
    for (const call of ['env "HOME"', 'expandenv "$HOME"', 'getHostByName "localhost"']) {
      await hauling.create('machine', { chartName: 'app', valuesTemplate: `message: {{ ${call} }}\n` });
      await eventually(async () => {
        const found = (await fleet.chartProxy('machine')).status?.conditions?.find(
          (c) => c.reason === 'ValueParsingFailed',
        );
        if (found) return;
        const values = (await fleet.releaseProxy('machine', 1)).spec.values ?? '';
        expect(values.trim()).toMatch(/^message:( "")?$/);
      });
      await fleet.removeChartProxy('machine');
    }
  });

  it('may write a template of 200 KB', async () => {
    const name = 'long-template';
    fleet.charts.publish(
      chartOf(name, { 'templates/main.yaml': configMap('main', { count: '{{ len .Values.entries | quote }}' }) }),
    );
    const line = (index: number): string => `- "{{ .Cluster.metadata.name }} {{ add ${index} 1 }} ${'x'.repeat(60)}"\n`;
    const count = Math.ceil((210 * 1024) / line(1000).length);
    const valuesTemplate = `entries:\n${Array.from({ length: count }, (_, index) => line(index)).join('')}`;
    expect(valuesTemplate.length).toBeGreaterThan(200 * 1024);
    await hauling.install(name, { valuesTemplate });
    expect((await hauling.configMap(name, 'main'))?.data['count']).toBe(String(count));
    await fleet.removeChartProxy(name);
  });

  function infraPath(name: string): string {
    return `/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/${fleet.namespace}/testclusters/${name}`;
  }
});
