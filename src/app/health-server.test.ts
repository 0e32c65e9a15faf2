import { afterEach, describe, expect, it, vi } from 'vitest';
import { Registry } from 'prom-client';
import { createTelemetry } from '../telemetry/index.ts';
import { HealthServer } from './health-server.ts';
import type { MetricsAccess } from './metrics-access.ts';
import { MetricsServer } from './metrics-server.ts';

const ADDRESS = { host: '127.0.0.1', port: 0 };
const stop = new AbortController();
const running: Promise<void>[] = [];

async function started<T extends { run(signal: AbortSignal): Promise<void>; port: number }>(server: T): Promise<T> {
  running.push(server.run(stop.signal));
  await vi.waitFor(() => {
    if (server.port === 0) throw new Error('not bound yet');
  });
  return server;
}

afterEach(async () => {
  stop.abort();
  await Promise.all(running);
});

describe('the servers of the manager', () => {
  it('answer probes and metrics, and say what is not ready', async () => {
    let problem: string | undefined = 'starting';
    const health = await started(new HealthServer(ADDRESS, { notReady: () => problem }));
    const get = async (path: string): Promise<[number, string]> => {
      const answer = await fetch(`http://127.0.0.1:${health.port}${path}`);
      return [answer.status, await answer.text()];
    };
    expect(await get('/healthz')).toEqual([200, 'ok']);
    expect(await get('/readyz')).toEqual([503, 'starting']);
    problem = undefined;
    expect(await get('/readyz')).toEqual([200, 'ok']);
    expect(await get('/other')).toEqual([404, 'not found']);

    const metrics = new Registry();
    metrics.setDefaultLabels({ a: 'b' });
    const open = await started(new MetricsServer({ address: ADDRESS }, createTelemetry({ metrics })));
    expect((await fetch(`http://127.0.0.1:${open.port}/metrics`)).status).toBe(200);
  });
});

describe('secured metrics', () => {
  it('asks who reads, over TLS', async () => {
    const check = vi.fn<MetricsAccess['check']>();
    check.mockResolvedValueOnce('unauthenticated').mockResolvedValueOnce('forbidden').mockResolvedValueOnce('allowed');
    const signal = new AbortController();
    const access = { check } as Pick<MetricsAccess, 'check'>;
    const server = new MetricsServer({ address: ADDRESS, access }, createTelemetry());
    const done = server.run(signal.signal);
    await vi.waitFor(() => {
      if (server.port === 0) throw new Error('not bound yet');
    });
    const { Agent, request } = await import('undici');
    const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++) {
      const answer = await request(`https://127.0.0.1:${server.port}/metrics`, {
        dispatcher,
        headers: { authorization: 'Bearer x' },
      });
      await answer.body.text();
      statuses.push(answer.statusCode);
    }
    expect(statuses).toEqual([401, 403, 200]);
    expect(check).toHaveBeenCalledWith('Bearer x', '/metrics', signal.signal);
    await dispatcher.close();
    signal.abort();
    await done;
  });
});
