import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiDiscovery } from './discovery.ts';
import { NetworkError, NotFoundError, ServerError } from './errors.ts';

const AGGREGATED: Readonly<Record<string, unknown>> = {
  '/api': {
    kind: 'APIGroupDiscoveryList',
    items: [
      {
        metadata: {},
        versions: [version('v1', resource('Pod', 'pods', 'Namespaced'), resource('Node', 'nodes', 'Cluster'))],
      },
    ],
  },
  '/apis': {
    kind: 'APIGroupDiscoveryList',
    items: [
      {
        metadata: { name: 'example.com' },
        versions: [
          version('v2', resource('Thing', 'things', 'Namespaced')),
          version('v1', resource('Thing', 'things', 'Namespaced'), resource('Relic', 'relics', 'Cluster')),
        ],
      },
    ],
  },
};

const OLD: Readonly<Record<string, unknown>> = {
  '/api': { kind: 'APIVersions', versions: ['v1'] },
  '/apis': {
    kind: 'APIGroupList',
    groups: [
      { name: 'example.com', preferredVersion: { version: 'v2' }, versions: [{ version: 'v1' }, { version: 'v2' }] },
      { name: 'away.example.com', preferredVersion: { version: 'v1' }, versions: [{ version: 'v1' }] },
    ],
  },
  '/api/v1': {
    resources: [
      { name: 'pods', namespaced: true, kind: 'Pod' },
      { name: 'pods/status', namespaced: true, kind: 'Pod' },
    ],
  },
  '/apis/example.com/v1': { resources: [{ name: 'relics', namespaced: false, kind: 'Relic' }] },
  '/apis/example.com/v2': { resources: [{ name: 'things', namespaced: true, kind: 'Thing' }] },
};

function version(name: string, ...resources: unknown[]): unknown {
  return { version: name, resources };
}

function resource(kind: string, plural: string, scope: string): unknown {
  return { resource: plural, scope, responseKind: { kind } };
}

class FakeServer {
  documents: Record<string, unknown>;
  asked: string[] = [];
  failure: Error | undefined;

  constructor(documents: Readonly<Record<string, unknown>>) {
    this.documents = { ...documents };
  }

  async raw<T>(_method: string, path: string): Promise<T> {
    this.asked.push(path);
    await Promise.resolve();
    if (this.failure !== undefined) throw this.failure;
    const document = this.documents[path];
    if (document === undefined) throw path.includes('away') ? new ServerError('503') : new NotFoundError('404');
    return document as T;
  }
}

const THING = { group: 'example.com', kind: 'Thing' };

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

describe.each([
  { name: 'aggregated', documents: AGGREGATED },
  { name: 'old', documents: OLD },
])('discovery from $name documents', ({ documents }) => {
  it('finds kinds, in the preferred version where none is named', async () => {
    const discovery = new ApiDiscovery(new FakeServer(documents));
    const found = { group: 'example.com', version: 'v2', plural: 'things', namespaced: true };
    expect(await discovery.find(THING)).toEqual(found);
    expect(await discovery.find({ group: '', version: 'v1', kind: 'Pod' })).toMatchObject({ plural: 'pods' });
    expect(await discovery.find({ group: 'example.com', kind: 'Relic' })).toMatchObject({
      version: 'v1',
      namespaced: false,
    });
    expect(await discovery.versions('example.com')).toEqual(['v2', 'v1']);
  });

  it('knows what is not served', async () => {
    const discovery = new ApiDiscovery(new FakeServer(documents));
    expect(await discovery.find({ group: '', kind: 'Thing' })).toBeUndefined();
    expect(await discovery.find({ ...THING, version: 'v3' })).toBeUndefined();
    expect(await discovery.versions('nowhere')).toEqual([]);
  });

  it('asks the server once for all who ask together, and not again for what it knows', async () => {
    const server = new FakeServer(documents);
    const discovery = new ApiDiscovery(server);
    await Promise.all([discovery.versions('example.com'), discovery.versions('example.com')]);
    await discovery.versions('example.com');
    expect(server.asked).toEqual(['/api', '/apis', ...(documents === OLD ? ['/api', '/apis'] : [])]);
  });

  it('asks again on a miss, at a bounded rate', async () => {
    const server = new FakeServer(documents);
    const discovery = new ApiDiscovery(server);
    await discovery.versions('new.example.com');
    const { length } = server.asked;
    await discovery.versions('new.example.com');
    expect(server.asked).toHaveLength(length);
    vi.advanceTimersByTime(5_000);
    await discovery.versions('new.example.com');
    expect(server.asked).toHaveLength(2 * length);
  });
});

it('forgets what it is told to forget, also what is being read', async () => {
  const server = new FakeServer(AGGREGATED);
  const discovery = new ApiDiscovery(server);
  const early = discovery.find(THING);
  discovery.invalidate();
  await early;
  await discovery.find(THING);
  expect(server.asked).toHaveLength(4);
  discovery.invalidate();
  await discovery.find(THING);
  expect(server.asked).toHaveLength(6);
});

it('does not let one aggregated API that is away hide the others', async () => {
  const discovery = new ApiDiscovery(new FakeServer(OLD));
  expect(await discovery.find({ group: 'away.example.com', kind: 'Thing' })).toBeUndefined();
  expect(await discovery.find(THING)).toBeDefined();
});

it('tells a failure to all who wait, and asks again the next time', async () => {
  const server = new FakeServer(AGGREGATED);
  const discovery = new ApiDiscovery(server);
  server.failure = new NetworkError('refused');
  await expect(discovery.find(THING)).rejects.toThrow('refused');
  server.failure = undefined;
  expect(await discovery.find(THING)).toBeDefined();
});

it('waits no longer than it may', async () => {
  const discovery = new ApiDiscovery({ raw: async () => new Promise<never>(() => undefined) });
  const late = expect(discovery.find(THING, { timeoutMs: 100 })).rejects.toMatchObject({ code: 'TimedOut' });
  await vi.advanceTimersByTimeAsync(100);
  await late;
});
