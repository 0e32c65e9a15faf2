/**
 * Errors of the room `helm`. Codes are stable; `handling` says what a caller does about one. Messages are Helm's own
 * words where Helm said something, bounded, and without the user's values.
 */

/** Stable names, one per class of failure. */
export type HelmErrorCode =
  /** No helm binary at the configured path, or one that cannot be run. */
  | 'HelmMissing'
  /** Older than Capstan supports. */
  | 'HelmTooOld'
  /** The object asks for something that this Helm cannot do; the message names the field. */
  | 'OptionUnsupported'
  /** Install: a release of that name is there. */
  | 'ReleaseExists'
  /** Another install, upgrade or rollback is in progress, or was broken off. */
  | 'ReleasePending'
  | 'ReleaseNotFound'
  /** Upgrade of a release that never got deployed or is uninstalled. */
  | 'NoDeployedRelease'
  /** An object that the chart makes is there and belongs to something else. */
  | 'OwnershipConflict'
  /** Server-side apply: another manager owns a field. */
  | 'FieldConflict'
  /** A field that cannot be changed was to be. */
  | 'ImmutableField'
  | 'ChartInvalid'
  | 'ValuesInvalid'
  /** A hook or a test of the chart failed. */
  | 'HookFailed'
  /** The server refused an object. */
  | 'ObjectInvalid'
  /** Helm's --timeout, or the operation's own limit, passed. */
  | 'Timeout'
  /** The cluster's API server does not answer. */
  | 'Unreachable'
  | 'Unauthorized'
  | 'Forbidden'
  /** The caller's signal aborted, or the engine is closing. */
  | 'Cancelled'
  /** The record in storage is another by now. */
  | 'RecordChanged'
  /** A record in storage that cannot be decoded. */
  | 'RecordInvalid'
  /** The repository's URL cannot be used, or what it serves is no repository. */
  | 'RepositoryInvalid'
  /** The chart repository or registry does not answer, or answers 5xx. */
  | 'RepositoryUnreachable'
  /** The chart repository or registry wants other credentials. */
  | 'RepositoryUnauthorized'
  /** The repository's certificate does not chain to the given CA, or is not for that host. */
  | 'RepositoryUntrusted'
  | 'ChartNotFound'
  /** The chart is there, no version of it fits. */
  | 'VersionNotFound'
  /** Neither a version nor a range. */
  | 'VersionInvalid'
  /** What was downloaded is not what the repository announced. */
  | 'DigestMismatch'
  /** The Docker config or the CA of the object cannot be read. */
  | 'CredentialsInvalid'
  /** Anything else that Helm said. */
  | 'Failed';

/**
 * What a caller does: `retry` the same operation later; `refresh` what it knows of the release and decide anew;
 * `reconnect`: look at the connection or the credentials first; `never`: it fails again until a person changes
 * something; `stop`: the caller itself wanted it to end.
 */
export type HelmHandling = 'retry' | 'refresh' | 'reconnect' | 'never' | 'stop';

const HANDLING: Readonly<Record<HelmErrorCode, HelmHandling>> = {
  HelmMissing: 'never',
  HelmTooOld: 'never',
  OptionUnsupported: 'never',
  ReleaseExists: 'refresh',
  ReleasePending: 'refresh',
  ReleaseNotFound: 'refresh',
  NoDeployedRelease: 'refresh',
  OwnershipConflict: 'retry',
  FieldConflict: 'retry',
  ImmutableField: 'retry',
  // A template may fail for what the cluster has or lacks.
  ChartInvalid: 'retry',
  ValuesInvalid: 'never',
  HookFailed: 'retry',
  ObjectInvalid: 'retry',
  Timeout: 'retry',
  Unreachable: 'reconnect',
  Unauthorized: 'reconnect',
  Forbidden: 'retry',
  Cancelled: 'stop',
  RecordChanged: 'refresh',
  RecordInvalid: 'never',
  RepositoryInvalid: 'never',
  RepositoryUnreachable: 'retry',
  RepositoryUnauthorized: 'retry',
  RepositoryUntrusted: 'retry',
  ChartNotFound: 'retry',
  VersionNotFound: 'retry',
  VersionInvalid: 'never',
  DigestMismatch: 'retry',
  CredentialsInvalid: 'never',
  Failed: 'retry',
};

export interface HelmErrorDetails {
  readonly cause?: unknown;
  /** The object's field at fault, e.g. options.upgrade.recreate. */
  readonly field?: string;
  /** Line of the values at fault, from 1. */
  readonly line?: number;
}

/** Every failure of this room. `error instanceof HelmError`, then `code` or `handling`. */
export class HelmError extends Error {
  readonly code: HelmErrorCode;
  readonly handling: HelmHandling;
  readonly field: string | undefined;
  readonly line: number | undefined;

  constructor(code: HelmErrorCode, message: string, details: HelmErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'HelmError';
    this.code = code;
    this.handling = HANDLING[code];
    this.field = details.field;
    this.line = details.line;
  }
}

/** True for a HelmError of one of the codes; of any code when none is named. */
export function isHelmError(error: unknown, ...codes: readonly HelmErrorCode[]): error is HelmError {
  return error instanceof HelmError && (codes.length === 0 || codes.includes(error.code));
}
