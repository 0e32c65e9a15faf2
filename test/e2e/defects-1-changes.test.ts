import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ChartRepository, eventually, Fleet, setLabels, simpleChart } from '../support/index.ts';
import { Hauling } from './hauling.ts';
import { lookAgain, operations } from './looks.ts';
import { feignUpgrades } from './release-secrets.ts';

interface Managed {
  metadata: { managedFields: { manager: string; fieldsV1: Record<string, unknown> }[] };
}

const PAUSED = 'cluster.x-k8s.io/paused';
const ROBOT = { username: 'robot', password: 'r0bot-pass' };

/** Defects W1, W3, W6, W14 and W19 of CAAPH: what becomes of a user's change. */
describe('a platform engineer who changes a HelmChartProxy', () => {
  let fleet: Fleet;
  let hauling: Hauling;
  let closed: ChartRepository;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 1 });
    hauling = new Hauling(fleet);
    closed = await ChartRepository.start({ auth: ROBOT });
    for (const repository of [fleet.charts, closed]) repository.publish(simpleChart({ name: 'app', objects: 1 }));
    await secret('closed-ca', { 'ca.crt': closed.ca });
    await secret('robot', ROBOT);
  });

  afterAll(async () => {
    await closed.stop();
    await fleet.stop();
  });

  async function secret(name: string, data: Record<string, string>): Promise<void> {
    await fleet.api.create(`/api/v1/namespaces/${fleet.namespace}/secrets`, { metadata: { name }, stringData: data });
  }

  /** Who has written into the spec. */
  async function authorsOf(path: string): Promise<string[]> {
    const { metadata } = await fleet.api.get<Managed>(path);
    return metadata.managedFields.filter(({ fieldsV1 }) => 'f:spec' in fieldsV1).map(({ manager }) => manager);
  }

  it('W1: an option alone reaches the release that is there, and counts', async () => {
    await hauling.install('option', { chartName: 'app' });
    const uninstall = { keepHistory: true, description: 'taken away by the fleet' };
    await fleet.patchChartProxy('option', { spec: { options: { uninstall } } });
    await eventually(async () => {
      expect((await fleet.deployed('option', 1)).spec['options']).toMatchObject({ uninstall });
    });
    await fleet.removeChartProxy('option');
    const { info, version } = await hauling.record('option');
    expect([info.status, info.description, version]).toEqual(['uninstalled', uninstall.description, 1]);
  });

  it('W1: credentials alone, and a CA alone, reach the release that waits for them', async () => {
    await hauling.create('private', { chartName: 'app', repoURL: closed.url });
    const subject = { chartProxy: 'private', index: 1 };
    const failed = { type: 'HelmReleaseReady', reason: 'HelmInstallOrUpgradeFailed' };
    expect((await fleet.conditionOf(subject, failed)).message).toMatch(/certificate|authority|signed/i);
    await fleet.patchChartProxy('private', { spec: { tlsConfig: { caSecret: { name: 'closed-ca' } } } });
    await hauling.refused('private', /401|unauthorized|credentials/i);
    await fleet.patchChartProxy('private', { spec: { credentials: { secret: { name: 'robot' }, key: '' } } });
    const proxy = await hauling.recovered('private');
    expect(proxy.spec).toMatchObject({
      credentials: { secret: { name: 'robot', namespace: fleet.namespace }, key: 'config.json' },
      tlsConfig: { caSecret: { name: 'closed-ca', namespace: fleet.namespace } },
    });
    await fleet.removeChartProxy('private');
  });

  it('W14: finds the spec as it was written, and only its author among those who own it', async () => {
    const spec = {
      chartName: 'app',
      repoURL: closed.url,
      tlsConfig: { caSecret: { name: 'closed-ca' } },
      credentials: { secret: { name: 'robot' }, key: '' },
    };
    await hauling.create('authored', spec);
    const path = `${fleet.path('helmchartproxies')}/authored`;
    const written = await fleet.chartProxy('authored');
    await fleet.deployed('authored', 1);
    await fleet.conditionOf({ chartProxy: 'authored' }, { type: 'Ready', status: 'True' });
    const now = await fleet.chartProxy('authored');
    expect(now.spec).toEqual(written.spec);
    expect(now.spec).toMatchObject({ tlsConfig: spec.tlsConfig, credentials: spec.credentials });
    expect(now.metadata.generation).toBe(1);
    expect(await authorsOf(path)).toHaveLength(1);
    expect(await authorsOf(path)).not.toContain('capstan');
    await fleet.removeChartProxy('authored');
  });

  it('W3: clearing valuesTemplate clears the values, once', async () => {
    await hauling.install('cleared', { chartName: 'app', valuesTemplate: 'message: mine\nextra: 1\n' });
    await hauling.upgrade('cleared', { valuesTemplate: null }, 2);
    expect((await hauling.record('cleared')).config ?? {}).toEqual({});
    expect((await hauling.configMap('cleared', '0'))?.data).toMatchObject({ message: 'hello' });
    const upgrades = await operations(fleet, 'upgrade');
    await lookAgain(fleet, 'cleared');
    await lookAgain(fleet, 'cleared');
    expect(await operations(fleet, 'upgrade')).toBe(upgrades);
    expect(await hauling.revisions('cleared')).toEqual([1, 2]);
    await fleet.removeChartProxy('cleared');
  });

  it.each(['reuseValues', 'resetThenReuseValues'])(
    'W3: a value taken out under %s stays, as asked for, and upgrades once',
    async (option) => {
      const name = option.toLowerCase();
      const options = { upgrade: { [option]: true } };
      await hauling.install(name, { chartName: 'app', options, valuesTemplate: 'message: kept\nextra: 1\n' });
      await hauling.upgrade(name, { valuesTemplate: 'extra: 2\n' }, 2);
      expect((await hauling.record(name)).config).toEqual({ message: 'kept', extra: 2 });
      const upgrades = await operations(fleet, 'upgrade');
      await lookAgain(fleet, name);
      await lookAgain(fleet, name);
      expect(await operations(fleet, 'upgrade')).toBe(upgrades);
      expect(await hauling.revisions(name)).toEqual([1, 2]);
      await fleet.removeChartProxy(name);
    },
  );

  it('W6: createNamespace: false is kept and obeyed', async () => {
    await hauling.create('homeless', { chartName: 'app', options: { install: { createNamespace: false } } });
    await hauling.refused('homeless', /namespaces? "homeless" not found/);
    expect((await fleet.releaseProxy('homeless', 1)).spec['options']).toMatchObject({
      install: { createNamespace: false },
    });
    expect(await fleet.cluster(1).api.find('/api/v1/namespaces/homeless')).toBeUndefined();
    await fleet.cluster(1).api.create('/api/v1/namespaces', { metadata: { name: 'homeless' } });
    await hauling.recovered('homeless');
    await fleet.removeChartProxy('homeless');
  });

  it('W6: maxHistory: 0 is kept, and means every revision', async () => {
    await hauling.install('all', { chartName: 'app', options: { upgrade: { maxHistory: 0 } } });
    const proxy = await fleet.releaseProxy('all', 1);
    expect(proxy.spec['options']).toMatchObject({ upgrade: { maxHistory: 0 } });
    // Ten revisions more, made where the manager does not mind; the default would be to keep ten.
    const path = `${fleet.path('helmreleaseproxies')}/${proxy.metadata.name ?? ''}`;
    await fleet.api.patch(path, { metadata: { annotations: { [PAUSED]: '' } } });
    await feignUpgrades(fleet.cluster(1), { namespace: 'all', name: 'all' }, 11);
    await fleet.api.patch(path, { metadata: { annotations: { [PAUSED]: null } } });
    await hauling.upgrade('all', { valuesTemplate: 'message: newest\n' }, 12);
    expect(await hauling.revisions('all')).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
    await fleet.removeChartProxy('all');
  });

  it('W19: a random value is drawn once, and anew when what the template reads changes', async () => {
    await label({ tier: 'gold' });
    await hauling.install('random', {
      chartName: 'app',
      valuesTemplate:
        'message: "{{ .Cluster.metadata.labels.tier }}-{{ randAlphaNum 12 }}{{ .Cluster.spec.missing }}"\n',
    });
    const drawn = (await fleet.releaseProxy('random', 1)).spec.values ?? '';
    // A field that is not there is nothing, and not the text <no value>.
    expect(drawn).toMatch(/^message: "gold-[A-Za-z0-9]{12}"\n$/);
    const upgrades = await operations(fleet, 'upgrade');
    await lookAgain(fleet, 'random');
    await label({ other: 'thing' });
    await lookAgain(fleet, 'random');
    expect((await fleet.releaseProxy('random', 1)).spec.values).toBe(drawn);
    expect(await operations(fleet, 'upgrade')).toBe(upgrades);
    await label({ tier: 'silver' });
    const proxy = await fleet.deployed('random', 1, { revision: 2 });
    expect(proxy.spec.values).toMatch(/^message: "silver-[A-Za-z0-9]{12}"\n$/);
    await lookAgain(fleet, 'random');
    expect(await operations(fleet, 'upgrade')).toBe(upgrades + 1);
    await fleet.removeChartProxy('random');
  });

  async function label(labels: Record<string, string>): Promise<void> {
    await setLabels(fleet.api, { name: 'c1', namespace: fleet.namespace }, labels);
  }
});
