import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Fleet, OtlpCollector, eventually, simpleChart } from '../support/index.ts';
import type { CollectedSpan } from '../support/index.ts';
import { createSecret } from './secrets.ts';

const CLUSTERS = 2;
const SECRET_VALUE = 'hunter2-in-the-values';
const ROBOT = { username: 'robot', password: 'r0bot-pass-in-a-secret' };
const TRACEPARENT = 'helmreleaseproxy.addons.cluster.x-k8s.io/traceparent';
const NAMES = ['fleet/c1', 'fleet/c2'];

/** All that came of one change of a HelmChartProxy. */
class Trace {
  readonly root: CollectedSpan;
  readonly spans: readonly CollectedSpan[];

  constructor(root: CollectedSpan, spans: readonly CollectedSpan[]) {
    this.root = root;
    this.spans = spans;
  }

  parentOf(span: CollectedSpan): CollectedSpan | undefined {
    return this.spans.find(({ spanId }) => spanId === span.parentSpanId);
  }

  named(name: string | RegExp, cluster?: string): CollectedSpan[] {
    return this.spans.filter(
      (span) =>
        (typeof name === 'string' ? span.name === name : name.test(span.name)) &&
        (cluster === undefined || span.attributes['k8s.cluster.name'] === cluster),
    );
  }

  /** Names from the root to the span. */
  way(span: CollectedSpan): string[] {
    const parent = this.parentOf(span);
    return [...(parent === undefined ? [] : this.way(parent)), span.name];
  }
}

