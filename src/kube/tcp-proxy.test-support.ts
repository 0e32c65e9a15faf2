import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** Test support: stands between client and server; `freeze` makes every connection half-open, without FIN or RST. */
export class TcpProxy {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #frozen = false;

  private constructor(port: number) {
    this.#server = createServer({ allowHalfOpen: true }, (client) => {
      const upstream = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      const pair = [client, upstream] as const;
      this.#pairs.add(pair);
      if (!this.#frozen) join(pair);
      const drop = (): void => {
        this.#pairs.delete(pair);
        if (this.#frozen) return;
        client.destroy();
        upstream.destroy();
      };
      for (const socket of pair) socket.on('error', () => undefined).on('close', drop);
    });
  }

  static async start(port: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(port);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  /** Connections that are there go silent for good; new ones are accepted and go nowhere. */
  freeze(): void {
    this.#frozen = true;
    for (const [client, upstream] of this.#pairs) {
      client.unpipe(upstream);
      upstream.unpipe(client);
    }
  }

  /** New connections work again; frozen ones stay frozen. */
  thaw(): void {
    this.#frozen = false;
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
    await closed;
  }
}

function join([client, upstream]: readonly [Socket, Socket]): void {
  client.pipe(upstream);
  upstream.pipe(client);
}
