/**
 * Credentials and CA of a chart's repository. An operation reads their Secrets anew; merely asking which version is wanted
 * may use what was read a short while ago, so that a resync of a thousand releases that share a Secret reads it once. Only
 * Secrets that a HelmReleaseProxy names are ever read (caaph W29).
 */
import { LRUCache } from 'lru-cache';
import { CA_SECRET_KEY, CREDENTIALS_DEFAULT_KEY } from '../../api/index.ts';
import type { CredentialsSpec, HelmReleaseProxy, SecretReference } from '../../api/index.ts';
import type { RepositoryCredentials } from '../../helm/index.ts';
import type { KubeClient, KubeObject } from '../../kube/index.ts';
import { errorText } from '../../telemetry/index.ts';
import { ReconcilerError } from '../errors.ts';
import type { ReconcilerErrorClass } from '../errors.ts';
import { SECRETS } from '../resources.ts';

/** Reasons of the condition ClusterAvailable, as CAAPH has them (caaph §1.7.5). */
export const GET_CREDENTIALS_FAILED = 'GetCredentialsFailed';
export const GET_CA_FAILED = 'GetCACertificateFailed';

/** How old an answer may be where nothing is done with it but to ask for a version: as long as an index counts as fresh. Milliseconds. */
const RECENT_MS = 300_000;
/** Secrets remembered for that long; a fleet shares a few. */
const MAX_RECENT = 64;

/** `fresh`: from the API server, now. `recent`: may be up to RECENT_MS old. */
export type Age = 'fresh' | 'recent';

interface Secret extends KubeObject {
  data?: Record<string, string>;
}

interface Wanted {
  readonly what: string;
  readonly reason: string;
  readonly reference: SecretReference;
  readonly key: string;
  readonly age: Age;
}

export class RepositoryAccess {
  readonly #client: KubeClient;
  readonly #allowCrossNamespace: boolean;
  /** Reads under way by Secret: a resync of many objects that share one asks for it once. */
  readonly #reading = new Map<string, Promise<Secret | undefined>>();
  readonly #recent = new LRUCache<string, Secret>({ max: MAX_RECENT, ttl: RECENT_MS });

  constructor(client: KubeClient, options: { readonly allowCrossNamespaceSecrets: boolean }) {
    this.#client = client;
    this.#allowCrossNamespace = options.allowCrossNamespaceSecrets;
  }

  /** What the object's repository wants to see. Rejects with a ReconcilerError whose code is the condition's reason. */
  async read(proxy: HelmReleaseProxy, age: Age): Promise<RepositoryCredentials> {
    const { credentials, tlsConfig } = proxy.spec;
    const insecure = tlsConfig?.insecureSkipTLSVerify === true ? { insecureSkipTLSVerify: true } : {};
    return {
      ...insecure,
      ...(credentials !== undefined && (await this.#credentials(proxy, credentials, age))),
      ...(tlsConfig?.caSecret !== undefined && { ca: await this.#ca(proxy, tlsConfig.caSecret, age) }),
    };
  }

  async #credentials(
    proxy: HelmReleaseProxy,
    { secret: reference, key }: CredentialsSpec,
    age: Age,
  ): Promise<RepositoryCredentials> {
    const wanted: Wanted = {
      what: 'credentials',
      reason: GET_CREDENTIALS_FAILED,
      reference,
      key: key === undefined || key === '' ? CREDENTIALS_DEFAULT_KEY : key,
      age,
    };
    const secret = await this.#secret(proxy, wanted);
    const file = text(secret, wanted.key);
    if (file !== undefined) return { dockerConfigJson: file };
    // kubernetes.io/basic-auth has no config file but these two keys.
    const [username, password] = [text(secret, 'username'), text(secret, 'password')];
    if (username !== undefined && password !== undefined) return { username, password };
    throw keyMissing(wanted, this.#namespaceOf(proxy, reference));
  }

  async #ca(proxy: HelmReleaseProxy, reference: SecretReference, age: Age): Promise<string> {
    const wanted: Wanted = { what: 'CA certificate', reason: GET_CA_FAILED, reference, key: CA_SECRET_KEY, age };
    const ca = text(await this.#secret(proxy, wanted), wanted.key);
    if (ca === undefined) throw keyMissing(wanted, this.#namespaceOf(proxy, reference));
    return ca;
  }

  async #secret(proxy: HelmReleaseProxy, wanted: Wanted): Promise<Secret> {
    const namespace = this.#namespaceOf(proxy, wanted.reference);
    const where = `${namespace}/${wanted.reference.name}`;
    if (namespace !== proxy.metadata.namespace && !this.#allowCrossNamespace) {
      throw failed(wanted, 'User', {
        message:
          `Secret ${where} is in another namespace than the object; ` +
          'put it into the same one, or start the manager with --cross-namespace-secrets',
      });
    }
    const secret = await this.#find(namespace, wanted);
    if (secret === undefined) throw failed(wanted, 'Retry', { message: `Secret ${where} is not there` });
    return secret;
  }

  async #find(namespace: string, wanted: Wanted): Promise<Secret | undefined> {
    const { name } = wanted.reference;
    const where = `${namespace}/${name}`;
    const recent = wanted.age === 'recent' ? this.#recent.get(where) : undefined;
    if (recent !== undefined) return recent;
    const under = this.#reading.get(where);
    // Not the caller's signal: others wait for the same answer. The client has its own limit.
    const reading = under ?? this.#client.find<Secret>(SECRETS, { namespace, name });
    this.#reading.set(where, reading);
    try {
      const secret = await reading;
      if (secret === undefined) this.#recent.delete(where);
      else this.#recent.set(where, secret);
      return secret;
    } catch (cause) {
      throw failed(wanted, 'Retry', { message: `Secret ${where} cannot be read: ${errorText(cause)}`, cause });
    } finally {
      this.#reading.delete(where);
    }
  }

  #namespaceOf(proxy: HelmReleaseProxy, reference: SecretReference): string {
    const given = reference.namespace ?? '';
    return given === '' ? (proxy.metadata.namespace ?? '') : given;
  }
}

function text(secret: Secret, key: string): string | undefined {
  const data = secret.data?.[key];
  return data === undefined ? undefined : Buffer.from(data, 'base64').toString('utf8');
}

function keyMissing(wanted: Wanted, namespace: string): ReconcilerError {
  const { name } = wanted.reference;
  return failed(wanted, 'Retry', { message: `Secret ${namespace}/${name} has no key "${wanted.key}"` });
}

function failed(
  wanted: Wanted,
  errorClass: ReconcilerErrorClass,
  details: { message: string; cause?: unknown },
): ReconcilerError {
  return new ReconcilerError({
    code: wanted.reason,
    class: errorClass,
    message: `failed to get ${wanted.what} for the chart repository: ${details.message}`,
    cause: details.cause,
  });
}
