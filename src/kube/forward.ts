/** A request of another program, to be sent as it is with this connection's credentials. */
export interface ForwardRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';
  /** With the query, as it came. */
  readonly path: string;
  /** Without the program's own credentials and those of its connection (RFC 9110, 7.6.1). */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: Uint8Array;
  /** Ends the request, and the body of its answer, at any time. The only limit: what programs ask for may be a watch. */
  readonly signal: AbortSignal;
}

/** The answer, whatever its status. Whoever gets it reads the body to its end or destroys it. */
export interface ForwardedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: NodeJS.ReadableStream & { destroy(error?: Error): unknown };
}

/** What of an answer's or request's headers concerns one connection alone (RFC 9110, 7.6.1), or is made anew. */
const OF_ONE_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/** Of a request: named by us. */
const OF_THE_SENDER: ReadonlySet<string> = new Set(['host', 'authorization', 'content-length', 'expect', 'cookie']);

/** Headers of a request that go on. */
export function forwardedHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string | string[]> {
  return passing(headers, (name) => !OF_THE_SENDER.has(name));
}

/** Headers of an answer that go back. */
export function answeredHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string | string[]> {
  return passing(headers, () => true);
}

function passing(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  passes: (name: string) => boolean,
): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [key, value] of Object.entries(headers)) {
    const name = key.toLowerCase();
    // HTTP/2's own, as :status.
    if (value === undefined || name.startsWith(':') || OF_ONE_CONNECTION.has(name) || !passes(name)) continue;
    kept[name] = value;
  }
  return kept;
}
