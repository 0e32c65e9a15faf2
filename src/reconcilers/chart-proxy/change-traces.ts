import type { Tracer } from '@opentelemetry/api';
import { LRUCache } from 'lru-cache';
import type { HelmChartProxy } from '../../api/index.ts';
import { LOCAL_CLUSTER } from '../../runtime/index.ts';
import { CLUSTER_ATTRIBUTE, NAMESPACE_ATTRIBUTE, beginTrace, within } from '../../telemetry/index.ts';
import type { TraceOrigin } from '../../telemetry/index.ts';

/** An event without a new generation is the echo of an own write (the finalizer), when it comes so soon. Milliseconds. */
const ECHO_MS = 30_000;
/** Changes remembered at a time. */
const MAX_CHANGES = 1000;

interface Change {
  readonly generation: number | undefined;
  readonly origin: TraceOrigin;
}

/** One trace for each change of a HelmChartProxy: everything that is asked for on its account goes on in it. */
export class ChangeTraces {
  readonly #tracer: Tracer;
  readonly #recent = new LRUCache<string, Change>({ max: MAX_CHANGES, ttl: ECHO_MS });

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /** Calls `ask` in the trace of that change. */
  run(chartProxy: HelmChartProxy, ask: () => void): void {
    within(this.#originOf(chartProxy), ask);
  }

  #originOf(chartProxy: HelmChartProxy): TraceOrigin | undefined {
    const { uid = '', generation, namespace, name } = chartProxy.metadata;
    const known = this.#recent.get(uid);
    if (known !== undefined && known.generation === generation) return known.origin;
    const origin = beginTrace(this.#tracer, 'HelmChartProxy changed', {
      [CLUSTER_ATTRIBUTE]: LOCAL_CLUSTER,
      [NAMESPACE_ATTRIBUTE]: namespace,
      'capstan.object.name': name,
      'capstan.object.generation': generation,
    });
    if (origin !== undefined) this.#recent.set(uid, { generation, origin });
    return origin;
  }
}
