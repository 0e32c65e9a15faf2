import { createServer as createHttpServer } from 'node:http';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { Runnable } from '../runtime/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { closeServer, listen } from './http-address.ts';
import type { Access, MetricsAccess } from './metrics-access.ts';
import type { DebugPages } from './debug-pages.ts';
import { selfSignedCertificate } from './self-signed.ts';

const STATUS_OF: Readonly<Record<Exclude<Access, 'allowed'>, number>> = { unauthenticated: 401, forbidden: 403 };

export interface MetricsServerOptions {
  readonly address: { host: string; port: number };
  /** Absent: plain HTTP for everyone (`--insecure-diagnostics`). Present: HTTPS, and the API server decides who reads. */
  readonly access?: Pick<MetricsAccess, 'check'>;
  /** Served beside /metrics, with the same access; absent: not at all. */
  readonly debug?: DebugPages;
}

/** /metrics in Prometheus' text form. */
export class MetricsServer implements Runnable {
  readonly name = 'metrics server';
  readonly #options: MetricsServerOptions;
  readonly #telemetry: Telemetry;
  #port = 0;

  constructor(options: MetricsServerOptions, telemetry: Telemetry) {
    this.#options = options;
    this.#telemetry = telemetry;
  }

  /** The bound port, once running. */
  get port(): number {
    return this.#port;
  }

  async run(signal: AbortSignal): Promise<void> {
    const listener: RequestListener = (request, response) => {
      this.#answer(request, response, signal).catch((error: unknown) => {
        this.#telemetry.log.warn('metrics request failed', { err: error });
        if (!response.headersSent) response.writeHead(500);
        response.end();
      });
    };
    const server =
      this.#options.access === undefined
        ? createHttpServer(listener)
        : createHttpsServer(await selfSignedCertificate('capstan-metrics'), listener);
    this.#port = await listen(server, '--diagnostics-address', this.#options.address);
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    }
    await closeServer(server);
  }

  async #answer(request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const { pathname: path, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const { access: gate, debug } = this.#options;
    const isDebug = debug?.has(path) === true;
    if (path !== '/metrics' && !isDebug) {
      response.writeHead(404).end();
      return;
    }
    if (request.method !== 'GET') {
      response.writeHead(405, { allow: 'GET' }).end();
      return;
    }
    const access = (await gate?.check(request.headers.authorization, path, signal)) ?? 'allowed';
    if (access !== 'allowed') {
      response.writeHead(STATUS_OF[access]).end();
      return;
    }
    if (isDebug) {
      const { status, body } = await debug.read(path, searchParams, signal);
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
      return;
    }
    const body = await this.#telemetry.metrics.metrics();
    response.writeHead(200, { 'content-type': this.#telemetry.metrics.contentType }).end(body);
  }
}
