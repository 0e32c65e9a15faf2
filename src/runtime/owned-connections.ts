import type { Logger } from '../telemetry/index.ts';
import { pause } from './abort.ts';
import type { ClusterConnection } from './connection.ts';

/** The connections that one supervisor opened: none is forgotten, each is closed once. */
export class OwnedConnections {
  readonly #log: Logger;
  readonly #open = new Set<ClusterConnection>();
  readonly #closing = new Set<Promise<void>>();
  /** Cuts short every grace. */
  readonly #hurry = new AbortController();

  constructor(log: Logger) {
    this.#log = log;
  }

  add(connection: ClusterConnection): void {
    this.#open.add(connection);
  }

  /** Closes after the grace, so that running work sees its signal before its sockets go. Again: nothing. */
  close(connection: ClusterConnection, graceMs: number): void {
    if (!this.#open.delete(connection)) return;
    const closing = this.#closeAfter(connection, graceMs).finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** Closes candidates that did not make it. */
  closeAllBut(kept: ClusterConnection | undefined): void {
    for (const connection of this.#open) if (connection !== kept) this.close(connection, 0);
  }

  hurry(): void {
    this.#hurry.abort();
  }

  /** Resolves when all that were to be closed are. */
  async closed(): Promise<void> {
    while (this.#closing.size > 0) await Promise.allSettled(this.#closing);
  }

  async #closeAfter(connection: ClusterConnection, graceMs: number): Promise<void> {
    if (graceMs > 0) await pause(graceMs, this.#hurry.signal);
    try {
      await connection.close();
    } catch (err) {
      this.#log.warn('a connection did not close well', { err });
    }
  }
}
