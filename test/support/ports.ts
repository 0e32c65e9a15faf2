import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the kernel's ephemeral range (32768 and up), so that no outgoing connection takes a port while its server restarts. */
const LOWEST = 20_000;
const HIGHEST = 32_000;
const ATTEMPTS = 200;

/** Hands out free ports of 127.0.0.1, no port twice. */
export class Ports {
  readonly #taken = new Set<number>();

  async take(): Promise<number> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const port = randomInt(LOWEST, HIGHEST);
      if (this.#taken.has(port)) continue;
      this.#taken.add(port);
      if (await isFree(port)) return port;
    }
    throw new Error(`no free port between ${LOWEST} and ${HIGHEST} in ${ATTEMPTS} attempts`);
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  // `once` rejects when the server says 'error' instead: the port is taken.
  const outcome = once(server, 'listening').then(
    () => true,
    () => false,
  );
  server.listen(port, '127.0.0.1');
  const free = await outcome;
  if (free) await new Promise((resolve) => server.close(resolve));
  return free;
}
