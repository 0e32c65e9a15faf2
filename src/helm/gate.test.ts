import { createServer, request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Connection, WriteRefusedError } from '../kube/index.ts';
import type { ForwardRequest } from '../kube/index.ts';
import type { LogFields, Logger } from '../telemetry/index.ts';
import { HelmGate } from './gate.ts';
import type { Admission } from './gate.ts';
import type { HelmPassage } from './types.ts';

/** An API server that a test answers for. */
let upstream: Server;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let seen: { method: string; url: string; headers: IncomingHttpHeaders; body: string }[];
let connection: Connection;
let gate: HelmGate;
let logged: string;
let permit: { signal: AbortSignal; valid: boolean };
let lose: AbortController;

beforeEach(async () => {
  seen = [];
  logged = '';
  answer = (_, response) => response.writeHead(200, { 'content-type': 'application/json', audit: 'x' }).end('{"ok":1}');
  upstream = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      seen.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
      answer(request, response);
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  connection = Connection.fromKubeconfig(kubeconfig('first'), { clusterName: 'ns/c1', http2: false });
  lose = new AbortController();
  permit = { signal: lose.signal, valid: true };
  gate = new HelmGate(noteTo((line) => (logged += line)));
});
afterEach(async () => {
  await gate.close();
  await connection.close();
  upstream.closeAllConnections();
  await new Promise((resolve) => upstream.close(resolve));
});

function kubeconfig(token: string): string {
  const { port } = upstream.address() as AddressInfo;
  return JSON.stringify({
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server: `http://127.0.0.1:${port}/base` } }],
    users: [{ name: 'x', user: { token } }],
  });
}

function noteTo(write: (line: string) => void): Logger {
  const note = (message: string, fields?: LogFields): void => write(`${message} ${JSON.stringify(fields)}\n`);
  return { debug: note, info: note, warn: note, error: note, with: () => noteTo(write) };
}

async function admit(passage: Partial<HelmPassage> = {}): Promise<Admission & { server: string }> {
  const forward = async (request: ForwardRequest) => connection.forward(request);
  const admission = await gate.admit('ns/c1', { forward, permit, ...passage });
  const config = JSON.parse(admission.kubeconfig) as { clusters: { cluster: { server: string } }[] };
  return Object.assign(admission, { server: config.clusters[0]?.cluster.server ?? '' });
}

describe('a request of helm', () => {
  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])(
    '%s reaches the API server with our credentials, and its answer comes back',
    async (method) => {
      const { server } = await admit();
      const body = method === 'GET' ? undefined : '{"a":1}';
      const got = await fetch(`${server}/api/v1/namespaces/x/secrets?limit=5&fieldManager=helm`, {
        method,
        headers: {
          authorization: 'Bearer helms-own',
          accept: 'application/json',
          'content-type': 'application/apply-patch+yaml',
        },
        ...(body === undefined ? {} : { body }),
      });
      expect([got.status, await got.text(), got.headers.get('audit')]).toEqual([200, '{"ok":1}', 'x']);
      expect(seen).toHaveLength(1);
      expect(seen[0]).toMatchObject({
        method,
        url: '/base/api/v1/namespaces/x/secrets?limit=5&fieldManager=helm',
        body: body ?? '',
      });
      expect(seen[0]?.headers).toMatchObject({
        authorization: 'Bearer first',
        'content-type': 'application/apply-patch+yaml',
      });
    },
  );

  it('gets any answer as it is: refusals, and bytes that are packed', async () => {
    const packed = Buffer.from([31, 139, 0, 255, 1]);
    answer = (_, response) =>
      response.writeHead(409, { 'content-type': 'application/vnd.kubernetes.protobuf' }).end(packed);
    const { server } = await admit();
    const got = await fetch(`${server}/api`);
    expect([got.status, got.headers.get('content-type'), Buffer.from(await got.arrayBuffer())]).toEqual([
      409,
      'application/vnd.kubernetes.protobuf',
      packed,
    ]);
  });

  it('may be a watch: events come as they happen', async () => {
    let push: (text: string) => void = () => undefined;
    answer = (_, response) => {
      response.writeHead(200);
      push = (text) => response.write(text);
      push('first\n');
    };
    const { server } = await admit();
    const got = await fetch(`${server}/api/v1/pods?watch=1`);
    const reader = got.body!.getReader();
    const next = async (): Promise<string> => Buffer.from((await reader.read()).value ?? []).toString();
    expect(await next()).toBe('first\n');
    push('second\n');
    expect(await next()).toBe('second\n');
    await reader.cancel();
  });

  it('ends at the API server when helm hangs up', async () => {
    const ended = new Promise<void>((resolve) => {
      answer = (_, response) => {
        response.writeHead(200);
        response.write('x');
        response.on('close', resolve);
      };
    });
    const { server } = await admit();
    const stop = new AbortController();
    await fetch(`${server}/api/v1/pods?watch=1`, { signal: stop.signal });
    stop.abort();
    await ended;
  });

  it('carries bodies of some megabytes both ways', async () => {
    answer = (_, response) => response.end('y'.repeat(5 << 20));
    const { server } = await admit();
    const got = await fetch(`${server}/api`, { method: 'POST', body: 'x'.repeat(3 << 20) });
    expect([(await got.text()).length, seen[0]?.body.length]).toEqual([5 << 20, 3 << 20]);
  });

  it('is sent once more, with its body, when the credentials were renewed', async () => {
    answer = (request, response) =>
      response.writeHead(request.headers.authorization === 'Bearer second' ? 200 : 401).end('{}');
    connection.setUnauthorizedHook(async () => {
      connection.swap(kubeconfig('second'));
      return Promise.resolve(true);
    });
    const { server } = await admit();
    const got = await fetch(`${server}/api`, { method: 'POST', body: 'again' });
    expect([got.status, seen.map(({ body }) => body)]).toEqual([200, ['again', 'again']]);
  });

  it('is told what keeps it from its cluster', async () => {
    upstream.closeAllConnections();
    await new Promise((resolve) => upstream.close(resolve));
    const { server } = await admit();
    const got = await fetch(`${server}/api`);
    expect(got.status).toBe(502);
    expect(await got.json()).toMatchObject({
      kind: 'Status',
      message: expect.stringContaining('ECONNREFUSED') as string,
    });
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  });

  it('that would upgrade its connection is refused', async () => {
    const { server } = await admit();
    const status = await new Promise((resolve, reject) => {
      const request = httpRequest(`${server}/exec`, { headers: { connection: 'Upgrade', upgrade: 'SPDY/3.1' } });
      request.on('response', ({ statusCode }) => resolve(statusCode));
      request.on('error', reject);
      request.end();
    });
    expect(status).toBe(501);
  });
});

