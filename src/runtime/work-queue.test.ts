import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { clusterName, LOCAL_CLUSTER } from './cluster-name.ts';
import { QueueMetrics } from './queue-metrics.ts';
import type { Request } from './types.ts';
import { WorkQueue } from './work-queue.ts';
import type { Outcome, WorkQueueOptions } from './work-queue.ts';

const DONE: Outcome = { type: 'done' };
const after = async (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

/** `a/1`: cluster a, object 1. */
function request(text: string): Request {
  const [cluster = '', name = ''] = text.split('/');
  return { cluster: clusterName(cluster), namespace: 'ns', name };
}

function textOf({ cluster, name }: Request): string {
  return `${cluster}/${name}`;
}

/** Work that ends when the test says so. */
class Bench {
  readonly begun: string[] = [];
  readonly #open = new Map<string, (outcome: Outcome) => void>();
  most = 0;

  async work(request: Request): Promise<Outcome> {
    const text = textOf(request);
    this.begun.push(text);
    if (this.#open.has(text)) throw new Error(`${text} is worked on twice at a time`);
    return new Promise((resolve) => {
      this.#open.set(text, resolve);
      this.most = Math.max(this.most, this.#open.size);
    });
  }

  get open(): string[] {
    return [...this.#open.keys()];
  }

  async end(text: string, outcome: Outcome = DONE): Promise<void> {
    const resolve = this.#open.get(text);
    if (resolve === undefined) throw new Error(`${text} is not being worked on`);
    this.#open.delete(text);
    resolve(outcome);
    await after(0);
  }

  async endAll(): Promise<void> {
    while (this.#open.size > 0) for (const text of this.open) await this.end(text);
  }
}

let bench: Bench;
let queue: WorkQueue;

function makeQueue(options: Partial<WorkQueueOptions> = {}): WorkQueue {
  queue = new WorkQueue({
    lanes: { default: { concurrency: 1 } },
    metrics: new QueueMetrics(new Registry(), 'test', 1),
    work: async (work) => bench.work(work),
    onBug: (error) => {
      throw error;
    },
    random: () => 0.5,
    ...options,
  });
  return queue;
}

function add(...texts: string[]): void {
  for (const text of texts) queue.add(request(text));
}

beforeEach(() => {
  vi.useFakeTimers();
  bench = new Bench();
});
afterEach(async () => {
  const stopped = queue.stop();
  await bench.endAll();
  await stopped;
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe('a key', () => {
  it('waits once, however often it is asked for', async () => {
    makeQueue();
    add('a/1', 'a/1', 'a/1');
    expect(queue.depth).toBe(1);
    queue.start();
    await after(0);
    await bench.end('a/1');
    expect(bench.begun).toEqual(['a/1']);
  });

  it('is worked on by one worker at a time; asked for meanwhile it comes back once', async () => {
    makeQueue({ lanes: { default: { concurrency: 4, perCluster: 4 } } }).start();
    add('a/1');
    await after(0);
    add('a/1', 'a/1');
    await after(0);
    expect(bench.begun).toEqual(['a/1']);
    await bench.end('a/1');
    await bench.end('a/1');
    await after(1_000_000);
    expect(bench.begun).toEqual(['a/1', 'a/1']);
  });

  it('is not handed out before start', async () => {
    makeQueue();
    add('a/1');
    await after(1_000);
    expect(bench.begun).toEqual([]);
    queue.start();
    await after(0);
    expect(bench.begun).toEqual(['a/1']);
  });
});

describe('delays', () => {
  it('of the earliest win', async () => {
    makeQueue().start();
    queue.add(request('a/1'), 'resync', 10_000);
    queue.add(request('a/1'), 'resync', 2_000);
    queue.add(request('a/1'), 'resync', 50_000);
    await after(1_999);
    expect(bench.begun).toEqual([]);
    await after(1);
    expect(bench.begun).toEqual(['a/1']);
    await bench.end('a/1');
    await after(100_000);
    expect(bench.begun).toEqual(['a/1']);
  });

  it('end when it is asked for now', async () => {
    makeQueue().start();
    queue.add(request('a/1'), 'resync', 10_000);
    add('a/1');
    await after(0);
    await bench.end('a/1');
    await after(100_000);
    expect(bench.begun).toEqual(['a/1']);
  });

  it('asked for by the work itself run from its end', async () => {
    makeQueue().start();
    add('a/1');
    await after(0);
    await bench.end('a/1', { type: 'later', afterMs: 5_000 });
    await after(4_999);
    expect(bench.begun).toHaveLength(1);
    await after(1);
    expect(bench.begun).toHaveLength(2);
  });
});

describe('failures', () => {
  it('are retried at half of 0.5, 1, 2 … s here (random is 0.5), at most 300 s, and forgotten after a success', async () => {
    const failures: number[] = [];
    makeQueue({
      work: async (work, count) => {
        failures.push(count);
        return bench.work(work);
      },
    }).start();
    add('a/1');
    for (const delay of [250, 500, 1_000, 2_000, 4_000]) {
      await after(0);
      const begun = bench.begun.length;
      await bench.end('a/1', { type: 'retry' });
      await after(delay - 1);
      expect(bench.begun).toHaveLength(begun);
      await after(1);
      expect(bench.begun).toHaveLength(begun + 1);
    }
    for (let i = 0; i < 10; i += 1) {
      await bench.end('a/1', { type: 'retry' });
      await after(150_000);
    }
    await bench.end('a/1');
    add('a/1');
    await after(0);
    expect(failures).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0]);
  });

  it('do not hold back a change: asked for during the back-off it runs at once, and still counts its failures', async () => {
    const failures: number[] = [];
    makeQueue({
      work: async (work, count) => {
        failures.push(count);
        return bench.work(work);
      },
    }).start();
    add('a/1');
    await after(0);
    await bench.end('a/1', { type: 'retry' });
    add('a/1');
    await after(0);
    expect(failures).toEqual([0, 1]);
  });

  it('never retry without any delay, even when the jitter comes out as 0', async () => {
    makeQueue({ random: () => 0 }).start();
    add('a/1');
    await after(0);
    await bench.end('a/1', { type: 'retry' });
    await after(49);
    expect(bench.begun).toHaveLength(1);
    await after(1);
    expect(bench.begun).toHaveLength(2);
  });

  it('of the work function itself are told and retried', async () => {
    const bugs: unknown[] = [];
    let calls = 0;
    makeQueue({
      work: async () => {
        calls += 1;
        if (calls === 1) throw new Error('boom');
        return DONE;
      },
      onBug: (error) => bugs.push(error),
    }).start();
    add('a/1');
    await after(1_000);
    expect(calls).toBe(2);
    expect(bugs).toEqual([new Error('boom')]);
  });
});

describe('clusters', () => {
  it('take turns: 10,000 items of one delay the first of another by one', async () => {
    makeQueue();
    for (let i = 0; i < 10_000; i += 1) queue.add(request(`big/${i}`));
    queue.start();
    await after(0);
    add('small/1');
    await bench.end('big/0');
    await bench.end('big/1');
    expect(bench.begun).toEqual(['big/0', 'big/1', 'small/1']);
  });

  it('are worked through completely, each item once', async () => {
    const done: string[] = [];
    makeQueue({
      lanes: { default: { concurrency: 8 } },
      work: async (work) => {
        done.push(textOf(work));
        return Promise.resolve(DONE);
      },
    });
    const all = Array.from({ length: 3_000 }, (_, i) => `c${i % 7}/${i}`);
    add(...all);
    queue.start();
    await after(0);
    expect(done.sort()).toEqual(all.sort());
    expect(queue.depth).toBe(0);
    expect(queue.active).toBe(0);
  });

  it('have a bound each, so that the others find a place', async () => {
    makeQueue({ lanes: { default: { concurrency: 4, perCluster: 2 } } }).start();
    add('a/1', 'a/2', 'a/3', 'a/4', 'b/1');
    await after(0);
    expect(bench.open.sort()).toEqual(['a/1', 'a/2', 'b/1']);
    await bench.end('a/1');
    expect(bench.open.sort()).toEqual(['a/2', 'a/3', 'b/1']);
  });

  it('have a quarter of the places each by default, at least one; the management cluster has all', async () => {
    makeQueue({ lanes: { default: { concurrency: 10 } } }).start();
    add('a/1', 'a/2', 'a/3');
    for (let i = 0; i < 10; i += 1) queue.add({ ...request(`x/${i}`), cluster: LOCAL_CLUSTER });
    await after(0);
    expect(bench.open.filter((text) => text.startsWith('a/'))).toHaveLength(2);
    expect(bench.open.filter((text) => text.startsWith('local/'))).toHaveLength(8);
  });

  it('that hang lend their places: ten sick ones do not hold all ten', async () => {
    makeQueue({ lanes: { default: { concurrency: 10 } } }).start();
    for (let i = 0; i < 10; i += 1) add(`sick${i}/1`, `sick${i}/2`, `sick${i}/3`);
    await after(0);
    add('well/1');
    await after(0);
    expect(bench.open).toHaveLength(10);
    await after(5_000);
    expect(bench.open).toContain('well/1');
    await after(60_000);
    // Two at a time for each sick cluster, hanging, and places left.
    expect(bench.open.filter((text) => text.startsWith('sick'))).toHaveLength(20);
    add('well/2');
    await after(0);
    expect(bench.open).toContain('well/2');
  });

  it('that hang are bounded in sum', async () => {
    makeQueue({ lanes: { default: { concurrency: 2 } } }).start();
    for (let i = 0; i < 100; i += 1) add(`sick${i}/1`);
    await after(600_000);
    expect(bench.open).toHaveLength(10);
  });
});

describe('priorities', () => {
  it('go before turns: a resync of everything does not delay a user', async () => {
    makeQueue();
    for (let i = 0; i < 1_000; i += 1) queue.add(request(`c${i % 50}/${i}`), 'resync');
    queue.add(request('c1/drift'), 'drift');
    queue.add(request('c1/user'), 'user');
    queue.start();
    await after(0);
    await bench.end('c1/user');
    await bench.end('c1/drift');
    expect(bench.open).toEqual(['c0/0']);
  });

  it('of what waits rise, and never fall', async () => {
    makeQueue();
    queue.add(request('a/1'), 'drift');
    queue.add(request('a/2'), 'resync');
    queue.add(request('a/2'), 'user');
    queue.add(request('a/2'), 'resync');
    expect(queue.depth).toBe(2);
    queue.start();
    await after(0);
    expect(bench.open).toEqual(['a/2']);
  });

  it('let the lower ones through now and then', async () => {
    makeQueue();
    queue.add(request('a/resync'), 'resync');
    queue.add(request('a/drift'), 'drift');
    for (let i = 0; i < 40; i += 1) queue.add(request(`a/${i}`), 'user');
    queue.start();
    await after(0);
    for (let i = 0; i < 33; i += 1) await bench.end(bench.open[0]!);
    expect(bench.begun.indexOf('a/resync')).toBe(15);
    expect(bench.begun.indexOf('a/drift')).toBe(31);
  });
});

describe('lanes', () => {
  const lanes = { default: { concurrency: 1 }, wait: { concurrency: 2, perCluster: 2 } };

  it('have pools of their own', async () => {
    makeQueue({ lanes, lane: ({ name }) => (name.startsWith('w') ? 'wait' : 'default') }).start();
    add('a/w1', 'a/w2', 'a/w3', 'a/1', 'a/2');
    await after(0);
    expect(bench.open.sort()).toEqual(['a/1', 'a/w1', 'a/w2']);
  });

  it('are asked for again when a request is: what waits moves along', async () => {
    let lane = 'default';
    makeQueue({ lanes, lane: ({ name }) => (name === 'moves' ? lane : 'default') }).start();
    add('a/blocks', 'a/moves');
    await after(0);
    expect(bench.open).toEqual(['a/blocks']);
    lane = 'wait';
    add('a/moves');
    await after(0);
    expect(bench.open).toEqual(['a/blocks', 'a/moves']);
    expect(queue.depth).toBe(0);
  });

  it('that nobody has heard of are the first', async () => {
    makeQueue({ lanes, lane: () => 'unheard' }).start();
    add('a/1', 'a/2');
    await after(0);
    expect(bench.open).toEqual(['a/1']);
  });
});

describe('stop', () => {
  it('hands out nothing more, waits for what runs, and drops the rest', async () => {
    makeQueue().start();
    add('a/1', 'a/2');
    queue.add(request('a/3'), 'user', 1_000);
    await after(0);
    let stopped = false;
    const stopping = queue.stop().then(() => (stopped = true));
    add('a/4');
    await after(10_000);
    expect(stopped).toBe(false);
    await bench.end('a/1', { type: 'retry' });
    await stopping;
    await after(1_000_000);
    expect(bench.begun).toEqual(['a/1']);
  });
});
