import { SpanStatusCode } from '@opentelemetry/api';
import type { Attributes, Span, Tracer } from '@opentelemetry/api';
import { errorText } from './logger.ts';

/**
 * Runs `fn` in a span that is active meanwhile, so that spans made inside become its children. A rejection marks the
 * span and passes on unchanged. With no SDK wired, @opentelemetry/api hands out a span that does nothing.
 */
export async function inSpan<T>(
  tracer: Tracer,
  name: string,
  attributes: Attributes,
  fn: (span: Span) => Promise<T>,
): Promise<T> {
  return tracer.startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await fn(span);
    } catch (error) {
      span.recordException(error instanceof Error ? error : String(error));
      span.setStatus({ code: SpanStatusCode.ERROR, message: errorText(error) });
      throw error;
    } finally {
      span.end();
    }
  });
}
