import { createServer } from 'node:http';
import type { Runnable } from '../runtime/index.ts';
import { closeServer, listen } from './http-address.ts';

/** What /readyz asks. */
export interface Readiness {
  /** Undefined when ready; otherwise what is waited for. */
  notReady(): string | undefined;
}

/** /healthz (the process lives) and /readyz (it can work, or stands by for the Lease), as CAAPH's probes expect them. */
export class HealthServer implements Runnable {
  readonly name = 'health server';
  readonly #address: { host: string; port: number };
  readonly #readiness: Readiness;
  #port = 0;

  constructor(address: { host: string; port: number }, readiness: Readiness) {
    this.#address = address;
    this.#readiness = readiness;
  }

  /** The bound port, once running. */
  get port(): number {
    return this.#port;
  }

  async run(signal: AbortSignal): Promise<void> {
    const server = createServer((request, response) => {
      const path = (request.url ?? '').split('?')[0];
      const problem = path === '/readyz' || path === '/readyz/ping' ? this.#readiness.notReady() : undefined;
      const known = path === '/readyz' || path === '/healthz' || path === '/readyz/ping' || path === '/healthz/ping';
      const status = !known ? 404 : problem === undefined ? 200 : 503;
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(status === 200 ? 'ok' : (problem ?? 'not found'));
    });
    this.#port = await listen(server, '--health-addr', this.#address);
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    }
    await closeServer(server);
  }
}
