import type { Dispatcher } from 'undici';
import type { LinkedAbort } from './abort.ts';
import type { Asked } from './status.ts';
import { wireError } from './transport.ts';

/**
 * The body of an answer that goes on, e.g. a watch. Ends when the server ends it; throws a KubeError when it is cut or
 * silent for longer than its limit, the signal's reason when that aborts. Whoever opened it iterates it to its end or
 * closes it.
 */
export interface ApiStream extends AsyncIterable<Uint8Array> {
  close(): void;
}

export class ResponseStream implements ApiStream {
  readonly #body: Dispatcher.ResponseData['body'];
  readonly #linked: LinkedAbort;
  readonly #asked: Asked;

  constructor(body: Dispatcher.ResponseData['body'], linked: LinkedAbort, asked: Asked) {
    this.#body = body;
    this.#linked = linked;
    this.#asked = asked;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for await (const chunk of this.#body) yield chunk as Uint8Array;
    } catch (error) {
      throw wireError(error, this.#asked, this.#linked.signal);
    } finally {
      this.close();
    }
  }

  close(): void {
    this.#linked.unlink();
    this.#body.destroy();
  }
}
