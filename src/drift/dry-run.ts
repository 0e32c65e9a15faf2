import type { CallOptions, KubeClient, KubeObject, Resource } from '../kube/index.ts';
import { removalOrder, removeAt } from './edits.ts';
import { namesUnknownFields } from './refusal.ts';
import { isObject } from './twin.ts';
import { undeclaredFields } from './typed-path.ts';
import type { JsonObject, LiveObject, Path } from './types.ts';

/**
 * The field manager of every write: Helm's own, so that a later `helm upgrade` owns what a correction wrote and can change
 * and remove it without a conflict.
 */
export const FIELD_MANAGER = 'helm';

/** How often fields that a server does not know are left out: a server names some of them at a time. */
const MAX_ROUNDS = 5;

/** etcd's first revision is made by no Kubernetes object. */
const NO_VERSION = '1';

export interface ApplyCall extends CallOptions {
  readonly resource: Resource;
  readonly document: JsonObject;
  /** Only this very version of this very object is written on; `nothing`: the object must not be there. Else: 409. */
  readonly onto: LiveObject | 'nothing';
  readonly dryRun?: boolean;
  readonly onDryRun?: () => void;
}

export interface Applied {
  readonly result: LiveObject;
  /** Fields of the manifest that the server does not know, and which were left out. */
  readonly unknown: readonly Path[];
}

/**
 * Server-side apply, forced (KEP-555), without the fields that the server does not know: by client-side apply Helm 3 lets
 * the server drop them silently, so they are a mistake in the manifest and no drift (drift.md §8, scenario 18).
 * Rejects with a KubeError.
 */
export async function applyDocument(client: KubeClient, call: ApplyCall): Promise<Applied> {
  const document = prepared(call);
  const unknown: Path[] = [];
  for (let round = 1; ; round += 1) {
    try {
      return { result: await send(client, call, document), unknown };
    } catch (error) {
      const fields = namesUnknownFields(error) ? undeclaredFields(error.message, document) : [];
      if (fields.length === 0 || round === MAX_ROUNDS) throw error;
      for (const path of removalOrder(fields)) removeAt(document, path);
      unknown.push(...fields);
    }
  }
}

async function send(client: KubeClient, call: ApplyCall, document: JsonObject): Promise<LiveObject> {
  if (call.dryRun === true) call.onDryRun?.();
  return client.apply<LiveObject>(call.resource, asObject(document), {
    fieldManager: FIELD_MANAGER,
    force: true,
    dryRun: call.dryRun,
    ...limits(call),
  });
}

/** A document that has metadata with a name, as those of an inventory do. */
export function asObject(document: JsonObject): LiveObject {
  return document as LiveObject;
}

/**
 * An apply makes what is not there and takes over what is. With the uid it does not make a gone object anew (409); with a
 * resourceVersion that no object can have it only makes, since anything that is there conflicts with it (both tried on 1.35).
 */
function prepared(call: ApplyCall): JsonObject {
  const document = structuredClone(call.document);
  const metadata = isObject(document['metadata']) ? document['metadata'] : {};
  document['metadata'] = metadata;
  if (call.onto === 'nothing') {
    metadata['resourceVersion'] = NO_VERSION;
    return document;
  }
  const { uid, resourceVersion } = (call.onto as KubeObject).metadata;
  if (uid !== undefined) metadata['uid'] = uid;
  if (resourceVersion !== undefined) metadata['resourceVersion'] = resourceVersion;
  return document;
}

export function limits(options: CallOptions): CallOptions {
  return { signal: options.signal, timeoutMs: options.timeoutMs };
}
