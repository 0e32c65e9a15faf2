import { Transport } from './transport.ts';
import type { TransportAccess, TransportOptions } from './transport.ts';

/** The transports of one connection: the current one, and those that only finish what runs on them. */
export class Sockets {
  readonly #options: TransportOptions;
  readonly #retiring = new Set<Transport>();
  readonly #ending = new Set<Promise<void>>();
  #current: Transport | undefined;
  #closed: Error | undefined;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /** The transport for this TLS material; one for other material is retired. Throws after `close`. */
  for(access: TransportAccess): Transport {
    if (this.#closed !== undefined) throw this.#closed;
    const current = this.#current;
    if (current?.matches(access) === true) return current;
    if (current !== undefined) this.#retire(current);
    this.#current = new Transport(access, this.#options);
    return this.#current;
  }

  /** Ends everything that runs, with `why`; the next request starts afresh. */
  reset(why: Error): void {
    const all = [...this.#retiring, ...(this.#current === undefined ? [] : [this.#current])];
    this.#current = undefined;
    this.#retiring.clear();
    for (const transport of all) this.#end(transport, why);
  }

  /** As `reset`; resolves when the sockets are gone. */
  async close(why: Error): Promise<void> {
    this.#closed = why;
    this.reset(why);
    await Promise.all(this.#ending);
  }

  #retire(transport: Transport): void {
    this.#retiring.add(transport);
    transport.retire(() => {
      // Nothing runs on it: there is nobody to be told why.
      if (this.#retiring.delete(transport)) this.#end(transport, new Error('credentials were replaced'));
    });
  }

  #end(transport: Transport, why: Error): void {
    const ending = transport
      .destroy(why)
      // Destroying has no failure that anyone could act on: the sockets are gone either way.
      .catch(() => undefined)
      .finally(() => {
        this.#ending.delete(ending);
      });
    this.#ending.add(ending);
  }
}
