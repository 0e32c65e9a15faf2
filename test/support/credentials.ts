import { ApiError } from './rest.ts';
import type { KubeObject, RestOptions } from './rest.ts';
import { RestClient } from './rest.ts';
import type { ApiServer } from './api-server.ts';
import { eventually } from './wait.ts';

/** How a kubeconfig proves who it is: a service account's token, or a client certificate. */
export type CredentialKind = 'token' | 'certificate';

const NAMESPACE = 'kube-system';
/** Validity (s) of a token; longer than any test. */
const TOKEN_SECONDS = 24 * 60 * 60;
/** The API server remembers a good token for 10 s (TokenSuccessCacheTTL), and reads a changed CA file within one. */
const REVOCATION_LIMIT_MS = 30_000;

/** Credentials that can be taken back while the server runs. */
export class Credentials {
  readonly #apiServer: ApiServer;
  readonly #master: RestClient;
  readonly #kind: CredentialKind;
  #serial = 0;

  constructor(apiServer: ApiServer, master: RestClient, kind: CredentialKind) {
    this.#apiServer = apiServer;
    this.#master = master;
    this.#kind = kind;
  }

  /** New credentials of a cluster administrator; older ones stay valid. */
  async issue(): Promise<RestOptions> {
    const { server, ca } = this.#apiServer;
    if (this.#kind === 'token') return { server, ca, token: await this.#issueToken() };
    return { server, ca, clientCertificate: await this.#apiServer.issueClientCertificate() };
  }

  /**
   * Issues new credentials, makes sure that they work, and takes every older one of this kind back.
   * Resolves when the server refuses `old`; for tokens that takes up to 10 s.
   */
  async rotate(old: RestOptions): Promise<RestOptions> {
    const fresh = await (this.#kind === 'token' ? this.#rotateToken() : this.#rotateCertificate());
    await eventually(() => isRefused(old), {
      what: 'the old credentials are refused',
      timeoutMs: REVOCATION_LIMIT_MS,
    });
    return fresh;
  }

  async #rotateToken(): Promise<RestOptions> {
    const before = this.#serial;
    const fresh = await this.issue();
    await eventually(() => isAccepted(fresh), { what: 'the new token is accepted' });
    for (let serial = 1; serial <= before; serial++) {
      await this.#master.delete(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${accountName(serial)}`);
      await this.#master.delete(bindingPath(accountName(serial)));
    }
    return fresh;
  }

  async #rotateCertificate(): Promise<RestOptions> {
    const withdrawOld = await this.#apiServer.replaceClientAuthority();
    const fresh = await this.issue();
    await eventually(() => isAccepted(fresh), { what: 'the new certificate is accepted' });
    await withdrawOld();
    return fresh;
  }

  async #issueToken(): Promise<string> {
    this.#serial += 1;
    const name = accountName(this.#serial);
    const accounts = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`;
    await this.#master.create(accounts, { metadata: { name } });
    await this.#master.create('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'ServiceAccount', namespace: NAMESPACE, name }],
    });
    const review = await this.#master.create<KubeObject & { status: { token: string } }>(`${accounts}/${name}/token`, {
      spec: { expirationSeconds: TOKEN_SECONDS },
    });
    return review.status.token;
  }
}

/** Throws until the server knows the credentials and lets them do what an administrator may. */
export async function isAccepted(credentials: RestOptions): Promise<void> {
  await withClient(credentials, (client) => client.get('/api/v1/namespaces/kube-system/secrets?limit=1'));
}

/** Throws until the server answers 401. */
async function isRefused(credentials: RestOptions): Promise<void> {
  try {
    await isAccepted(credentials);
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return;
    throw error;
  }
  throw new Error('still accepted');
}

async function withClient<T>(credentials: RestOptions, use: (client: RestClient) => Promise<T>): Promise<T> {
  const client = new RestClient(credentials);
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

function accountName(serial: number): string {
  return `fleet-access-${serial}`;
}

function bindingPath(name: string): string {
  return `/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/${name}`;
}
