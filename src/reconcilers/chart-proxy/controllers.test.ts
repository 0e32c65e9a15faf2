import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HCP_FINALIZER } from '../../api/index.ts';
import type { Condition, HelmReleaseProxy } from '../../api/index.ts';
import { setCondition } from '../conditions.ts';
import { HCP, HRP } from '../resources.ts';
import { chartProxy } from './objects.test-support.ts';
import { INSTALLED, World } from './world.test-support.ts';

let world: World;

beforeEach(() => {
  vi.useFakeTimers();
  world = new World();
});

afterEach(async () => {
  await world.stop();
  vi.useRealTimers();
});

describe('a HelmChartProxy', () => {
  it.each([undefined, 'Continuous', 'InstallOnce'])(
    'with strategy %s makes one HelmReleaseProxy per matching Cluster',
    async (reconcileStrategy) => {
      await world.startTwo({ reconcileStrategy });
      expect(world.onClusters()).toEqual(['w1', 'w2']);
      expect(world.chartProxy()?.metadata.finalizers).toEqual([HCP_FINALIZER]);
      expect(world.chartProxy()?.status?.matchingClusters?.map(({ name }) => name)).toEqual(['w1', 'w2']);
      expect(world.condition('HelmReleaseProxiesReady')).toMatch(/^Unknown/);
      await world.installed();
      expect(world.condition('HelmReleaseProxySpecsUpToDate')).toBe('True/UpToDate: ');
      expect(world.condition('Ready')).toMatch(/^True\/InfoReported/);
      expect(world.chartProxy()?.status?.observedGeneration).toBe(1);
    },
  );

  it('writes nothing on a resync with nothing to do, and renders nothing', async () => {
    await world.startTwo({ valuesTemplate: 'name: {{.Cluster.metadata.name}}' });
    await world.installed();
    const { length } = world.server.writes;
    const renders = world.rendered.length;
    await world.resync();
    expect(world.server.writes.slice(length)).toEqual([]);
    expect(world.rendered).toHaveLength(renders);
  });

  it('writes nothing after a restart with nothing to do (no flapping conditions)', async () => {
    await world.startTwo({ valuesTemplate: 'name: {{.Cluster.metadata.name}}' });
    await world.installed();
    await world.stop();
    const { length } = world.server.writes;
    await world.start();
    expect(world.server.writes.slice(length)).toEqual([]);
  });

  it('carries every changed field to its HelmReleaseProxies (W1)', async () => {
    await world.startTwo();
    await world.installed();
    await world.editChartProxy(({ spec }) => {
      spec.version = '2.0.0';
      spec.options = { wait: true, install: { createNamespace: false }, upgrade: { maxHistory: 0 } };
      spec.credentials = { secret: { name: 'login' } };
      spec.tlsConfig = { caSecret: { name: 'ca' } };
    });
    for (const { spec } of world.proxies()) {
      expect(spec).toMatchObject({
        version: '2.0.0',
        options: { wait: true, install: { createNamespace: false }, upgrade: { maxHistory: 0 } },
        credentials: { secret: { name: 'login', namespace: 'fleet' }, key: 'config.json' },
        tlsConfig: { caSecret: { name: 'ca', namespace: 'fleet' } },
      });
    }
    expect(world.chartProxy()?.spec.credentials).toEqual({ secret: { name: 'login' } });
    expect(world.condition('HelmReleaseProxySpecsUpToDate')).toMatch(
      /^False\/HelmReleaseProxySpecsUpdating: Helm release proxies/,
    );
  });

  it('carries driftDetection to its HelmReleaseProxies and back off them, and reinstalls nothing', async () => {
    await world.startTwo();
    await world.installed();
    const uids = world.proxies().map(({ metadata }) => metadata.uid);
    const driftDetection = { mode: 'Correct', ignore: [{ paths: ['/spec/replicas'], target: { kind: 'Deployment' } }] };
    await world.editChartProxy(({ spec }) => Object.assign(spec, { driftDetection }));
    expect(world.proxies().map(({ spec }) => spec.driftDetection)).toEqual([driftDetection, driftDetection]);
    await world.editChartProxy(({ spec }) => {
      delete spec.driftDetection;
    });
    expect(world.proxies().map(({ spec }) => spec.driftDetection)).toEqual([undefined, undefined]);
    expect(world.proxies().map(({ metadata }) => metadata.uid)).toEqual(uids);
  });

  it('gives an InstallOnce release its driftDetection when it is made, and no change of it afterwards', async () => {
    await world.startTwo({ reconcileStrategy: 'InstallOnce', driftDetection: { mode: 'Warn' } });
    await world.installed(INSTALLED);
    await world.editChartProxy(({ spec }) => {
      spec.driftDetection = { mode: 'Correct' };
    });
    expect(world.proxies().map(({ spec }) => spec.driftDetection)).toEqual([{ mode: 'Warn' }, { mode: 'Warn' }]);
  });

  it('tells how many of its clusters drift as that changes, and touches no HelmReleaseProxy for it', async () => {
    await world.startTwo({ valuesTemplate: 'a: 1' });
    await world.installed();
    expect(world.condition('ReleaseInSync')).toBeUndefined();
    const [renders, writes] = [world.rendered.length, world.writesOf('helmreleaseproxies').length];
    const tell = async (cluster: string, status: Condition['status'], reason: string): Promise<void> => {
      const name = world.proxyOn(cluster)?.metadata.name ?? '';
      world.server.edit<HelmReleaseProxy>(HRP, { namespace: 'fleet', name }, (proxy) => {
        const said = { type: 'ReleaseInSync', status, reason, message: '' };
        const conditions = setCondition(proxy.status?.conditions, said, proxy.metadata.generation);
        proxy.status = { ...proxy.status, conditions };
      });
      await world.settle();
    };
    await tell('w1', 'True', 'InSync');
    expect(world.condition('ReleaseInSync')).toBe('True/InSync: 1 of 1 clusters are in sync');
    await tell('w2', 'False', 'DriftDetected');
    expect(world.condition('ReleaseInSync')).toBe('False/DriftDetected: 1 of 2 clusters drift: w2');
    await tell('w2', 'False', 'DriftNotConverging');
    expect(world.condition('ReleaseInSync')).toBe('False/DriftNotConverging: 1 of 2 clusters drift: w2');
    expect(world.condition('Ready')).toMatch(/^True/);
    expect([world.rendered.length, world.writesOf('helmreleaseproxies').length]).toEqual([renders, writes]);
  });

  it('shows that it reinstalls, and makes a new HelmReleaseProxy once the old one is gone (W11)', async () => {
    await world.startTwo();
    await world.installed();
    const before = world.proxyOn('w1')?.metadata.uid;
    await world.editChartProxy(({ spec }) => {
      spec.namespace = 'other';
    });
    expect(world.proxyOn('w1')?.metadata.uid).toBe(before);
    expect(world.proxyOn('w1')?.metadata.deletionTimestamp).toBeDefined();
    expect(world.condition('HelmReleaseProxySpecsUpToDate')).toContain('False/HelmReleaseProxyReinstalling');
    expect(world.condition('HelmReleaseProxySpecsUpToDate')).toContain(
      "HelmReleaseProxy on cluster 'w1' successfully deleted, preparing to reinstall",
    );
    await world.uninstalled('w1');
    expect(world.proxyOn('w1')?.metadata.uid).not.toBe(before);
    expect(world.proxyOn('w1')?.spec.namespace).toBe('other');
    await world.uninstalled('w2');
    await world.installed();
    expect(world.condition('Ready')).toMatch(/^True/);
  });

  it('shows that it reinstalls also when its status has just been told often (W11)', async () => {
    await world.startTwo();
    await world.installed();
    for (const version of ['2', '3', '4', '5']) {
      world.edit(({ spec }) => {
        spec.version = version;
      });
      await world.settle(50);
    }
    world.edit(({ spec }) => {
      spec.chartName = 'other';
    });
    await world.settle(50);
    expect(world.condition('HelmReleaseProxySpecsUpToDate')).toContain('False/HelmReleaseProxyReinstalling');
  });

  it('makes no second HelmReleaseProxy while its cache lags (W10), and does not call that ready', async () => {
    await world.startTwo();
    const resume = world.server.lag(HRP);
    world.server.put(HCP, chartProxy({}, { name: 'late', uid: 'late-uid' }));
    await world.resync();
    expect(world.condition('Ready', 'late')).toMatch(/^False/);
    expect(world.condition('HelmReleaseProxiesReady', 'late')).toMatch(/^Unknown/);
    resume();
    await world.resync();
    expect(world.proxies()).toHaveLength(4);
    expect(world.condition('HelmReleaseProxiesReady', 'late')).toMatch(/^Unknown/);
  });

  it('goes on with the other clusters when one fails (W8), names it, and mends it', async () => {
    world.render = (job) =>
      job.id.endsWith('w1')
        ? { id: job.id, ok: false, error: "template: nginx-w1:1: bad character U+002D '-'" }
        : { id: job.id, ok: true, text: 'fine: yes' };
    await world.startTwo({ valuesTemplate: '{{ bad-template }}' });
    expect(world.onClusters()).toEqual(['w2']);
    expect(world.condition('HelmReleaseProxySpecsUpToDate')).toBe(
      "False/ValueParsingFailed: failed to parse values on cluster w1: template: nginx-w1:1: bad character U+002D '-'",
    );
    expect(world.events.recorded).toHaveLength(1);
    world.render = (job) => ({ id: job.id, ok: true, text: 'fine: yes' });
    await world.editChartProxy(({ spec }) => {
      spec.valuesTemplate = '{{ good }}';
    });
    expect(world.onClusters()).toEqual(['w1', 'w2']);
    await world.installed();
    expect(world.condition('HelmReleaseProxySpecsUpToDate')).toBe('True/UpToDate: ');
  });

  it('does not render again what reads nothing new (W19), and does when a Cluster changes what it reads', async () => {
    let count = 0;
    world.render = (job) => ({ id: job.id, ok: true, text: `random: ${String(++count)}` });
    await world.startTwo({ valuesTemplate: 'x: {{.Cluster.spec.color}}' });
    await world.installed();
    const before = world.proxyOn('w1')?.spec.values;
    await world.editCluster('w1', (object) => {
      object.metadata.annotations = { noise: '1' };
    });
    expect(world.proxyOn('w1')?.spec.values).toBe(before);
    await world.editCluster('w1', (object) => {
      object.spec = { ...object.spec, ...{ color: 'blue' } };
    });
    expect(world.proxyOn('w1')?.spec.values).not.toBe(before);
  });

  it('puts values right that somebody edited in the HelmReleaseProxy', async () => {
    await world.startTwo({ valuesTemplate: 'name: {{.Cluster.metadata.name}}' });
    const name = world.proxyOn('w1')?.metadata.name ?? '';
    world.server.edit(HRP, { namespace: 'fleet', name }, (object) =>
      Object.assign(object, { spec: { ...world.proxyOn('w1')?.spec, values: 'hand: made' } }),
    );
    await world.settle();
    expect(world.proxyOn('w1')?.spec.values).toBe('name: w1');
  });

  it('tells of its releases at a bounded rate (W26)', async () => {
    await world.startTwo();
    await world.installed();
    const before = world.writesOf('helmchartproxies').length;
    for (let turn = 0; turn < 40; turn++) {
      world.server.edit(HRP, { namespace: 'fleet', name: world.proxyOn('w1')?.metadata.name ?? '' }, (object) => {
        const ready = { type: 'Ready', status: 'False', reason: 'R', message: String(turn), lastTransitionTime: '' };
        Object.assign(object, { status: { observedGeneration: 1, conditions: [ready] } });
      });
      await world.settle(100);
    }
    await world.settle();
    expect(world.writesOf('helmchartproxies').length - before).toBeLessThanOrEqual(8);
    expect(world.condition('Ready')).toContain('39');
  });
});
