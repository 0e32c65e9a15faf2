import { ServerError } from './errors.ts';

/** Far above what etcd lets an object be (1.5 MiB by default): what is longer is no watch. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

const NEWLINE = 0x0a;

/**
 * Cuts a byte stream into lines. Chunks end anywhere, within a character too, so what has no newline yet is kept as
 * bytes; it is joined once, when its newline comes, however many chunks it took.
 */
export class LineDecoder {
  readonly #maxBytes: number;
  #parts: Uint8Array[] = [];
  #bytes = 0;

  constructor(maxBytes = MAX_LINE_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that `chunk` completes, without empty ones. Throws a ServerError when a line does not end within its limit. */
  push(chunk: Uint8Array): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      const line = this.#take(chunk.subarray(from, at));
      if (line.trim() !== '') lines.push(line);
      from = at + 1;
    }
    this.#keep(chunk.subarray(from));
    return lines;
  }

  #take(end: Uint8Array): string {
    const whole = this.#parts.length === 0 ? Buffer.from(end.buffer, end.byteOffset, end.byteLength) : this.#join(end);
    return whole.toString('utf8');
  }

  #join(end: Uint8Array): Buffer {
    const whole = Buffer.concat([...this.#parts, end], this.#bytes + end.byteLength);
    this.#parts = [];
    this.#bytes = 0;
    return whole;
  }

  #keep(rest: Uint8Array): void {
    if (rest.byteLength === 0) return;
    this.#bytes += rest.byteLength;
    if (this.#bytes > this.#maxBytes)
      throw new ServerError(`a line of the watch is longer than ${this.#maxBytes} bytes`);
    this.#parts.push(rest);
  }
}
