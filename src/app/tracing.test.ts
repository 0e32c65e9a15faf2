import { context, propagation, trace } from '@opentelemetry/api';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { silentLogger } from '../telemetry/index.ts';
import type { Logger } from '../telemetry/index.ts';
import { isTracingWanted, startTracing } from './tracing.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.doUnmock('./tracing-sdk.ts');
  vi.resetModules();
});

describe('isTracingWanted', () => {
  const cases: [boolean, Record<string, string>][] = [
    [false, {}],
    [false, { OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'always_on' }],
    [true, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }],
    [true, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }],
    [false, { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://collector:4318' }],
    [false, { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }],
    [true, { OTEL_TRACES_EXPORTER: 'otlp' }],
    [true, { OTEL_TRACES_EXPORTER: 'console' }],
    [false, { OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }],
    [false, { OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }],
    [true, { OTEL_SDK_DISABLED: 'false', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }],
  ];
  it.each(cases)('%s for %o', (wanted, env) => {
    expect(isTracingWanted(env)).toBe(wanted);
  });
});

describe('startTracing', () => {
  it('does not load the SDK when no traces are wanted', async () => {
    vi.doMock('./tracing-sdk.ts', () => {
      throw new Error('loaded');
    });
    const tracing = await startTracing(false, '1.0.0', silentLogger);
    await tracing.stop(1);
    await expect(startTracing(true, '1.0.0', silentLogger)).rejects.toThrow();
  });

  it('keeps a context while it runs, gives up on a collector that is away, and leaves nothing behind', async () => {
    // Nobody listens on port 1 of this host.
    vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:1');
    const said: string[] = [];
    const log: Logger = { ...silentLogger, warn: (message) => said.push(message) };
    const tracing = await startTracing(true, '1.0.0', log);
    const headers: Record<string, string> = {};
    trace.getTracer('test').startActiveSpan('work', (span) => {
      propagation.inject(context.active(), headers);
      span.end();
    });
    expect(headers['traceparent']).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    await tracing.stop(50);
    expect(said).toEqual(['the last traces could not be sent']);
    const after: Record<string, string> = {};
    trace.getTracer('test').startActiveSpan('work', () => propagation.inject(context.active(), after));
    expect(after).toEqual({});
  });
});
