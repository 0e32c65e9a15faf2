/** Errors of this room, classed by what the caller does about them. */

/**
 * `Retry`: try again with back-off. `Wait`: an event will come (an object that is missing now, a deletion that runs);
 * no retry on a timer. `User`: nothing changes until somebody edits an object.
 */
export type ReconcilerErrorClass = 'Retry' | 'Wait' | 'User';

/** A failure that stands in a condition: `reason` and the message are what users read. */
export class ReconcilerError extends Error {
  override readonly name = 'ReconcilerError';
  readonly code: string;
  readonly class: ReconcilerErrorClass;

  /** `code` is the condition's reason. */
  constructor(what: { code: string; class: ReconcilerErrorClass; message: string; cause?: unknown }) {
    super(what.message, { cause: what.cause });
    this.code = what.code;
    this.class = what.class;
  }
}

/** Is it an error with this code? By structure: errors of every room carry `code`. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
