/**
 * Which version of a provider's kind to read: the newest that its CRD lists under the contract's label (Cluster API,
 * "Contracts", CRD labels; caaph §1.10).
 */
import { LRUCache } from 'lru-cache';
import type { Discovery, KubeClient, KubeObject, Resource } from '../../kube/index.ts';
import { ReconcilerError } from '../errors.ts';
import { CAPI_GROUP, CRDS } from '../resources.ts';

export interface KindName {
  readonly group: string;
  readonly kind: string;
}

/** Newest contract first. The value is a list of versions joined by underscores. */
const CONTRACT_LABELS = [`${CAPI_GROUP}/v1beta2`, `${CAPI_GROUP}/v1beta1`] as const;
/** An upgraded provider is noticed after so long at the latest. */
const FRESH_MS = 5 * 60_000;
const MAX_KINDS = 200;
/** Reason in conditions: as CAAPH's, whatever keeps the values from being made (caaph §1.8). */
export const VALUES_FAILED = 'ValueParsingFailed';

/** Answers are kept for five minutes; failures are not. */
export class ContractVersions {
  readonly #client: KubeClient;
  readonly #discovery: Discovery;
  readonly #known = new LRUCache<string, Resource>({ max: MAX_KINDS, ttl: FRESH_MS });

  constructor(client: KubeClient, discovery: Discovery) {
    this.#client = client;
    this.#discovery = discovery;
  }

  /** The resource to read a kind by. Rejects with a ReconcilerError that says what is missing, or with a KubeError. */
  async resource(kind: KindName, signal: AbortSignal): Promise<Resource> {
    const key = `${kind.kind}.${kind.group}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const resource = await this.#find(kind, signal);
    this.#known.set(key, resource);
    return resource;
  }

  async #find(kind: KindName, signal: AbortSignal): Promise<Resource> {
    const served = await this.#discovery.find(kind, { signal });
    if (served === undefined) {
      throw failure(
        `the management cluster does not serve kind ${kind.kind} of ${kind.group}; is its provider installed?`,
      );
    }
    const version = await this.#contractVersion(`${served.plural}.${served.group}`, signal);
    const resource = await this.#discovery.find({ ...kind, version }, { signal });
    if (resource === undefined) {
      throw failure(
        `the CRD of ${kind.kind}.${kind.group} lists version ${version} for the contract, but it is not served`,
      );
    }
    return resource;
  }

  async #contractVersion(crdName: string, signal: AbortSignal): Promise<string> {
    const crd = await this.#client.find<KubeObject>(CRDS, { name: crdName }, { signal, form: 'metadata' });
    const labels = crd?.metadata.labels ?? {};
    for (const label of CONTRACT_LABELS) {
      const newest = (labels[label] ?? '').split('_').filter(isVersion).sort(byAge).at(-1);
      if (newest !== undefined) return newest;
    }
    throw failure(
      `CRD ${crdName} has none of the labels ${CONTRACT_LABELS.join(', ')}, which say what version to read`,
    );
  }
}

const VERSION = /^v([0-9]+)(?:(alpha|beta)([0-9]+))?$/;
const STAGES = { alpha: 0, beta: 1, stable: 2 } as const;

function isVersion(text: string): boolean {
  return VERSION.test(text);
}

/** Oldest first, by Kubernetes' rule: stable after beta after alpha, then by number ("CustomResourceDefinition versioning", version priority). */
function byAge(a: string, b: string): number {
  const [left, right] = [rank(a), rank(b)];
  return left.stage - right.stage || left.major - right.major || left.minor - right.minor;
}

function rank(version: string): { stage: number; major: number; minor: number } {
  const match = VERSION.exec(version);
  const stage = match?.[2] === 'alpha' ? STAGES.alpha : match?.[2] === 'beta' ? STAGES.beta : STAGES.stable;
  return { stage, major: Number(match?.[1] ?? 0), minor: Number(match?.[3] ?? 0) };
}

function failure(message: string): ReconcilerError {
  return new ReconcilerError({ code: VALUES_FAILED, class: 'Retry', message });
}
