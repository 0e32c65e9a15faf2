import { describe, expect, it } from 'vitest';
import { LOCAL_CLUSTER } from '../cluster-name.ts';
import { aborted } from '../abort.ts';
import { ShardLostError } from '../errors.ts';
import { FakeShards } from './fake-shards.test-support.ts';
import { whileHeld } from './while-held.ts';

const settle = async (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

describe('work for one replica at a time', () => {
  it('runs anew whenever the name is held, and stops when it is not', async () => {
    const shards = new FakeShards();
    const end = new AbortController();
    const said: string[] = [];
    const done = whileHeld(shards, LOCAL_CLUSTER, end.signal, async (signal) => {
      said.push('begins');
      await aborted(signal);
      said.push(signal.reason instanceof ShardLostError ? 'lost' : 'stopped');
    });
    await settle();
    expect(said).toEqual([]);
    shards.take(LOCAL_CLUSTER);
    await settle();
    shards.tell();
    await settle();
    expect(said).toEqual(['begins']);
    shards.leave(LOCAL_CLUSTER);
    await settle();
    expect(said).toEqual(['begins', 'lost']);
    shards.take(LOCAL_CLUSTER);
    await settle();
    end.abort();
    await done;
    expect(said).toEqual(['begins', 'lost', 'begins', 'stopped']);
    expect(shards.listeners).toBe(0);
  });

  it('begins again only when the work before has ended', async () => {
    const shards = new FakeShards(LOCAL_CLUSTER);
    const end = new AbortController();
    let running = 0;
    let most = 0;
    let release: () => void = () => undefined;
    const done = whileHeld(shards, LOCAL_CLUSTER, end.signal, async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => (release = resolve));
      running -= 1;
    });
    shards.lose(LOCAL_CLUSTER);
    shards.take(LOCAL_CLUSTER);
    await settle();
    expect([running, most]).toEqual([1, 1]);
    release();
    await settle();
    expect([running, most]).toEqual([1, 1]);
    end.abort();
    release();
    await done;
  });

  it('rejects with what the work rejects with while it may run', async () => {
    const shards = new FakeShards(LOCAL_CLUSTER);
    const end = new AbortController();
    const failing = whileHeld(shards, LOCAL_CLUSTER, end.signal, async () => Promise.reject(new Error('broken')));
    await expect(failing).rejects.toThrow('broken');
    expect(shards.listeners).toBe(0);
  });
});
