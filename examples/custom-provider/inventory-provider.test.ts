import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { silentLogger } from 'capstan';
import type { ClusterSink } from 'capstan';
import { InventoryProvider } from './inventory-provider.ts';

/** What the server answers, and what it was asked. */
let answer: { status?: number; body?: unknown; etag?: string };
let asked: { etag: string | undefined; authorization: string | undefined }[];
let declared: string[];
let synced: number;
let stop: AbortController;
let running: Promise<void>;
let close: () => Promise<void>;
let provider: InventoryProvider;

const sink: ClusterSink = {
  discover: (name, { code }) => declared.push(`discover ${name} ${code}`),
  engage: (name, { kubeconfig }, about) =>
    declared.push(`engage ${name} ${kubeconfig} ${JSON.stringify(about?.labels)}`),
  disengage: (name) => declared.push(`disengage ${name}`),
  synced: () => {
    synced += 1;
  },
};

beforeEach(async () => {
  answer = { body: [] };
  asked = [];
  declared = [];
  synced = 0;
  stop = new AbortController();
  const server = createServer((request, response) => {
    asked.push({ etag: request.headers['if-none-match'], authorization: request.headers.authorization });
    const unchanged = answer.etag !== undefined && request.headers['if-none-match'] === answer.etag;
    response.writeHead(
      unchanged ? 304 : (answer.status ?? 200),
      answer.etag === undefined ? {} : { etag: answer.etag },
    );
    response.end(unchanged ? undefined : JSON.stringify(answer.body));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${String(port)}/clusters`;
  provider = new InventoryProvider({ url, log: silentLogger, namespace: 'fleet', pollMs: 20, token: 'secret' });
  close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
});
afterEach(async () => {
  stop.abort();
  await running;
  await close();
});

function start(): void {
  running = provider.run(sink, stop.signal);
}

async function polls(count: number): Promise<void> {
  const wanted = asked.length + count;
  while (asked.length < wanted) await new Promise((resolve) => setTimeout(resolve, 5));
}

test('declares clusters with their labels, and those that have no kubeconfig yet', async () => {
  answer.body = [{ name: 'eu-1', labels: { tier: 'gold' }, kubeconfig: 'k1' }, { name: 'us-1' }];
  start();
  await polls(2);
  assert.deepEqual(declared.slice(0, 2), ['engage eu-1 k1 {"tier":"gold"}', 'discover us-1 NotReady']);
  assert.equal(asked[0]?.authorization, 'Bearer secret');
});

test('ends what the inventory does not name any more', async () => {
  answer.body = [{ name: 'eu-1', kubeconfig: 'k1' }];
  start();
  await polls(2);
  answer.body = [];
  await polls(2);
  assert.equal(declared.at(-1), 'disengage eu-1');
});

for (const [what, broken] of [
  ['fails', { status: 500, body: [] }],
  ['is no list', { body: { clusters: [] } }],
  ['has an entry that cannot be read', { body: [{ name: 'BAD NAME' }] }],
] as const) {
  test(`ends nothing when the inventory ${what}`, async () => {
    answer.body = [{ name: 'eu-1', kubeconfig: 'k1' }];
    start();
    await polls(2);
    answer = broken;
    await polls(3);
    assert.ok(declared.every((one) => !one.startsWith('disengage')));
    assert.ok(synced > 0);
  });
}

test('asks for changes only, and for everything again when credentials were refused', async () => {
  answer = { body: [{ name: 'eu-1', kubeconfig: 'k1' }], etag: '"1"' };
  start();
  await polls(4);
  assert.equal(declared.length, 1);
  assert.equal(asked.at(-1)?.etag, '"1"');
  provider.refresh();
  await polls(2);
  assert.equal(declared.length, 2);
});
