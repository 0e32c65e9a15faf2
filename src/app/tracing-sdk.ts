/** The only file that loads OpenTelemetry's SDK; tracing.ts imports it when traces are wanted. */
import { DiagLogLevel, context, diag, propagation, trace } from '@opentelemetry/api';
import type { DiagLogger } from '@opentelemetry/api';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
import type { Logger } from '../telemetry/index.ts';
import type { Tracing } from './tracing.ts';

/** A collector that is away is told once in so long, milliseconds; exports fail every few seconds. */
const SAME_AGAIN_MS = 5 * 60_000;
/** The SDK's errors come with stack and response. */
const MAX_TEXT = 300;

/** Traces only: metrics have their own endpoint, logs go to standard error. Everything else is read from OTEL_* by the SDK. */
export function startSdk(version: string, log: Logger): Tracing {
  const sdk = new NodeSDK({
    // What the environment says (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES) wins over this.
    resource: defaultResource().merge(
      resourceFromAttributes({ 'service.name': 'capstan', 'service.version': version }),
    ),
    metricReaders: [],
    logRecordProcessors: [],
  });
  // After the constructor, which may have set one that writes to the console.
  diag.setLogger(new Diagnostics(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  sdk.start();
  log.info('traces are exported');
  return { stop: async (limitMs) => stop(sdk, limitMs, log) };
}

async function stop(sdk: NodeSDK, limitMs: number, log: Logger): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${limitMs} ms`)), limitMs);
  });
  try {
    await Promise.race([sdk.shutdown(), limit]);
  } catch (err) {
    log.warn('the last traces could not be sent', { err });
  } finally {
    clearTimeout(timer);
    // A later start in this process begins afresh.
    for (const api of [trace, context, propagation, diag]) api.disable();
  }
}

/** What the SDK has to say, in our log. */
class Diagnostics implements DiagLogger {
  readonly #log: Logger;
  readonly #said = new Map<string, number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  error(message: string): void {
    this.#say(message);
  }

  warn(message: string): void {
    this.#say(message);
  }

  info(): void {
    // Of interest to those who develop the SDK.
  }

  debug(): void {
    // As info.
  }

  verbose(): void {
    // As info.
  }

  #say(message: string): void {
    const why = plain(message);
    const now = performance.now();
    if (now - (this.#said.get(why) ?? -Infinity) < SAME_AGAIN_MS) return;
    // Texts that never repeat must not pile up.
    if (this.#said.size > 100) this.#said.clear();
    this.#said.set(why, now);
    this.#log.warn('tracing has a problem', { why });
  }
}

/** Errors come as JSON with a stack. */
function plain(message: string): string {
  let text = message;
  try {
    const parsed: unknown = JSON.parse(message);
    if (typeof parsed === 'object' && parsed !== null && 'message' in parsed) text = String(parsed.message);
  } catch {
    // It is text.
  }
  return text.slice(0, MAX_TEXT);
}
