import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Runnable } from '../runtime/index.ts';
import { createTelemetry } from '../telemetry/index.ts';
import { DebugPages } from './debug-pages.ts';
import type { Access } from './metrics-access.ts';
import { MetricsServer } from './metrics-server.ts';

let stop: AbortController;
let running: Promise<void>;
let access: Access;
let asked: string[];

beforeEach(() => {
  stop = new AbortController();
  access = 'allowed';
  asked = [];
});
afterEach(async () => {
  stop.abort();
  await running;
});

const idle: Pick<Runnable, 'run'> = { run: async () => Promise.resolve() };

function pages(): DebugPages {
  return new DebugPages({
    fleet: { debug: () => [{ name: 'fleet/c1', phase: 'engaged' }] },
    controllers: [
      { ...idle, name: 'caches' },
      { ...idle, name: 'drift', debug: () => ({ controller: 'drift', waiting: 3 }) },
      { ...idle, name: 'half', debug: () => [{ controller: 'one' }, { controller: 'two' }] },
    ],
  });
}

/** Plain HTTP: who may read is asked all the same. */
async function serve(debug?: DebugPages): Promise<(path: string, method?: string) => Promise<Response>> {
  const server = new MetricsServer(
    { address: { host: '127.0.0.1', port: 0 }, ...(debug === undefined ? {} : { debug }) },
    createTelemetry(),
  );
  running = server.run(stop.signal);
  while (server.port === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  return async (path, method = 'GET') => fetch(`http://127.0.0.1:${server.port}${path}`, { method });
}

describe('/debug', () => {
  it('is not there unless it is asked for', async () => {
    const get = await serve();
    for (const path of ['/debug/', '/debug/clusters', '/debug/profile']) expect((await get(path)).status).toBe(404);
    expect((await get('/metrics')).status).toBe(200);
  });

  it.each([
    ['/debug/', ['/debug/', '/debug/clusters', '/debug/queues', '/debug/process', '/debug/profile']],
    ['/debug/clusters', [{ name: 'fleet/c1', phase: 'engaged' }]],
    ['/debug/queues', [{ controller: 'drift', waiting: 3 }, { controller: 'one' }, { controller: 'two' }]],
    ['/debug/process', expect.objectContaining({ node: process.version }) as unknown],
  ])('%s is JSON', async (path, expected) => {
    const answer = await (await serve(pages()))(path);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json']);
    expect(await answer.json()).toEqual(expected);
  });

  it('takes a CPU profile, one at a time and no longer than allowed', async () => {
    const get = await serve(pages());
    const profile = get('/debug/profile?seconds=3');
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await get('/debug/profile?seconds=0.1')).status).toBe(409);
    expect(await (await profile).json()).toHaveProperty('nodes');
    for (const seconds of ['0', '61', 'x', '-1'])
      expect((await get(`/debug/profile?seconds=${seconds}`)).status).toBe(400);
  });

  it('knows GET alone, and no other page', async () => {
    const get = await serve(pages());
    expect([(await get('/debug/clusters', 'POST')).status, (await get('/debug/nothing')).status]).toEqual([405, 404]);
  });

  it.each([
    ['unauthenticated', 401],
    ['forbidden', 403],
  ] as const)('is closed to who is %s', async (given, status) => {
    access = given;
    const server = new MetricsServer(
      {
        address: { host: '127.0.0.1', port: 0 },
        debug: pages(),
        access: {
          check: async (_, path) => {
            asked.push(path);
            return Promise.resolve(access);
          },
        },
      },
      createTelemetry(),
    );
    running = server.run(stop.signal);
    while (server.port === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const { request } = await import('node:https');
    const answer = await new Promise<number | undefined>((resolve, reject) => {
      request(`https://127.0.0.1:${server.port}/debug/clusters`, { rejectUnauthorized: false }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
    expect([answer, asked]).toEqual([status, ['/debug/clusters']]);
  });
});
