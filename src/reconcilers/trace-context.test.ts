import { trace } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TRACEPARENT_ANNOTATION } from '../api/index.ts';
import { RecordedSpans } from '../telemetry/spans.test-support.ts';
import { releaseProxy } from './chart-proxy/objects.test-support.ts';
import { causeOf, withTraceparent } from './trace-context.ts';

const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

describe('the trace noted on a HelmReleaseProxy', () => {
  let spans: RecordedSpans;
  beforeEach(() => {
    spans = new RecordedSpans();
  });
  afterEach(async () => spans.stop());

  it('is noted along with a change, and makes none', () => {
    const before = releaseProxy();
    const after = { ...before, spec: { ...before.spec, values: 'a: 1' } };
    expect(withTraceparent(before, before, TRACEPARENT)).toBe(before);
    expect(withTraceparent(before, after, undefined)).toBe(after);
    expect(withTraceparent(before, after, TRACEPARENT).metadata.annotations).toEqual({
      ...before.metadata.annotations,
      [TRACEPARENT_ANNOTATION]: TRACEPARENT,
    });
    expect(withTraceparent(undefined, before, TRACEPARENT).metadata.annotations).toHaveProperty([
      TRACEPARENT_ANNOTATION,
    ]);
  });

  it('is the cause of the change that it came with, and of no other', () => {
    const before = releaseProxy();
    const after = withTraceparent(undefined, before, TRACEPARENT);
    for (const previous of [undefined, before]) {
      const origin = causeOf(previous, after);
      expect(origin && trace.getSpanContext(origin)?.traceId).toBe('a'.repeat(32));
    }
    expect(causeOf(after, { ...after })).toBeUndefined();
    expect(causeOf(after, before)).toBeUndefined();
    expect(causeOf(before, withTraceparent(before, { ...before }, 'nonsense'))).toBeUndefined();
  });
});
