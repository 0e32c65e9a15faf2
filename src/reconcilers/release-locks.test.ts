import { describe, expect, it } from 'vitest';
import { clusterName } from '../runtime/index.ts';
import { ReleaseLocks } from './release-locks.ts';

const C1 = clusterName('fleet/c1');
const KEY = { namespace: 'apps', name: 'web' };
const never = new AbortController().signal;

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe('ReleaseLocks', () => {
  it('are held by one at a time, in turn, per release and cluster', async () => {
    const locks = new ReleaseLocks();
    const unlock = await locks.lock(C1, KEY, never);
    expect(locks.isLocked(C1, KEY)).toBe(true);
    expect(locks.tryLock(C1, KEY)).toBeUndefined();
    expect(locks.tryLock(C1, { ...KEY, name: 'other' })).toBeDefined();
    expect(locks.tryLock(clusterName('fleet/c2'), KEY)).toBeDefined();
    const order: string[] = [];
    const second = locks.lock(C1, KEY, never).then((free) => {
      order.push('second');
      return free;
    });
    const third = locks.lock(C1, KEY, never).then((free) => {
      order.push('third');
      return free;
    });
    await turn();
    expect(order).toEqual([]);
    unlock();
    (await second)();
    (await third)();
    await turn();
    expect(order).toEqual(['second', 'third']);
    expect(locks.isLocked(C1, KEY)).toBe(false);
  });

  it('make an operation wait for a correction', async () => {
    const locks = new ReleaseLocks();
    const unlock = locks.tryLock(C1, KEY);
    let got = false;
    const waiting = locks.lock(C1, KEY, never).then((free) => {
      got = true;
      return free;
    });
    await turn();
    expect(got).toBe(false);
    unlock?.();
    (await waiting)();
    expect(got).toBe(true);
  });

  it('tell when an operation has let go and nobody waits, and not after a correction', async () => {
    const locks = new ReleaseLocks();
    const told: string[] = [];
    const remove = locks.onFree((cluster, { name }) => told.push(`${cluster} ${name}`));
    locks.tryLock(C1, KEY)?.();
    await turn();
    expect(told).toEqual([]);
    const first = await locks.lock(C1, KEY, never);
    const second = locks.lock(C1, KEY, never);
    first();
    await turn();
    expect(told).toEqual([]);
    (await second)();
    await turn();
    expect(told).toEqual(['fleet/c1 web']);
    remove();
    (await locks.lock(C1, KEY, never))();
    await turn();
    expect(told).toHaveLength(1);
  });

  it('are given up by who stops waiting; who comes after still waits for the holder', async () => {
    const locks = new ReleaseLocks();
    const unlock = await locks.lock(C1, KEY, never);
    const impatient = new AbortController();
    const waiting = locks.lock(C1, KEY, impatient.signal);
    const after = locks.lock(C1, KEY, never);
    impatient.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await turn();
    expect(locks.tryLock(C1, KEY)).toBeUndefined();
    unlock();
    (await after)();
    await turn();
    expect(locks.isLocked(C1, KEY)).toBe(false);
  });
});
