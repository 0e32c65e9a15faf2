import { readdir } from 'node:fs/promises';
import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

const MICROSECONDS = 1e6;

/**
 * What every Prometheus dashboard of a process asks for, under the names that the Go library of CAAPH has
 * (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics). Read when they are scraped and not
 * otherwise: prom-client's own set keeps a timer and a performance observer running for its event-loop metrics.
 */
export function registerProcessMetrics(registry: Registry): void {
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time of this process, without that of helm, in seconds',
    registers: [registry],
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / MICROSECONDS);
    },
  });
  gauge(registry, 'process_resident_memory_bytes', 'Resident memory of this process, without that of helm', () =>
    process.memoryUsage.rss(),
  );
  const startedAt = Date.now() / 1000 - process.uptime();
  gauge(registry, 'process_start_time_seconds', 'When this process began, in seconds since the epoch', () => startedAt);
  gauge(
    registry,
    'process_open_fds',
    'Files and sockets that this process has open; only where /proc tells',
    openFiles,
  );
}

function gauge(registry: Registry, name: string, help: string, read: () => number | Promise<number | undefined>): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      const value = await read();
      if (value === undefined) this.remove();
      else this.set(value);
    },
  });
}

async function openFiles(): Promise<number | undefined> {
  try {
    return (await readdir('/proc/self/fd')).length;
  } catch {
    return undefined;
  }
}
