import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HCP, HRP } from '../resources.ts';
import { chartProxy, cluster } from './objects.test-support.ts';
import { CLUSTERS, CONTROL_PLANES, INSTALLED, World } from './world.test-support.ts';

let world: World;

beforeEach(() => {
  vi.useFakeTimers();
  world = new World();
});

afterEach(async () => {
  await world.stop();
  vi.useRealTimers();
});

describe('paused', () => {
  it('nothing is written or deleted, whatever happens (W13)', async () => {
    await world.startTwo();
    await world.installed();
    await world.editChartProxy(({ metadata }) => {
      metadata.annotations = { 'cluster.x-k8s.io/paused': '' };
    });
    const { length } = world.server.writes;
    await world.editChartProxy(({ spec }) => {
      spec.version = '3';
    });
    await world.editCluster('w1', ({ metadata }) => {
      metadata.labels = {};
    });
    world.server.remove(CLUSTERS, 'fleet', 'w2');
    await world.resync();
    expect(world.server.writes.slice(length)).toEqual([]);
    await world.editChartProxy(({ metadata }) => {
      metadata.annotations = {};
    });
    expect(world.proxies().map(({ metadata }) => metadata.deletionTimestamp !== undefined)).toEqual([true, true]);
  });
});

describe('deletion', () => {
  it('waits for the HelmReleaseProxies and says so, then lets go', async () => {
    await world.startTwo();
    await world.installed();
    await world.server.client.delete(HCP, { namespace: 'fleet', name: 'hcp' });
    await world.settle();
    expect(world.proxies().every(({ metadata }) => metadata.deletionTimestamp !== undefined)).toBe(true);
    expect(world.condition('HelmReleaseProxiesReady')).toMatch(
      /waiting for 2 HelmReleaseProxies to be deleted: .*cluster w1.*cluster w2/,
    );
    await world.report('w1', 'unable to remove helm release');
    expect(world.condition('Ready')).toMatch(/^False\/IssuesReported: .*/s);
    expect(world.condition('Ready')).toContain('unable to remove helm release');
    await world.uninstalled('w1');
    await world.uninstalled('w2');
    expect(world.chartProxy()).toBeUndefined();
  });

  it('lets go at once with the last HelmReleaseProxy, however many passes there just were', async () => {
    await world.startTwo();
    await world.installed();
    await world.server.client.delete(HCP, { namespace: 'fleet', name: 'hcp' });
    await world.settle();
    // Each asks for a pass, so that the rate is used up.
    for (const message of ['a', 'b', 'c', 'd']) await world.report('w1', message, 100);
    for (const { metadata } of world.proxies()) world.server.remove(HRP, 'fleet', metadata.name);
    await world.settle(200);
    expect(world.chartProxy()).toBeUndefined();
  });

  it('of a HelmChartProxy makes nothing anew meanwhile', async () => {
    await world.startTwo();
    await world.installed();
    await world.server.client.delete(HCP, { namespace: 'fleet', name: 'hcp' });
    await world.uninstalled('w1');
    await world.resync();
    expect(world.onClusters()).toEqual(['w2']);
  });

  it('touches no HelmReleaseProxy of another owner with the same label', async () => {
    await world.startTwo();
    await world.installed();
    const [mine] = world.proxies();
    const owner = {
      apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
      kind: 'HelmChartProxy',
      name: 'hcp',
      uid: 'predecessor',
      controller: true,
    };
    world.server.put(HRP, {
      ...mine!,
      metadata: { ...mine!.metadata, name: 'foreign', uid: 'foreign', ownerReferences: [owner] },
    });
    await world.server.client.delete(HCP, { namespace: 'fleet', name: 'hcp' });
    await world.settle();
    const foreign = world.proxies().find(({ metadata }) => metadata.name === 'foreign');
    expect(foreign?.metadata.deletionTimestamp).toBeUndefined();
  });
});

