import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ConflictError } from '../../kube/index.ts';
import type {
  CallOptions,
  Form,
  Informer,
  InformerHandler,
  KubeClient,
  KubeObject,
  ListResult,
  ObjectKey,
  Resource,
  Scope,
  WatchSet,
  WatchTarget,
} from '../../kube/index.ts';
import { createTelemetry } from '../../telemetry/index.ts';
import type { ReleaseStatus } from '../types.ts';
import { valuesDigest } from '../values-digest.ts';
import { NativeReleaseReader } from './reader.ts';
import type { RecordSecret } from './record-secret.ts';
import { decodeRecord, encodeRawRecord } from './record.ts';

const control = { signal: new AbortController().signal };
const key = { namespace: 'ns', name: 'demo' };

/** The Secrets of a cluster, with a client that counts, and a watch that tells when it is told to. */
class FakeCluster {
  readonly secrets = new Map<string, RecordSecret>();
  readonly calls: string[] = [];
  readonly held: WatchTarget[] = [];
  released = 0;
  hasSynced = true;
  #version = 0;
  #watched: KubeObject[] = [];
  #handler: InformerHandler<KubeObject> = {};

  /** Writes a record as Helm would. */
  async write(
    revision: number,
    status: ReleaseStatus,
    more: { values?: object; name?: string; manifest?: string } = {},
  ): Promise<void> {
    const { values = {}, name = 'demo', manifest = '' } = more;
    const secretName = `sh.helm.release.v1.${name}.v${String(revision)}`;
    const uid = this.secrets.get(secretName)?.metadata.uid ?? `uid-${String(++this.#version)}`;
    const record = {
      name,
      namespace: 'ns',
      version: revision,
      info: { status, description: `now ${status}`, last_deployed: '2026-01-02T03:04:05Z' },
      chart: { metadata: { name: 'chart', version: '1.0.0' } },
      config: values as Record<string, string>,
      manifest,
      apply_method: 'ssa',
    };
    this.secrets.set(secretName, {
      metadata: {
        name: secretName,
        namespace: 'ns',
        uid,
        resourceVersion: String(++this.#version),
        labels: { name, owner: 'helm', status, version: String(revision), custom: 'kept' },
        managedFields: [{ manager: 'helm' }],
      },
      type: 'helm.sh/release.v1',
      data: { release: await encodeRawRecord(record) },
    });
  }

  /** The watch catches up with the server. */
  deliver(initial = false): void {
    const before = new Map(this.#watched.map((object) => [object.metadata.name, object]));
    this.#watched = [...this.secrets.values()].map(({ metadata }) => ({ metadata }));
    for (const object of this.#watched) {
      const previous = before.get(object.metadata.name);
      if (previous === undefined) this.#handler.add?.(object, initial);
      else if (previous.metadata.resourceVersion !== object.metadata.resourceVersion)
        this.#handler.update?.(previous, object);
      before.delete(object.metadata.name);
    }
    for (const object of before.values()) this.#handler.delete?.(object);
  }

  get client(): KubeClient {
    const unused = (): Promise<never> => Promise.reject(new Error('not expected'));
    return {
      get: unused,
      create: unused,
      patch: unused,
      apply: unused,
      delete: unused,
      raw: unused,
      find: async <T extends KubeObject>(_resource: Resource, { name }: ObjectKey) => {
        this.calls.push(`find ${name}`);
        return structuredClone(this.secrets.get(name)) as T | undefined;
      },
      list: async <T extends KubeObject>(
        _resource: Resource,
        scope: Scope,
        options?: CallOptions & { form?: Form },
      ): Promise<ListResult<T>> => {
        this.calls.push(`list ${options?.form ?? 'full'} ${scope.namespace ?? ''} ${scope.labelSelector ?? ''}`);
        const name = /name=(.*)$/.exec(scope.labelSelector ?? '')?.[1];
        const found = [...this.secrets.values()].filter((secret) => secret.metadata.labels?.['name'] === name);
        return { items: found.map(({ metadata }) => ({ metadata })) as T[], resourceVersion: '1' };
      },
      replace: async <T extends KubeObject>(_resource: Resource, object: T) => {
        this.calls.push(`replace ${object.metadata.name}`);
        const now = this.secrets.get(object.metadata.name);
        if (now?.metadata.resourceVersion !== object.metadata.resourceVersion) throw new ConflictError('changed');
        const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(++this.#version) } };
        this.secrets.set(object.metadata.name, stored);
        return stored;
      },
    };
  }

  get watches(): WatchSet {
    const indexes = new Map<string, (object: KubeObject) => readonly string[]>();
    const informer: Informer<KubeObject> = {
      target: { resource: { group: '', version: 'v1', plural: 'secrets', namespaced: true }, form: 'metadata' },
      hasSynced: true,
      size: 0,
      get: () => undefined,
      list: () => this.#watched,
      byIndex: (name, value) => this.#watched.filter((object) => indexes.get(name)?.(object).includes(value)),
      addIndex: (name, fn) => {
        indexes.set(name, fn);
      },
      synced: async () => undefined,
      addHandler: (handler) => {
        this.#handler = handler;
        return () => (this.#handler = {});
      },
    };
    Object.defineProperty(informer, 'hasSynced', { get: () => this.hasSynced });
    return {
      size: 1,
      set: () => undefined,
      get: () => undefined,
      follow: () => undefined,
      unfollow: () => undefined,
      hold: <T extends KubeObject>(_owner: object, target: WatchTarget) => {
        this.held.push(target);
        return informer as Informer<T>;
      },
      release: () => {
        this.released++;
      },
    };
  }
}

let cluster: FakeCluster;
let reader: NativeReleaseReader;

beforeEach(() => {
  cluster = new FakeCluster();
  reader = new NativeReleaseReader({
    cluster: 'fleet/one',
    client: cluster.client,
    watches: cluster.watches,
    telemetry: createTelemetry(),
  });
});

describe('the watch', () => {
  it('is one for the cluster, of metadata alone, of what Helm owns', () => {
    expect(cluster.held).toEqual([
      {
        resource: { group: '', version: 'v1', plural: 'secrets', namespaced: true },
        form: 'metadata',
        labelSelector: 'owner=helm',
      },
    ]);
  });

  it('is given back by close, and nobody is told anything afterwards', async () => {
    const told = vi.fn();
    reader.onChange(told);
    reader.close();
    await cluster.write(1, 'deployed');
    cluster.deliver();
    expect(cluster.released).toBe(1);
    expect(told).not.toHaveBeenCalled();
  });
});

describe('marks', () => {
  it('come newest first, numerically, without a request', async () => {
    for (const revision of [2, 10, 9]) await cluster.write(revision, revision === 10 ? 'deployed' : 'superseded');
    await cluster.write(1, 'failed', { name: 'other' });
    cluster.deliver();
    expect(reader.marks(key).map(({ revision, status }) => [revision, status])).toEqual([
      [10, 'deployed'],
      [9, 'superseded'],
      [2, 'superseded'],
    ]);
    expect(reader.marks({ namespace: 'elsewhere', name: 'demo' })).toEqual([]);
    expect(cluster.calls).toEqual([]);
  });

  it('are of records alone', async () => {
    await cluster.write(1, 'deployed');
    const labels = { name: 'demo', owner: 'helm', version: '2' };
    cluster.secrets.set('own', { metadata: { name: 'own', namespace: 'ns', labels } });
    const bad = { ...labels, version: 'x' };
    cluster.secrets.set('bad', { metadata: { name: 'sh.helm.release.v1.demo.vx', namespace: 'ns', labels: bad } });
    cluster.deliver();
    expect(reader.marks(key).map(({ revision }) => revision)).toEqual([1]);
  });
});

describe('newest', () => {
  it('is undefined without a request where there is nothing', async () => {
    expect(await reader.newest(key, control)).toBeUndefined();
    expect(cluster.calls).toEqual([]);
  });

  it('reads a record once, and again when it changed', async () => {
    await cluster.write(1, 'superseded');
    await cluster.write(2, 'pending-upgrade', { values: { a: 1 } });
    cluster.deliver();
    const first = await reader.newest(key, control);
    expect(first).toEqual({
      namespace: 'ns',
      name: 'demo',
      revision: 2,
      status: 'pending-upgrade',
      chartName: 'chart',
      chartVersion: '1.0.0',
      valuesDigest: valuesDigest('a: 1.0'),
      lastDeployed: '2026-01-02T03:04:05Z',
      description: 'now pending-upgrade',
      applyMethod: 'server',
      recordUid: 'uid-3',
      recordVersion: '4',
    });
    expect(await reader.newest(key, control)).toBe(first);
    expect(cluster.calls).toEqual(['find sh.helm.release.v1.demo.v2']);
    await cluster.write(2, 'deployed');
    cluster.deliver();
    expect(await reader.newest(key, control)).toMatchObject({ status: 'deployed' });
    expect(cluster.calls).toHaveLength(2);
  });

  it('does not take a new release for an old one of the same revision', async () => {
    await cluster.write(1, 'deployed');
    cluster.deliver();
    await reader.newest(key, control);
    cluster.secrets.clear();
    await cluster.write(1, 'failed');
    cluster.deliver();
    expect(await reader.newest(key, control)).toMatchObject({ status: 'failed' });
  });

  it('asks the server when the record is gone by now', async () => {
    await cluster.write(1, 'deployed');
    await cluster.write(2, 'failed');
    cluster.deliver();
    cluster.secrets.delete('sh.helm.release.v1.demo.v2');
    expect(await reader.newest(key, control)).toMatchObject({ revision: 1, status: 'deployed' });
    expect(cluster.calls).toEqual([
      'find sh.helm.release.v1.demo.v2',
      'list metadata ns owner=helm,name=demo',
      'find sh.helm.release.v1.demo.v1',
    ]);
  });

  it('rejects with RecordInvalid when the record cannot be read', async () => {
    await cluster.write(1, 'deployed');
    cluster.secrets.get('sh.helm.release.v1.demo.v1')!.data = { release: 'AAAA' };
    cluster.deliver();
    await expect(reader.newest(key, control)).rejects.toMatchObject({ code: 'RecordInvalid' });
  });
});

describe('refresh', () => {
  it('sees what the watch has not told yet', async () => {
    await cluster.write(1, 'deployed');
    cluster.deliver();
    await cluster.write(2, 'deployed');
    expect(await reader.newest(key, control)).toMatchObject({ revision: 1 });
    expect(await reader.refresh(key, control)).toMatchObject({ revision: 2 });
  });

  it('reads no record that it knows', async () => {
    await cluster.write(1, 'deployed');
    await reader.refresh(key, control);
    await reader.refresh(key, control);
    cluster.deliver();
    await reader.newest(key, control);
    expect(cluster.calls.filter((call) => call.startsWith('find'))).toHaveLength(1);
  });

  it('is undefined where there is nothing', async () => {
    expect(await reader.refresh(key, control)).toBeUndefined();
  });
});

describe('refresh of what no record can be named', () => {
  // The server answers 400 to a selector with such a name: a HelmReleaseProxy that asks could never be deleted.
  it.each([
    ['a name longer than a label', { namespace: 'ns', name: 'a'.repeat(64) }],
    ['a name of other letters', { namespace: 'ns', name: 'Ünïcode' }],
    ['a name that reads as a selector', { namespace: 'ns', name: 'demo,owner=foo' }],
    ['a namespace that is a path', { namespace: '..', name: 'demo' }],
    ['a namespace longer than a label', { namespace: 'n'.repeat(64), name: 'demo' }],
  ])('%s: there is none, and nobody is asked', async (_, impossible) => {
    await cluster.write(1, 'deployed');
    expect(await reader.refresh(impossible, control)).toBeUndefined();
    expect(cluster.calls).toEqual([]);
  });
});

describe('content', () => {
  it('is what the record of a mark holds, read once for each call', async () => {
    await cluster.write(2, 'deployed', { manifest: '# Source: a\nkind: A\n---\nkind: B\n' });
    cluster.deliver();
    const [mark] = reader.marks(key);
    const content = await reader.content(mark!, control);
    expect(content).toMatchObject({ revision: 2, applyMethod: 'server', documents: [{ kind: 'A' }, { kind: 'B' }] });
    expect(content).toMatchObject({ recordUid: mark!.recordUid, recordVersion: mark!.recordVersion });
    expect(cluster.calls.filter((call) => call.startsWith('find'))).toHaveLength(1);
  });

  it('is undefined when the record went or is another by now', async () => {
    await cluster.write(2, 'deployed');
    cluster.deliver();
    const [mark] = reader.marks(key);
    await cluster.write(2, 'superseded');
    expect(await reader.content(mark!, control)).toBeUndefined();
    cluster.secrets.clear();
    expect(await reader.content(mark!, control)).toBeUndefined();
  });
});

describe('markFailed', () => {
  it('rewrites record and label, and leaves the rest', async () => {
    await cluster.write(3, 'pending-install', { values: { keep: 'me' } });
    const summary = (await reader.refresh(key, control))!;
    await reader.markFailed(summary, 'Capstan was interrupted', control);
    const secret = cluster.secrets.get('sh.helm.release.v1.demo.v3')!;
    expect(secret.metadata.labels).toMatchObject({ status: 'failed', owner: 'helm', version: '3', custom: 'kept' });
    expect(secret.metadata.labels?.['modifiedAt']).toMatch(/^\d{10}$/);
    expect(secret.metadata.managedFields).toBeUndefined();
    expect(secret.type).toBe('helm.sh/release.v1');
    expect(await decodeRecord(secret.data!['release']!)).toMatchObject({
      version: 3,
      config: { keep: 'me' },
      info: { status: 'failed', description: 'Capstan was interrupted' },
    });
    expect(await reader.refresh(key, control)).toMatchObject({ status: 'failed' });
  });

  it('refuses when the record is another by now', async () => {
    await cluster.write(1, 'pending-install');
    const summary = (await reader.refresh(key, control))!;
    await cluster.write(1, 'deployed');
    const refused = reader.markFailed(summary, 'why', control);
    await expect(refused).rejects.toMatchObject({ code: 'RecordChanged', handling: 'refresh' });
    expect(await reader.refresh(key, control)).toMatchObject({ status: 'deployed' });
    cluster.secrets.clear();
    await expect(reader.markFailed(summary, 'why', control)).rejects.toMatchObject({ code: 'RecordChanged' });
    expect(cluster.calls.some((call) => call.startsWith('replace'))).toBe(false);
  });

  it('refuses when the record changes between reading and writing', async () => {
    await cluster.write(1, 'pending-install');
    const summary = (await reader.refresh(key, control))!;
    const { client } = cluster;
    const racing: KubeClient = {
      ...client,
      replace: async (resource, object) => {
        await cluster.write(1, 'deployed');
        return client.replace(resource, object);
      },
    };
    const telemetry = createTelemetry();
    const other = new NativeReleaseReader({ cluster: 'c', client: racing, watches: cluster.watches, telemetry });
    await expect(other.markFailed(summary, 'why', control)).rejects.toMatchObject({ code: 'RecordChanged' });
  });
});

describe('onChange', () => {
  it('tells the release of records that come, change and go, once each', async () => {
    const told = vi.fn();
    reader.onChange(told);
    await cluster.write(1, 'deployed');
    cluster.deliver();
    await cluster.write(1, 'superseded');
    cluster.deliver();
    cluster.deliver();
    cluster.secrets.clear();
    cluster.deliver();
    expect(told.mock.calls).toEqual([[key], [key], [key]]);
  });

  it('says nothing of the first list, and everything of later ones', async () => {
    const told = vi.fn();
    reader.onChange(told);
    cluster.hasSynced = false;
    await cluster.write(1, 'deployed');
    cluster.deliver(true);
    expect(told).not.toHaveBeenCalled();
    cluster.hasSynced = true;
    await cluster.write(2, 'deployed');
    cluster.deliver(true);
    expect(told).toHaveBeenCalledOnce();
  });

  it('can be taken back, by identity', async () => {
    const told = vi.fn();
    const first = reader.onChange(told);
    reader.onChange(told);
    first();
    first();
    await cluster.write(1, 'deployed');
    cluster.deliver();
    expect(told).toHaveBeenCalledOnce();
  });
});
