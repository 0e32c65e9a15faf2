import type { ConnectionFactory } from '../connection.ts';
import { ClusterNotConnectedError } from '../errors.ts';
import { probe } from '../probe.ts';
import type { ClusterName, ConnectionSpec } from '../types.ts';

export interface IdentifyOptions {
  readonly factory: ConnectionFactory;
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

/**
 * The `uid` of a cluster that another replica serves: one read, on a connection of its own that is closed afterwards.
 * Undefined where it may not be read. Rejects with ClusterNotConnectedError; throws what the factory throws.
 */
export async function identify(
  name: ClusterName,
  spec: ConnectionSpec,
  { factory, limitMs, signal }: IdentifyOptions,
): Promise<string | undefined> {
  const connection = factory.open(name, spec);
  try {
    const answer = await probe(connection, limitMs, signal);
    if (!answer.ok) throw new ClusterNotConnectedError(name, answer.reason);
    return answer.uid;
  } finally {
    await connection.close();
  }
}
