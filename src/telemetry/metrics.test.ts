import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { counter, forgetCluster, gauge, histogram } from './metrics.ts';

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
