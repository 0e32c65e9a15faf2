import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { counter, createRegistry, forgetCluster, gauge, histogram } from './metrics.ts';

it('makes a metric once per registry, whoever asks', () => {
  const registry = new Registry();
  expect(counter(registry, 'a_total', 'A', ['cluster'])).toBe(counter(registry, 'a_total', 'A', ['cluster']));
  expect(gauge(registry, 'b', 'B', [])).toBe(gauge(registry, 'b', 'B', []));
  expect(histogram(registry, 'c', 'C', [], [1])).toBe(histogram(registry, 'c', 'C', [], [1]));
  expect(counter(new Registry(), 'a_total', 'A', ['cluster'])).not.toBe(counter(registry, 'a_total', 'A', ['cluster']));
  expect(() => gauge(registry, 'a_total', 'A', [])).toThrow();
});

it('forgets a cluster in every metric, and nothing else', async () => {
  const registry = new Registry();
  const requests = counter(registry, 'requests_total', 'R', ['cluster', 'code']);
  const times = histogram(registry, 'seconds', 'S', ['cluster'], [1, 2]);
  for (const cluster of ['one', 'two']) {
    requests.inc({ cluster, code: '200' });
    requests.inc({ cluster, code: '500' });
    times.observe({ cluster }, 1.5);
  }
  gauge(registry, 'size', 'S', []).set(3);
  await forgetCluster(registry, 'one');
  const text = await registry.metrics();
  expect(text).not.toContain('cluster="one"');
  expect(text).toContain('requests_total{cluster="two",code="500"} 1');
  expect(text).toContain('seconds_bucket{le="2",cluster="two"} 1');
  expect(text).toContain('size 3');
});

it('counts clusters together and sums them up where they are not to be told apart', async () => {
  const registry = createRegistry({ perCluster: false });
  const requests = counter(registry, 'requests_total', 'R', ['cluster', 'code']);
  const watches = gauge(registry, 'watches', 'W', ['cluster']);
  const parked = gauge(registry, 'parked', 'P', ['controller', 'cluster']);
  expect(counter(registry, 'requests_total', 'R', ['cluster', 'code'])).toBe(requests);
  expect(gauge(registry, 'watches', 'W', ['cluster'])).toBe(watches);
  for (const [index, cluster] of ['one', 'two', 'three'].entries()) {
    requests.inc({ cluster, code: '200' });
    requests.inc({ cluster, code: '500' }, 2);
    watches.inc({ cluster });
    watches.set({ cluster }, index + 1);
    parked.set({ controller: 'a', cluster }, 5);
  }
  counter(registry, 'plain_total', 'P', ['code']).inc({ code: '1' });
  const told = async (): Promise<string[]> => (await registry.metrics()).split('\n').filter((line) => /^\w/.test(line));
  expect(await told()).toEqual([
    'requests_total{code="200"} 3',
    'requests_total{code="500"} 6',
    'watches 6',
    'parked{controller="a"} 15',
    'plain_total{code="1"} 1',
  ]);
  requests.remove({ cluster: 'one', code: '200' });
  await forgetCluster(registry, 'three');
  expect(await told()).toEqual([
    'requests_total{code="200"} 3',
    'requests_total{code="500"} 6',
    'watches 3',
    'parked{controller="a"} 10',
    'plain_total{code="1"} 1',
  ]);
});
