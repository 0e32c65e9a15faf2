/**
 * Errors of the room `drift`. What an object is and what became of a correction are no errors but a Verdict and a
 * Correction; what the connection says is a KubeError of the room `kube` and passes through. Messages name objects, never values.
 */

/** Stable names, never reused. */
export type DriftErrorCode =
  /** The object changed under every look at it. */
  'ObjectMoving';

/** `retry`: the same call later. */
export type DriftHandling = 'retry';

/** The base: `error instanceof DriftError`, then `code` or `handling`. */
export abstract class DriftError extends Error {
  abstract readonly code: DriftErrorCode;
  abstract readonly handling: DriftHandling;

  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
  }
}

/** Somebody writes the object faster than it can be read and tried: look again later. */
export class ObjectMovingError extends DriftError {
  readonly code = 'ObjectMoving';
  readonly handling = 'retry';
}
