import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** One line of the manager's log, as far as the demo reads it. */
export interface LogLine {
  msg?: string;
  cluster?: string;
  reason?: string;
}

/** How often the file is looked at (ms); a person does not see the difference to an event. */
const POLL_MS = 100;

/** Reads the manager's JSON log as it grows. */
export class LogFollower {
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;

  constructor(file: string, onLine: (line: LogLine) => void) {
    this.#running = this.#follow(file, onLine);
  }

  async stop(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #follow(file: string, onLine: (line: LogLine) => void): Promise<void> {
    const { signal } = this.#closing;
    const handle = await open(file, 'r').catch(() => undefined);
    if (!handle) return;
    let rest = '';
    try {
      while (!signal.aborted) {
        // A file handle's position moves with every read: each gives what was written since the last one.
        const { bytesRead, buffer } = await handle.read(Buffer.alloc(64 * 1024));
        const lines = (rest + buffer.toString('utf8', 0, bytesRead)).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) onLine(parse(line));
        if (bytesRead === 0) await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
      }
    } finally {
      await handle.close();
    }
  }
}

/** What is no JSON (Node's own warnings) is no line of the manager's. */
function parse(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return {};
  }
}
