import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TestApiServer, sendJson, sendStatus } from './api-server.test-support.ts';
import type { SeenRequest } from './api-server.test-support.ts';
import { Connection } from './connection.ts';
import { RestClient } from './rest-client.ts';
import type { KubeObject } from './types.ts';

const MAPS = { group: '', version: 'v1', plural: 'configmaps', namespaced: true };
const JOBS = { group: 'batch', version: 'v1', plural: 'jobs', namespaced: true };
const KEY = { namespace: 'a', name: 'x' };
const OBJECT: KubeObject = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { ...KEY, managedFields: [{ manager: 'someone' }] },
};

let server: TestApiServer;
let connection: Connection;
let client: RestClient;

beforeAll(async () => {
  server = await TestApiServer.start();
  connection = Connection.fromKubeconfig(server.kubeconfig({ token: 'x' }), { clusterName: 'test' });
  client = new RestClient(connection);
});

afterAll(async () => {
  await connection.close();
  await server.stop();
});

beforeEach(() => {
  server.seen.length = 0;
});

function sent(): { line: string; query: Record<string, string>; body: unknown; accept: string | undefined } {
  const last = server.seen.at(-1);
  if (last === undefined) throw new Error('nothing was sent');
  const body: unknown = last.body === '' ? undefined : JSON.parse(last.body);
  return { line: lineOf(last), query: Object.fromEntries(last.query), body, accept: last.accept };
}

function lineOf({ method, path }: SeenRequest): string {
  return `${method} ${path}`;
}

describe('writes', () => {
  it('creates', async () => {
    await client.create(JOBS, OBJECT, { fieldManager: 'me', dryRun: true });
    expect(sent()).toMatchObject({
      line: 'POST /apis/batch/v1/namespaces/a/jobs',
      query: { fieldManager: 'me', dryRun: 'All' },
      body: OBJECT,
    });
  });

  it('replaces, and writes subresources', async () => {
    await client.replace(JOBS, OBJECT, { subresource: 'status' });
    expect(sent()).toMatchObject({ line: 'PUT /apis/batch/v1/namespaces/a/jobs/x/status', query: {}, body: OBJECT });
    await client.create(JOBS, OBJECT, { subresource: 'token' });
    expect(sent().line).toBe('POST /apis/batch/v1/namespaces/a/jobs/x/token');
  });

  it('patches', async () => {
    const body = [{ op: 'remove', path: '/spec' }];
    await client.patch(JOBS, KEY, { type: 'json', body });
    expect(sent()).toMatchObject({ line: 'PATCH /apis/batch/v1/namespaces/a/jobs/x', body });
  });

  it('applies without managedFields, which servers refuse', async () => {
    await client.apply(JOBS, OBJECT, { fieldManager: 'me', force: true });
    expect(sent()).toMatchObject({
      line: 'PATCH /apis/batch/v1/namespaces/a/jobs/x',
      query: { fieldManager: 'me', force: 'true' },
      body: { apiVersion: 'batch/v1', kind: 'Job', metadata: KEY },
    });
    expect(sent().body).not.toHaveProperty('metadata.managedFields');
  });

  it('deletes, with preconditions when there are any', async () => {
    expect(await client.delete(JOBS, KEY)).toBe(true);
    expect(sent().body).toEqual({ apiVersion: 'v1', kind: 'DeleteOptions' });
    await client.delete(JOBS, KEY, { propagation: 'Foreground', uid: 'u', dryRun: true });
    expect(sent().body).toMatchObject({
      propagationPolicy: 'Foreground',
      preconditions: { uid: 'u' },
      dryRun: ['All'],
    });
  });

  it('is content when what it deletes is gone', async () => {
    server.fail('other', (response) => sendStatus(response, { code: 404 }));
    expect(await client.delete(JOBS, KEY)).toBe(false);
    server.fail('other', (response) => sendStatus(response, { code: 409 }));
    await expect(client.delete(JOBS, KEY)).rejects.toMatchObject({ code: 'Conflict' });
  });
});

describe('reads', () => {
  it('gets, and finds nothing without complaint', async () => {
    await client.get(JOBS, KEY);
    expect(sent().line).toBe('GET /apis/batch/v1/namespaces/a/jobs/x');
    server.fail('other', (response) => sendStatus(response, { code: 404 }), 2);
    expect(await client.find(JOBS, KEY)).toBeUndefined();
    await expect(client.get(JOBS, KEY)).rejects.toMatchObject({ code: 'NotFound' });
    server.fail('other', (response) => sendStatus(response, { code: 403 }));
    await expect(client.find(JOBS, KEY)).rejects.toMatchObject({ code: 'Forbidden' });
  });

  it('asks for metadata, and strips what a server sends that knows no such form', async () => {
    server.fail('other', (response) => sendJson(response, 200, { ...OBJECT, spec: { a: 1 } }));
    expect(await client.get(JOBS, KEY, { form: 'metadata' })).toEqual(OBJECT);
    expect(sent().accept).toContain('as=PartialObjectMetadata;');
  });

  it('lists in pages, with kind and version on each item', async () => {
    for (let i = 0; i < 501; i += 1) server.put(`object-${i}`);
    const { items, resourceVersion } = await client.list(MAPS, { labelSelector: 'a=b' });
    expect(items).toHaveLength(501);
    expect(items[500]).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' });
    expect(resourceVersion).toBe(String(server.version));
    expect(server.seen.map(({ query }) => query.get('labelSelector'))).toEqual(['a=b', 'a=b']);
  });
});

describe('raw', () => {
  it('gives JSON parsed and text as text', async () => {
    expect(await client.raw('POST', '/apis/x?limit=1', { body: { a: 1 } })).toEqual({ echo: 'POST', path: '/apis/x' });
    expect(sent()).toMatchObject({ query: { limit: '1' }, body: { a: 1 } });
    server.fail('other', (response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('ok'));
    expect(await client.raw('GET', '/readyz')).toBe('ok');
  });
});