describe('when the cluster is lost to another replica', () => {
  it('nothing reaches the API server any more, and helm is told why', async () => {
    const { server } = await admit();
    permit.valid = false;
    const got = await fetch(`${server}/api`, { method: 'POST', body: '{}' });
    expect(got.status).toBe(403);
    expect(await got.json()).toMatchObject({
      kind: 'Status',
      code: 403,
      message: 'this replica does not serve cluster ns/c1 any more; another one does',
    });
    expect(seen).toEqual([]);
    expect(logged).toContain('this replica has lost the cluster');
  });

  it('what is under way is broken off', async () => {
    answer = (_, response) => {
      response.writeHead(200);
      response.write('x');
    };
    const { server } = await admit();
    const got = await fetch(`${server}/api/v1/pods?watch=1`);
    permit.valid = false;
    lose.abort();
    await expect(got.text()).rejects.toThrow();
  });

  it('a write that the connection refuses is told in the same words', async () => {
    const { server } = await admit({
      forward: async () => Promise.reject(new WriteRefusedError('POST /api: not sent')),
    });
    expect((await fetch(`${server}/api`, { method: 'POST', body: '{}' })).status).toBe(403);
  });
});

describe('the gate', () => {
  it('knows nobody without the secret of a running operation', async () => {
    const { server, ...admission } = await admit();
    const base = server.slice(0, server.lastIndexOf('/'));
    for (const url of [base, `${base}/`, `${base}/api/v1/secrets`, `${server}x/api`])
      expect((await fetch(url)).status).toBe(404);
    admission[Symbol.dispose]();
    expect((await fetch(`${server}/api`)).status).toBe(404);
    expect(seen).toEqual([]);
  });

  it('keeps operations apart, each with a secret of its own that is told nowhere', async () => {
    const [one, two] = [await admit(), await admit()];
    expect(one.server).not.toBe(two.server);
    permit.valid = false;
    await fetch(`${one.server}/api/v1/namespaces/x/secrets/y`, { method: 'DELETE' });
    const secret = one.server.slice(one.server.lastIndexOf('/') + 1);
    expect(secret.length).toBeGreaterThanOrEqual(32);
    expect(logged).not.toContain(secret);
    one[Symbol.dispose]();
    permit.valid = true;
    expect((await fetch(`${two.server}/api`)).status).toBe(200);
  });

  it('ends what runs when it closes, and admits nobody afterwards', async () => {
    answer = (_, response) => {
      response.writeHead(200);
      response.write('x');
    };
    const { server } = await admit();
    const got = await fetch(`${server}/api?watch=1`);
    await gate.close();
    await expect(got.text()).rejects.toThrow();
    await expect(fetch(`${server}/api`)).rejects.toThrow();
    await expect(admit()).rejects.toThrow('closed');
    await vi.waitFor(async () => {
      expect(await new Promise((resolve) => upstream.getConnections((_, count) => resolve(count)))).toBe(0);
    });
  });
});
