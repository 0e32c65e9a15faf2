import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** `open`: passes everything. `cut`: connections end and new ones are refused. `stalled`: they stay, and nothing passes, as behind a firewall that forgot them. */
export type RelayMode = 'open' | 'cut' | 'stalled';

/** The way to one cluster, which can fail. */
export class Relay {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #mode: RelayMode = 'open';

  private constructor(server: Server) {
    this.#server = server;
  }

  /** `target`: the port on this machine that everything goes to. */
  static async start(target: number): Promise<Relay> {
    const server = createServer();
    const relay = new Relay(server);
    server.on('connection', (socket) => relay.#accept(socket, target));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get mode(): RelayMode {
    return this.#mode;
  }

  set(mode: RelayMode): void {
    this.#mode = mode;
    for (const [near, far] of this.#pairs) {
      if (mode === 'cut') near.destroy();
      else if (mode === 'stalled') for (const socket of [near, far]) socket.pause();
      else for (const socket of [near, far]) socket.resume();
    }
  }

  async stop(): Promise<void> {
    this.set('cut');
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(near: Socket, target: number): void {
    if (this.#mode === 'cut') {
      near.resetAndDestroy();
      return;
    }
    const far = connect(target, '127.0.0.1');
    const pair = [near, far] as const;
    this.#pairs.add(pair);
    const end = (): void => {
      this.#pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const [from, to] of [pair, [far, near] as const]) {
      // By hand and not by pipe(): what is stalled must not be set going by a drained buffer.
      from.on('data', (chunk) => to.write(chunk));
      from.on('error', end);
      from.on('close', end);
    }
    if (this.#mode === 'stalled') for (const socket of pair) socket.pause();
  }
}