describe('an engineer who follows a change through the fleet', () => {
  let fleet: Fleet;
  let collector: OtlpCollector;

  beforeAll(async () => {
    collector = await OtlpCollector.start();
    fleet = await Fleet.start({
      clusters: CLUSTERS,
      repository: { auth: ROBOT },
      manager: { env: collector.environment },
    });
    fleet.charts.publish(simpleChart({ name: 'app', objects: 3 }));
    await createSecret(fleet, 'robot', ROBOT);
  });

  afterAll(async () => {
    await fleet.stop();
    await collector.stop();
  });

  function traceOf(generation: number): Trace {
    const isRoot = ({ name, attributes }: CollectedSpan): boolean =>
      name === 'HelmChartProxy changed' && attributes['capstan.object.generation'] === generation;
    const [root, ...more] = collector.spans.filter(isRoot);
    if (root === undefined || more.length > 0) throw new Error(`${more.length} roots too many of ${generation}`);
    return new Trace(
      root,
      collector.spans.filter(({ traceId }) => traceId === root.traceId),
    );
  }

  /** Waits until helm has ended on every cluster, and until what comes after it has been sent. */
  async function complete(generation: number, operation: string): Promise<Trace> {
    return eventually(async () => {
      const trace = traceOf(generation);
      for (const cluster of NAMES) {
        const [helm] = trace.named(operation, cluster);
        const reconcile = helm && trace.parentOf(helm);
        if (reconcile === undefined) throw new Error(`no ${operation} for ${cluster}`);
      }
      return Promise.resolve(trace);
    });
  }

  it('finds the rollout of a HelmChartProxy as one trace, from its change to helm and the calls to every cluster', async () => {
    await fleet.createChartProxy('app', {
      chartName: 'app',
      releaseName: 'app',
      namespace: 'app',
      credentials: { secret: { name: 'robot' }, key: '' },
      valuesTemplate: `message: "{{ .Cluster.metadata.name }}"\nextra: ${SECRET_VALUE}\n`,
    });
    for (let index = 1; index <= CLUSTERS; index += 1) await fleet.deployed('app', index);
    const trace = await complete(1, 'helm install');

    expect(trace.root.attributes).toMatchObject({ 'k8s.cluster.name': 'local', 'capstan.object.name': 'app' });
    expect(trace.root.resource).toMatchObject({ 'service.name': 'capstan' });
    expect(trace.named('reconcile helmchartproxy').length).toBeGreaterThan(0);
    for (const cluster of NAMES) {
      const [helm] = trace.named('helm install', cluster);
      expect(helm && trace.way(helm)).toEqual([
        'HelmChartProxy changed',
        'reconcile helmchartproxy-placement',
        'reconcile helmreleaseproxy',
        'helm install',
      ]);
      expect(trace.named('helm process', cluster).map((span) => trace.parentOf(span)?.name)).toContain('helm install');
      expect(trace.named('values.render', cluster).map((span) => trace.parentOf(span)?.name)).toEqual([
        'reconcile helmchartproxy-placement',
      ]);
      // Capstan's own calls to the workload cluster: after helm it reads the release's record.
      const calls = trace.named(/^GET .*\/secrets/, cluster);
      expect(calls.length).toBeGreaterThan(0);
      for (const call of calls) {
        expect(call.kind).toBe(3);
        expect(call.attributes).toMatchObject({ 'http.request.method': 'GET', 'server.address': '127.0.0.1' });
      }
    }
    const written = trace.named(
      'POST /apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/{namespace}/helmreleaseproxies',
    );
    expect(written.map(({ attributes }) => attributes['k8s.cluster.name'])).toEqual(['local', 'local']);
    expect(written.map((span) => trace.parentOf(span)?.name)).toEqual(
      Array.from({ length: CLUSTERS }, () => 'reconcile helmchartproxy-placement'),
    );
    expect(trace.named(/^PATCH .*\/helmreleaseproxies\/\{name\}\/status$/).length).toBeGreaterThan(0);
  });

  it('finds the upgrade as another one, and the trace noted on each HelmReleaseProxy', async () => {
    await fleet.patchChartProxy('app', { spec: { valuesTemplate: `message: again\nextra: ${SECRET_VALUE}\n` } });
    for (let index = 1; index <= CLUSTERS; index += 1) await fleet.deployed('app', index, { revision: 2 });
    const trace = await complete(2, 'helm upgrade');
    expect(trace.root.traceId).not.toBe(traceOf(1).root.traceId);
    for (let index = 1; index <= CLUSTERS; index += 1) {
      const { metadata } = await fleet.releaseProxy('app', index);
      expect(metadata.annotations?.[TRACEPARENT]).toMatch(new RegExp(`^00-${trace.root.traceId}-[0-9a-f]{16}-01$`));
    }
  });

  it('finds the failure of a release by its code, where it happened', async () => {
    await fleet.patchChartProxy('app', { spec: { version: '9.9.9' } });
    const failed = await eventually(async () => {
      const found = traceOf(3)
        .named('reconcile helmreleaseproxy', 'fleet/c1')
        .find(({ status }) => status === 2);
      if (found === undefined) throw new Error('no failure yet');
      return Promise.resolve(found);
    });
    expect(failed.attributes).toMatchObject({ 'error.type': 'VersionNotFound', 'capstan.reconcile.result': 'error' });
    await fleet.patchChartProxy('app', { spec: { version: null } });
    for (let index = 1; index <= CLUSTERS; index += 1) await fleet.deployed('app', index, { revision: 2 });
  });

  it('is told the cluster by every span, finds no call without a cause, and no fact of a log without its trace', async () => {
    const all = [...collector.spans];
    expect(
      all.filter(({ attributes }) => attributes['k8s.cluster.name'] === undefined).map(({ name }) => name),
    ).toEqual([]);
    // Probes, watches and leases would be traces of one span each.
    const roots = new Set(all.filter(({ parentSpanId }) => parentSpanId === '').map(({ name }) => name));
    expect([...roots].filter((name) => !/^(HelmChartProxy changed$|reconcile )/.test(name))).toEqual([]);
    // A parent that is still under way is sent after its children.
    await eventually(async () => {
      const known = new Set(collector.spans.map(({ spanId }) => spanId));
      const orphans = all.filter(({ parentSpanId }) => parentSpanId !== '' && !known.has(parentSpanId));
      expect(orphans.map(({ name }) => name)).toEqual([]);
      return Promise.resolve();
    });
    const lines = fleet.manager
      .log()
      .split('\n')
      .filter((line) => line.includes('release installed'));
    expect(lines).toHaveLength(CLUSTERS);
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ trace_id: traceOf(1).root.traceId });
  });

  it('hears of no value, credential or token', async () => {
    const { text } = collector;
    expect(text).toContain('helm install');
    const kubeconfig = fleet.cluster(1).kubeconfig;
    const secrets = [SECRET_VALUE, ROBOT.password, Buffer.from(ROBOT.password).toString('base64')];
    for (const [, quoted = ''] of kubeconfig.matchAll(
      /(?:token|client-key-data|client-certificate-data)"?: "?([^"\s,}]+)/g,
    ))
      secrets.push(quoted);
    expect(secrets.length).toBeGreaterThan(3);
    for (const secret of secrets) expect(text.includes(secret)).toBe(false);
    expect(collector.spans.filter(({ events }) => events > 0)).toEqual([]);
    await Promise.resolve();
  });

  it('sees what is at rest write nothing, with tracing on as well', async () => {
    await fleet.manager.stop();
    const before = await Promise.all(NAMES.map(async (_name, index) => fleet.releaseProxy('app', index + 1)));
    await fleet.startManager({
      flags: ['--sync-period=2s'],
      env: { ...collector.environment, OTEL_SERVICE_NAME: 'mine' },
    });
    await eventually(async () => {
      const passes = await fleet.manager.metric('controller_runtime_reconcile_total', {
        controller: 'helmreleaseproxy',
      });
      if (passes < 4 * CLUSTERS) throw new Error(`${passes} passes`);
    });
    const after = await Promise.all(NAMES.map(async (_name, index) => fleet.releaseProxy('app', index + 1)));
    expect(after.map(({ metadata }) => metadata.resourceVersion)).toEqual(
      before.map(({ metadata }) => metadata.resourceVersion),
    );
    expect(await fleet.manager.metric('capstan_helm_operations_total', { operation: 'upgrade' })).toBe(0);
    await eventually(async () => {
      if (!collector.spans.some(({ resource }) => resource['service.name'] === 'mine')) throw new Error('not told');
      return Promise.resolve();
    });
  });
});

