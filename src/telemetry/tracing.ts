/**
 * Traces, on @opentelemetry/api alone. With no SDK registered every span is one that does nothing and no context is kept,
 * which is what tracing costs when it is off. Spans tell codes of errors and names of clusters and objects; messages of
 * errors may quote values, so they stay in the log.
 */
import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  context,
  createContextKey,
  isSpanContextValid,
  propagation,
  trace,
} from '@opentelemetry/api';
import type { Attributes, Context, Link, Span, SpanOptions, Tracer } from '@opentelemetry/api';

/** OpenTelemetry's semantic conventions, "Kubernetes resource" and "error". */
export const CLUSTER_ATTRIBUTE = 'k8s.cluster.name';
export const NAMESPACE_ATTRIBUTE = 'k8s.namespace.name';
const ERROR_ATTRIBUTE = 'error.type';

/** Whose work is done, so that every span inside tells the cluster without being told it. */
const CLUSTER = createContextKey('capstan cluster');
/** When the trace began in this process, milliseconds of performance.now. */
const STARTED = createContextKey('capstan trace started');
/**
 * Work that comes later than this after its cause gets a trace of its own, with a link to the cause's: as long as a
 * reconcile may take. Otherwise whatever asks for itself again (a resync, a retry) would go on in one trace for ever.
 */
const MAX_TRACE_MS = 15 * 60_000;

/** Where work was asked for. What is done for it later and elsewhere belongs to the same trace. */
export type TraceOrigin = Context;

interface Start {
  readonly name: string;
  readonly options: SpanOptions;
  readonly parent: Context;
}

/**
 * Runs `fn` in a span that is active meanwhile, so that spans made inside become its children. A rejection marks the
 * span and passes on unchanged. The cluster is that of the work under way unless `attributes` names one.
 */
export async function inSpan<T>(
  tracer: Tracer,
  name: string,
  attributes: Attributes,
  fn: (span: Span) => Promise<T>,
): Promise<T> {
  return run(tracer, { name, options: { attributes }, parent: context.active() }, fn);
}

/**
 * As `inSpan`, for a call to a server. Only inside a trace: probes, watches and leases would fill a back end with traces
 * of one span each that nobody asked for; they are in the metrics.
 */
export async function inClientSpan<T>(
  tracer: Tracer,
  name: string,
  attributes: Attributes,
  fn: (span: Span) => Promise<T>,
): Promise<T> {
  const parent = context.active();
  if (trace.getSpan(parent) === undefined) return fn(NO_SPAN);
  return run(tracer, { name, options: { attributes, kind: SpanKind.CLIENT }, parent }, fn);
}

/**
 * As `inSpan`, for work that was asked for elsewhere: in the trace of `origin` when that is young enough, otherwise in
 * one of its own. Whatever is active in the caller has nothing to do with it.
 */
export async function inTrace<T>(
  tracer: Tracer,
  name: string,
  start: { readonly origin: TraceOrigin | undefined; readonly attributes: Attributes },
  fn: (span: Span) => Promise<T>,
): Promise<T> {
  const { origin, attributes } = start;
  const goesOn = origin !== undefined && !isOld(origin);
  const base = goesOn ? origin : ROOT_CONTEXT;
  const parent = base
    .setValue(CLUSTER, attributes[CLUSTER_ATTRIBUTE])
    .setValue(STARTED, base.getValue(STARTED) ?? performance.now());
  return run(tracer, { name, options: { attributes, links: goesOn ? [] : linkTo(origin) }, parent }, fn);
}

/**
 * Begins a trace with a span of no length: something changed, and what is done about it are its children. Undefined when
 * tracing is off.
 */
export function beginTrace(tracer: Tracer, name: string, attributes: Attributes): TraceOrigin | undefined {
  const span = tracer.startSpan(name, { attributes, root: true }, ROOT_CONTEXT);
  span.end();
  if (!isSpanContextValid(span.spanContext())) return undefined;
  return trace.setSpan(ROOT_CONTEXT, span).setValue(STARTED, performance.now());
}

/** The trace that the caller works in; undefined outside one and while tracing is off. */
export function traceOrigin(): TraceOrigin | undefined {
  const active = context.active();
  const span = trace.getSpanContext(active);
  return span !== undefined && isSpanContextValid(span) ? active : undefined;
}

/** Calls `fn` in the trace of `origin`; as it is where there is none. */
export function within<T>(origin: TraceOrigin | undefined, fn: () => T): T {
  return origin === undefined ? fn() : context.with(origin, fn);
}

/** Calls `fn` in no trace: for what outlives the work that happens to start it (watches above all). */
export function untraced<T>(fn: () => T): T {
  return context.with(ROOT_CONTEXT, fn);
}

/** Puts the active trace into the headers of a request (W3C Trace Context, or as OTEL_PROPAGATORS says). */
export function injectTrace(headers: Record<string, string>): void {
  propagation.inject(context.active(), headers);
}

/** The active trace as a W3C `traceparent`; undefined outside one, while tracing is off, and where OTEL_PROPAGATORS leaves it out. */
export function activeTraceparent(): string | undefined {
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier.traceparent;
}

/** The other way; undefined for what is none. */
export function originFrom(traceparent: string | undefined): TraceOrigin | undefined {
  if (traceparent === undefined) return undefined;
  const extracted = propagation.extract(ROOT_CONTEXT, { traceparent });
  return trace.getSpanContext(extracted) === undefined ? undefined : extracted;
}

/** More about the active span. */
export function describeSpan(attributes: Attributes): void {
  trace.getActiveSpan()?.setAttributes(attributes);
}

/** The active span failed for that reason, though nothing is thrown through it. */
export function failSpan(error: unknown): void {
  const span = trace.getActiveSpan();
  if (span !== undefined) fail(span, error);
}

/** What a log line says of the active trace (OpenTelemetry, "Trace context in non-OTLP log formats"); nothing when it is not recorded. */
export function traceFields(): { trace_id: string; span_id: string } | undefined {
  const span = trace.getActiveSpan();
  if (span?.isRecording() !== true) return undefined;
  const { traceId, spanId } = span.spanContext();
  return { trace_id: traceId, span_id: spanId };
}

/** Bound to nothing and never recorded. */
const NO_SPAN = trace.wrapSpanContext({ traceId: '', spanId: '', traceFlags: 0 });

async function run<T>(tracer: Tracer, start: Start, fn: (span: Span) => Promise<T>): Promise<T> {
  const { name, options, parent } = start;
  const cluster = parent.getValue(CLUSTER);
  const attributes =
    typeof cluster === 'string' ? { [CLUSTER_ATTRIBUTE]: cluster, ...options.attributes } : options.attributes;
  return tracer.startActiveSpan(name, { ...options, attributes }, parent, async (span) => {
    try {
      return await fn(span);
    } catch (error) {
      fail(span, error);
      throw error;
    } finally {
      span.end();
    }
  });
}

function fail(span: Span, error: unknown): void {
  span.setAttribute(ERROR_ATTRIBUTE, codeOf(error));
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Our errors have codes, and so have Node's; of others the class has to do. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '_OTHER';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}

function isOld(origin: TraceOrigin): boolean {
  const started = origin.getValue(STARTED);
  return typeof started === 'number' && performance.now() - started > MAX_TRACE_MS;
}

function linkTo(origin: TraceOrigin | undefined): Link[] {
  const span = origin === undefined ? undefined : trace.getSpanContext(origin);
  return span === undefined ? [] : [{ context: span }];
}
