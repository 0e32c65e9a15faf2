import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One span as it was sent, with its attributes as a plain object. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** '' of a root. */
  readonly parentSpanId: string;
  readonly name: string;
  /** 1 internal, 3 client (OTLP, SpanKind). */
  readonly kind: number;
  /** 2 of an error (OTLP, StatusCode). */
  readonly status: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly events: number;
  readonly resource: Readonly<Record<string, string | number>>;
  /** Nanoseconds since the epoch. */
  readonly startedAt: bigint;
  readonly endedAt: bigint;
}

interface KeyValue {
  key: string;
  value: { stringValue?: string; intValue?: number | string; doubleValue?: number };
}

interface WireSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  status?: { code?: number };
  attributes?: KeyValue[];
  events?: unknown[];
  startTimeUnixNano: string;
  endTimeUnixNano: string;
}

interface Export {
  resourceSpans?: { resource?: { attributes?: KeyValue[] }; scopeSpans?: { spans?: WireSpan[] }[] }[];
}

/**
 * An OpenTelemetry collector over HTTP on 127.0.0.1. It reads OTLP's JSON (OTEL_EXPORTER_OTLP_PROTOCOL=http/json), and
 * keeps bodies of any form, so that what was sent can be searched for what must not be in it.
 */
export class OtlpCollector {
  readonly #server: Server;
  readonly #spans: CollectedSpan[] = [];
  readonly #bodies: { readonly contentType: string; readonly body: Buffer }[] = [];
  #hangs = false;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#take(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<OtlpCollector> {
    const collector = new OtlpCollector();
    collector.#server.listen(0, '127.0.0.1');
    await once(collector.#server, 'listening');
    return collector;
  }

  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  get url(): string {
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  /** What makes a manager send its traces here, at once. */
  get environment(): Record<string, string> {
    return {
      OTEL_EXPORTER_OTLP_ENDPOINT: this.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      // Milliseconds: so soon after a span's end it is sent.
      OTEL_BSP_SCHEDULE_DELAY: '200',
    };
  }

  get spans(): readonly CollectedSpan[] {
    return this.#spans;
  }

  get bodies(): readonly { readonly contentType: string; readonly body: Buffer }[] {
    return this.#bodies;
  }

  /** All that ever came in, as text. */
  get text(): string {
    return this.#bodies.map(({ body }) => body.toString('latin1')).join('\n');
  }

  /** From now on requests are accepted and never answered. */
  hang(): void {
    this.#hangs = true;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (this.#hangs) return;
    const body = Buffer.concat(chunks);
    const contentType = request.headers['content-type'] ?? '';
    this.#bodies.push({ contentType, body });
    if (contentType.startsWith('application/json')) this.#spans.push(...spansOf(JSON.parse(body.toString()) as Export));
    response.writeHead(200, { 'content-type': contentType }).end(contentType.includes('json') ? '{}' : undefined);
  }
}

function spansOf(sent: Export): CollectedSpan[] {
  return (sent.resourceSpans ?? []).flatMap(({ resource, scopeSpans = [] }) =>
    scopeSpans.flatMap(({ spans = [] }) => spans.map((span) => collected(span, plain(resource?.attributes)))),
  );
}

function collected(span: WireSpan, resource: CollectedSpan['resource']): CollectedSpan {
  const { traceId, spanId, parentSpanId = '', name, kind } = span;
  return {
    ...{ traceId, spanId, parentSpanId, name, kind, resource },
    status: span.status?.code ?? 0,
    attributes: plain(span.attributes),
    events: span.events?.length ?? 0,
    startedAt: BigInt(span.startTimeUnixNano),
    endedAt: BigInt(span.endTimeUnixNano),
  };
}

function plain(attributes: readonly KeyValue[] = []): Record<string, string | number> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? value.doubleValue ?? (value.intValue === undefined ? '' : Number(value.intValue)),
    ]),
  );
}
