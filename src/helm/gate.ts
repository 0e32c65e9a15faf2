import { hash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { answeredHeaders, forwardedHeaders, isKubeError, linkAbort } from '../kube/index.ts';
import type { ForwardedAnswer, ForwardRequest } from '../kube/index.ts';
import { errorText } from '../telemetry/index.ts';
import type { Logger } from '../telemetry/index.ts';
import { readBody } from './gate-body.ts';
import { refusal } from './gate-refusal.ts';
import type { HelmPassage } from './types.ts';

/** While it is held, helm's requests are let through. Dispose of it when the process has ended. */
export interface Admission extends Disposable {
  /** Names the gate, with a secret path of this operation. Never logged. */
  readonly kubeconfig: string;
}

interface Admitted {
  readonly cluster: string;
  readonly passage: HelmPassage;
  /** Aborts when the operation has ended. */
  readonly end: AbortController;
}

/** Bytes of the secret in an operation's path: whoever is on this machine could knock. */
const SECRET_BYTES = 24;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/**
 * The way from helm processes to the API servers, where several replicas share the clusters: a server on loopback, in
 * this very process. A process that is stopped forwards nothing; once it goes on, each request is first asked whether its
 * permit is still valid. So a helm that outlived its manager's fence can write nothing, and no release is worked on twice.
 */
export class HelmGate {
  readonly #log: Logger;
  readonly #admitted = new Map<string, Admitted>();
  #server: Promise<Server> | undefined;
  #closed = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Opens the gate for one operation. Rejects after `close`, and when no port can be had. */
  async admit(cluster: string, passage: HelmPassage): Promise<Admission> {
    if (this.#closed) throw new Error('the gate for helm is closed');
    this.#server ??= this.#listen();
    const { port } = (await this.#server).address() as AddressInfo;
    const secret = randomBytes(SECRET_BYTES).toString('base64url');
    const admitted: Admitted = { cluster, passage, end: new AbortController() };
    // By its hash: how long a lookup takes tells nothing of the secret.
    const key = hash('sha256', secret);
    this.#admitted.set(key, admitted);
    return {
      kubeconfig: kubeconfigFor(`http://127.0.0.1:${port}/${secret}`),
      [Symbol.dispose]: () => {
        this.#admitted.delete(key);
        admitted.end.abort(new Error('the operation has ended'));
      },
    };
  }

  /** Ends every request and closes the port. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { end } of this.#admitted.values()) end.abort(new Error('the manager stops'));
    this.#admitted.clear();
    const server = await this.#server?.catch(() => undefined);
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  async #listen(): Promise<Server> {
    const server = createServer((request, response) => {
      this.#serve(request, response).catch((err: unknown) => {
        this.#log.error('the gate for helm met an error of its own', { err });
        response.destroy();
      });
    });
    // Nothing that helm asks for upgrades; a socket that is left to itself would stay.
    server.on('upgrade', (_, socket) => socket.end('HTTP/1.1 501 Not Implemented\r\nConnection: close\r\n\r\n'));
    // Watches rest for as long as helm waits.
    server.requestTimeout = 0;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    // Whoever closes it waits for it; it keeps no process alive.
    server.unref();
    return server;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { secret, path } = split(request.url ?? '');
    const admitted = this.#admitted.get(hash('sha256', secret));
    const method = METHODS.find((known) => known === request.method);
    if (admitted === undefined || method === undefined) {
      response.writeHead(404).end();
      return;
    }
    const linked = linkAbort(admitted.end.signal);
    const { permit } = admitted.passage;
    const onLost = (): void => linked.abort(new Error('the cluster was lost to another replica'));
    permit.signal.addEventListener('abort', onLost, { once: true });
    response.once('close', () => linked.abort(new Error('helm hung up')));
    try {
      const body = await readBody(request);
      const headers = forwardedHeaders(request.headers);
      const sent = { method, path, headers, ...(body === undefined ? {} : { body }), signal: linked.signal };
      await this.#pass(admitted, sent, response);
    } finally {
      linked.unlink();
      permit.signal.removeEventListener('abort', onLost);
    }
  }

  async #pass(admitted: Admitted, request: ForwardRequest, response: ServerResponse): Promise<void> {
    const { cluster, passage } = admitted;
    let answer: ForwardedAnswer;
    try {
      // Nothing is waited for between this answer and the request: a process may be stopped in any wait.
      if (!passage.permit.valid) throw lost(cluster);
      answer = await passage.forward(request);
    } catch (error) {
      this.#refuse(admitted, request, { error, response });
      return;
    }
    response.writeHead(answer.status, answeredHeaders(answer.headers));
    try {
      await pipeline(answer.body, response, { signal: request.signal });
    } catch (error) {
      // The head has gone: breaking off is what is left to say.
      response.destroy();
      this.#log.debug('an answer to helm was broken off', { cluster, why: errorText(error) });
    }
  }

  #refuse(
    { cluster, passage }: Admitted,
    { method, path }: ForwardRequest,
    { error, response }: { error: unknown; response: ServerResponse },
  ): void {
    const isLost = !passage.permit.valid || isKubeError(error, 'WriteRefused');
    if (isLost) this.#log.warn('a request of helm was refused: this replica has lost the cluster', { cluster, method });
    if (response.destroyed) return;
    const { status, text } = refusal(isLost ? lost(cluster) : error, isLost);
    this.#log.debug('a request of helm was not answered by its cluster', {
      cluster,
      method,
      path: path.split('?')[0],
      status,
    });
    response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  }
}

function lost(cluster: string): Error {
  return new Error(`this replica does not serve cluster ${cluster} any more; another one does`);
}

/** `/secret/api/v1/…?…` */
function split(url: string): { secret: string; path: string } {
  const end = url.indexOf('/', 1);
  return end < 0 ? { secret: url.slice(1), path: '/' } : { secret: url.slice(1, end), path: url.slice(end) };
}

function kubeconfigFor(server: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'gate',
    contexts: [{ name: 'gate', context: { cluster: 'gate', user: 'gate' } }],
    clusters: [{ name: 'gate', cluster: { server } }],
    users: [{ name: 'gate', user: {} }],
  });
}
