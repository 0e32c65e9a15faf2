import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hash } from 'bcryptjs';
import { Agent, request } from 'undici';
import { stringify } from 'yaml';
import { CertificateAuthority } from './certs.ts';
import type { KeyPair } from './certs.ts';
import type { BasicAuth } from './chart-repository.ts';
import { basicAuthorization } from './chart-repository.ts';
import type { Chart } from './charts.ts';
import type { Environment } from './environment.ts';
import type { OwnedProcess } from './process.ts';

/** How to serve. */
export interface OciRegistryOptions {
  /** Default true: HTTPS under a certificate authority of its own. */
  tls?: boolean;
  /** Asked for on every path. Default: nobody is asked. */
  auth?: BasicAuth;
}

/** What of an environment the registry needs; it ends with the environment. */
export type RegistryHost = Pick<Environment, 'binaries' | 'directory' | 'ports' | 'processes'>;

/** Media types of a chart in a registry, by Helm's documentation of OCI support. */
const MEDIA = {
  config: 'application/vnd.cncf.helm.config.v1+json',
  chart: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
};

/** The namespace that charts are pushed to unless told otherwise. */
const NAMESPACE = 'charts';
/** bcrypt's lowest cost: the registry checks the password on every request, and this one guards nothing. */
const BCRYPT_COST = 4;

/** A real OCI registry (the CNCF distribution, as Debian packages it) with charts in it. */
export class OciRegistry {
  /** host:port, as docker config files name it. */
  readonly host: string;
  /** What a HelmChartProxy's repoURL says: oci://host:port/charts. */
  readonly url: string;
  /** Certificate authority (PEM) that clients must trust; empty without TLS. */
  readonly ca: string;
  readonly #auth: BasicAuth | undefined;
  readonly #agent: Agent;
  readonly #process: OwnedProcess;

  private constructor(parts: { host: string; ca: string; auth?: BasicAuth; process: OwnedProcess }) {
    this.host = parts.host;
    this.url = `oci://${parts.host}/${NAMESPACE}`;
    this.ca = parts.ca;
    this.#auth = parts.auth;
    this.#process = parts.process;
    this.#agent = new Agent({ connect: parts.ca ? { ca: parts.ca } : {}, keepAliveTimeout: 1_000 });
  }

  static async start(host: RegistryHost, options: OciRegistryOptions = {}): Promise<OciRegistry> {
    const port = await host.ports.take();
    const directory = join(host.directory, `registry-${port}`);
    await mkdir(join(directory, 'data'), { recursive: true });
    const authority = await CertificateAuthority.create('registry');
    const pair = await authority.issue({ commonName: 'registry', usage: 'server' });
    const config = await writeConfig(directory, port, { ...options, pair });
    const process = host.processes.start({
      name: 'docker-registry',
      command: host.binaries.dockerRegistry,
      args: ['serve', config],
      directory,
    });
    const ca = (options.tls ?? true) ? authority.certificate : '';
    const registry = new OciRegistry({ host: `127.0.0.1:${port}`, ca, auth: options.auth, process });
    await process.ready(async () => {
      await registry.#request('GET', '/v2/');
    });
    return registry;
  }

  /** A docker config file with the registry's credentials; the content of a HelmChartProxy's credentials Secret. */
  dockerConfig(auth: BasicAuth | undefined = this.#auth): string {
    const encoded = auth && Buffer.from(`${auth.username}:${auth.password}`).toString('base64');
    return JSON.stringify({ auths: encoded ? { [this.host]: { auth: encoded } } : {} });
  }

