/** Takes what a process writes to one stream, within a bound. */
export interface OutputSink {
  push(chunk: Buffer): void;
  text(): string;
  /** True when more came than is kept, and the stream is of no use then. */
  readonly overflowed: boolean;
}

/** Keeps the first and the last half of `limit` bytes: an error says what it is at its start, and why at its end. */
export class HeadAndTail implements OutputSink {
  readonly overflowed = false;
  readonly #half: number;
  readonly #head: Buffer[] = [];
  #headSize = 0;
  #tail: Buffer[] = [];
  #tailSize = 0;
  #dropped = 0;

  constructor(limit: number) {
    this.#half = Math.floor(limit / 2);
  }

  push(chunk: Buffer): void {
    const room = Math.min(chunk.length, this.#half - this.#headSize);
    if (room > 0) {
      this.#head.push(chunk.subarray(0, room));
      this.#headSize += room;
    }
    if (room < chunk.length) this.#pushTail(chunk.subarray(Math.max(room, 0)));
  }

  #pushTail(rest: Buffer): void {
    this.#tail.push(rest);
    this.#tailSize += rest.length;
    // Joined only when twice too long, so that many small writes cost no quadratic copying.
    if (this.#tailSize > 2 * this.#half) this.#trim();
  }

  #trim(): void {
    const excess = this.#tailSize - this.#half;
    if (excess <= 0) return;
    this.#tail = [Buffer.concat(this.#tail).subarray(excess)];
    this.#tailSize -= excess;
    this.#dropped += excess;
  }

  text(): string {
    this.#trim();
    const middle = this.#dropped > 0 ? [Buffer.from(`\n... ${this.#dropped} bytes left out ...\n`)] : [];
    return Buffer.concat([...this.#head, ...middle, ...this.#tail]).toString('utf8');
  }
}

/** Keeps everything up to `limit` bytes: for output that is a result, of which a part is worth nothing. */
export class WholeOutput implements OutputSink {
  overflowed = false;
  readonly #limit: number;
  readonly #chunks: Buffer[] = [];
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > this.#limit) {
      this.overflowed = true;
      this.#chunks.length = 0;
    } else {
      this.#chunks.push(chunk);
    }
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }
}
