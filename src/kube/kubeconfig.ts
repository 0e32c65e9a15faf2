import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { parse } from 'yaml';
import { ExecPluginRefusedError, FileReferenceRefusedError, KubeconfigInvalidError } from './errors.ts';

/** Who calls: as one context of a kubeconfig says. */
export interface UserAccess {
  readonly token?: string;
  /** Absolute, or relative to the process; read again as time goes by. */
  readonly tokenFile?: string;
  readonly username?: string;
  readonly password?: string;
  /** PEM. */
  readonly cert?: string;
  readonly key?: string;
  readonly impersonate?: Impersonation;
  /** Sections that make a program run or a token be fetched; client-node does it. */
  readonly exec?: Section;
  readonly authProvider?: Section;
}

/** Kubernetes documentation, "User impersonation". */
export interface Impersonation {
  readonly user: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** One context of a kubeconfig with everything that it names read in. */
export interface ClusterAccess {
  /** Without a trailing slash; may carry a path (a proxy in front of many clusters). */
  readonly server: string;
  /** PEM; the system's roots when absent. */
  readonly ca?: string;
  readonly tlsServerName?: string;
  readonly insecure: boolean;
  readonly proxyUrl?: string;
  readonly namespace?: string;
  readonly user: UserAccess;
}

export interface KubeconfigOptions {
  readonly context?: string;
  readonly allowExec: boolean;
  readonly allowFiles: boolean;
  readonly baseDir?: string;
}

export type Section = Readonly<Record<string, unknown>>;

/**
 * Reads one context of a kubeconfig (client-go's clientcmd v1 format). Errors quote nothing of the text, which is a
 * secret as a whole: KubeconfigInvalid, ExecPluginRefused, FileReferenceRefused.
 *
 * client-node's own loader is not used: it reads `token-file` while parsing, before anyone could refuse it, knows no
 * `tokenFile`, and its parse errors quote the line they stumbled on.
 */
export function readKubeconfig(text: string, options: KubeconfigOptions): ClusterAccess {
  const root = parseYaml(text);
  const name = options.context ?? optionalText(root, 'current-context', 'current-context');
  if (name === undefined || name === '') throw invalid('it has no current-context, and no context was asked for');
  const context = entry(root, 'contexts', 'context', name);
  const cluster = entry(root, 'clusters', 'cluster', requiredText(context, 'cluster', 'context.cluster'));
  const userName = optionalText(context, 'user', 'context.user');
  const user = userName === undefined ? {} : entry(root, 'users', 'user', userName);
  const files = new Files(options);
  const access: ClusterAccess = {
    server: readServer(cluster),
    ca: files.pem(cluster, 'certificate-authority', 'cluster.certificate-authority'),
    tlsServerName: optionalText(cluster, 'tls-server-name', 'cluster.tls-server-name'),
    insecure: cluster['insecure-skip-tls-verify'] === true,
    proxyUrl: readProxy(cluster),
    namespace: optionalText(context, 'namespace', 'context.namespace'),
    user: readUser(user, files, options),
  };
  checkTls(access);
  return access;
}

/** What makes a server this server: equal identities mean that credentials may be swapped in place. A hash, safe to log. */
export function identityOf(access: ClusterAccess): string {
  const ca = access.ca?.replace(/\s+/g, '') ?? '';
  const parts = JSON.stringify([access.server, ca, access.tlsServerName ?? '', access.insecure]);
  return createHash('sha256').update(parts).digest('hex');
}

/** A kubeconfig (JSON, which is YAML too) that needs no other file. */
export function writeKubeconfig(access: ClusterAccess): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'default',
    contexts: [{ name: 'default', context: { cluster: 'default', user: 'default', namespace: access.namespace } }],
    clusters: [
      {
        name: 'default',
        cluster: {
          server: access.server,
          'certificate-authority-data': base64(access.ca),
          'tls-server-name': access.tlsServerName,
          'insecure-skip-tls-verify': access.insecure ? true : undefined,
          'proxy-url': access.proxyUrl,
        },
      },
    ],
    users: [{ name: 'default', user: writeUser(access.user) }],
  });
}

function writeUser(user: UserAccess): Section {
  const as = user.impersonate;
  return {
    token: user.token,
    username: user.username,
    password: user.password,
    'client-certificate-data': base64(user.cert),
    'client-key-data': base64(user.key),
    exec: user.exec,
    'auth-provider': user.authProvider,
    as: as?.user,
    'as-uid': as?.uid,
    'as-groups': as?.groups.length === 0 ? undefined : as?.groups,
    'as-user-extra': as === undefined || Object.keys(as.extra).length === 0 ? undefined : as.extra,
  };
}

function base64(text: string | undefined): string | undefined {
  return text === undefined ? undefined : Buffer.from(text).toString('base64');
}

