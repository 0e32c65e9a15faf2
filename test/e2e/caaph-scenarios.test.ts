import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { eventually, Fleet, setLabels, simpleChart } from '../support/index.ts';
import type { Proxy } from '../support/index.ts';
import { HELM_VERSIONS } from './helm-versions.ts';
import { forceStatus, newestRecord } from './release-secrets.ts';

/** CAAPH's own end-to-end scenarios: what its users rely on today. */
describe.each(HELM_VERSIONS)('a platform engineer of CAAPH, on $name', ({ binary }) => {
  let fleet: Fleet;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 2, manager: false });
    await fleet.startManager({ helm: binary(fleet.environment) });
    fleet.charts.publish(
      simpleChart({ name: 'app', version: '1.0.0', objects: 2 }),
      simpleChart({
        name: 'account',
        files: {
          'templates/account.yaml':
            'apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {{ .Release.Name }}-account\n  namespace: {{ .Release.Namespace }}\n',
        },
      }),
    );
  });

  afterAll(async () => {
    await fleet.stop();
  });

  /** Makes Cluster c<index> match `{ [label]: 'yes' }`. */
  async function label(index: number, name: string, value: string | null = 'yes'): Promise<void> {
    await setLabels(fleet.api, { name: `c${index}`, namespace: fleet.namespace }, { [name]: value });
  }

  /** What all of CAAPH's scenarios assert of a deployed release. */
  async function expectDeployed(name: string, index: number, revision: number): Promise<Proxy> {
    const proxy = await fleet.deployed(name, index, { revision });
    const namespace = String(proxy.spec['namespace']);
    const record = await newestRecord(fleet.cluster(index), namespace, proxy.spec.releaseName ?? '');
    expect(record.info.status).toBe('deployed');
    expect(record.version).toBe(revision);
    expect(record.config ?? {}).toEqual(parse(proxy.spec.values ?? '') ?? {});
    return proxy;
  }

  async function expectNoRelease(index: number, name: string): Promise<void> {
    await eventually(
      async () => {
        const left = (await fleet.releases(index)).filter((release) => release.name === name);
        if (left.length > 0) throw new Error(JSON.stringify(left));
      },
      { what: `release ${name} is gone from c${index}` },
    );
  }

  async function expectNoReleaseProxies(name: string): Promise<void> {
    await eventually(
      async () => {
        const left = await fleet.releaseProxies(name);
        if (left.length > 0) throw new Error(JSON.stringify(left.map((proxy) => proxy.status)));
      },
      { timeoutMs: 60_000, what: `HelmReleaseProxies of ${name} are gone` },
    );
  }

  it('installs, upgrades, reinstalls elsewhere and under another name, and uninstalls with the label', async () => {
    await label(1, 'life');
    await fleet.createChartProxy('life', {
      chartName: 'app',
      releaseName: 'life',
      namespace: 'life-a',
      clusterSelector: { matchLabels: { life: 'yes' } },
      valuesTemplate: 'message: one\n',
    });
    await expectDeployed('life', 1, 1);

    await fleet.patchChartProxy('life', { spec: { valuesTemplate: 'message: two\n' } });
    await expectDeployed('life', 1, 2);

    await fleet.patchChartProxy('life', { spec: { namespace: 'life-b' } });
    await eventually(async () => {
      const proxy = await fleet.deployed('life', 1, { revision: 1 });
      expect(proxy.spec['namespace']).toBe('life-b');
    });
    await expectDeployed('life', 1, 1);

    await fleet.patchChartProxy('life', { spec: { releaseName: 'life-renamed' } });
    await eventually(async () => {
      const proxy = await fleet.deployed('life', 1, { revision: 1 });
      expect(proxy.spec.releaseName).toBe('life-renamed');
    });
    await expectDeployed('life', 1, 1);
    expect((await fleet.releases(1)).map((release) => `${release.namespace}/${release.name}`)).toEqual([
      'life-b/life-renamed',
    ]);

    await label(1, 'life', null);
    await expectNoReleaseProxies('life');
    await expectNoRelease(1, 'life-renamed');
    await fleet.removeChartProxy('life');
  });

  it('takes over existing objects when takeOwnership is set, and says that it may not when it is not', async () => {
    const { api } = fleet.cluster(1);
    for (const [namespace, name] of [
      ['taken', 'taken-account'],
      ['refused', 'refused-account'],
    ]) {
      await api.create('/api/v1/namespaces', { metadata: { name: namespace } });
      await api.create(`/api/v1/namespaces/${String(namespace)}/serviceaccounts`, { metadata: { name } });
    }
    await label(1, 'owner');
    const spec = { chartName: 'account', clusterSelector: { matchLabels: { owner: 'yes' } } };
    await fleet.createChartProxy('taken', {
      ...spec,
      releaseName: 'taken',
      namespace: 'taken',
      options: { takeOwnership: true },
    });
    await expectDeployed('taken', 1, 1);
    const account = await api.get('/api/v1/namespaces/taken/serviceaccounts/taken-account');
    expect(account.metadata.labels).toMatchObject({ 'app.kubernetes.io/managed-by': 'Helm' });
    expect(account.metadata.annotations).toMatchObject({
      'meta.helm.sh/release-name': 'taken',
      'meta.helm.sh/release-namespace': 'taken',
    });

    await fleet.createChartProxy('refused', { ...spec, releaseName: 'refused', namespace: 'refused' });
    const told = await fleet.conditionOf(
      { chartProxy: 'refused', index: 1 },
      { type: 'HelmReleaseReady', status: 'False', reason: 'HelmInstallOrUpgradeFailed' },
    );
    expect(told.message).toMatch(/refused-account|ownership/);
    await fleet.removeChartProxy('refused');
    await fleet.removeChartProxy('taken');
  });

  it('installs once and then leaves the release alone, whatever happens on either side', async () => {
    await label(1, 'once');
    await fleet.createChartProxy('once', {
      chartName: 'app',
      releaseName: 'once',
      namespace: 'once',
      reconcileStrategy: 'InstallOnce',
      clusterSelector: { matchLabels: { once: 'yes' } },
      valuesTemplate: 'message: first\n',
    });
    await expectDeployed('once', 1, 1);
    await fleet.patchChartProxy('once', { spec: { valuesTemplate: 'message: second\n' } });
    for (let revision = 2; revision <= 6; revision++) {
      const chart = `${fleet.environment.directory}/once.tgz`;
      await writeChart(chart);
      await fleet.cluster(1).helm3(['upgrade', 'once', chart, '-n', 'once', '--set', `message=by-hand-${revision}`]);
    }
    await label(1, 'once', null);
    // A sentinel: another placement of the same cluster is worked on after all of the above.
    await fleet.createChartProxy('sentinel', {
      chartName: 'app',
      releaseName: 'sentinel',
      namespace: 'sentinel',
      clusterSelector: { matchLabels: { idx: '1' } },
    });
    await expectDeployed('sentinel', 1, 1);
    const record = await newestRecord(fleet.cluster(1), 'once', 'once');
    expect([record.version, record.config?.['message']]).toEqual([6, 'by-hand-6']);
    const proxy = await fleet.releaseProxy('once', 1);
    expect(proxy.status?.conditions?.find((c) => c.type === 'Ready')?.status).toBe('True');
    await fleet.removeChartProxy('once');
    expect((await fleet.releases(1)).map((release) => release.name)).toContain('once');
    await fleet.removeChartProxy('sentinel');
    await fleet.cluster(1).helm3(['uninstall', 'once', '-n', 'once']);
  });

  async function writeChart(path: string): Promise<void> {
    const { writeFile } = await import('node:fs/promises');
    await writeFile(path, simpleChart({ name: 'app', version: '1.0.0', objects: 2 }).archive);
  }

  it('follows labels on two clusters, each on its own', async () => {
    await label(1, 'pair');
    await fleet.createChartProxy('pair', {
      chartName: 'app',
      releaseName: 'pair',
      namespace: 'pair',
      clusterSelector: { matchLabels: { pair: 'yes' } },
    });
    await expectDeployed('pair', 1, 1);
    await label(2, 'pair');
    await expectDeployed('pair', 2, 1);
    await label(1, 'pair', null);
    await expectNoRelease(1, 'pair');
    await eventually(async () => {
      expect((await fleet.releaseProxies('pair')).map((proxy) => proxy.spec.clusterRef?.name)).toEqual(['c2']);
    });
    await expectDeployed('pair', 2, 1);
    await fleet.removeChartProxy('pair');
    await expectNoRelease(2, 'pair');
  });

  it.each(['pending-install', 'pending-upgrade', 'pending-rollback'])(
    'recovers a release that was left %s, to revision 2',
    async (status) => {
      await label(1, status);
      await fleet.createChartProxy(status, {
        chartName: 'app',
        releaseName: status,
        namespace: status,
        clusterSelector: { matchLabels: { [status]: 'yes' } },
        valuesTemplate: 'message: kept\n',
      });
      await expectDeployed(status, 1, 1);
      await forceStatus(fleet.cluster(1), { namespace: status, name: status }, status);
      await expectDeployed(status, 1, 2);
      await fleet.removeChartProxy(status);
    },
  );

  it.each(['uninstalling', 'pending-install', 'pending-upgrade', 'pending-rollback'])(
    'uninstalls a release that was left %s',
    async (status) => {
      const name = `odd-${status}`;
      await label(2, name);
      await fleet.createChartProxy(name, {
        chartName: 'app',
        releaseName: name,
        namespace: name,
        clusterSelector: { matchLabels: { [name]: 'yes' } },
      });
      await expectDeployed(name, 2, 1);
      // The label goes first, so that the odd state is met by the deletion and not by a recovery.
      await forceStatus(fleet.cluster(2), { namespace: name, name }, status);
      await label(2, name, null);
      await expectNoReleaseProxies(name);
      await expectNoRelease(2, name);
      await fleet.removeChartProxy(name);
    },
  );
});
