import { expect, it } from 'vitest';
import { clusterName } from './cluster-name.ts';
import { prefixed } from './prefixed.ts';
import type { ClusterSink, Provider } from './types.ts';

const told: string[] = [];
const sink: ClusterSink = {
  discover: (name, { code }, about) => void told.push(`discover ${name} ${code} ${JSON.stringify(about)}`),
  engage: (name, _spec, about) => void told.push(`engage ${name} ${JSON.stringify(about)}`),
  disengage: (name, reason) => void told.push(`disengage ${name} ${reason}`),
};

class Hand implements Provider {
  readonly name = 'hand';
  readonly refreshed: string[] = [];

  async run(to: ClusterSink): Promise<void> {
    to.discover(clusterName('ns/a'), { code: 'No', message: 'no' }, { labels: { x: '1' } });
    to.engage(clusterName('ns/a'), { kubeconfig: '' });
    to.disengage(clusterName('ns/a'), 'gone');
    return Promise.resolve();
  }

  refresh(name: string): void {
    this.refreshed.push(name);
  }
}

it('names all clusters by provider and name, and asks the provider by name', async () => {
  const hand = new Hand();
  const wrapped = prefixed(hand);
  expect(wrapped).toMatchObject({ name: 'hand', bare: true });
  await wrapped.run(sink, new AbortController().signal);
  expect(told).toEqual([
    'discover hand#ns/a No {"labels":{"x":"1"}}',
    'engage hand#ns/a undefined',
    'disengage hand#ns/a gone',
  ]);
  wrapped.refresh?.(clusterName('hand#ns/a'));
  expect(hand.refreshed).toEqual(['ns/a']);
});

it('has no refresh where the provider has none', () => {
  expect(prefixed({ name: 'x', run: async () => Promise.resolve() })).not.toHaveProperty('refresh');
});

it.each(['', 'a b', 'a#b'])('refuses a provider called %j', (name) => {
  expect(() => prefixed({ name, run: async () => Promise.resolve() })).toThrow('is no cluster name');
});
