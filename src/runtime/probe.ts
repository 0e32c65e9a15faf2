import { isKubeError, withTimeout } from '../kube/index.ts';
import type { Resource } from '../kube/index.ts';
import { errorText } from '../telemetry/index.ts';
import type { ClusterConnection } from './connection.ts';
import type { NotConnectedReason } from './types.ts';

export type ProbeResult =
  /** The API server answered. `uid` is unknown where its namespace may not be read. */
  { readonly ok: true; readonly uid: string | undefined } | { readonly ok: false; readonly reason: NotConnectedReason };

/** Codes of NotConnectedReason that this room gives. */
export const UNREACHABLE = 'Unreachable';
export const UNAUTHORIZED = 'Unauthorized';
export const KUBECONFIG_INVALID = 'KubeconfigInvalid';

const NAMESPACES: Resource = { group: '', version: 'v1', plural: 'namespaces', namespaced: false };

/**
 * One small read, of the kube-system namespace's metadata: it goes through authentication and etcd, which /version and
 * /readyz do not always, and its UID tells a cluster from its successor at the same address. A server that answers
 * "forbidden", "not found" or "too many requests" is there and knows who asks. Never rejects.
 */
export async function probe(connection: ClusterConnection, limitMs: number, signal: AbortSignal): Promise<ProbeResult> {
  try {
    const namespace = await withTimeout(
      signal,
      limitMs,
      async (inner) =>
        connection.client.find(
          NAMESPACES,
          { name: 'kube-system' },
          { form: 'metadata', signal: inner, timeoutMs: limitMs },
        ),
      'reading the namespace kube-system',
    );
    return { ok: true, uid: namespace?.metadata.uid };
  } catch (error) {
    if (isKubeError(error, 'Forbidden', 'NotFound', 'TooManyRequests')) return { ok: true, uid: undefined };
    return { ok: false, reason: reasonFor(error) };
  }
}

/** What a failure to open or to probe means for whoever waits for the cluster. */
export function reasonFor(error: unknown): NotConnectedReason {
  return { code: codeFor(error), message: errorText(error) };
}

function codeFor(error: unknown): string {
  if (isKubeError(error, 'Unauthorized')) return UNAUTHORIZED;
  if (isKubeError(error, 'KubeconfigInvalid', 'ExecPluginRefused', 'FileReferenceRefused')) return KUBECONFIG_INVALID;
  return UNREACHABLE;
}
