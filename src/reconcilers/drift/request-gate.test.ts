import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { KubeClient, Resource } from '../../kube/index.ts';
import { GatedClient, RequestGate } from './request-gate.ts';

const PODS: Resource = { group: '', version: 'v1', plural: 'pods', namespaced: true };

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

interface Load {
  begun: number;
  readonly ends: (() => void)[];
}

/** Requests that end when told to. */
function load(gate: RequestGate, cluster: string, count: number): Load {
  const made: Load = { begun: 0, ends: [] };
  for (let index = 0; index < count; index++) {
    gate
      .run(cluster, undefined, async () => {
        made.begun += 1;
        await new Promise<void>((resolve) => made.ends.push(resolve));
      })
      .catch(() => undefined);
  }
  return made;
}

describe('RequestGate', () => {
  it('lets two requests at a time through to a cluster, and twenty in all', async () => {
    const gate = new RequestGate();
    const one = load(gate, 'c0', 5);
    await vi.advanceTimersByTimeAsync(0);
    expect(one.begun).toBe(2);
    one.ends.splice(0).forEach((end) => end());
    await vi.advanceTimersByTimeAsync(0);
    expect(one.begun).toBe(4);
    const others = Array.from({ length: 15 }, (_, index) => load(gate, `c${index + 1}`, 2));
    await vi.advanceTimersByTimeAsync(0);
    expect(one.begun - 2 + others.reduce((sum, { begun }) => sum + begun, 0)).toBe(20);
  });

  it('lets twenty a second through to a cluster, and its neighbour does not wait for that', async () => {
    const gate = new RequestGate();
    let done = 0;
    const request = async (): Promise<void> => {
      done += 1;
    };
    const all = Promise.all(Array.from({ length: 50 }, async () => gate.run('c1', undefined, request)));
    await vi.advanceTimersByTimeAsync(10);
    expect(done).toBe(20);
    await gate.run('c2', undefined, request);
    expect(done).toBe(21);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(done).toBe(41);
    await vi.advanceTimersByTimeAsync(1_000);
    await all;
    expect(done).toBe(51);
  });

  it('lets go of who stops waiting, and hands results and failures on', async () => {
    const gate = new RequestGate();
    const busy = load(gate, 'c1', 2);
    const halt = new AbortController();
    const waiting = gate.run('c1', halt.signal, async () => 'never');
    halt.abort(new Error('stop'));
    await expect(waiting).rejects.toThrow('stop');
    busy.ends.forEach((end) => end());
    await expect(gate.run('c1', undefined, async () => 7)).resolves.toBe(7);
    await expect(gate.run('c1', undefined, async () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    gate.forget('c1');
    await expect(gate.run('c1', undefined, async () => 8)).resolves.toBe(8);
  });
});

it('GatedClient passes every call through the gate', async () => {
  const calls: string[] = [];
  const object = { metadata: { name: 'x' } };
  const verb = (name: string) => async (): Promise<never> => {
    calls.push(name);
    return object as never;
  };
  const inner: KubeClient = {
    get: verb('get'),
    find: verb('find'),
    list: verb('list'),
    create: verb('create'),
    replace: verb('replace'),
    patch: verb('patch'),
    apply: verb('apply'),
    delete: verb('delete'),
    raw: verb('raw'),
  };
  const gate = new RequestGate();
  const run = vi.spyOn(gate, 'run');
  const client = new GatedClient(inner, gate, 'c1');
  await client.get(PODS, { name: 'x' });
  await client.find(PODS, { name: 'x' });
  await client.list(PODS, {});
  await client.create(PODS, object);
  await client.replace(PODS, object);
  await client.patch(PODS, { name: 'x' }, { type: 'merge', body: {} });
  await client.apply(PODS, object, { fieldManager: 'helm' });
  await client.delete(PODS, { name: 'x' });
  await client.raw('GET', '/version');
  expect(calls).toEqual(['get', 'find', 'list', 'create', 'replace', 'patch', 'apply', 'delete', 'raw']);
  expect(run).toHaveBeenCalledTimes(9);
});
