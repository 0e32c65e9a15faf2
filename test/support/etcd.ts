import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import type { Ports } from './ports.ts';
import type { OwnedProcess, Processes } from './process.ts';

/** What an etcd needs from its environment. */
export interface EtcdOptions {
  command: string;
  directory: string;
  processes: Processes;
  ports: Ports;
  signal?: AbortSignal;
}

/** Starts one etcd, which serves every API server of an environment under a prefix of its own. */
export async function startEtcd(options: EtcdOptions): Promise<{ endpoint: string; process: OwnedProcess }> {
  const directory = join(options.directory, 'etcd');
  await mkdir(directory, { recursive: true });
  const endpoint = `http://127.0.0.1:${await options.ports.take()}`;
  const peer = `http://127.0.0.1:${await options.ports.take()}`;
  const process = options.processes.start({
    name: 'etcd',
    command: options.command,
    directory,
    args: [
      '--name=test',
      `--data-dir=${join(directory, 'data')}`,
      `--listen-client-urls=${endpoint}`,
      `--advertise-client-urls=${endpoint}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=test=${peer}`,
      // The data dies with the test; waiting for the disk is half the time of a write.
      '--unsafe-no-fsync',
      '--log-level=warn',
    ],
  });
  await process.ready(
    async (signal) => {
      const response = await request(`${endpoint}/health`, { signal });
      const body = await response.body.text();
      if (!body.includes('"health":"true"')) throw new Error(body);
    },
    { signal: options.signal },
  );
  return { endpoint, process };
}
