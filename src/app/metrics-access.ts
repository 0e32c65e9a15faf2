import { LRUCache } from 'lru-cache';
import { createHash } from 'node:crypto';
import type { KubeClient } from '../kube/index.ts';

/** A decision is reused this long: a scraper asks every few seconds, and each question costs two requests. 10 s bounds how long a revoked right lasts. */
const DECISION_TTL_MS = 10_000;
/** Distinct callers remembered; far more than scrapers, so that strangers cannot grow it. */
const DECISIONS_MAX = 100;

export type Access = 'allowed' | 'unauthenticated' | 'forbidden';

interface TokenReview {
  status?: { authenticated?: boolean; user?: { username?: string; groups?: string[]; uid?: string } };
}

interface SubjectAccessReview {
  status?: { allowed?: boolean };
}

/**
 * Who may read /metrics: the API server decides, by TokenReview and SubjectAccessReview on the non-resource URL, as
 * CAAPH's metrics endpoint does (so its ClusterRoles keep working).
 */
export class MetricsAccess {
  readonly #client: KubeClient;
  readonly #decisions = new LRUCache<string, Access>({ max: DECISIONS_MAX, ttl: DECISION_TTL_MS });

  constructor(client: KubeClient) {
    this.#client = client;
  }

  /** Rejects with a KubeError when the API server cannot be asked. */
  async check(authorization: string | undefined, path: string, signal: AbortSignal): Promise<Access> {
    const token = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) return 'unauthenticated';
    const key = `${createHash('sha256').update(token).digest('hex')} ${path}`;
    const known = this.#decisions.get(key);
    if (known !== undefined) return known;
    const access = await this.#ask(token, path, signal);
    this.#decisions.set(key, access);
    return access;
  }

  async #ask(token: string, path: string, signal: AbortSignal): Promise<Access> {
    const review = await this.#client.raw<TokenReview>('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } },
      signal,
    });
    if (review.status?.authenticated !== true) return 'unauthenticated';
    const user = review.status.user ?? {};
    const answer = await this.#client.raw<SubjectAccessReview>(
      'POST',
      '/apis/authorization.k8s.io/v1/subjectaccessreviews',
      {
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            nonResourceAttributes: { path, verb: 'get' },
          },
        },
        signal,
      },
    );
    return answer.status?.allowed === true ? 'allowed' : 'forbidden';
  }
}
