import { HelmError } from './errors.ts';

/** What a Docker config knows of one registry. Never logged. */
export interface RegistryLogin {
  readonly username?: string;
  readonly password?: string;
  /** A refresh token for the registry's token server (OAuth 2). */
  readonly identityToken?: string;
  /** A bearer token for the registry itself. */
  readonly registryToken?: string;
}

interface AuthEntry {
  readonly auth?: unknown;
  readonly username?: unknown;
  readonly password?: unknown;
  readonly identitytoken?: unknown;
  readonly registrytoken?: unknown;
}

/** Docker Hub is one registry under several names; logins are kept under the first of them. */
const DOCKER_HUB = new Set(['index.docker.io', 'docker.io', 'registry-1.docker.io', 'registry.hub.docker.com']);

/**
 * The login for a host (with port, if it has one) and a path, from the text of a Docker config.json. Keys may be a host,
 * a URL, or a host with a path, of which the longest that matches wins; a `*` stands for one label of the host
 * (https://kubernetes.io/docs/concepts/containers/images/#config-json). Credential helpers are not run.
 * Throws HelmError CredentialsInvalid, which quotes nothing of the text.
 */
export function findLogin(dockerConfigJson: string, host: string, path: string): RegistryLogin | undefined {
  let best: { readonly entry: AuthEntry; readonly rank: number } | undefined;
  for (const [key, entry] of Object.entries(readAuths(dockerConfigJson))) {
    const rank = rankOf(key, host.toLowerCase(), path);
    if (rank !== undefined && (best === undefined || rank > best.rank)) best = { entry, rank };
  }
  return best === undefined ? undefined : readLogin(best.entry);
}

function readAuths(text: string): Record<string, AuthEntry> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The parser's message would quote what it choked on.
    throw new HelmError('CredentialsInvalid', 'the Docker config of the credentials is not JSON');
  }
  if (!isRecord(parsed))
    throw new HelmError('CredentialsInvalid', 'the Docker config of the credentials is not a JSON object');
  const { auths } = parsed;
  if (auths === undefined) return {};
  if (!isRecord(auths))
    throw new HelmError('CredentialsInvalid', 'auths in the Docker config of the credentials is not an object');
  return Object.fromEntries(Object.entries(auths).filter((pair): pair is [string, AuthEntry] => isRecord(pair[1])));
}

/** Undefined when the key is not for this host and path; higher is more precise. */
function rankOf(key: string, host: string, path: string): number | undefined {
  const [keyHost = '', ...rest] = key.replace(/^https?:\/\//i, '').split('/');
  const exact = sameHost(keyHost.toLowerCase(), host);
  if (!exact && !matchesLabels(keyHost.toLowerCase(), host)) return undefined;
  // v1 and v2 in old keys are the registry's API, not a repository.
  const keyPath = rest
    .join('/')
    .replace(/\/+$/, '')
    .replace(/^v[12]$/, '');
  const matches = keyPath === '' || `${path.replace(/^\/+/, '')}/`.startsWith(`${keyPath}/`);
  return matches ? 2 * keyPath.length + (exact ? 1 : 0) : undefined;
}

function sameHost(key: string, host: string): boolean {
  return key === host || (DOCKER_HUB.has(key) && DOCKER_HUB.has(host));
}

function matchesLabels(pattern: string, host: string): boolean {
  if (!pattern.includes('*')) return false;
  const labels = pattern.split('.');
  const actual = host.split('.');
  return labels.length === actual.length && labels.every((label, index) => matchesLabel(label, actual[index] ?? ''));
}

function matchesLabel(pattern: string, label: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('[^.]*')}$`).test(label);
}

function readLogin(entry: AuthEntry): RegistryLogin {
  const basic = readBasic(entry);
  return {
    ...basic,
    ...(isText(entry.identitytoken) ? { identityToken: entry.identitytoken } : {}),
    ...(isText(entry.registrytoken) ? { registryToken: entry.registrytoken } : {}),
  };
}

function readBasic(entry: AuthEntry): Pick<RegistryLogin, 'username' | 'password'> {
  if (isText(entry.auth)) {
    const text = Buffer.from(entry.auth, 'base64').toString('utf8');
    const colon = text.indexOf(':');
    if (colon === -1)
      throw new HelmError('CredentialsInvalid', 'an auth of the Docker config is not base64 of user:password');
    // Docker pads some of them with NUL.
    return { username: text.slice(0, colon), password: text.slice(colon + 1).replace(/\0+$/, '') };
  }
  if (isText(entry.username))
    return { username: entry.username, password: isText(entry.password) ? entry.password : '' };
  return {};
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
