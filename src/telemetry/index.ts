export { createLogger, errorText, silentLogger } from './logger.ts';
export type { LogFields, Logger, LoggerOptions } from './logger.ts';
export { counter, createRegistry, forgetCluster, gauge, histogram } from './metrics.ts';
export { registerProcessMetrics } from './process-metrics.ts';
export {
  CLUSTER_ATTRIBUTE,
  NAMESPACE_ATTRIBUTE,
  activeTraceparent,
  beginTrace,
  describeSpan,
  failSpan,
  inClientSpan,
  inSpan,
  inTrace,
  injectTrace,
  originFrom,
  traceOrigin,
  untraced,
  within,
} from './tracing.ts';
export type { TraceOrigin } from './tracing.ts';
export { createTelemetry } from './telemetry.ts';
export type { Telemetry } from './telemetry.ts';
