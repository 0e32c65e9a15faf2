import { trace } from '@opentelemetry/api';
import type { Tracer } from '@opentelemetry/api';
import { Registry } from 'prom-client';
import { silentLogger } from './logger.ts';
import type { Logger } from './logger.ts';

/**
 * What every room reports through. Rooms make their metrics on `metrics` (prom-client, the field's usual registry for
 * Node; one instance per manager, never the module's global one), so two managers in one process do not mix.
 */
export interface Telemetry {
  readonly log: Logger;
  readonly tracer: Tracer;
  readonly metrics: Registry;
}

export const TRACER_NAME = 'capstan';

/** Telemetry with defaults: no log, the API's tracer (a no-op until an SDK is registered), an own registry. */
export function createTelemetry(parts: Partial<Telemetry> = {}): Telemetry {
  return {
    log: parts.log ?? silentLogger,
    tracer: parts.tracer ?? trace.getTracer(TRACER_NAME),
    metrics: parts.metrics ?? new Registry(),
  };
}
