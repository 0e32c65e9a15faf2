/**
 * Errors of the room `kube`. Codes are stable and never reused; `handling` says what a caller does about one. Messages
 * carry method, path and what the server said, never a request's body, a query or a credential.
 */

/** Stable names, one per class. */
export type KubeErrorCode =
  | 'NotFound'
  | 'Conflict'
  | 'AlreadyExists'
  | 'Gone'
  | 'Unauthorized'
  | 'Forbidden'
  | 'TooManyRequests'
  | 'Invalid'
  | 'TimedOut'
  | 'Network'
  | 'Server'
  | 'ConnectionClosed'
  | 'KubeconfigInvalid'
  | 'ExecPluginRefused'
  | 'FileReferenceRefused'
  | 'WriteRefused';

/**
 * What a caller does: `retry` the same call later (after `retryAfterMs` when the server named a time); `refresh` what it
 * knows (read the object or list again) and decide anew; `reauthenticate` with newer credentials; `never`: the same call
 * fails again until a person changes something.
 */
export type Handling = 'retry' | 'refresh' | 'reauthenticate' | 'never';

/** One entry of `details.causes` of a Status. */
export interface Complaint {
  readonly reason?: string;
  /** As the server names it, e.g. `spec.template.spec.containers[0].image`. */
  readonly field?: string;
  /** The end of what it says, where the reason stands after the quoted value. It can still quote values: no text for logs. */
  readonly text?: string;
}

export interface KubeErrorDetails {
  /** HTTP status, when a server answered. */
  readonly status?: number;
  /** `reason` of the server's Status. */
  readonly reason?: string;
  /** Reasons of `details.causes` of the server's Status, e.g. ResourceVersionTooLarge. */
  readonly causes?: readonly string[];
  /** The same entries with field and text. */
  readonly complaints?: readonly Complaint[];
  /** Milliseconds that the server asked to wait (Retry-After, or retryAfterSeconds of the Status). */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** The base: `error instanceof KubeError`, then `code` or `handling`. */
export abstract class KubeError extends Error {
  abstract readonly code: KubeErrorCode;
  abstract readonly handling: Handling;
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly causes: readonly string[];
  readonly complaints: readonly Complaint[];
  readonly retryAfterMs: number | undefined;

  constructor(message: string, details: KubeErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.status = details.status;
    this.reason = details.reason;
    this.causes = details.causes ?? [];
    this.complaints = details.complaints ?? [];
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** The object is not there, or (`notServed`) the server does not serve the resource at all. */
export class NotFoundError extends KubeError {
  readonly code = 'NotFound';
  readonly handling = 'refresh';
  /** True when the server named no object in its 404: it is the resource that it does not know. */
  readonly notServed: boolean;

  constructor(message: string, details: KubeErrorDetails & { readonly notServed?: boolean } = {}) {
    super(message, details);
    this.notServed = details.notServed ?? false;
  }
}

/** The object changed meanwhile (optimistic lock, precondition), or another manager owns the field (server-side apply). */
export class ConflictError extends KubeError {
  readonly code = 'Conflict';
  readonly handling = 'refresh';
}

export class AlreadyExistsError extends KubeError {
  readonly code = 'AlreadyExists';
  readonly handling = 'refresh';
}

/** 410: the resourceVersion or continue token is too old (API concepts, "410 Gone responses"): list again. */
export class GoneError extends KubeError {
  readonly code = 'Gone';
  readonly handling = 'refresh';
}

export class UnauthorizedError extends KubeError {
  readonly code = 'Unauthorized';
  readonly handling = 'reauthenticate';
}

export class ForbiddenError extends KubeError {
  readonly code = 'Forbidden';
  readonly handling = 'never';
}

/** 429: priority and fairness, or a webhook, asks for patience. `retryAfterMs` when it said how much. */
export class TooManyRequestsError extends KubeError {
  readonly code = 'TooManyRequests';
  readonly handling = 'retry';
}

/** 400, 405, 406, 413, 415, 422: the server will not take it as it is. */
export class InvalidError extends KubeError {
  readonly code = 'Invalid';
  readonly handling = 'never';
}

/** A limit passed: the caller's, the connection's, or the server's own (408, 504). */
export class TimedOutError extends KubeError {
  readonly code = 'TimedOut';
  readonly handling = 'retry';
}

/** No answer at all: refused, reset, name not found, TLS. */
export class NetworkError extends KubeError {
  readonly code = 'Network';
  readonly handling = 'retry';
}

/** 5xx, or an answer that is none. */
export class ServerError extends KubeError {
  readonly code = 'Server';
  readonly handling = 'retry';
}

/** This side closed: Connection.close() or reset(). After a reset a retry goes to a new socket; after a close it fails again. */
export class ConnectionClosedError extends KubeError {
  readonly code = 'ConnectionClosed';
  readonly handling = 'retry';
}

/** The kubeconfig cannot be used; the message says what is wrong in it, and quotes nothing of it. */
export class KubeconfigInvalidError extends KubeError {
  readonly code = 'KubeconfigInvalid';
  readonly handling = 'never';
}

/** The kubeconfig wants a program run (exec, auth-provider) and that is not allowed. */
export class ExecPluginRefusedError extends KubeError {
  readonly code = 'ExecPluginRefused';
  readonly handling = 'never';
}

/** The kubeconfig names files of this machine and that is not allowed: their contents would be sent to a server of its choice. */
export class FileReferenceRefusedError extends KubeError {
  readonly code = 'FileReferenceRefused';
  readonly handling = 'never';
}

/** This side's own guard (ConnectionOptions.guard) let a write not through: nothing was sent. `cause` says why. */
export class WriteRefusedError extends KubeError {
  readonly code = 'WriteRefused';
  readonly handling = 'refresh';
}

/** True for a KubeError of one of the codes. */
export function isKubeError(error: unknown, ...codes: readonly KubeErrorCode[]): error is KubeError {
  return error instanceof KubeError && (codes.length === 0 || codes.includes(error.code));
}
