/**
 * `npm run bench:tracing`: what one span costs with tracing off and on, in this process, without a server. What a rollout
 * costs with traces: `npm run bench -- --traces` beside `npm run bench`.
 */
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BatchSpanProcessor, InMemorySpanExporter, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Tracer } from '@opentelemetry/api';
import { inClientSpan, inTrace } from '../../src/telemetry/index.ts';

/** Traces per round, each of a reconcile and so many calls. */
const TRACES = 20_000;
const CALLS = 4;
/** The first rounds let V8 compile; the median of the others counts. */
const ROUNDS = 9;
const WARM_UP = 3;

/** Takes batches as an exporter would, and drops them: what serializing and sending costs is the rollout's to tell. */
class Nowhere extends InMemorySpanExporter {
  override export(...[, done]: Parameters<InMemorySpanExporter['export']>): void {
    super.export([], done);
  }
}

async function round(tracer: Tracer | undefined): Promise<number> {
  const attributes = { 'k8s.cluster.name': 'fleet/one', 'k8s.namespace.name': 'fleet' };
  const call = async (): Promise<number> => Promise.resolve(1);
  const work = async (): Promise<void> => {
    for (let index = 0; index < CALLS; index += 1) {
      await (tracer === undefined ? call() : inClientSpan(tracer, 'GET /api/v1/secrets', { method: 'GET' }, call));
    }
  };
  const started = performance.now();
  for (let index = 0; index < TRACES; index += 1) {
    await (tracer === undefined ? work() : inTrace(tracer, 'reconcile', { origin: undefined, attributes }, work));
  }
  return ((performance.now() - started) * 1e6) / (TRACES * (1 + CALLS));
}

/** Nanoseconds per span. */
async function measure(tracer: Tracer | undefined): Promise<number> {
  const rounds: number[] = [];
  for (let index = 0; index < ROUNDS; index += 1) rounds.push(await round(tracer));
  const counted = rounds.slice(WARM_UP).sort((a, b) => a - b);
  return counted[Math.floor(counted.length / 2)] ?? Number.NaN;
}

const bare = await measure(undefined);
const off = await measure(trace.getTracer('bench'));
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const provider = new TracerProvider({ spanProcessors: [new BatchSpanProcessor({ exporter: new Nowhere() })] });
const on = await measure(provider.getTracer('bench'));
await provider.shutdown();
context.disable();
propagation.disable();
console.log(`per span, median of ${ROUNDS - WARM_UP} rounds of ${TRACES * (1 + CALLS)} spans:`);
for (const [name, ns] of Object.entries({ 'tracing off': off - bare, 'tracing on': on - bare }))
  console.log(`  ${name.padEnd(14)} ${(ns / 1000).toFixed(2).padStart(6)} µs`);
