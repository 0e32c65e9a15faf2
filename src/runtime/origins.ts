import { traceOrigin } from '../telemetry/index.ts';
import type { TraceOrigin } from '../telemetry/index.ts';
import { requestKey } from './cluster-name.ts';
import type { Request } from './types.ts';

/**
 * In which trace each request was asked for, until it is worked on: whoever asked first is the cause. Empty while tracing
 * is off.
 */
export class Origins {
  readonly #byRequest = new Map<string, TraceOrigin>();

  /** Requests whose origin is known, for tests. */
  get size(): number {
    return this.#byRequest.size;
  }

  /** The caller's trace, if it works in one, is what asks for this request. */
  note(request: Request): void {
    const origin = traceOrigin();
    if (origin === undefined) return;
    const key = requestKey(request);
    if (!this.#byRequest.has(key)) this.#byRequest.set(key, origin);
  }

  take(request: Request): TraceOrigin | undefined {
    const key = requestKey(request);
    const origin = this.#byRequest.get(key);
    this.#byRequest.delete(key);
    return origin;
  }
}
