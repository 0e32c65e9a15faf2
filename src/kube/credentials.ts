import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { KubeConfig } from '@kubernetes/client-node';
import { withTimeout } from './abort.ts';
import { KubeconfigInvalidError } from './errors.ts';
import type { ClusterAccess, Impersonation, UserAccess } from './kubeconfig.ts';

/** What proves who we are on one request. */
export interface RequestAuth {
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** PEM, for the TLS session. */
  readonly cert?: string;
  readonly key?: string;
}

/** Kubelets renew a token file long before it expires; client-go re-reads it once a minute too. */
const TOKEN_FILE_MAX_AGE_MS = 60_000;

/** A plugin that hangs must not hold its cluster's calls for ever. */
const PLUGIN_LIMIT_MS = 30_000;

/** The credentials of one kubeconfig user, kept fresh where they come from a file or a plugin. */
export class Credentials {
  readonly #access: ClusterAccess;
  readonly #source: TokenFile | Plugin | undefined;
  readonly #fixed: RequestAuth;

  constructor(access: ClusterAccess) {
    const user = access.user;
    this.#access = access;
    this.#source = sourceOf(access);
    this.#fixed = {
      headers: { ...authorization(user), ...impersonation(user.impersonate) },
      cert: user.cert,
      key: user.key,
    };
  }

  /** What to send now. Rejects when a token file cannot be read or a plugin fails. */
  async current(signal: AbortSignal): Promise<RequestAuth> {
    if (this.#source === undefined) return this.#fixed;
    const fresh = await this.#source.current(signal);
    return { ...this.#fixed, ...fresh, headers: { ...this.#fixed.headers, ...fresh.headers } };
  }

  /** After a 401: asks the source anew. True when it gave something else than before. */
  async renew(signal: AbortSignal): Promise<boolean> {
    return (await this.#source?.renew(signal)) ?? false;
  }

  /** The access with the newest credentials in place of the file or plugin they came from, where they are known. */
  inlined(): ClusterAccess {
    if (this.#source === undefined) return this.#access;
    return { ...this.#access, user: this.#source.inlined(this.#access.user) };
  }
}

/** As client-go orders them: a plugin, a token file, a token, a password. */
function sourceOf(access: ClusterAccess): TokenFile | Plugin | undefined {
  const { exec, authProvider, tokenFile } = access.user;
  if ((exec ?? authProvider) !== undefined) return new Plugin(access);
  return tokenFile === undefined ? undefined : new TokenFile(tokenFile);
}

function authorization(user: UserAccess): Record<string, string> {
  if (user.token !== undefined) return bearer(user.token);
  if (user.username === undefined) return {};
  const pair = Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64');
  return { authorization: `Basic ${pair}` };
}

function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token.trim()}` };
}

function impersonation(as: Impersonation | undefined): Record<string, string | string[]> {
  if (as === undefined) return {};
  const headers: Record<string, string | string[]> = { 'impersonate-user': as.user };
  if (as.uid !== undefined) headers['impersonate-uid'] = as.uid;
  if (as.groups.length > 0) headers['impersonate-group'] = [...as.groups];
  for (const [key, values] of Object.entries(as.extra)) {
    headers[`impersonate-extra-${encodeURIComponent(key)}`] = [...values];
  }
  return headers;
}

class TokenFile {
  readonly #path: string;
  #token = '';
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(path: string) {
    this.#path = path;
  }

  async current(): Promise<RequestAuth> {
    if (performance.now() - this.#readAt > TOKEN_FILE_MAX_AGE_MS) await this.#read();
    return { headers: bearer(this.#token) };
  }

  async renew(): Promise<boolean> {
    const before = this.#token;
    await this.#read();
    return this.#token !== before;
  }

  inlined(user: UserAccess): UserAccess {
    return { ...user, tokenFile: undefined, token: readFileSync(this.#path, 'utf8').trim() };
  }

  async #read(): Promise<void> {
    try {
      this.#token = (await readFile(this.#path, 'utf8')).trim();
      this.#readAt = performance.now();
    } catch (error) {
      throw new KubeconfigInvalidError('the token file cannot be read', { cause: error });
    }
  }
}

/** Exec plugins and auth providers (OIDC and others) as client-node runs them. */
class Plugin {
  readonly #access: ClusterAccess;
  #config: KubeConfig | undefined;
  #running: Promise<RequestAuth> | undefined;
  #last: RequestAuth | undefined;

  constructor(access: ClusterAccess) {
    this.#access = access;
  }

  /** Calls that come together share one run: a fleet's start would else spawn a process per call. */
  async current(signal: AbortSignal): Promise<RequestAuth> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    const running = this.#running;
    return withTimeout(signal, PLUGIN_LIMIT_MS, async () => running, 'credential plugin');
  }

  async renew(signal: AbortSignal): Promise<boolean> {
    const before = JSON.stringify(this.#last);
    this.#config = undefined;
    return JSON.stringify(await this.current(signal)) !== before;
  }

  inlined(user: UserAccess): UserAccess {
    const sent = this.#last?.headers['authorization'];
    if (typeof sent !== 'string' || !sent.startsWith('Bearer ')) return user;
    return {
      ...user,
      exec: undefined,
      authProvider: undefined,
      token: sent.slice('Bearer '.length),
      cert: this.#last?.cert,
      key: this.#last?.key,
    };
  }

  async #run(): Promise<RequestAuth> {
    const config = (this.#config ??= await loadPlugin(this.#access));
    const options: { headers: Record<string, string>; cert?: unknown; key?: unknown } = { headers: {} };
    try {
      await config.applyToHTTPSOptions(options);
    } catch (error) {
      // A parser's message quotes what the plugin printed: the credential.
      const cause = error instanceof SyntaxError ? undefined : error;
      throw new KubeconfigInvalidError('the credential plugin failed', { cause });
    }
    const token = options.headers['Authorization'];
    this.#last = {
      headers: token === undefined ? {} : { authorization: token },
      cert: pemOf(options.cert),
      key: pemOf(options.key),
    };
    return this.#last;
  }
}

function pemOf(value: unknown): string | undefined {
  return typeof value === 'string' || Buffer.isBuffer(value) ? value.toString() : undefined;
}

/** Loaded only when a kubeconfig needs it: measured, the package costs 55 MB and more than a second to import. */
async function loadPlugin(access: ClusterAccess): Promise<KubeConfig> {
  const clientNode = await import('@kubernetes/client-node');
  const { exec, authProvider, cert, key } = access.user;
  const config = new clientNode.KubeConfig();
  config.loadFromClusterAndUser(
    // Nothing is sent by this object; it would refuse a plain http server otherwise.
    { name: 'cluster', server: access.server, skipTLSVerify: true },
    {
      name: 'user',
      exec,
      authProvider,
      certData: cert === undefined ? undefined : Buffer.from(cert).toString('base64'),
      keyData: key === undefined ? undefined : Buffer.from(key).toString('base64'),
    },
  );
  return config;
}
