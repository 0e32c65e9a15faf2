import type { IncomingMessage } from 'node:http';

/** API servers take 3 MiB; what is larger is refused by them in words of their own, up to here. Bytes. */
const MAX_BODY = 16 << 20;

/** The whole body, so that a request whose credentials were refused can be sent once more; undefined when there is none. Rejects when it is too large or broken off. */
export async function readBody(request: IncomingMessage): Promise<Uint8Array | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY) throw new Error(`a request of helm is larger than ${MAX_BODY} bytes`);
    chunks.push(chunk);
  }
  return size === 0 ? undefined : Buffer.concat(chunks);
}
