import type { ApiStream } from './api-stream.ts';
import { asError } from './abort.ts';
import { ServerError } from './errors.ts';
import { LineDecoder } from './line-decoder.ts';
import type { Status } from './status.ts';
import type { KubeObject } from './types.ts';

/** metav1.WatchEvent (API concepts, "Efficient detection of changes"). */
export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly object: KubeObject }
  | { readonly type: 'ERROR'; readonly object: Status };

const TYPES: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']);

/** The events of one open watch. */
export class WatchFeed<T extends KubeObject> {
  /** performance.now() when it was opened. */
  readonly openedAt = performance.now();
  readonly #stream: ApiStream;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #decoder = new LineDecoder();
  #failure: Error | undefined;
  #told = false;

  constructor(stream: ApiStream) {
    this.#stream = stream;
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /** True once an event came. */
  get hasTold(): boolean {
    return this.#told;
  }

  /**
   * The next events, at least one; undefined when the server has closed the watch. What came before a bad line is given
   * first, the bad line's error with the next call. A rest without newline at the close is dropped: its event comes again
   * after the last resourceVersion.
   */
  async next(): Promise<WatchEvent<T>[] | undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      const chunk = await this.#chunks.next();
      if (chunk.done === true) return undefined;
      const events = this.#parse(chunk.value);
      if (events.length > 0) {
        this.#told = true;
        return events;
      }
    }
  }

  close(): void {
    this.#stream.close();
  }

  #parse(chunk: Uint8Array): WatchEvent<T>[] {
    const events: WatchEvent<T>[] = [];
    try {
      for (const line of this.#decoder.push(chunk)) events.push(parseEvent<T>(line));
    } catch (error) {
      this.#failure = asError(error);
    }
    return events;
  }
}

function parseEvent<T>(line: string): WatchEvent<T> {
  let event: { type?: unknown; object?: unknown } | null;
  try {
    event = JSON.parse(line) as { type?: unknown; object?: unknown } | null;
  } catch {
    // The parser's message quotes the line, which may be a Secret's.
    throw new ServerError('a line of the watch is no JSON');
  }
  if (event === null || !TYPES.has(event.type) || typeof event.object !== 'object' || event.object === null) {
    throw new ServerError('a line of the watch is no watch event');
  }
  return event as WatchEvent<T>;
}
