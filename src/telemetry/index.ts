export { createLogger, errorText, silentLogger } from './logger.ts';
export type { LogFields, Logger, LoggerOptions } from './logger.ts';
export { counter, forgetCluster, gauge, histogram } from './metrics.ts';
export { registerProcessMetrics } from './process-metrics.ts';
export { inSpan } from './tracing.ts';
export { createTelemetry } from './telemetry.ts';
export type { Telemetry } from './telemetry.ts';
