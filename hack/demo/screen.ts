import { styleText } from 'node:util';

/** How a line feels: good news, bad news, something under way, or a side note. */
export type Tone = 'good' | 'bad' | 'busy' | 'quiet' | 'plain';

const COLOURS = { good: 'green', bad: 'red', busy: 'yellow', quiet: 'dim' } as const;
/** Width of the column that says whom a line is about; longer names push the rest to the right. */
const SUBJECT_WIDTH = 34;

/** What the demo prints: one line per fact, the time since the start before it, colour only where a person looks. */
export class Screen {
  readonly #out: NodeJS.WriteStream;
  readonly #started = performance.now();

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  /** Opens a part of the story. */
  scene(text: string): void {
    this.#write(`\n${this.#style('bold', text)}`);
  }

  /** One fact about a cluster or a release. */
  fact(subject: string, text: string, tone: Tone = 'plain'): void {
    this.#write(`${this.#time()}  ${subject.padEnd(SUBJECT_WIDTH)} ${this.tinted(text, tone)}`);
  }

  /** A command that is run now, as a user would type it. */
  command(text: string): void {
    this.#write(`${this.#time()}  ${this.#style('cyan', `$ ${text}`)}`);
  }

  /** A command for the user to run. */
  suggestion(text: string): void {
    this.#write(`    ${this.#style('cyan', text)}`);
  }

  /** Text beside the columns. */
  say(text: string, tone: Tone = 'plain'): void {
    this.#write(this.tinted(text, tone));
  }

  tinted(text: string, tone: Tone): string {
    return tone === 'plain' ? text : this.#style(COLOURS[tone], text);
  }

  /** Seconds since the start. */
  #time(): string {
    const seconds = ((performance.now() - this.#started) / 1000).toFixed(1);
    return this.#style('dim', `${seconds.padStart(6)} s`);
  }

  /** styleText leaves colour out where the stream is no terminal, or NO_COLOR is set. */
  #style(format: Parameters<typeof styleText>[0], text: string): string {
    return styleText(format, text, { stream: this.#out });
  }

  #write(text: string): void {
    this.#out.write(`${text}\n`);
  }
}
