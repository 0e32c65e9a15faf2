import type PQueue from 'p-queue';
import type { ClusterConnection, ConnectionFactory } from './connection.ts';
import type { OwnedConnections } from './owned-connections.ts';
import { probe, reasonFor } from './probe.ts';
import type { ClusterName, ConnectionSpec, NotConnectedReason } from './types.ts';

/** How opening and probing went. */
export type Attempt =
  | { readonly ok: true; readonly connection: ClusterConnection; readonly uid: string | undefined }
  | { readonly ok: false; readonly connection?: ClusterConnection; readonly reason: NotConnectedReason };

export interface ConnectorOptions {
  readonly factory: ConnectionFactory;
  /** Bounds the attempts of the whole fleet. */
  readonly slots: PQueue;
  /** Limit of one attempt once it has its turn, milliseconds. */
  readonly limitMs: number;
  /** Owns what is opened here. */
  readonly connections: OwnedConnections;
  /** A call on a connection met a 401. True when it is worth trying again. */
  readonly onUnauthorized: (connection: ClusterConnection, signal: AbortSignal) => Promise<boolean>;
}

/** Makes connections to one cluster and tries them out. */
export class Connector {
  readonly #name: ClusterName;
  readonly #options: ConnectorOptions;

  constructor(name: ClusterName, options: ConnectorOptions) {
    this.#name = name;
    this.#options = options;
  }

  /** Throws when the spec cannot be used at all. */
  open(spec: ConnectionSpec): ClusterConnection {
    const connection = this.#options.factory.open(this.#name, spec, {
      onUnauthorized: async (signal) => this.#options.onUnauthorized(connection, signal),
    });
    this.#options.connections.add(connection);
    return connection;
  }

  /** Opens, waits for its turn (first attempts before repeated ones), probes. Undefined when interrupted by `turn`. */
  async attempt(spec: ConnectionSpec, number: number, turn: AbortSignal): Promise<Attempt | undefined> {
    let connection: ClusterConnection;
    try {
      connection = this.open(spec);
    } catch (error) {
      return { ok: false, reason: reasonFor(error) };
    }
    try {
      const result = await this.#options.slots.add(async () => probe(connection, this.#options.limitMs, turn), {
        priority: -number,
        signal: turn,
      });
      return turn.aborted ? undefined : { ...result, connection };
    } catch (error) {
      if (turn.aborted) return undefined;
      throw error;
    }
  }
}
