import { getEventListeners } from 'node:events';
import { SpanStatusCode } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { clusterName, LOCAL_CLUSTER } from './cluster-name.ts';
import { Controller } from './controller.ts';
import type { ControllerOptions } from './controller.ts';
import {
  ClusterGoneError,
  LeadershipLostError,
  ReconcileTimeoutError,
  StoppingError,
  TerminalError,
} from './errors.ts';
import { beginTrace, traceOrigin, within } from '../telemetry/index.ts';
import { RecordedSpans } from '../telemetry/spans.test-support.ts';
import { FakeFactory, metricValues, specOf, testTelemetry } from './fakes.test-support.ts';
import { SupervisedFleet } from './fleet.ts';
import type { ClusterSink, ReconcileContext, Request, Result } from './types.ts';

const a = clusterName('ns/a');
const after = async (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const request = (name: string, cluster = a): Request => ({ cluster, namespace: 'ns', name });

type Handler = (request: Request, context: ReconcileContext) => Promise<Result>;

interface Setup {
  readonly fleet: SupervisedFleet;
  readonly sink: ClusterSink;
  readonly factory: FakeFactory;
  readonly controller: Controller;
  readonly log: ReturnType<typeof testTelemetry>['log'];
  readonly telemetry: ReturnType<typeof testTelemetry>['telemetry'];
  readonly ran: string[];
  readonly end: AbortController;
  readonly done: Promise<void>;
}

let t: Setup;
let endFleet: AbortController;
let fleetDone: Promise<void>;

function setup(handler: Handler, options: Partial<ControllerOptions> = {}): Setup {
  const { telemetry, log } = testTelemetry();
  const factory = new FakeFactory();
  const fleet = new SupervisedFleet({ factory, telemetry, random: () => 0.5 });
  endFleet = new AbortController();
  fleetDone = fleet.run(endFleet.signal);
  const ran: string[] = [];
  const controller = new Controller({
    name: 'test',
    telemetry,
    fleet,
    random: () => 0.5,
    reconciler: {
      reconcile: async (work, context) => {
        ran.push(work.name);
        return handler(work, context);
      },
    },
    ...options,
  });
  const end = new AbortController();
  const done = controller.run(end.signal);
  const sink = fleet.sink({ name: 'test', run: async () => undefined });
  t = { fleet, sink, factory, controller, log, telemetry, ran, end, done };
  return t;
}

/** A reconciler that asks for its cluster, as those who work on clusters do. */
const needsCluster: Handler = async ({ cluster }) => {
  t.fleet.get(cluster);
  return {};
};

async function hang({ signal }: ReconcileContext): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(async () => {
  t.end.abort(new StoppingError());
  endFleet.abort();
  await after(30_000);
  await Promise.allSettled([t.done, fleetDone]);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe('a request for a cluster that is not in service', () => {
  it('is parked without a timer, and runs when the cluster engages', async () => {
    setup(needsCluster);
    t.sink.discover(a, { code: 'X', message: 'not yet' });
    t.controller.enqueue(request('r'));
    await after(3_600_000);
    expect(t.ran).toEqual(['r']);
    expect(t.controller.parked).toBe(1);
    expect(await metricValues(t.telemetry, 'capstan_parked_requests')).toEqual({
      '{"controller":"test","cluster":"ns/a"}': 1,
    });
    t.sink.engage(a, specOf('a'));
    await after(0);
    expect(t.ran).toEqual(['r', 'r']);
    expect(t.controller.parked).toBe(0);
  });

  it('is parked while it is degraded, and runs when it is back', async () => {
    setup(needsCluster);
    t.sink.engage(a, specOf('a'));
    await after(0);
    t.factory.server('a').mode = 'refuses';
    await after(60_000);
    t.controller.enqueue(request('r'));
    await after(600_000);
    expect(t.ran).toEqual(['r']);
    t.factory.server('a').mode = 'ok';
    await after(15_000);
    expect(t.ran).toEqual(['r', 'r']);
  });

  it('runs again when it is asked for: much can be done without the cluster', async () => {
    setup(needsCluster);
    t.sink.discover(a, { code: 'X', message: 'not yet' });
    t.controller.enqueue(request('r'));
    await after(0);
    t.controller.enqueue(request('r'));
    await after(0);
    expect(t.ran).toEqual(['r', 'r']);
    expect(t.controller.parked).toBe(1);
  });

  it('ends quietly when the cluster goes for good', async () => {
    setup(needsCluster);
    t.sink.discover(a, { code: 'X', message: 'not yet' });
    t.controller.enqueue(request('r'));
    await after(0);
    t.sink.disengage(a, 'deleted');
    await after(3_600_000);
    expect(t.ran).toEqual(['r', 'r']);
    expect(t.controller.parked).toBe(0);
    expect(t.log.of('warn reconcile')).toEqual([]);
  });

  it('waits beside others that run', async () => {
    const b = clusterName('ns/b');
    setup(needsCluster);
    t.sink.discover(a, { code: 'X', message: 'not yet' });
    t.sink.engage(b, specOf('b'));
    await after(0);
    for (let i = 0; i < 100; i += 1) t.controller.enqueue(request(`a${i}`));
    t.controller.enqueue(request('b', b));
    await after(0);
    expect(t.controller.parked).toBe(100);
    expect(t.ran).toContain('b');
  });
});

describe('a request for an unknown cluster', () => {
  it('ends quietly when its reconciler needs the cluster', async () => {
    setup(needsCluster);
    t.controller.enqueue(request('r'));
    await after(3_600_000);
    expect(t.ran).toEqual(['r']);
    expect(t.log.of('warn')).toEqual([]);
  });

  it('runs all the same when its reconciler does not', async () => {
    const clusters: string[] = [];
    setup(async ({ cluster }) => {
      clusters.push(cluster);
      return {};
    });
    t.controller.enqueue(request('r'));
    t.controller.enqueue(request('l', LOCAL_CLUSTER));
    await after(0);
    expect(clusters.sort()).toEqual(['local', 'ns/a']);
  });
});

describe('a cluster that disengages during the work', () => {
  it('aborts it; the request runs once more and finds the cluster gone', async () => {
    const reasons: unknown[] = [];
    setup(async (work, context) => {
      t.fleet.get(work.cluster);
      context.signal.addEventListener('abort', () => reasons.push(context.signal.reason));
      return hang(context);
    });
    t.sink.engage(a, specOf('a'));
    await after(0);
    t.controller.enqueue(request('r'));
    await after(0);
    t.sink.disengage(a, 'deleted');
    await after(3_600_000);
    expect(reasons).toEqual([expect.any(ClusterGoneError)]);
    expect(t.ran).toEqual(['r', 'r']);
    expect(t.log.of('warn reconcile')).toEqual([]);
  });
});

describe('errors', () => {
  it('are retried with back-off and told with their count', async () => {
    const failures: number[] = [];
    setup(async (_work, context) => {
      failures.push(context.failures);
      if (failures.length < 3) throw new Error('boom');
      return {};
    });
    t.controller.enqueue(request('r'));
    await after(10_000);
    expect(failures).toEqual([0, 1, 2]);
    expect(t.log.of('warn reconcile failed')).toEqual([
      'warn reconcile failed; it is retried {controller=test cluster=ns/a namespace=ns name=r err=boom failures=1}',
      'warn reconcile failed; it is retried {controller=test cluster=ns/a namespace=ns name=r err=boom failures=2}',
    ]);
    expect(await metricValues(t.telemetry, 'controller_runtime_reconcile_total')).toEqual({
      '{"controller":"test","result":"error","cluster":"ns/a"}': 2,
      '{"controller":"test","result":"success","cluster":"ns/a"}': 1,
    });
  });

  it('that are terminal are told and not retried', async () => {
    setup(async () => {
      throw new TerminalError('never');
    });
    t.controller.enqueue(request('r'));
    await after(3_600_000);
    expect(t.ran).toEqual(['r']);
    expect(t.log.of('error reconcile failed and is not retried')).toHaveLength(1);
  });

  it('of the time limit name it, and the work is retried', async () => {
    const reasons: unknown[] = [];
    setup(
      async (_work, context) => {
        context.signal.addEventListener('abort', () => reasons.push(context.signal.reason));
        return hang(context);
      },
      { lanes: { default: { concurrency: 1, limitMs: 30_000 } } },
    );
    t.controller.enqueue(request('r'));
    await after(30_000);
    expect(reasons).toEqual([expect.any(ReconcileTimeoutError)]);
    await after(1_000);
    expect(t.ran).toEqual(['r', 'r']);
  });

  it('of a limit are those of the lane', async () => {
    const limits: string[] = [];
    setup(async (work, context) => hang(context).catch(() => void limits.push(work.name) as never), {
      lanes: { default: { concurrency: 1, limitMs: 1_000 }, wait: { concurrency: 1, limitMs: 60_000 } },
      lane: ({ name }) => name,
    });
    t.controller.enqueue(request('default'));
    t.controller.enqueue(request('wait'));
    await after(1_000);
    expect(limits).toEqual(['default']);
  });
});

describe('results', () => {
  it('requeue after their time, unless something asks earlier', async () => {
    setup(async () => ({ requeueAfterMs: 60_000 }));
    t.controller.enqueue(request('r'));
    await after(30_000);
    t.controller.enqueue(request('r'));
    await after(59_999);
    expect(t.ran).toHaveLength(2);
    await after(1);
    expect(t.ran).toHaveLength(3);
  });
});

describe('sources', () => {
  it('are awaited before any work, and undone on stop', async () => {
    let synced = (): void => undefined;
    let fed: AbortSignal | undefined;
    setup(async () => ({}), {
      sources: [
        async (queue, signal) => {
          fed = signal;
          queue.enqueue(request('early'));
          await new Promise<void>((resolve) => (synced = resolve));
        },
      ],
    });
    await after(60_000);
    expect(t.ran).toEqual([]);
    synced();
    await after(0);
    expect(t.ran).toEqual(['early']);
    expect(fed?.aborted).toBe(false);
    t.end.abort(new StoppingError());
    await after(0);
    expect(fed?.aborted).toBe(true);
  });

  it('that do not sync in time are an error of the controller', async () => {
    setup(async () => ({}), { sources: [async () => new Promise<void>(() => undefined)], syncTimeoutMs: 1_000 });
    const failed = expect(t.done).rejects.toThrow('test: sync of its caches: not done within 1000 ms');
    await after(1_000);
    await failed;
  });
});

describe('a trace', () => {
  let spans: RecordedSpans;
  beforeEach(() => {
    spans = new RecordedSpans();
  });
  afterEach(async () => spans.stop());

  function traced(handler: Handler): void {
    const { telemetry } = testTelemetry();
    setup(handler, { telemetry: { ...telemetry, tracer: spans.tracer } });
  }

  const results = (): unknown[] =>
    spans.all
      .filter(({ name }) => name === 'reconcile test')
      .map(({ attributes, parentSpanContext }) => [attributes['capstan.reconcile.result'], parentSpanContext?.spanId]);

  it('goes on from whoever asked first to the reconcile, and no further than that', async () => {
    traced(async () => ({ requeueAfterMs: 1_000 }));
    const [first, second] = ['first', 'second'].map((name) => beginTrace(spans.tracer, name, {}));
    for (const origin of [first, second]) within(origin, () => t.controller.enqueue(request('r')));
    await after(20_000);
    const cause = spans.named('first').spanContext().spanId;
    expect(results().slice(0, 2)).toEqual([
      ['requeue_after', cause],
      ['requeue_after', undefined],
    ]);
    const reconcile = spans.all.find(({ name }) => name === 'reconcile test');
    expect(reconcile?.attributes).toEqual({
      'k8s.cluster.name': a,
      'k8s.namespace.name': 'ns',
      'capstan.controller': 'test',
      'capstan.object.name': 'r',
      'capstan.reconcile.result': 'requeue_after',
    });
  });

  it('is shared by the attempts: after a failure, and after a wait for the cluster', async () => {
    let failures = 1;
    traced(async (work) => {
      if (failures-- > 0) throw new Error('password=hunter2');
      return needsCluster(work, { failures: 0 } as ReconcileContext);
    });
    t.sink.discover(a, { code: 'X', message: 'not yet' });
    t.controller.enqueue(request('r'));
    await after(60_000);
    t.sink.engage(a, specOf('a'));
    await after(0);
    expect(results().map((result) => (result as unknown[])[0])).toEqual(['error', 'parked', 'success']);
    expect(new Set(spans.all.map((span) => span.spanContext().traceId)).size).toBe(1);
    expect(spans.all[0]?.attributes['error.type']).toBe('Error');
    expect(spans.all[1]?.status.code).toBe(SpanStatusCode.UNSET);
    expect(JSON.stringify(spans.all.map(({ attributes, events, status }) => [attributes, events, status]))).not.toMatch(
      /hunter2/,
    );
  });

  it('of one request is not that of the next, though it was asked for in the midst of it', async () => {
    const seen: unknown[] = [];
    traced(async ({ name }) => {
      if (name === 'r') t.controller.enqueue(request('s'), { afterMs: 10 });
      seen.push(traceOrigin() === undefined);
      return {};
    });
    t.controller.enqueue(request('r'));
    t.controller.enqueue(request('q'));
    await after(1_000);
    expect(seen).toEqual([false, false, false]);
    const ids = spans.all.map(({ attributes, spanContext }) => [attributes['capstan.object.name'], spanContext]);
    expect(ids.map(([name]) => name)).toEqual(['r', 'q', 's']);
    const [r, q, s] = spans.all.map((span) => span.spanContext().traceId);
    expect(s).toBe(r);
    expect(q).not.toBe(r);
  });
});

describe('stop', () => {
  it('lets what runs end within the grace', async () => {
    let finish = (): void => undefined;
    setup(async () => {
      await new Promise<void>((resolve) => (finish = resolve));
      return {};
    });
    t.controller.enqueue(request('r'));
    await after(0);
    t.end.abort(new StoppingError());
    await after(10_000);
    finish();
    await t.done;
    expect(t.log.of('left behind')).toEqual([]);
  });

  it('aborts after the grace, and is not held up by who pays no heed', async () => {
    let signal: AbortSignal | undefined;
    setup(async (_work, context) => {
      signal = context.signal;
      return new Promise<never>(() => undefined);
    });
    t.controller.enqueue(request('r'));
    await after(0);
    t.end.abort(new StoppingError());
    await after(19_999);
    expect(signal?.aborted).toBe(false);
    await after(1);
    expect(signal?.aborted).toBe(true);
    await after(5_000);
    await t.done;
    expect(t.log.of('left behind')).toHaveLength(1);
    await vi.runOnlyPendingTimersAsync();
    vi.clearAllTimers();
  });

  it('has no grace when another process leads', async () => {
    let signal: AbortSignal | undefined;
    setup(async (_work, context) => {
      signal = context.signal;
      return hang(context);
    });
    t.controller.enqueue(request('r'));
    await after(0);
    t.end.abort(new LeadershipLostError('lost'));
    await after(0);
    expect(signal?.aborted).toBe(true);
    await t.done;
  });

  it('leaves no listener on the signal of a cluster, nor does any reconcile', async () => {
    setup(async () => ({}));
    t.sink.engage(a, specOf('a'));
    await after(0);
    for (let i = 0; i < 100; i += 1) t.controller.enqueue(request(`r${i}`));
    await after(0);
    expect(t.ran).toHaveLength(100);
    expect(getEventListeners(t.fleet.get(a).signal, 'abort')).toHaveLength(0);
  });
});
