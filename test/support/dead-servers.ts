import { once } from 'node:events';
import type { Socket } from 'node:net';
import { createServer } from 'node:net';
import { CertificateAuthority } from './certs.ts';
import { kubeconfigFor } from './kubeconfig.ts';

/** A server that is of no use: its kubeconfig is well-formed, and every call with it goes wrong. */
export interface DeadServer {
  readonly server: string;
  readonly kubeconfig: string;
  /** Connections that clients hold open now. */
  readonly connections: number;
  stop(): Promise<void>;
}

/** Accepts connections, reads what comes and never answers, not even the TLS hello. */
export async function startSilentServer(name = 'silent'): Promise<DeadServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.resume();
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = urlOf(server.address());
  return {
    server: url,
    kubeconfig: await kubeconfigOf(name, url),
    get connections() {
      return sockets.size;
    },
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** A kubeconfig whose server refuses connections: nobody listens on that port. */
export async function refusingKubeconfig(name: string, port: number): Promise<string> {
  return kubeconfigOf(name, `https://127.0.0.1:${port}`);
}

async function kubeconfigOf(name: string, server: string): Promise<string> {
  const authority = await CertificateAuthority.create(`${name} serving`);
  return kubeconfigFor(name, { server, ca: authority.certificate, token: 'none' });
}

function urlOf(address: ReturnType<ReturnType<typeof createServer>['address']>): string {
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return `https://127.0.0.1:${address.port}`;
}
