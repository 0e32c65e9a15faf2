import { createServer } from 'node:http';
import type { Runnable } from '../runtime/index.ts';
import { closeServer, listen } from './http-address.ts';

/** What /readyz asks. */
export interface Readiness {
  /** Undefined when ready; otherwise what is waited for. */
  notReady(): string | undefined;
}

/** Paths as controller-runtime serves them; `ping` is the name of its one check. */
const PROBES: ReadonlyMap<string, 'live' | 'ready'> = new Map([
  ['/healthz', 'live'],
  ['/healthz/ping', 'live'],
  ['/readyz', 'ready'],
  ['/readyz/ping', 'ready'],
]);

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
      const answer = this.#answer((request.url ?? '').split('?')[0] ?? '');
      response.writeHead(answer.status, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(answer.text);
    });
    this.#port = await listen(server, '--health-addr', this.#address);
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    }
    await closeServer(server);
  }
  #answer(path: string): { status: number; text: string } {
    const probe = PROBES.get(path);
    if (probe === undefined) return { status: 404, text: 'not found' };
    const problem = probe === 'ready' ? this.#readiness.notReady() : undefined;
    return problem === undefined ? { status: 200, text: 'ok' } : { status: 503, text: problem };
  }
}
