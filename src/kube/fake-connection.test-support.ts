import { createTelemetry } from '../telemetry/index.ts';
import type { ApiRequest, StreamRequest } from './api-request.ts';
import type { ApiStream } from './api-stream.ts';
import type { KubeObject } from './types.ts';
import type { WatchSetConnection } from './watch-set.ts';

/** Test support: a connection without a network, for tests of time. */

/** A watch that the test writes. */
export class FakeStream implements ApiStream {
  readonly request: StreamRequest;
  closed = false;
  readonly #chunks: Uint8Array[] = [];
  #end: { readonly error?: Error } | undefined;
  #wake: () => void = () => undefined;

  constructor(request: StreamRequest) {
    this.request = request;
    request.signal?.addEventListener('abort', () => {
      this.fail(new Error('aborted'));
    });
  }

  send(type: string, object: unknown): void {
    this.#chunks.push(Buffer.from(`${JSON.stringify({ type, object })}\n`));
    this.#wake();
  }

  end(): void {
    this.#end = {};
    this.#wake();
  }

  fail(error: Error): void {
    this.#end = { error };
    this.#wake();
  }

  close(): void {
    this.closed = true;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) yield chunk;
      else if (this.#end?.error !== undefined) throw this.#end.error;
      else if (this.#end !== undefined) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

export class FakeConnection implements WatchSetConnection {
  readonly clusterName = 'test';
  readonly telemetry = createTelemetry();
  readonly requestTimeoutMs = 30_000;
  readonly features: WatchSetConnection['features'] = { streamingLists: 'no' };
  readonly streams: FakeStream[] = [];
  readonly swapListeners = new Set<() => void>();
  lists = 0;
  items: KubeObject[] = [];
  /** What the next watches are refused with. */
  readonly refusals: Error[] = [];
  readonly listRefusals: Error[] = [];

  get stream(): FakeStream {
    const last = this.streams.at(-1);
    if (last === undefined) throw new Error('no watch was opened');
    return last;
  }

  async json<T>(request: ApiRequest): Promise<T> {
    request.signal?.throwIfAborted();
    this.lists += 1;
    const refusal = this.listRefusals.shift();
    if (refusal !== undefined) throw refusal;
    return { apiVersion: 'v1', kind: 'ThingList', metadata: { resourceVersion: '10' }, items: this.items } as T;
  }

  async open(request: StreamRequest): Promise<ApiStream> {
    request.signal?.throwIfAborted();
    const refusal = this.refusals.shift();
    if (refusal !== undefined) throw refusal;
    const stream = new FakeStream(request);
    this.streams.push(stream);
    return stream;
  }

  onSwap(listener: () => void): () => void {
    this.swapListeners.add(listener);
    return () => {
      this.swapListeners.delete(listener);
    };
  }
}