  /** Pushes a chart as `helm push` does: config and archive as blobs, and a manifest under the version as its tag. */
  async push(chart: Chart, namespace = NAMESPACE): Promise<{ digest: string }> {
    const repository = `${namespace}/${chart.name}`;
    const config = Buffer.from(JSON.stringify({ apiVersion: 'v2', type: 'application', ...chart.metadata }));
    const manifest = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: MEDIA.manifest,
        config: await this.#pushBlob(repository, config, MEDIA.config),
        layers: [await this.#pushBlob(repository, chart.archive, MEDIA.chart)],
      }),
    );
    // A tag may hold no "+"; Helm writes "_" for it.
    const tag = chart.version.replaceAll('+', '_');
    await this.#request('PUT', `/v2/${repository}/manifests/${tag}`, { body: manifest, type: MEDIA.manifest });
    return { digest: digestOf(manifest) };
  }

  /** Requests that the registry answered (the pushes of this class among them), from its access log. */
  async requests(): Promise<{ method: string; path: string; status: number }[]> {
    const log = await readFile(this.#process.logFile, 'utf8');
    return [...log.matchAll(/"(GET|HEAD|PUT|POST|PATCH|DELETE) (\S+) HTTP\/[\d.]+" (\d+)/g)].map(
      ([, method = '', path = '', status]) => ({ method, path, status: Number(status) }),
    );
  }

  /** How often the archive of this very chart was downloaded. */
  async downloads(chart: Chart): Promise<number> {
    const all = await this.requests();
    const blob = `/blobs/sha256:${chart.digest}`;
    return all.filter(({ method, path, status }) => method === 'GET' && status === 200 && path.endsWith(blob)).length;
  }

  /** Freezes the registry: connections are accepted and nothing answers. */
  pause(): void {
    this.#process.pause();
  }

  resume(): void {
    this.#process.resume();
  }

  async stop(): Promise<void> {
    await this.#agent.destroy();
    await this.#process.stop('kill');
  }

  async #pushBlob(repository: string, content: Buffer, mediaType: string): Promise<Record<string, unknown>> {
    const digest = digestOf(content);
    const upload = await this.#request('POST', `/v2/${repository}/blobs/uploads/`);
    const location = new URL(upload, this.#baseUrl());
    location.searchParams.set('digest', digest);
    const target = `${location.pathname}${location.search}`;
    await this.#request('PUT', target, { body: content, type: 'application/octet-stream' });
    return { mediaType, digest, size: content.length };
  }

  /** Resolves with the Location header, which is all that the API's answers say here. */
  async #request(
    method: 'GET' | 'POST' | 'PUT',
    path: string,
    content?: { body: Buffer; type: string },
  ): Promise<string> {
    const response = await request(`${this.#baseUrl()}${path}`, {
      dispatcher: this.#agent,
      method,
      body: content?.body ?? null,
      headers: {
        ...(content && { 'content-type': content.type }),
        ...(this.#auth && { authorization: basicAuthorization(this.#auth) }),
      },
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`registry: ${method} ${path}: ${response.statusCode} ${text}`);
    const { location } = response.headers;
    return typeof location === 'string' ? location : '';
  }

  #baseUrl(): string {
    return `${this.ca ? 'https' : 'http'}://${this.host}`;
  }
}

async function writeConfig(
  directory: string,
  port: number,
  options: OciRegistryOptions & { pair: KeyPair },
): Promise<string> {
  const { tls = true, auth, pair } = options;
  const file = (name: string) => join(directory, name);
  await writeFile(file('tls.crt'), pair.certificate);
  await writeFile(file('tls.key'), pair.key, { mode: 0o600 });
  if (auth) await writeFile(file('htpasswd'), `${auth.username}:${await hash(auth.password, BCRYPT_COST)}\n`);
  const config = {
    version: '0.1',
    log: { level: 'warn', accesslog: { disabled: false } },
    storage: { filesystem: { rootdirectory: file('data') }, delete: { enabled: true } },
    http: {
      addr: `127.0.0.1:${port}`,
      secret: randomBytes(16).toString('hex'),
      ...(tls && { tls: { certificate: file('tls.crt'), key: file('tls.key') } }),
    },
    ...(auth && { auth: { htpasswd: { realm: 'charts', path: file('htpasswd') } } }),
  };
  await writeFile(file('config.yml'), stringify(config), { mode: 0o600 });
  return file('config.yml');
}

function digestOf(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
