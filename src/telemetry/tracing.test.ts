import { ROOT_CONTEXT, SpanKind, SpanStatusCode, context, trace } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RecordedSpans } from './spans.test-support.ts';
import {
  activeTraceparent,
  beginTrace,
  failSpan,
  inClientSpan,
  inSpan,
  inTrace,
  injectTrace,
  originFrom,
  traceFields,
  traceOrigin,
  untraced,
  within,
} from './tracing.ts';

const NOTHING = async (): Promise<void> => undefined;

describe('spans', () => {
  let spans: RecordedSpans;

  beforeEach(() => {
    spans = new RecordedSpans();
  });

  afterEach(async () => {
    vi.restoreAllMocks();
    await spans.stop();
  });

  it('nest, and tell the cluster of the work that they are part of', async () => {
    const start = { origin: undefined, attributes: { 'k8s.cluster.name': 'fleet/one' } };
    await inTrace(spans.tracer, 'outer', start, async () => {
      await inSpan(spans.tracer, 'inner', { a: 1 }, NOTHING);
      await inSpan(spans.tracer, 'other', { 'k8s.cluster.name': 'local' }, NOTHING);
    });
    const outer = spans.named('outer');
    for (const name of ['inner', 'other']) {
      expect(spans.named(name).parentSpanContext?.spanId).toBe(outer.spanContext().spanId);
    }
    expect(spans.named('inner').attributes).toEqual({ a: 1, 'k8s.cluster.name': 'fleet/one' });
    expect(spans.named('other').attributes).toEqual({ 'k8s.cluster.name': 'local' });
  });

  it('of calls to servers are made inside a trace only', async () => {
    await inClientSpan(spans.tracer, 'probe', {}, async (span) => {
      span.setAttribute('x', 1);
    });
    expect(spans.all).toEqual([]);
    await inSpan(spans.tracer, 'work', {}, async () => inClientSpan(spans.tracer, 'call', {}, NOTHING));
    expect(spans.named('call').kind).toBe(SpanKind.CLIENT);
  });

  it.each([
    [Object.assign(new Error('password=hunter2'), { code: 'NotFound' }), 'NotFound'],
    [new TypeError('password=hunter2'), 'TypeError'],
    ['password=hunter2', '_OTHER'],
  ])('tell how they failed by a code, never by the text', async (error, code) => {
    const failing = inSpan(spans.tracer, 'failing', {}, async () => {
      await NOTHING();
      throw error as Error;
    });
    await expect(failing).rejects.toBe(error);
    await inSpan(spans.tracer, 'told', {}, async () => {
      failSpan(error);
      await NOTHING();
    });
    for (const name of ['failing', 'told']) {
      const { attributes, status, events } = spans.named(name);
      expect({ attributes, status, events }).toEqual({
        attributes: { 'error.type': code },
        status: { code: SpanStatusCode.ERROR },
        events: [],
      });
    }
  });

  it('of later work go on in the trace that asked for it, whatever is active by then', async () => {
    const origin = beginTrace(spans.tracer, 'changed', {});
    const start = { origin, attributes: {} };
    await inSpan(spans.tracer, 'another', {}, async () => inTrace(spans.tracer, 'later', start, NOTHING));
    const changed = spans.named('changed').spanContext();
    expect(spans.named('later').spanContext().traceId).toBe(changed.traceId);
    expect(spans.named('later').parentSpanContext?.spanId).toBe(changed.spanId);
  });

  it('of much later work only point to what asked for it', async () => {
    const origin = beginTrace(spans.tracer, 'changed', {});
    const now = performance.now();
    vi.spyOn(performance, 'now').mockReturnValue(now + 16 * 60_000);
    await inTrace(spans.tracer, 'later', { origin, attributes: {} }, NOTHING);
    const later = spans.named('later');
    expect(later.parentSpanContext).toBeUndefined();
    expect(later.links.map((link) => link.context.traceId)).toEqual([spans.named('changed').spanContext().traceId]);
  });

  it('keep their age from step to step: no trace goes on for ever', async () => {
    let now = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    let origin = beginTrace(spans.tracer, 'changed', {});
    const traces = new Set<string>();
    for (let step = 0; step < 4; step += 1) {
      now += 6 * 60_000;
      await inTrace(spans.tracer, 'step', { origin, attributes: {} }, async (span) => {
        traces.add(span.spanContext().traceId);
        origin = traceOrigin();
        await NOTHING();
      });
    }
    expect(traces.size).toBe(2);
  });

  it('travel as a traceparent', async () => {
    let text: string | undefined;
    const headers: Record<string, string> = { accept: 'x' };
    await inSpan(spans.tracer, 'here', {}, async () => {
      text = activeTraceparent();
      injectTrace(headers);
      await NOTHING();
    });
    expect(headers).toEqual({ accept: 'x', traceparent: text });
    await inTrace(spans.tracer, 'there', { origin: originFrom(text), attributes: {} }, NOTHING);
    expect(spans.named('there').parentSpanContext?.spanId).toBe(spans.named('here').spanContext().spanId);
    expect([undefined, '', 'nonsense'].map(originFrom)).toEqual([undefined, undefined, undefined]);
  });

  it('are left behind by what outlives them, and entered by what belongs to them', async () => {
    await inSpan(spans.tracer, 'work', {}, async () => {
      expect(untraced(traceOrigin)).toBeUndefined();
      const origin = traceOrigin();
      expect(origin).toBeDefined();
      expect(untraced(() => within(origin, () => trace.getSpan(context.active())))).toBe(trace.getActiveSpan());
      expect(traceFields()).toEqual({
        trace_id: trace.getActiveSpan()?.spanContext().traceId,
        span_id: trace.getActiveSpan()?.spanContext().spanId,
      });
      await NOTHING();
    });
    expect(traceFields()).toBeUndefined();
  });
});

it('costs nothing but calls while tracing is off', async () => {
  const tracer = trace.getTracer('off');
  const origin = beginTrace(tracer, 'changed', {});
  const headers = {};
  const seen = await inTrace(tracer, 'work', { origin, attributes: { 'k8s.cluster.name': 'one' } }, async () => {
    injectTrace(headers);
    await inClientSpan(tracer, 'call', {}, NOTHING);
    return [traceOrigin(), activeTraceparent(), traceFields(), context.active()];
  });
  expect([origin, headers, ...seen]).toEqual([undefined, {}, undefined, undefined, undefined, ROOT_CONTEXT]);
});