describe('what CAAPH left', () => {
  it('is taken over: same HelmReleaseProxy, same values, nothing reinstalled, its uid noted', async () => {
    await world.startTwo({ valuesTemplate: 'b: 2\na: {{.Cluster.metadata.name}}' });
    await world.installed();
    const made = world.proxyOn('w1');
    if (made === undefined) throw new Error('no proxy');
    await world.stop();
    world.server.remove(HRP, 'fleet', made.metadata.name);
    const { spec } = made;
    world.server.put(HRP, {
      ...made,
      metadata: { ...made.metadata, name: 'nginx-w1-abcde', uid: 'caaph', annotations: { ...INSTALLED.annotations } },
      spec: { ...spec, clusterRef: { ...spec.clusterRef, uid: undefined }, values: 'a: w1   # the same\nb: 2.0\n' },
    });
    await world.start();
    const taken = world.proxyOn('w1');
    expect(taken?.metadata.name).toBe('nginx-w1-abcde');
    expect(taken?.spec.values).toBe('a: w1   # the same\nb: 2.0\n');
    expect(taken?.spec.clusterRef.uid).toBe('w1-uid');
    expect(world.proxies()).toHaveLength(2);
    const { length } = world.server.writes;
    await world.resync();
    expect(world.server.writes.slice(length)).toEqual([]);
  });

  it('two HelmReleaseProxies for one cluster: the installed one stays (W10)', async () => {
    await world.startTwo();
    await world.install('w1', INSTALLED);
    const made = world.proxyOn('w1');
    if (made === undefined) throw new Error('no proxy');
    world.server.put(HRP, {
      ...made,
      status: undefined,
      metadata: { ...made.metadata, name: 'a-second', uid: 'second', annotations: {}, finalizers: [] },
    });
    await world.settle();
    expect(world.proxies().map(({ metadata }) => metadata.name)).not.toContain('a-second');
    expect(world.proxyOn('w1')?.metadata.deletionTimestamp).toBeUndefined();
  });
});

describe('.ControlPlane', () => {
  const reference = { apiGroup: 'controlplane.cluster.x-k8s.io', kind: 'KubeadmControlPlane', name: 'w1-cp' };
  const controlPlane = {
    kind: 'KubeadmControlPlane',
    metadata: { namespace: 'fleet', name: 'w1-cp' },
    spec: { version: 'v1.34.0' },
  };

  async function startWith(template: string): Promise<void> {
    world.server.put(CLUSTERS, cluster('w1', {}, { controlPlaneRef: reference }));
    world.server.put(HCP, chartProxy({ valuesTemplate: template }));
    world.render = (job) => ({ id: job.id, ok: true, text: JSON.stringify(job.context.ControlPlane ?? null) });
    await world.start();
  }

  it('is not fetched when the template does not name it (W25)', async () => {
    await startWith('a: {{.Cluster.metadata.name}}');
    expect(world.proxyOn('w1')).toBeDefined();
    expect([...world.server.informers.keys()].some((key) => key.includes('controlplane'))).toBe(false);
  });

  it('is waited for, then followed', async () => {
    await startWith('a: {{.ControlPlane.spec.version}}');
    expect(world.proxyOn('w1')).toBeUndefined();
    expect(world.condition('HelmReleaseProxySpecsUpToDate')).toBe(
      'False/ValueParsingFailed: failed to parse values on cluster w1: KubeadmControlPlane fleet/w1-cp, which the template reads as .ControlPlane, does not exist',
    );
    world.server.put(CONTROL_PLANES, structuredClone(controlPlane));
    await world.settle();
    expect(world.proxyOn('w1')?.spec.values).toContain('v1.34.0');
    world.server.edit(CONTROL_PLANES, { namespace: 'fleet', name: 'w1-cp' }, (object) => {
      Object.assign(object, { spec: { version: 'v1.35.0' } });
    });
    await world.settle();
    expect(world.proxyOn('w1')?.spec.values).toContain('v1.35.0');
  });

  it('is watched no longer once nobody names it', async () => {
    world.server.put(CONTROL_PLANES, structuredClone(controlPlane));
    await startWith('a: {{.ControlPlane.spec.version}}');
    const watched = (): boolean => [...world.server.informers.keys()].some((key) => key.includes('controlplane'));
    expect(watched()).toBe(true);
    await world.editChartProxy(({ spec }) => {
      spec.valuesTemplate = 'a: 1';
    });
    expect(watched()).toBe(false);
  });

  it('says when the CRD has no contract label', async () => {
    world.putCrd('kubeadmcontrolplanes.controlplane.cluster.x-k8s.io', {});
    await startWith('a: {{.ControlPlane.spec.version}}');
    expect(world.condition('HelmReleaseProxySpecsUpToDate')).toContain(
      'has none of the labels cluster.x-k8s.io/v1beta2, cluster.x-k8s.io/v1beta1',
    );
  });
});

describe('--watch-filter', () => {
  it('leaves unlabelled objects alone and labels what it makes (W7)', async () => {
    world = new World({ watchFilter: 'mine' });
    world.server.put(HCP, chartProxy({}, { name: 'other', uid: 'other-uid', finalizers: [] }));
    await world.startTwo({}, { labels: { 'cluster.x-k8s.io/watch-filter': 'mine' } });
    expect(world.chartProxy('other')?.metadata.finalizers).toEqual([]);
    expect(world.proxies()).toHaveLength(2);
    for (const { metadata } of world.proxies()) expect(metadata.labels?.['cluster.x-k8s.io/watch-filter']).toBe('mine');
  });
});
