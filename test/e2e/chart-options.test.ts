import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chartFromFiles, ensureNamespace, eventually, Fleet, setLabels, simpleChart } from '../support/index.ts';
import type { KubeObject } from '../support/index.ts';
import { chartOf, configMap, hook, NEVER_READY, widgetCrd } from './chart-files.ts';
import { Hauling } from './hauling.ts';

/** Every option of a HelmChartProxy (caaph §1.11): each is seen to act, or is refused in words. */
describe('a platform engineer who sets options', () => {
  let fleet: Fleet;
  let hauling: Hauling;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 1, controllers: true });
    hauling = new Hauling(fleet);
    const main = {
      'templates/main.yaml': configMap('main', { message: '{{ .Values.message | default "none" | quote }}' }),
    };
    fleet.charts.publish(
      simpleChart({ name: 'app', version: '1.0.0' }),
      chartOf('service', main),
      chartOf(
        'service',
        { ...main, 'templates/extra.yaml': configMap('extra', { message: 'new' }), 'templates/lb.yaml': NEVER_READY },
        { version: '2.0.0' },
      ),
      chartOf('service', main, { version: '3.0.0' }),
    );
  });

  afterAll(async () => {
    await fleet.stop();
  });

  async function service(release: string): Promise<KubeObject | undefined> {
    return fleet.cluster(1).api.find(`/api/v1/namespaces/${release}/services/${release}-lb`);
  }

  it('timeout: is told after that time that the release does not get ready, and that it does once it is', async () => {
    const name = 'timeout';
    await hauling.create(name, { chartName: 'service', version: '2.0.0', options: { wait: true, timeout: '2s' } });
    await hauling.refused(name, /timed out|deadline exceeded/);
    expect((await fleet.releaseProxy(name, 1)).status?.status).toBe('failed');
    await fleet.cluster(1).api.patch(`/api/v1/namespaces/${name}/services/${name}-lb/status`, {
      status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
    });
    await hauling.recovered(name);
    await fleet.removeChartProxy(name);
  });

  it('atomic: has a failed upgrade rolled back, and a failed install removed', async () => {
    const name = 'atomic';
    const options = { atomic: true, timeout: '2s' };
    await hauling.install(name, { chartName: 'service', version: '1.0.0', options, valuesTemplate: 'message: good\n' });
    await fleet.patchChartProxy(name, { spec: { version: '2.0.0', valuesTemplate: 'message: bad\n' } });
    await hauling.refused(name, /timed out|deadline exceeded|rolled back/);
    await eventually(async () => {
      expect((await hauling.configMap(name, 'main'))?.data['message']).toBe('good');
      expect(await service(name)).toBeUndefined();
    });
    await fleet.patchChartProxy(name, { spec: { version: '3.0.0', valuesTemplate: 'message: better\n' } });
    await hauling.recovered(name);
    await eventually(async () => {
      expect((await hauling.configMap(name, 'main'))?.data['message']).toBe('better');
    });
    await fleet.removeChartProxy(name);

    await hauling.create('atomic-install', { chartName: 'service', version: '2.0.0', options });
    await hauling.refused('atomic-install', /timed out|deadline exceeded|uninstalled/);
    await fleet.patchChartProxy('atomic-install', { spec: { version: '3.0.0' } });
    await hauling.recovered('atomic-install');
    expect(await service('atomic-install')).toBeUndefined();
    await fleet.removeChartProxy('atomic-install');
  });

  it('upgrade.cleanupOnFail: has what a failed upgrade made removed again', async () => {
    for (const [name, cleanupOnFail] of [
      ['cleanup', true],
      ['no-cleanup', false],
    ] as const) {
      const options = { wait: true, timeout: '2s', upgrade: { cleanupOnFail } };
      await hauling.install(name, { chartName: 'service', version: '1.0.0', options });
      await fleet.patchChartProxy(name, { spec: { version: '2.0.0' } });
      await hauling.refused(name, /timed out|deadline exceeded/);
      // No retry in between: a retry would make them anew.
      await fleet.patchChartProxy(name, { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } });
      await eventually(async () => {
        expect((await hauling.configMap(name, 'extra')) === undefined, name).toBe(cleanupOnFail);
      });
      await fleet.patchChartProxy(name, { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } });
      await fleet.patchChartProxy(name, { spec: { version: '3.0.0' } });
      await hauling.recovered(name);
      await fleet.removeChartProxy(name);
    }
  });

  it('upgrade.maxHistory: keeps 2 revisions, 10 when nothing is said, and all for 0', async () => {
    const spec = (name: string, options?: object): [string, Record<string, unknown>] => [
      name,
      { chartName: 'app', valuesTemplate: 'message: "1"\n', ...(options && { options }) },
    ];
    await hauling.install(...spec('history-two', { upgrade: { maxHistory: 2 } }));
    await hauling.install(...spec('history-default'));
    await hauling.install(...spec('history-all', { upgrade: { maxHistory: 0 } }));
    const names = ['history-two', 'history-default', 'history-all'];
    for (let revision = 2; revision <= 12; revision++) {
      const valuesTemplate = `message: "${revision}"\n`;
      await Promise.all(names.map(async (name) => hauling.upgrade(name, { valuesTemplate }, revision)));
    }
    expect(await hauling.revisions('history-two')).toEqual([11, 12]);
    expect(await hauling.revisions('history-default')).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    expect(await hauling.revisions('history-all')).toHaveLength(12);
    for (const name of names) await fleet.removeChartProxy(name);
  });

  it('disableHooks: has no hook run, at install, upgrade and uninstall', async () => {
    const name = 'no-hooks';
    fleet.charts.publish(
      chartOf(name, {
        'templates/main.yaml': configMap('main', { message: '{{ .Values.message | quote }}' }),
        'templates/hook.yaml': hook('hook', 'pre-install,pre-upgrade,pre-delete'),
      }),
    );
    await hauling.install(name, { options: { disableHooks: true }, valuesTemplate: 'message: one\n' });
    await hauling.upgrade(name, { valuesTemplate: 'message: two\n' }, 2);
    await fleet.removeChartProxy(name);
    expect(await hauling.configMap(name, 'main')).toBeUndefined();
    expect(await hauling.configMap(name, 'hook')).toBeUndefined();
  });

  it('uninstall.keepHistory and description: keeps the records, says why, and installs over them later', async () => {
    const name = 'kept';
    const key = { name: 'c1', namespace: fleet.namespace };
    await setLabels(fleet.api, key, { kept: 'yes' });
    await hauling.install(name, {
      chartName: 'app',
      clusterSelector: { matchLabels: { kept: 'yes' } },
      options: { uninstall: { keepHistory: true, description: 'moved to another fleet' } },
    });
    await setLabels(fleet.api, key, { kept: null });
    await eventually(async () => {
      expect(await fleet.releaseProxies(name)).toEqual([]);
    });
    const { info } = await hauling.record(name);
    expect([info.status, info.description]).toEqual(['uninstalled', 'moved to another fleet']);
    expect(await hauling.configMap(name, '0')).toBeUndefined();
    await setLabels(fleet.api, key, { kept: 'yes' });
    await fleet.deployed(name, 1, { revision: 2 });
    expect(await hauling.configMap(name, '0')).toBeDefined();
    await fleet.removeChartProxy(name);
  });

  it('upgrade.reuseValues, resetThenReuseValues and resetValues: keeps values no longer given, or does not; and is then at rest', async () => {
    const upgrades = {
      reuse: { reuseValues: true },
      then: { resetThenReuseValues: true },
      reset: { resetValues: true },
      none: {},
    };
    for (const [name, upgrade] of Object.entries(upgrades)) {
      await hauling.install(name, {
        chartName: 'app',
        options: { upgrade },
        valuesTemplate: 'message: a\nmore: kept\n',
      });
      await hauling.upgrade(name, { valuesTemplate: 'message: b\n' }, 2);
      const kept = name === 'reuse' || name === 'then' ? { more: 'kept' } : {};
      expect((await hauling.record(name)).config, name).toEqual({ message: 'b', ...kept });
    }
    const before = await fleet.manager.metric('capstan_helm_operations_total', { operation: 'upgrade' });
    for (const name of Object.keys(upgrades)) {
      const proxy = await fleet.releaseProxy(name, 1);
      await fleet.api.patch(`${fleet.path('helmreleaseproxies')}/${proxy.metadata.name ?? ''}`, {
        metadata: { labels: { looked: 'at' } },
      });
    }
    // A sentinel: asked for after the others, and served after them.
    await hauling.install('sentinel', { chartName: 'app' });
    expect(await fleet.manager.metric('capstan_helm_operations_total', { operation: 'upgrade' })).toBe(before);
    for (const name of [...Object.keys(upgrades), 'sentinel']) await fleet.removeChartProxy(name);
  });

  it('install.createNamespace false: is told that the namespace is missing, and is served once somebody makes it', async () => {
    const name = 'no-namespace';
    await hauling.create(name, { chartName: 'app', options: { install: { createNamespace: false } } });
    await hauling.refused(name, /namespaces "no-namespace" not found/);
    expect(await fleet.cluster(1).api.find(`/api/v1/namespaces/${name}`)).toBeUndefined();
    await ensureNamespace(fleet.cluster(1).api, name);
    await hauling.recovered(name);
    expect((await fleet.cluster(1).api.get(`/api/v1/namespaces/${name}`)).metadata.labels).not.toHaveProperty('name');
    await fleet.removeChartProxy(name);
  });

  it('dependencyUpdate: is honoured for a packaged chart that has its dependencies, and refused in words for one that lacks them', async () => {
    const dependencies = [{ name: 'child', version: '1.0.0', repository: fleet.charts.url }];
    const main = { 'values.yaml': '{}\n', 'templates/main.yaml': configMap('main', { message: 'x' }) };
    fleet.charts.publish(
      chartFromFiles(
        { name: 'whole', version: '1.0.0', dependencies },
        {
          ...main,
          'charts/child/Chart.yaml': 'apiVersion: v2\nname: child\nversion: 1.0.0\n',
          'charts/child/templates/main.yaml': configMap('child', { message: 'x' }),
        },
      ),
      chartFromFiles({ name: 'lacking', version: '1.0.0', dependencies }, main),
    );
    await hauling.install('whole', { options: { dependencyUpdate: true } });
    expect(await hauling.configMap('whole', 'child')).toBeDefined();
    await hauling.create('lacking', { options: { dependencyUpdate: true } });
    await hauling.refused('lacking', /options\.dependencyUpdate[^]*helm package/, 'HelmOptionUnsupported');
    for (const name of ['whole', 'lacking']) await fleet.removeChartProxy(name);
  });

  it('upgrade.recreate: is refused in words where helm cannot do it, and served once it is taken out', async () => {
    const name = 'recreate';
    await hauling.install(name, { chartName: 'app', options: { upgrade: { recreate: true } } });
    await fleet.patchChartProxy(name, { spec: { valuesTemplate: 'message: new\n' } });
    await hauling.refused(name, /options\.upgrade\.recreate[^]*checksum\/config/, 'HelmOptionUnsupported');
    await fleet.patchChartProxy(name, { spec: { options: { upgrade: { recreate: false } } } });
    await hauling.recovered(name);
    expect((await hauling.configMap(name, '0'))?.data['message']).toBe('new');
    await fleet.removeChartProxy(name);
  });

  it('upgrade.force: has an object replaced rather than patched, also fields that somebody else has written', async () => {
    const name = 'force';
    await hauling.install(name, { chartName: 'app', valuesTemplate: 'message: one\n' });
    await fleet.cluster(1).api.patch(`/api/v1/namespaces/${name}/configmaps/${name}-0`, { data: { foreign: 'field' } });
    await hauling.upgrade(name, { valuesTemplate: 'message: two\n' }, 2);
    expect((await hauling.configMap(name, '0'))?.data).toMatchObject({ message: 'two', foreign: 'field' });
    await hauling.upgrade(name, { valuesTemplate: 'message: three\n', options: { upgrade: { force: true } } }, 3);
    const replaced = (await hauling.configMap(name, '0'))?.data;
    expect(replaced).toMatchObject({ message: 'three' });
    expect(replaced).not.toHaveProperty('foreign');
    await fleet.removeChartProxy(name);
  });

  it('install.includeCRDs: installs the CRDs of a chart, and is refused in words together with skipCRDs', async () => {
    const name = 'include-crds';
    const files = { 'crds/cog.yaml': widgetCrd('Cog'), 'templates/main.yaml': configMap('main', { message: 'x' }) };
    fleet.charts.publish(chartOf(name, files));
    await hauling.create(name, { options: { skipCRDs: true, install: { includeCRDs: true } } });
    await hauling.refused(name, /options\.install\.includeCRDs and options\.skipCRDs/, 'HelmOptionUnsupported');
    await fleet.patchChartProxy(name, { spec: { options: { skipCRDs: false } } });
    await hauling.recovered(name);
    const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    expect(await fleet.cluster(1).api.find(`${crds}/cogs.widgets.example.com`)).toBeDefined();
    await fleet.removeChartProxy(name);
  });

  it('a change of options alone reaches the release at its next change, and costs no revision', async () => {
    const name = 'options-only';
    await hauling.install(name, { chartName: 'app', valuesTemplate: 'message: "1"\n' });
    await fleet.patchChartProxy(name, { spec: { options: { timeout: '7m0s', upgrade: { maxHistory: 2 } } } });
    await eventually(async () => {
      const { spec, status, metadata } = await fleet.releaseProxy(name, 1);
      expect(spec['options']).toMatchObject({ timeout: '7m0s', upgrade: { maxHistory: 2 } });
      expect([status?.observedGeneration, status?.revision]).toEqual([metadata.generation, 1]);
    });
    for (let revision = 2; revision <= 4; revision++)
      await hauling.upgrade(name, { valuesTemplate: `message: "${revision}"\n` }, revision);
    expect(await hauling.revisions(name)).toEqual([3, 4]);
    await fleet.removeChartProxy(name);
  });
});
