import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CertificateAuthority, signingKeys } from './certs.ts';
import type { KeyPair } from './certs.ts';
import type { OwnedProcess, Processes } from './process.ts';
import { RestClient } from './rest.ts';

/** One API server: its name is its etcd prefix, unless `dataOf` names another's; `directory` holds its keys and log. */
export interface ApiServerOptions {
  name: string;
  command: string;
  directory: string;
  port: number;
  etcdEndpoint: string;
  processes: Processes;
  dataOf?: string;
  /** Flags beyond those of every test cluster. */
  extraArgs?: string[];
}

/** The system namespaces that the server creates by itself; a cluster is usable once they exist. */
const OWN_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

/** A kube-apiserver with a certificate authority, a client authority and a master token of its own. */
export class ApiServer {
  readonly server: string;
  readonly ca: string;
  readonly masterToken: string;
  readonly #options: ApiServerOptions;
  #clientCa: CertificateAuthority;
  #process: OwnedProcess | undefined;

  private constructor(
    options: ApiServerOptions,
    authorities: { serving: CertificateAuthority; client: CertificateAuthority },
  ) {
    this.#options = options;
    this.#clientCa = authorities.client;
    this.server = `https://127.0.0.1:${options.port}`;
    this.ca = authorities.serving.certificate;
    this.masterToken = randomBytes(16).toString('hex');
  }

  /** Writes keys and certificates; the server itself starts with `start`. */
  static async create(options: ApiServerOptions): Promise<ApiServer> {
    await mkdir(options.directory, { recursive: true, mode: 0o700 });
    const serving = await CertificateAuthority.create(`${options.name} serving`);
    const client = await CertificateAuthority.create(`${options.name} clients`);
    const apiServer = new ApiServer(options, { serving, client });
    const pair = await serving.issue({ commonName: 'kube-apiserver', usage: 'server' });
    const signing = signingKeys();
    await apiServer.#write({
      'serving.crt': pair.certificate,
      'serving.key': pair.key,
      'client-ca.crt': client.certificate,
      'service-account.key': signing.privateKey,
      'service-account.pub': signing.publicKey,
      'tokens.csv': `${apiServer.masterToken},test-admin,test-admin,"system:masters"\n`,
    });
    return apiServer;
  }

  get running(): boolean {
    return this.#process?.running ?? false;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Starts the process and resolves when it is ready to serve. */
  async start(signal?: AbortSignal): Promise<void> {
    if (this.running) throw new Error(`${this.#options.name}: the API server runs already`);
    const { name, command, directory, processes } = this.#options;
    const child = processes.start({ name: 'kube-apiserver', command, args: this.#args(), directory });
    this.#process = child;
    const client = new RestClient({ server: this.server, ca: this.ca, token: this.masterToken });
    try {
      await child.ready(
        async (attempt) => {
          await client.request('GET', '/readyz', { signal: attempt, timeoutMs: 5_000 });
          for (const namespace of OWN_NAMESPACES) {
            await client.request('GET', `/api/v1/namespaces/${namespace}`, { signal: attempt, timeoutMs: 5_000 });
          }
        },
        { what: `${name}: kube-apiserver is ready`, signal },
      );
    } finally {
      await client.close();
    }
  }

  /** Ends the process as a crash would; its data stays in etcd. */
  async stop(): Promise<void> {
    await this.#process?.stop('kill');
    this.#process = undefined;
  }

  /** SIGSTOP: connections are accepted by the kernel and nobody answers. */
  pause(): void {
    this.#process?.pause();
  }

  resume(): void {
    this.#process?.resume();
  }

  /** A client certificate of a user in system:masters, signed by the current client authority. */
  async issueClientCertificate(): Promise<KeyPair> {
    return this.#clientCa.issue({ commonName: 'test-admin', organizations: ['system:masters'], usage: 'client' });
  }

  /**
   * Puts a new client authority beside the current one; the server reads the file again without a restart. The
   * returned function withdraws the old authority, and with it every certificate that it signed.
   */
  async replaceClientAuthority(): Promise<() => Promise<void>> {
    const old = this.#clientCa;
    const fresh = await CertificateAuthority.create(`${this.#options.name} clients ${randomBytes(4).toString('hex')}`);
    this.#clientCa = fresh;
    await this.#write({ 'client-ca.crt': `${fresh.certificate}${old.certificate}` });
    return async () => {
      // The file watcher coalesces writes that come in one breath.
      await sleep(100);
      await this.#write({ 'client-ca.crt': fresh.certificate });
    };
  }

  async #write(files: Record<string, string>): Promise<void> {
    for (const [name, content] of Object.entries(files)) {
      await writeFile(join(this.#options.directory, name), content, { mode: 0o600 });
    }
  }

  #args(): string[] {
    const { directory, port, name, dataOf = name, etcdEndpoint, extraArgs } = this.#options;
    const file = (base: string) => join(directory, base);
    return [
      '--bind-address=127.0.0.1',
      '--advertise-address=127.0.0.1',
      `--secure-port=${port}`,
      `--etcd-servers=${etcdEndpoint}`,
      `--etcd-prefix=/${dataOf}`,
      `--cert-dir=${directory}`,
      `--tls-cert-file=${file('serving.crt')}`,
      `--tls-private-key-file=${file('serving.key')}`,
      `--client-ca-file=${file('client-ca.crt')}`,
      `--token-auth-file=${file('tokens.csv')}`,
      '--authorization-mode=RBAC',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${file('service-account.pub')}`,
      `--service-account-signing-key-file=${file('service-account.key')}`,
      // Pods never run here; without this, each would wait for a controller to make its service account.
      '--disable-admission-plugins=ServiceAccount',
      '--endpoint-reconciler-type=none',
      '--allow-privileged=true',
      '--profiling=false',
      ...(extraArgs ?? []),
    ];
  }
}
