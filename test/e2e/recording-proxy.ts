import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, request } from 'node:https';
import type { Server } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { CertificateAuthority } from '../support/index.ts';

/** One request that went through. */
export interface ProxiedRequest {
  method: string;
  /** Path and query. */
  path: string;
  accept: string;
}

interface Delay {
  readonly match: (request: ProxiedRequest) => boolean;
  readonly ms: number;
  remaining: number;
}

/** A TLS server in front of an API server: writes down what a client asks for, and can hold requests up. */
export class RecordingProxy {
  readonly server: string;
  /** PEM of the authority that clients must trust. */
  readonly ca: string;
  readonly requests: ProxiedRequest[] = [];
  readonly #listener: Server;
  readonly #agent: Agent;
  readonly #closing = new AbortController();
  #delays: Delay[] = [];
  #isCut = false;

  private constructor(parts: { listener: Server; agent: Agent; server: string; ca: string }) {
    this.#listener = parts.listener;
    this.#agent = parts.agent;
    this.server = parts.server;
    this.ca = parts.ca;
  }

  static async start(target: { server: string; ca: string }): Promise<RecordingProxy> {
    const authority = await CertificateAuthority.create('recording proxy');
    const pair = await authority.issue({ commonName: 'recording proxy', usage: 'server' });
    const listener = createServer({ cert: pair.certificate, key: pair.key });
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const address = listener.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
    const agent = new Agent({ ca: target.ca, keepAlive: true });
    const server = `https://127.0.0.1:${String(address.port)}`;
    const proxy = new RecordingProxy({ listener, agent, server, ca: authority.certificate });
    // Before TLS: who comes while it is cut off is told nothing at all.
    listener.on('connection', (socket) => {
      if (proxy.#isCut) socket.destroy();
    });
    listener.on('request', (incoming, answer) => {
      proxy.#forward(target.server, incoming, answer).catch(() => answer.destroy());
    });
    return proxy;
  }

  /** The kubeconfig of the real server, with this one in its place. */
  kubeconfig(original: string, target: { server: string; ca: string }): string {
    const encode = (pem: string): string => Buffer.from(pem).toString('base64');
    return original.replaceAll(target.server, this.server).replaceAll(encode(target.ca), encode(this.ca));
  }

  /** Holds the next requests that match up for this time (ms). */
  delay(match: Delay['match'], ms: number, times = 1): void {
    this.#delays.push({ match, ms, remaining: times });
  }

  /** Breaks every connection, and every new one, until `mend`: the server is away for those who come this way. */
  cut(): void {
    this.#isCut = true;
    this.#listener.closeAllConnections();
  }

  mend(): void {
    this.#isCut = false;
  }

  async stop(): Promise<void> {
    this.#closing.abort();
    const closed = new Promise((resolve) => this.#listener.close(resolve));
    this.#listener.closeAllConnections();
    await closed;
    this.#agent.destroy();
  }

  async #forward(target: string, incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = incoming;
    const record = { method, path: url, accept: headers.accept ?? '' };
    this.requests.push(record);
    const delay = this.#delays.find((candidate) => candidate.remaining > 0 && candidate.match(record));
    if (delay) {
      delay.remaining--;
      await sleep(delay.ms, undefined, { signal: this.#closing.signal });
    }
    const forward = request(`${target}${url}`, { method, headers, agent: this.#agent }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      answer.flushHeaders();
      response.pipe(answer);
      response.on('error', () => answer.destroy());
    });
    forward.on('error', () => answer.destroy());
    answer.on('close', () => forward.destroy());
    incoming.pipe(forward);
  }
}
