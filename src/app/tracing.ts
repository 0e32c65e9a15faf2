import type { Logger } from '../telemetry/index.ts';

/** Tracing that was started, or that is off. */
export interface Tracing {
  /** Sends what has not been sent and ends it; gives up after `limitMs`, which is said in the log. Never rejects. */
  stop(limitMs: number): Promise<void>;
}

const OFF: Tracing = { stop: async () => undefined };

/** What says that traces are wanted, and where to (OpenTelemetry, "Environment Variable Specification"). */
const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;

/**
 * Are traces to be exported? Only when the environment names an exporter or an endpoint: OpenTelemetry's own default, a
 * collector on this host, would have every manager knock at a door that mostly is not there.
 */
export function isTracingWanted(env: NodeJS.ProcessEnv): boolean {
  if (env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return false;
  const exporter = env['OTEL_TRACES_EXPORTER']?.trim() ?? '';
  if (exporter !== '') return exporter !== 'none';
  return ENDPOINTS.some((name) => (env[name]?.trim() ?? '') !== '');
}

/** Starts OpenTelemetry's SDK as the OTEL_* variables configure it. It is not even loaded when traces are not wanted. */
export async function startTracing(wanted: boolean, version: string, log: Logger): Promise<Tracing> {
  if (!wanted) return OFF;
  const { startSdk } = await import('./tracing-sdk.ts');
  return startSdk(version, log);
}
