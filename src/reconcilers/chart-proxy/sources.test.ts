import { trace } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Condition, HelmChartProxy, HelmReleaseProxy } from '../../api/index.ts';
import type { Enqueuer } from '../../runtime/index.ts';
import { traceOrigin } from '../../telemetry/index.ts';
import type { TraceOrigin } from '../../telemetry/index.ts';
import { RecordedSpans } from '../../telemetry/spans.test-support.ts';
import { setCondition } from '../conditions.ts';
import { fakeManagement } from '../fake-fleet.test-support.ts';
import { FakeServer } from '../fakes.test-support.ts';
import { FakeInformer } from '../release-proxy/fake-api.test-support.ts';
import { allKnown } from '../clusters.test-support.ts';
import type { CapiCluster } from '../shared.ts';
import { withTraceparent } from '../trace-context.ts';
import { Builtins } from './builtins.ts';
import { ChangeTraces } from './change-traces.ts';
import { ContractVersions } from './contracts.ts';
import { FleetView } from './fleet-view.ts';
import { chartProxy, cluster, releaseProxy } from './objects.test-support.ts';
import { Outcomes } from './outcomes.ts';
import { RateGate } from './rate-gate.ts';
import { Sources } from './sources.ts';
import { CLUSTERS } from './world.test-support.ts';

let releaseProxies: FakeInformer<HelmReleaseProxy>;
let chartProxies: FakeInformer<HelmChartProxy>;
let asked: string[];
let spans: RecordedSpans;
/** The traces that requests were asked for in. */
let origins: (TraceOrigin | undefined)[];

/** Sources over one HelmChartProxy with one cluster; what they ask for at the start is forgotten. */
beforeEach(() => {
  asked = [];
  origins = [];
  spans = new RecordedSpans();
  releaseProxies = new FakeInformer<HelmReleaseProxy>();
  chartProxies = new FakeInformer<HelmChartProxy>();
  const clusters = allKnown(new FakeInformer<CapiCluster>());
  const caches = { chartProxies, releaseProxies, clusters, clusterResource: CLUSTERS };
  const management = fakeManagement(new FakeServer());
  const queue = (name: string): Enqueuer => ({
    enqueue: (request) => {
      asked.push(`${name} ${request.cluster} ${request.name}`);
      origins.push(traceOrigin());
    },
  });
  const sources = new Sources({
    caches,
    view: new FleetView(caches, undefined),
    chartProxies: queue('status'),
    placements: queue('placement'),
    gate: new RateGate(),
    outcomes: new Outcomes(),
    builtins: new Builtins(management, new ContractVersions(management.client, management.discovery), () => undefined),
    traces: new ChangeTraces(spans.tracer),
  });
  chartProxies.put(chartProxy());
  clusters.put(cluster());
  releaseProxies.put(told(releaseProxy(), 'True', 'InSync'));
  sources.start();
  asked = [];
  origins = [];
});

afterEach(async () => spans.stop());

function told(proxy: HelmReleaseProxy, status: Condition['status'], reason: string, message = ''): HelmReleaseProxy {
  const conditions = setCondition(proxy.status?.conditions, { type: 'ReleaseInSync', status, reason, message }, 1);
  return { ...proxy, status: { ...proxy.status, conditions } };
}

function change(by: (proxy: HelmReleaseProxy) => HelmReleaseProxy): string[] {
  const [before] = releaseProxies.list();
  if (before === undefined) throw new Error('there is no HelmReleaseProxy');
  releaseProxies.put(by(before));
  return asked;
}

const STATUS = 'status local hcp';
const PLACEMENT = 'placement fleet/w1 hcp';

describe('a HelmReleaseProxy', () => {
  it('that drifts asks for the status of its HelmChartProxy, and for nothing else', () => {
    expect(change((proxy) => told(proxy, 'False', 'DriftDetected'))).toEqual([STATUS]);
  });

  it('whose drift has another reason, too', () => {
    change((proxy) => told(proxy, 'False', 'DriftDetected'));
    expect(change((proxy) => told(proxy, 'False', 'DriftNotConverging'))).toEqual([STATUS, STATUS]);
  });

  it('whose drift detection was turned off, too', () => {
    expect(change((proxy) => ({ ...proxy, status: { ...proxy.status, conditions: [] } }))).toEqual([STATUS]);
  });

  it('that tells more of the same drift asks for nothing: the aggregate would say the same', () => {
    change((proxy) => told(proxy, 'False', 'DriftDetected', 'Deployment web'));
    asked = [];
    expect(change((proxy) => told(proxy, 'False', 'DriftDetected', 'Deployment web, Service web'))).toEqual([]);
    const drift = { objects: 4, drifted: 2 };
    expect(change((proxy) => ({ ...proxy, status: { ...proxy.status, drift } }))).toEqual([]);
  });

  it('whose spec somebody edited asks for its placement, which puts it right', () => {
    const edited = change((proxy) => ({
      ...proxy,
      metadata: { ...proxy.metadata, generation: 2 },
      spec: { ...proxy.spec, driftDetection: { mode: 'Warn' } },
    }));
    expect(edited).toEqual([STATUS, PLACEMENT]);
  });
});

describe('a HelmChartProxy', () => {
  it('whose driftDetection changed asks for its status and its placements', () => {
    chartProxies.put(chartProxy({ driftDetection: { mode: 'Correct' } }, { generation: 2 }));
    expect([...new Set(asked)]).toEqual([STATUS, PLACEMENT]);
  });

  it('whose status tells of drift asks for nothing', () => {
    const inSync: Condition = {
      type: 'ReleaseInSync',
      status: 'False',
      reason: 'DriftDetected',
      message: '1 of 1 clusters drift: w1',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    chartProxies.put({ ...chartProxy(), status: { conditions: [inSync] } });
    expect(asked).toEqual([]);
  });
});

describe('traces', () => {
  const traceIds = (): (string | undefined)[] =>
    origins.map((origin) => origin && trace.getSpanContext(origin)?.traceId);

  it('begin with a change of a HelmChartProxy, one for all that it asks for and for its echo', () => {
    const [before] = chartProxies.list();
    if (before === undefined) throw new Error('there is no HelmChartProxy');
    const changed = { ...before, metadata: { ...before.metadata, generation: 2 } };
    chartProxies.put(changed);
    chartProxies.put({ ...changed, metadata: { ...changed.metadata, finalizers: ['ours', 'another'] } });
    const span = spans.named('HelmChartProxy changed');
    expect(span.attributes).toMatchObject({ 'k8s.cluster.name': 'local', 'capstan.object.name': 'hcp' });
    expect(origins.length).toBeGreaterThan(2);
    expect(new Set(traceIds())).toEqual(new Set([span.spanContext().traceId]));
    chartProxies.put({ ...changed, metadata: { ...changed.metadata, generation: 3 } });
    expect(spans.all).toHaveLength(2);
  });

  it('go on with the HelmReleaseProxy that was written in them, and not when it changes later', () => {
    const [before] = releaseProxies.list();
    if (before === undefined) throw new Error('there is no HelmReleaseProxy');
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const written = withTraceparent(before, { ...before }, traceparent);
    releaseProxies.put({ ...written, metadata: { ...written.metadata, generation: 2 } });
    expect(new Set(traceIds())).toEqual(new Set(['a'.repeat(32)]));
    origins = [];
    releaseProxies.put({ ...written, metadata: { ...written.metadata, generation: 3 } });
    expect(new Set(traceIds())).toEqual(new Set([undefined]));
  });
});
