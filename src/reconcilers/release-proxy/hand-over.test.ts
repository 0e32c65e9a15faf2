/** What a replica does with releases that another one served before, or serves now. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it, vi } from 'vitest';
import type { HelmReleaseProxy } from '../../api/index.ts';
import { HelmError } from '../../helm/index.ts';
import type { HelmEngine, HelmTarget } from '../../helm/index.ts';
import { WriteRefusedError } from '../../kube/index.ts';
import { CurrentPermit, ShardLostError, clusterName } from '../../runtime/index.ts';
import { FakeShards } from '../../runtime/sharding/fake-shards.test-support.ts';
import { silentLogger } from '../../telemetry/index.ts';
import { RequestGate } from '../drift/request-gate.ts';
import { HRP } from '../resources.ts';
import { StatusWriter } from '../status-writer.ts';
import { notConnectedCondition } from './cluster-access.ts';
import { ClusterNews } from './cluster-news.ts';
import { isInterruption } from './interruption.ts';
import { ReleaseProxySources } from './sources.ts';
import { World } from './world.test-support.ts';

const C1 = clusterName('fleet/c1');

function replica(): { w: World; shards: FakeShards } {
  const shards = new FakeShards(C1);
  const w = new World({ sharding: { shards, current: new CurrentPermit() } });
  w.addCluster('c1');
  return { w, shards };
}

describe('after a hand-over', () => {
  it('believes the server, not a cache that lags behind what the replica before wrote', async () => {
    const { w } = replica();
    const stale = w.addProxy('p', { values: 'a: 1' });
    // The replica before installs, and writes down from what: Helm merged the values with older ones.
    await w.reconcile('p');
    w.storage(C1).put({ namespace: 'apps', name: 'app' }, { status: 'deployed', revision: 1, valuesDigest: 'merged' });
    // This one has its cache, and nothing else.
    const writer = new StatusWriter<HelmReleaseProxy>(w.parts.deps.management.client, HRP);
    Object.assign(w.parts, { writer });
    w.parts.memories.forget('uid of p');
    w.proxies.put(stale);
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual(['install']);
  });

  it('asks the server once, and then believes the cache again', async () => {
    const { w } = replica();
    w.addProxy('p');
    await w.reconcile('p');
    const asked = w.api.reads.filter((read) => read.startsWith(HRP.plural)).length;
    await w.reconcile('p');
    expect(asked).toBe(1);
    expect(w.api.reads.filter((read) => read.startsWith(HRP.plural))).toHaveLength(asked);
  });

  it('leaves alone what is gone or another by now', async () => {
    const { w } = replica();
    const stale = w.addProxy('p');
    w.api.delete(HRP, { namespace: 'fleet', name: 'p' });
    w.proxies.put(stale);
    await w.reconcile('p');
    expect(w.engine.verbs()).toEqual([]);
  });

  it('has forgotten what it remembered before, e.g. that an upgrade was wanted', () => {
    const { w, shards } = replica();
    const proxy = w.addProxy('p');
    const asked: string[] = [];
    const sources = new ReleaseProxySources(w.parts, { enqueue: ({ name }) => void asked.push(name) });
    w.parts.memories.wantUpgrade(proxy, 'objects differ');
    // The Cluster went, say: it is still this replica's.
    sources.changed(C1, { phase: 'disengaged', reason: 'gone' });
    expect(w.parts.memories.of('uid of p').wantedUpgrade).toBe('objects differ');
    shards.lose(C1);
    sources.changed(C1, { phase: 'disengaged', reason: 'another replica serves it' });
    expect(w.parts.memories.of('uid of p').wantedUpgrade).toBeUndefined();
  });
});

describe('work that lost its cluster to another replica', () => {
  it('is broken off and has not failed', () => {
    const lost = AbortSignal.abort(new ShardLostError(C1, 'handed over'));
    const going = new AbortController().signal;
    expect(isInterruption(new HelmError('Failed', 'exit 1'), lost)).toBe(true);
    expect(isInterruption(new WriteRefusedError('PATCH x: not sent'), going)).toBe(true);
    expect(isInterruption(new HelmError('Failed', 'exit 1'), going)).toBe(false);
  });

  it('says nothing of the cluster in the status: the other replica does', () => {
    const { w } = replica();
    const reason = { code: 'NotMyShard', message: 'another replica serves it' };
    expect(notConnectedCondition(w.addProxy('p'), reason)).toBeUndefined();
  });
});

describe('what is done on behalf of a pass', () => {
  it("includes helm's requests, which come from another process: they go under the pass's permit", async () => {
    const { w, shards } = replica();
    const current = new CurrentPermit();
    Object.assign(w.parts.deps, { sharding: { shards, current } });
    const seen: unknown[] = [];
    const forward = async (): Promise<never> => {
      seen.push(current.get());
      return Promise.reject(new Error('no answer'));
    };
    Object.assign(w.fleet.get(C1), { forward });
    w.addProxy('p');
    const engine: HelmEngine = w.engine;
    let target: HelmTarget | undefined;
    vi.spyOn(engine, 'install').mockImplementation(async (on) => {
      target = on;
      return Promise.reject(new HelmError('Failed', 'exit 1'));
    });
    using permit = shards.enter(C1);
    if (permit === undefined) throw new Error('it is held');
    await current.run(permit, async () => w.reconcile('p')).catch(() => undefined);
    const request = { method: 'GET', path: '/', headers: {}, signal: w.halt.signal } as const;
    await target?.passage?.forward(request).catch(() => undefined);
    expect(target?.passage?.permit).toBe(permit);
    expect(seen).toEqual([permit]);
  });

  it('is done in its name, whoever made it happen', async () => {
    const pass = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const note = async (): Promise<void> => {
      seen.push(pass.getStore());
      return Promise.resolve();
    };
    const news = pass.run('first', () => new ClusterNews(note, silentLogger));
    // The fleet tells.
    news.tell({ code: 'Unreachable', message: 'no answer' });
    await news.settled();
    const gate = new RequestGate();
    // More than run at a time: the last are begun when the first have ended.
    const signal = new AbortController().signal;
    await Promise.all(
      ['a', 'b', 'c', 'd', 'e'].map(async (name) => pass.run(name, async () => gate.run('c1', signal, note))),
    );
    expect(seen).toEqual(['first', 'a', 'b', 'c', 'd', 'e']);
  });
});
