import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import type { Tracer } from '@opentelemetry/api';

/** Tracing as the SDK does it, into memory. `stop` in afterEach: the context manager is the process's. */
export class RecordedSpans {
  readonly tracer: Tracer;
  readonly #exporter = new InMemorySpanExporter();
  readonly #provider: TracerProvider;

  constructor() {
    this.#provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: this.#exporter })] });
    this.tracer = this.#provider.getTracer('test');
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator({
      // The part of W3C Trace Context that tests need; the SDK's own is set up by the SDK.
      inject: (at, carrier, setter) => {
        const span = trace.getSpanContext(at);
        if (span !== undefined) setter.set(carrier, 'traceparent', `00-${span.traceId}-${span.spanId}-01`);
      },
      extract: (at, carrier, getter) => {
        const text = String(getter.get(carrier, 'traceparent'));
        const [, traceId = '', spanId = ''] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(text) ?? [];
        return traceId === '' ? at : trace.setSpanContext(at, { traceId, spanId, traceFlags: 1, isRemote: true });
      },
      fields: () => ['traceparent'],
    });
  }

  /** Those that have ended, in the order of their ends. */
  get all(): ReadableSpan[] {
    return this.#exporter.getFinishedSpans();
  }

  /** The only one of that name. */
  named(name: string): ReadableSpan {
    const [span, ...more] = this.all.filter((candidate) => candidate.name === name);
    if (span === undefined || more.length > 0) {
      throw new Error(`one span "${name}" of ${this.all.map((one) => one.name).join(', ')}`);
    }
    return span;
  }

  async stop(): Promise<void> {
    await this.#provider.shutdown();
    context.disable();
    propagation.disable();
  }
}
