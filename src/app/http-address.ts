import type { Server } from 'node:net';
import { AppError } from './errors.ts';
import { usage } from './options.ts';

/** Host and port of Go's form of an address: ":9440", "127.0.0.1:8080", "[::1]:8080". Undefined for "0" and "": off. */
export function parseAddress(flag: string, text: string): { host: string; port: number } | undefined {
  if (text === '' || text === '0') return undefined;
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65_535) throw usage(`${flag} must be an address such as :9440 or 127.0.0.1:9440, not "${text}"`);
  return { host: match[1] ?? match[2] ?? '', port };
}

/** Binds; rejects with AppError (LISTEN) that names the flag. Resolves to the port in use. */
export async function listen(server: Server, flag: string, address: { host: string; port: number }): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      const why = error.code === 'EADDRINUSE' ? 'another program uses it' : error.message;
      reject(
        new AppError('LISTEN', `cannot listen on ${address.host}:${address.port} (${flag}): ${why}`, {
          advice: `choose another address with ${flag}`,
          cause: error,
        }),
      );
    };
    server.once('error', failed);
    server.listen({ port: address.port, ...(address.host === '' ? {} : { host: address.host }) }, () => {
      server.off('error', failed);
      resolve();
    });
  });
  const bound = server.address();
  return typeof bound === 'object' && bound !== null ? bound.port : address.port;
}

/** Stops accepting, drops idle connections and ends the rest: scrapes are not worth waiting for. */
export async function closeServer(server: Server & { closeAllConnections?: () => void }): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections?.();
  });
}