function readUser(user: Section, files: Files, options: KubeconfigOptions): UserAccess {
  const exec = section(user, 'exec');
  const authProvider = section(user, 'auth-provider');
  const plugin = exec === undefined ? 'an auth provider' : 'an exec plugin';
  if ((exec ?? authProvider) !== undefined && !options.allowExec) {
    throw new ExecPluginRefusedError(
      `the kubeconfig asks for ${plugin}, which runs on this machine and is not allowed: use a token or a client certificate instead, or allow exec plugins if whoever writes these kubeconfigs may run programs here`,
    );
  }
  return {
    token: optionalText(user, 'token', 'user.token'),
    tokenFile: files.path(user, 'tokenFile', 'user.tokenFile'),
    username: optionalText(user, 'username', 'user.username'),
    password: optionalText(user, 'password', 'user.password'),
    cert: files.pem(user, 'client-certificate', 'user.client-certificate'),
    key: files.pem(user, 'client-key', 'user.client-key'),
    impersonate: readImpersonation(user),
    exec,
    authProvider,
  };
}

function readImpersonation(user: Section): Impersonation | undefined {
  const name = optionalText(user, 'as', 'user.as');
  if (name === undefined) return undefined;
  const extra = Object.entries(section(user, 'as-user-extra') ?? {});
  return {
    user: name,
    uid: optionalText(user, 'as-uid', 'user.as-uid'),
    groups: texts(user['as-groups']),
    extra: Object.fromEntries(extra.map(([key, values]) => [key, texts(values)])),
  };
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
}

function readServer(cluster: Section): string {
  const server = requiredText(cluster, 'server', 'cluster.server');
  const url = URL.parse(server.includes('://') ? server : `https://${server}`);
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw invalid('cluster.server is no http(s) address');
  if (url.search !== '' || url.username !== '') throw invalid('cluster.server must have neither query nor user');
  return url.origin + url.pathname.replace(/\/+$/, '');
}

function readProxy(cluster: Section): string | undefined {
  const proxy = optionalText(cluster, 'proxy-url', 'cluster.proxy-url');
  if (proxy === undefined) return undefined;
  const protocol = URL.parse(proxy)?.protocol;
  if (protocol === undefined || !['http:', 'https:', 'socks5:'].includes(protocol)) {
    throw invalid('cluster.proxy-url is no http, https or socks5 address');
  }
  return proxy;
}

/** Certificates that OpenSSL will not take are told now, while an older connection is still in service. */
function checkTls(access: ClusterAccess): void {
  const { cert, key } = access.user;
  if ((cert === undefined) !== (key === undefined)) throw invalid('it has a client certificate or its key, not both');
  try {
    createSecureContext({ ca: access.ca, cert, key });
  } catch {
    throw invalid('the CA, client certificate or client key is no valid PEM, or key and certificate do not fit');
  }
}

/** Files that a kubeconfig names, read if that is allowed. */
class Files {
  readonly #options: KubeconfigOptions;

  constructor(options: KubeconfigOptions) {
    this.#options = options;
  }

  /** `<field>-data` (base64) wins over `<field>` (a file), as in client-go. */
  pem(from: Section, field: string, where: string): string | undefined {
    const data = optionalText(from, `${field}-data`, `${where}-data`);
    if (data !== undefined && data !== '') return Buffer.from(data, 'base64').toString('utf8');
    const path = this.path(from, field, where);
    return path === undefined ? undefined : readText(path, where);
  }

  path(from: Section, field: string, where: string): string | undefined {
    const name = optionalText(from, field, where);
    if (name === undefined || name === '') return undefined;
    if (!this.#options.allowFiles) {
      throw new FileReferenceRefusedError(
        `the kubeconfig names a file in ${where}, and reading files for it is not allowed: put the contents into the kubeconfig (${where}-data, or a token)`,
      );
    }
    return isAbsolute(name) ? name : join(this.#options.baseDir ?? '.', name);
  }
}

function readText(path: string, where: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new KubeconfigInvalidError(`the kubeconfig's file for ${where} cannot be read`, { cause: error });
  }
}

function parseYaml(text: string): Section {
  let root: unknown;
  try {
    root = parse(text, { prettyErrors: true, logLevel: 'error' });
  } catch (error) {
    // The parser's message quotes the text; line and kind of mistake do not.
    throw invalid(`it is no valid YAML${placeOf(error)}`);
  }
  if (!isSection(root)) throw invalid('it is no YAML mapping');
  return root;
}

function placeOf(error: unknown): string {
  if (!(error instanceof Error) || !('linePos' in error) || !Array.isArray(error.linePos)) return '';
  const [start] = error.linePos as readonly { readonly line: number }[];
  return start === undefined ? '' : ` (line ${start.line})`;
}

function entry(root: Section, list: string, kind: string, name: string): Section {
  const items: unknown = root[list];
  const found: unknown = Array.isArray(items)
    ? items.find((item: unknown) => isSection(item) && item['name'] === name)
    : undefined;
  if (!isSection(found)) throw invalid(`its ${list} have no entry "${name}"`);
  return section(found, kind) ?? {};
}

function section(from: Section, field: string): Section | undefined {
  const value = from[field];
  if (value === undefined || value === null) return undefined;
  if (!isSection(value)) throw invalid(`${field} is no mapping`);
  return value;
}

function isSection(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function optionalText(from: Section, field: string, where: string): string | undefined {
  const value = from[field];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw invalid(`${where} is no text (quote it)`);
  return value;
}

function requiredText(from: Section, field: string, where: string): string {
  const value = optionalText(from, field, where);
  if (value === undefined) throw invalid(`${where} is missing`);
  return value;
}

function invalid(what: string): KubeconfigInvalidError {
  return new KubeconfigInvalidError(`the kubeconfig cannot be used: ${what}`);
}
