import { LRUCache } from 'lru-cache';
import { HelmError } from './errors.ts';
import { describeUrl, readBody } from './chart-store-http.ts';
import type { RepositoryHttp } from './chart-store-http.ts';
import { basicHeader } from './chart-store-target.ts';
import type { RepositoryTarget } from './chart-store-target.ts';
import { refusal } from './repository-index.ts';

/** What a registry asks for in WWW-Authenticate (RFC 9110 §11.6.1; distribution spec, "Token Authentication"). */
export type Challenge =
  | { readonly scheme: 'basic' }
  | { readonly scheme: 'bearer'; readonly realm: string; readonly service?: string; readonly scope?: string };

/** The distribution spec's default for a token that says nothing of its life, milliseconds. */
const TOKEN_LIFE_MS = 60_000;
/** A token is not used in the last part of its life, milliseconds. */
const TOKEN_MARGIN_MS = 10_000;
const MAX_TOKENS = 500;
const MAX_TOKEN_BYTES = 1024 * 1024;

/** Authorization for registries: remembers per repository and credentials what was granted. */
export class RegistryAuthorization {
  readonly #http: RepositoryHttp;
  readonly #headers = new LRUCache<string, string>({ max: MAX_TOKENS });

  constructor(http: RepositoryHttp) {
    this.#http = http;
  }

  /** What was granted before for pulling `repository`, if it still holds. */
  known(target: RepositoryTarget, repository: string): string | undefined {
    return this.#headers.get(keyOf(target, repository));
  }

  /** Answers a 401. Undefined: there is nothing to answer with. Rejects with HelmError RepositoryUnauthorized. */
  async answer(
    target: RepositoryTarget,
    repository: string,
    asked: { readonly challenge: string | undefined; readonly signal: AbortSignal },
  ): Promise<string | undefined> {
    const key = keyOf(target, repository);
    this.#headers.delete(key);
    const challenge = parseChallenge(asked.challenge ?? '');
    const login = target.login(target.url) ?? {};
    if (challenge?.scheme !== 'bearer') {
      const header = basicHeader(login);
      if (header !== undefined) this.#headers.set(key, header);
      return header;
    }
    if (login.registryToken !== undefined) return `Bearer ${login.registryToken}`;
    const { token, lifeMs } = await this.#fetchToken(target, { repository, challenge }, asked.signal);
    const header = `Bearer ${token}`;
    if (lifeMs > TOKEN_MARGIN_MS) this.#headers.set(key, header, { ttl: lifeMs - TOKEN_MARGIN_MS });
    return header;
  }

  async #fetchToken(
    target: RepositoryTarget,
    wanted: { readonly repository: string; readonly challenge: Extract<Challenge, { scheme: 'bearer' }> },
    signal: AbortSignal,
  ): Promise<{ token: string; lifeMs: number }> {
    const { challenge } = wanted;
    const realm = URL.parse(challenge.realm);
    // Whoever can speak for the registry names its token server; it must at least be one that nobody listens in to.
    if (realm?.protocol !== 'https:') throw new HelmError('RepositoryInvalid', 'its token server has no HTTPS address');
    const query = new URLSearchParams({
      ...(challenge.service === undefined ? {} : { service: challenge.service }),
      scope: challenge.scope ?? `repository:${wanted.repository}:pull`,
    });
    const request = tokenRequest(target, realm, query);
    return this.#http.exchange(
      { ...request, trust: target.trust },
      async (answer) => {
        if (answer.statusCode !== 200) throw await refusal(answer, 'a token');
        return readToken((await readBody(answer, MAX_TOKEN_BYTES)).toString('utf8'), realm);
      },
      signal,
    );
  }
}

function tokenRequest(target: RepositoryTarget, realm: URL, query: URLSearchParams) {
  const login = target.login(target.url) ?? {};
  if (login.identityToken !== undefined) {
    const form = new URLSearchParams(query);
    form.set('grant_type', 'refresh_token');
    form.set('client_id', 'capstan');
    form.set('refresh_token', login.identityToken);
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    return { url: realm, method: 'POST' as const, headers, body: form.toString() };
  }
  const url = new URL(realm);
  for (const [name, value] of query) url.searchParams.append(name, value);
  const basic = basicHeader(login);
  return { url, authorize: (at: URL) => (at.origin === url.origin ? basic : undefined) };
}

function readToken(text: string, realm: URL): { token: string; lifeMs: number } {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  const answer = (typeof parsed === 'object' && parsed !== null ? parsed : {}) as Record<string, unknown>;
  const token = answer['token'] ?? answer['access_token'];
  if (typeof token !== 'string' || token === '') {
    throw new HelmError('RepositoryInvalid', `its token server ${describeUrl(realm)} gave no token`);
  }
  const seconds = answer['expires_in'];
  return { token, lifeMs: typeof seconds === 'number' ? seconds * 1000 : TOKEN_LIFE_MS };
}

/** The strongest of the schemes offered that is understood. */
export function parseChallenge(text: string): Challenge | undefined {
  const bearer = /(?:^|,)\s*bearer\s+(.*)$/is.exec(text)?.[1];
  if (bearer !== undefined) {
    const parameters = new Map<string, string>();
    for (const [, name = '', quoted, plain] of bearer.matchAll(/([a-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))/gi)) {
      parameters.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? plain ?? '');
    }
    const realm = parameters.get('realm');
    if (realm !== undefined) {
      return { scheme: 'bearer', realm, service: parameters.get('service'), scope: parameters.get('scope') };
    }
  }
  return /(?:^|,)\s*basic\b/i.test(text) ? { scheme: 'basic' } : undefined;
}

function keyOf(target: RepositoryTarget, repository: string): string {
  return `${repository} ${target.key}`;
}
