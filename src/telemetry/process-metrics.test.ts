import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { registerProcessMetrics } from './process-metrics.ts';

describe('process metrics', () => {
  it('tell CPU, memory, start and, on Linux, open files, each as of the scrape', async () => {
    const registry = new Registry();
    registerProcessMetrics(registry);
    const read = async (name: string): Promise<number> =>
      (await registry.getSingleMetric(name)?.get())?.values[0]?.value ?? 0;
    const before = await read('process_cpu_seconds_total');
    expect(before).toBeGreaterThan(0);
    expect(await read('process_resident_memory_bytes')).toBeGreaterThan(1024 ** 2);
    expect(Math.abs((await read('process_start_time_seconds')) - Date.now() / 1000)).toBeLessThan(24 * 3600);
    if (process.platform === 'linux') expect(await read('process_open_fds')).toBeGreaterThan(2);
    const busy = process.cpuUsage();
    while (process.cpuUsage(busy).user < 20_000) Math.sqrt(before);
    expect(await read('process_cpu_seconds_total')).toBeGreaterThan(before);
  });

  it('have the type that rates need', async () => {
    const registry = new Registry();
    registerProcessMetrics(registry);
    const text = await registry.metrics();
    expect(text).toContain('# TYPE process_cpu_seconds_total counter');
    expect(text).toContain('# TYPE process_resident_memory_bytes gauge');
  });
});
