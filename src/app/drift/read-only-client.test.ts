import { describe, expect, it, vi } from 'vitest';
import { ForbiddenError } from '../../kube/index.ts';
import type { KubeClient, KubeObject, Resource } from '../../kube/index.ts';
import { ReadOnlyClient } from './read-only-client.ts';

const PODS: Resource = { group: '', version: 'v1', plural: 'pods', namespaced: true };
const POD: KubeObject = { metadata: { namespace: 'a', name: 'b' } };
const KEY = { namespace: 'a', name: 'b' };
const PATCH = { type: 'merge', body: {} } as const;

function setUp(dryRuns = true): { client: ReadOnlyClient; asked: ReturnType<typeof vi.fn> } {
  const asked = vi.fn();
  const answer = async (...args: unknown[]): Promise<never> => Promise.resolve(asked(...args) as never);
  const inner: KubeClient = {
    get: answer,
    find: answer,
    list: answer,
    create: answer,
    replace: answer,
    patch: answer,
    apply: answer,
    delete: answer,
    raw: answer,
  };
  return { client: new ReadOnlyClient(inner, { dryRuns, gate: async (work) => work() }), asked };
}

/** Every call that could write. */
function writes(client: KubeClient, dryRun?: boolean): [string, () => Promise<unknown>][] {
  return [
    ['create', async () => client.create(PODS, POD, { dryRun })],
    ['replace', async () => client.replace(PODS, POD, { dryRun })],
    ['patch', async () => client.patch(PODS, KEY, PATCH, { dryRun })],
    ['apply', async () => client.apply(PODS, POD, { fieldManager: 'helm', dryRun })],
  ];
}

describe('ReadOnlyClient', () => {
  it('lets reads and dry runs pass', async () => {
    const { client, asked } = setUp();
    await Promise.all([
      client.get(PODS, KEY),
      client.find(PODS, KEY),
      client.list(PODS, {}),
      client.raw('GET', '/api'),
    ]);
    for (const [, write] of writes(client, true)) await write();
    expect(asked).toHaveBeenCalledTimes(8);
  });

  it.each(['create', 'replace', 'patch', 'apply'])('refuses to %s', async (name) => {
    const { client, asked } = setUp();
    for (const dryRun of [undefined, false]) {
      const write = new Map(writes(client, dryRun)).get(name)!;
      await expect(write()).rejects.toThrow('writes nothing');
    }
    expect(asked).not.toHaveBeenCalled();
  });

  it('refuses to delete and to post', async () => {
    const { client, asked } = setUp();
    await expect(client.delete()).rejects.toThrow('writes nothing');
    await expect(client.raw('POST', '/apis')).rejects.toThrow('writes nothing');
    expect(asked).not.toHaveBeenCalled();
  });

  it('refuses dry runs, too, as a server without permission does, when they are turned off', async () => {
    const { client, asked } = setUp(false);
    for (const [, write] of writes(client, true)) await expect(write()).rejects.toBeInstanceOf(ForbiddenError);
    await client.get(PODS, KEY);
    expect(asked).toHaveBeenCalledTimes(1);
  });
});
