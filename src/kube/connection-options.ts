import type { Telemetry } from '../telemetry/index.ts';

export interface ConnectionOptions {
  /** For spans, metrics and messages. */
  readonly clusterName: string;
  /** Run exec plugins and auth providers that the kubeconfig names. Default false: refused. */
  readonly allowExec?: boolean;
  /**
   * Read files that the kubeconfig names (CA, client certificate, tokenFile). Default: as `allowExec`. Whoever writes a
   * kubeconfig that names a file gets its contents sent to a server of his choice, the controller's own token included.
   */
  readonly allowFiles?: boolean;
  /** Where relative file names start: the kubeconfig's own directory. */
  readonly baseDir?: string;
  /** Default true; false: HTTP/1.1 only, one socket per running request. */
  readonly http2?: boolean;
  /** Default `capstan`. */
  readonly userAgent?: string;
  /** Context to use; the current one when absent. */
  readonly context?: string;
  /** Limit of a call that names none, milliseconds. Default DEFAULT_REQUEST_TIMEOUT_MS. */
  readonly requestTimeoutMs?: number;
  /** Limit for one attempt to connect, milliseconds. Default 10 s. */
  readonly connectTimeoutMs?: number;
  /** How often an HTTP/2 session is pinged, milliseconds; one whose last ping is unanswered by then is dropped. Default 15 s; 0: never. */
  readonly pingIntervalMs?: number;
  readonly telemetry?: Telemetry;
  /** Asked before each attempt of a write is sent; what it throws becomes the cause of a WriteRefusedError. */
  readonly guard?: WriteGuard;
}

/** Throws when the write must not be sent. Must not wait: between its answer and the wire nothing happens. */
export type WriteGuard = (write: { readonly method: string; readonly path: string }) => void;

/** Environment of a pod, and where its service account is mounted. The entry of the program reads the environment, not this room. */
export interface InClusterOptions extends Omit<ConnectionOptions, 'context' | 'allowExec' | 'allowFiles' | 'baseDir'> {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Default /var/run/secrets/kubernetes.io/serviceaccount (Kubernetes documentation, "Accessing the API from within a Pod"). */
  readonly root?: string;
}

/** `swapped`: new credentials serve from the next request on. `unchanged`: they are the same. `different`: another server or CA; nothing was changed. */
export type SwapOutcome = 'swapped' | 'unchanged' | 'different';

/** Asked after a 401; resolves true when newer credentials are in place. */
export type UnauthorizedHook = (signal: AbortSignal) => Promise<boolean>;

/** Limit of a call that names none, milliseconds: half of what API servers allow a request by default (--request-timeout, 60 s). */
export const DEFAULT_REQUEST_TIMEOUT_MS = 30_000;

/** Limit for one attempt to connect, milliseconds: three SYN retries. */
export const DEFAULT_CONNECT_TIMEOUT_MS = 10_000;

/** Interval of HTTP/2 pings, milliseconds: a dead session is dropped within two of them, as within client-go's 30 s + 15 s. */
export const DEFAULT_PING_INTERVAL_MS = 15_000;

/** A kubeconfig that says what a pod's environment and service account say. */
export function inClusterKubeconfig(env: InClusterOptions['env'], root: string): string {
  const host = env['KUBERNETES_SERVICE_HOST'];
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '443';
  const address = host?.includes(':') === true ? `[${host}]` : host;
  return JSON.stringify({
    'current-context': 'in-cluster',
    contexts: [{ name: 'in-cluster', context: { cluster: 'in-cluster', user: 'in-cluster' } }],
    clusters: [
      {
        name: 'in-cluster',
        cluster: {
          server: address === undefined ? undefined : `https://${address}:${port}`,
          'certificate-authority': `${root}/ca.crt`,
        },
      },
    ],
    users: [{ name: 'in-cluster', user: { tokenFile: `${root}/token` } }],
  });
}