describe('a manager that is told to send traces', () => {
  let fleet: Fleet;
  let collector: OtlpCollector;

  beforeAll(async () => {
    collector = await OtlpCollector.start();
    fleet = await Fleet.start({ clusters: 1, manager: false });
    fleet.charts.publish(simpleChart({ name: 'app', objects: 1 }));
  });

  afterAll(async () => {
    await fleet.stop();
    await collector.stop();
  });

  it('sends the last of them before it ends, in protobuf unless told otherwise', async () => {
    // By themselves they would be sent after a minute.
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '60000' };
    await fleet.startManager({ env });
    await fleet.createChartProxy('app', { chartName: 'app', releaseName: 'app', namespace: 'app' });
    await fleet.deployed('app', 1);
    expect(collector.bodies).toHaveLength(0);
    await fleet.manager.stop();
    expect(collector.bodies.map(({ contentType }) => contentType)).toContain('application/x-protobuf');
    expect(collector.text).toContain('helm install');
  });

  it('tells a drift as one trace as well, from the event to the correction', async () => {
    const flags = ['--drift-detection=Correct', '--metrics-cluster-label=false'];
    await fleet.startManager({ flags, env: collector.environment });
    await eventually(async () => {
      expect(await fleet.manager.metric('capstan_drift_tracked_objects')).toBeGreaterThan(0);
    });
    const path = '/api/v1/namespaces/app/configmaps/app-0';
    const edited = { data: { message: 'written by somebody else' } };
    await fleet.cluster(1).api.patch(path, edited);
    const corrected = await eventually(async () => {
      const found = collector.spans.find(({ name }) => name === 'drift correct');
      const root = collector.spans.find(({ spanId }) => spanId === found?.parentSpanId);
      if (found === undefined || root === undefined) throw new Error('no correction yet');
      return Promise.resolve(found);
    });
    const trace = collector.spans.filter(({ traceId }) => traceId === corrected.traceId);
    const parent = trace.find(({ spanId }) => spanId === corrected.parentSpanId);
    expect(parent).toMatchObject({ name: 'reconcile drift', parentSpanId: '' });
    expect(corrected.attributes).toMatchObject({ 'k8s.cluster.name': 'fleet/c1' });
    expect(corrected.attributes['capstan.object']).toMatch(/ConfigMap.*app-0/);
    const calls = trace.filter(({ parentSpanId }) => parentSpanId === corrected.spanId);
    expect(calls.map(({ name }) => name)).toContain('PATCH /api/v1/namespaces/{namespace}/configmaps/{name}');
    expect(collector.text).not.toContain(edited.data.message);
  });

  it('does not tell clusters apart in metrics where that is not wanted', async () => {
    const metrics = await fleet.manager.metrics();
    expect(metrics.filter(({ labels }) => 'cluster' in labels)).toEqual([]);
    expect(await fleet.manager.metric('capstan_watches')).toBeGreaterThan(1);
    expect(await fleet.manager.metric('capstan_kube_requests_total', { verb: 'patch' })).toBeGreaterThan(0);
    await fleet.manager.stop();
  });

  it('ends in time when nobody takes them, and works on meanwhile', async () => {
    await fleet.startManager({ env: { ...collector.environment } });
    collector.hang();
    await fleet.patchChartProxy('app', { spec: { valuesTemplate: 'message: again\n' } });
    await fleet.deployed('app', 1, { revision: 2 });
    await fleet.manager.stop();
    expect(fleet.manager.running).toBe(false);
    expect(fleet.manager.log()).toContain('the last traces could not be sent');
  });
});
