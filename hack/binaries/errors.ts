/** A program could not be had, or is not there yet. The message says what to do about it. */
export class BinariesError extends Error {
  override readonly name = 'BinariesError';
}
