import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject, Proxy } from '../support/index.ts';
import { ChartRepository, condition, eventually, Fleet, installCrds, simpleChart } from '../support/index.ts';
import { chartProxy, CRD_FILES, HCPS, refusal } from './crds-objects.ts';
import { operations } from './looks.ts';

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const FILTER = { 'cluster.x-k8s.io/watch-filter': 'mine' };
const INSTALLED = 'helmreleaseproxy.addons.cluster.x-k8s.io/release-successfully-installed';

/** Defects W7, W10 and W15 of CAAPH: a manager with --watch-filter takes over from CAAPH, whose rules let other objects in. */
describe('a platform engineer who comes from CAAPH, with --watch-filter=mine', () => {
  let fleet: Fleet;
  let plain: ChartRepository;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 1, manager: false });
    plain = await ChartRepository.start({ tls: false });
    for (const repository of [fleet.charts, plain]) repository.publish(simpleChart({ name: 'app', objects: 1 }));
    await withoutRules(async () => {
      await create('plain', { repoURL: plain.url, tlsConfig: undefined, valuesTemplate: 'message: one\n' });
    });
    await startManager();
  });

  afterAll(async () => {
    await plain.stop();
    await fleet.stop();
  });

  async function startManager(): Promise<void> {
    await fleet.startManager({ flags: ['--watch-filter=mine'] });
  }

  /** While `act` runs the API server knows our kinds without our rules, as under CAAPH's CRDs. */
  async function withoutRules(act: () => Promise<void>): Promise<void> {
    const path = `${CRDS}/helmchartproxies.addons.cluster.x-k8s.io`;
    await fleet.api.replace(path, stripped(await fleet.api.get(path)) as KubeObject);
    await eventually(act, { what: 'the API server to take what CAAPH took' });
    await installCrds(fleet.api, CRD_FILES);
    await eventually(
      async () => {
        const refused = refusal(fleet.api.create(`${HCPS}?dryRun=All`, chartProxy({ repoURL: plain.url })));
        expect(await refused).toContain('unsupported scheme');
      },
      { what: 'the API server to go by the rules again' },
    );
  }

  function stripped(node: unknown): unknown {
    if (Array.isArray(node)) return node.map(stripped);
    if (typeof node !== 'object' || node === null) return node;
    const kept = Object.entries(node).filter(([key]) => key !== 'x-kubernetes-validations');
    return Object.fromEntries(kept.map(([key, value]) => [key, stripped(value)]));
  }

  async function create(name: string, spec: Record<string, unknown> = {}, labels: object = FILTER): Promise<Proxy> {
    return fleet.createChartProxy(name, { chartName: 'app', releaseName: name, namespace: name, ...spec }, { labels });
  }

  function pathOf(proxy: Proxy): string {
    return `${fleet.path('helmreleaseproxies')}/${proxy.metadata.name ?? ''}`;
  }

  async function releaseNames(): Promise<string[]> {
    return (await fleet.releases(1)).map((release) => `${release.name} ${release.revision}`).sort();
  }

  it('W15: an http:// repository that was let in is served, upgraded and deleted', async () => {
    expect((await fleet.deployed('plain', 1)).spec['repoURL']).toBe(plain.url);
    await fleet.patchChartProxy('plain', { spec: { valuesTemplate: 'message: two\n' } });
    await fleet.deployed('plain', 1, { revision: 2 });
    await fleet.removeChartProxy('plain');
    expect(await releaseNames()).toEqual([]);
  });

  it('W7: HelmReleaseProxies carry the filter label, and what happens to them is heard', async () => {
    await create('mine');
    await create('foreign', {}, {});
    const proxy = await fleet.deployed('mine', 1);
    expect(proxy.metadata.labels).toMatchObject(FILTER);
    await fleet.conditionOf({ chartProxy: 'mine' }, { type: 'Ready', status: 'True' });
    // An event of the HelmReleaseProxy's own: what somebody wrote into it is put right.
    await fleet.api.patch(pathOf(proxy), { spec: { values: 'message: by hand\n' } });
    await eventually(async () => {
      expect((await fleet.releaseProxy('mine', 1)).spec.values ?? '').toBe('');
    });
    // One that CAAPH left without the label gets it.
    await fleet.api.patch(pathOf(proxy), { metadata: { labels: { 'cluster.x-k8s.io/watch-filter': null } } });
    await eventually(async () => {
      expect((await fleet.releaseProxy('mine', 1)).metadata.labels).toMatchObject(FILTER);
    });
    const foreign = await fleet.chartProxy('foreign');
    expect([foreign.status, foreign.metadata.finalizers]).toEqual([undefined, undefined]);
    expect(await fleet.releaseProxies('foreign')).toEqual([]);
    await fleet.removeChartProxy('foreign');
    await fleet.removeChartProxy('mine');
    expect(await releaseNames()).toEqual([]);
  });

  /** Deployed, and noted as such: that is what decides whose a release is. The note comes after the status. */
  async function installed(name: string): Promise<Proxy> {
    return eventually(async () => {
      const proxy = await fleet.deployed(name, 1);
      expect(proxy.metadata.annotations).toHaveProperty([INSTALLED]);
      return proxy;
    });
  }

  /** Another HelmReleaseProxy for the same placement, as CAAPH's race or `clusterctl move` made them. */
  async function duplicate(of: Proxy, spec: object = {}, annotations: object = {}): Promise<Proxy> {
    const { labels, ownerReferences } = of.metadata;
    return fleet.api.create<Proxy>(fleet.path('helmreleaseproxies'), {
      apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
      kind: 'HelmReleaseProxy',
      metadata: { generateName: 'app-c1-', labels, ownerReferences, annotations },
      spec: { ...of.spec, ...spec },
    });
  }

  it('W10: of two HelmReleaseProxies for one release the one that installed it stays, and the release too', async () => {
    await create('twice');
    const first = await installed('twice');
    const before = [await operations(fleet, 'uninstall'), await operations(fleet, 'install')];
    const second = await duplicate(first);
    await eventually(async () => {
      expect(await fleet.api.find(pathOf(second))).toBeUndefined();
    });
    const left = await fleet.deployed('twice', 1);
    expect(left.metadata.uid).toBe(first.metadata.uid);
    await fleet.conditionOf({ chartProxy: 'twice' }, { type: 'Ready', status: 'True' });
    expect([await operations(fleet, 'uninstall'), await operations(fleet, 'install')]).toEqual(before);
    expect(await releaseNames()).toEqual(['twice 1']);
    await fleet.removeChartProxy('twice');
  });

  it('W10: of two that were made before anything was installed one stays, and installs', async () => {
    await create('raced', { releaseName: undefined, chartName: 'app' });
    const first = await fleet.deployed('raced', 1);
    await fleet.manager.stop();
    // As CAAPH would have left it: two that know nothing of each other, and no release.
    await fleet.cluster(1).helm3(['uninstall', first.spec.releaseName ?? '', '-n', 'raced']);
    const twins = [
      await duplicate(first, { releaseName: undefined }),
      await duplicate(first, { releaseName: undefined }),
    ];
    await fleet.api.patch(pathOf(first), { metadata: { finalizers: null } });
    await fleet.api.delete(pathOf(first));
    await startManager();
    const left = await fleet.deployed('raced', 1);
    expect(twins.map((twin) => twin.metadata.uid)).toContain(left.metadata.uid);
    await fleet.conditionOf({ chartProxy: 'raced' }, { type: 'Ready', status: 'True' });
    expect(await releaseNames()).toEqual([`${left.spec.releaseName ?? ''} 1`]);
    await fleet.removeChartProxy('raced');
  });

  it('W10: of two that each installed a release a person is asked which is wanted, and is heard', async () => {
    await create('split');
    const first = await installed('split');
    const second = await duplicate(first, { releaseName: 'split-too' }, { [INSTALLED]: 'true' });
    const told = await fleet.conditionOf(
      { chartProxy: 'split' },
      { type: 'HelmReleaseProxySpecsUpToDate', status: 'False', reason: 'HelmReleaseProxyDuplicate' },
    );
    expect(told.message).toContain(first.metadata.name ?? '');
    expect(told.message).toContain(second.metadata.name ?? '');
    await eventually(async () => {
      expect(await releaseNames()).toEqual(['split 1', 'split-too 1']);
      expect(condition(await fleet.api.get<Proxy>(pathOf(second)), 'Ready')?.status).toBe('True');
    });
    await fleet.api.delete(pathOf(second));
    await fleet.conditionOf({ chartProxy: 'split' }, { type: 'Ready', status: 'True' });
    await eventually(async () => {
      expect(await releaseNames()).toEqual(['split 1']);
    });
    await fleet.removeChartProxy('split');
  });
});
