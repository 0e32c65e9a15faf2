import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ChartRepository, Fleet, OciRegistry, setLabels, simpleChart } from '../support/index.ts';
import { createSecret, dockerConfig, patchSecret } from './secrets.ts';

const ROBOT = { username: 'robot', password: 'sesame-0815' };
const WRONG = { username: 'robot', password: 'not-the-one' };
const CLUSTERS = 2;

/** Where charts come from in companies: behind a private certificate authority and a login. */
describe('a platform engineer whose charts are in private repositories', () => {
  let fleet: Fleet;
  let repository: ChartRepository;
  let registry: OciRegistry;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: CLUSTERS, manager: false });
    repository = await ChartRepository.start({ auth: ROBOT });
    registry = await OciRegistry.start(fleet.environment, { auth: ROBOT });
    await createSecret(fleet, 'private-ca', { 'ca.crt': repository.ca });
    await createSecret(fleet, 'registry-ca', { 'ca.crt': registry.ca });
    await createSecret(fleet, 'registry-login', { 'config.json': registry.dockerConfig() });
    await createSecret(fleet, 'docker-login', { 'config.json': dockerConfig(repository.url, ROBOT) });
    await createSecret(fleet, 'basic-login', { ...ROBOT });
    await fleet.startManager();
    for (const chart of ['https-docker', 'https-basic', 'https-insecure', 'https-mended', 'https-late']) {
      repository.publish(simpleChart({ name: chart }));
    }
  });

  afterAll(async () => {
    await repository.stop();
    await fleet.stop();
  });

  /** Applies a HelmChartProxy of the chart of its own name; for c1 alone unless told otherwise. */
  async function apply(name: string, spec: Record<string, unknown>): Promise<void> {
    await fleet.createChartProxy(name, {
      chartName: name,
      releaseName: name,
      namespace: name,
      clusterSelector: { matchLabels: { idx: '1' } },
      ...spec,
    });
  }

  const privately = (login: string, key = 'config.json'): Record<string, unknown> => ({
    repoURL: repository.url,
    tlsConfig: { caSecret: { name: 'private-ca' } },
    credentials: { secret: { name: login }, key },
  });
  const fromRegistry = (login: string): Record<string, unknown> => ({
    repoURL: registry.url,
    tlsConfig: { caSecret: { name: 'registry-ca' } },
    credentials: { secret: { name: login }, key: 'config.json' },
  });

  it('W34: installs from an HTTPS repository with its CA and the login of a docker config file', async () => {
    await apply('https-docker', privately('docker-login'));
    await fleet.deployed('https-docker', 1);
    expect(repository.requests.filter(({ path, status }) => path.includes('https-docker') && status === 200)).toEqual([
      expect.objectContaining({ authorized: true }),
    ]);
  });

  it('W34: installs from an HTTPS repository with the keys username and password of a Secret', async () => {
    await apply('https-basic', privately('basic-login'));
    await fleet.deployed('https-basic', 1);
  });

  it('W34: says that a certificate is not trusted, and goes on when insecureSkipTLSVerify allows it', async () => {
    await apply('https-insecure', { ...privately('basic-login'), tlsConfig: { insecureSkipTLSVerify: false } });
    const told = await fleet.conditionOf(
      { chartProxy: 'https-insecure', index: 1 },
      { type: 'HelmReleaseReady', status: 'False', reason: 'HelmInstallOrUpgradeFailed' },
    );
    expect(told.message).toMatch(/certificate/i);
    await fleet.patchChartProxy('https-insecure', { spec: { tlsConfig: { insecureSkipTLSVerify: true } } });
    await fleet.deployed('https-insecure', 1);
  });

  it('says that a CA is the wrong one, and goes on when the right one is in the Secret', async () => {
    await createSecret(fleet, 'other-ca', { 'ca.crt': registry.ca });
    repository.publish(simpleChart({ name: 'wrong-ca' }));
    await apply('wrong-ca', { ...privately('basic-login'), tlsConfig: { caSecret: { name: 'other-ca' } } });
    const told = await fleet.conditionOf(
      { chartProxy: 'wrong-ca', index: 1 },
      { type: 'HelmReleaseReady', status: 'False', reason: 'HelmInstallOrUpgradeFailed' },
    );
    expect(told.message).toMatch(/certificate/i);
    await patchSecret(fleet, 'other-ca', { 'ca.crt': repository.ca });
    await fleet.deployed('wrong-ca', 1);
  });

  it('installs from an OCI registry with its CA and login, once downloaded for two clusters', async () => {
    const chart = simpleChart({ name: 'oci-app' });
    await registry.push(chart);
    await apply('oci-app', { ...fromRegistry('registry-login'), clusterSelector: { matchLabels: { fleet: 'yes' } } });
    for (let index = 1; index <= CLUSTERS; index++) await fleet.deployed('oci-app', index);
    expect(await registry.downloads(chart)).toBe(1);
  });

  it('follows a new version in an OCI registry when the version is changed', async () => {
    const [old, fresh] = [simpleChart({ name: 'oci-new' }), simpleChart({ name: 'oci-new', version: '1.1.0' })];
    await registry.push(old);
    await apply('oci-new', { ...fromRegistry('registry-login'), version: '1.0.0' });
    await fleet.deployed('oci-new', 1);
    await registry.push(fresh);
    await fleet.patchChartProxy('oci-new', { spec: { version: '1.1.0' } });
    await fleet.deployed('oci-new', 1, { revision: 2 });
    expect((await fleet.releases(1)).find(({ name }) => name === 'oci-new')?.chart).toBe('oci-new-1.1.0');
  });

  it('installs from an OCI registry whose certificate nobody checks, when insecureSkipTLSVerify allows it', async () => {
    await registry.push(simpleChart({ name: 'oci-insecure' }));
    await apply('oci-insecure', { ...fromRegistry('registry-login'), tlsConfig: { insecureSkipTLSVerify: true } });
    await fleet.deployed('oci-insecure', 1);
  });

  it.each([
    { kind: 'HTTPS repository', name: 'https-mended' },
    { kind: 'OCI registry', name: 'oci-mended' },
  ])('says that the login is wrong for the $kind, and installs when the Secret is mended', async ({ name }) => {
    const secret = `${name}-login`;
    const isOci = name.startsWith('oci-');
    if (isOci) await registry.push(simpleChart({ name }));
    const { url } = isOci ? registry : repository;
    await createSecret(fleet, secret, { 'config.json': dockerConfig(url, WRONG) });
    await apply(name, isOci ? fromRegistry(secret) : privately(secret));
    const told = await fleet.conditionOf(
      { chartProxy: name, index: 1 },
      { type: 'HelmReleaseReady', status: 'False', reason: 'HelmInstallOrUpgradeFailed' },
    );
    expect(told.message).toMatch(/401|credentials/i);
    expect(told.message).not.toContain(WRONG.password);
    await patchSecret(fleet, secret, { 'config.json': dockerConfig(url, ROBOT) });
    await fleet.deployed(name, 1);
  });

  it('says which Secret or key is missing, and installs when it appears', async () => {
    await apply('https-late', {
      ...privately('late-login', 'login.json'),
      tlsConfig: { caSecret: { name: 'late-ca' } },
    });
    const subject = { chartProxy: 'https-late', index: 1 };
    const noLogin = await fleet.conditionOf(subject, { type: 'ClusterAvailable', reason: 'GetCredentialsFailed' });
    expect(noLogin).toMatchObject({ status: 'False' });
    expect(noLogin.message).toContain(`${fleet.namespace}/late-login`);
    await createSecret(fleet, 'late-login', { 'login.json': dockerConfig(repository.url, ROBOT) });
    await fleet.conditionOf(subject, { type: 'ClusterAvailable', reason: 'GetCACertificateFailed' });
    await createSecret(fleet, 'late-ca', { wrong: 'key' });
    await patchSecret(fleet, 'late-ca', { 'ca.crt': repository.ca });
    await fleet.deployed('https-late', 1);
  });

  it('W37: never mixes up two repositories that have a chart of the same name and version', async () => {
    const other = await ChartRepository.start();
    try {
      await createSecret(fleet, 'twin-ca', { 'ca.crt': other.ca });
      fleet.charts.publish(simpleChart({ name: 'twin', values: { message: 'from the first' } }));
      other.publish(simpleChart({ name: 'twin', values: { message: 'from the second' } }));
      const spec = { chartName: 'twin', version: '1.0.0', clusterSelector: { matchLabels: { fleet: 'yes' } } };
      await Promise.all([
        apply('twin-one', spec),
        apply('twin-two', { ...spec, repoURL: other.url, tlsConfig: { caSecret: { name: 'twin-ca' } } }),
      ]);
      for (let index = 1; index <= CLUSTERS; index++) {
        for (const [name, message] of [
          ['twin-one', 'from the first'],
          ['twin-two', 'from the second'],
        ] as const) {
          await fleet.deployed(name, index);
          const object = await fleet.cluster(index).api.get(`/api/v1/namespaces/${name}/configmaps/${name}-0`);
          expect(object['data']).toMatchObject({ message });
        }
      }
    } finally {
      await other.stop();
    }
  });

  it('W27: downloads a chart once for two clusters and three HelmChartProxies', async () => {
    fleet.charts.publish(simpleChart({ name: 'shared', objects: 2 }));
    fleet.charts.resetRequests();
    const names = ['shared-a', 'shared-b', 'shared-c'];
    const spec = { chartName: 'shared', version: '1.0.0', clusterSelector: { matchLabels: { fleet: 'yes' } } };
    await Promise.all(names.map(async (name) => apply(name, spec)));
    for (const name of names) {
      for (let index = 1; index <= CLUSTERS; index++) await fleet.deployed(name, index);
    }
    expect(fleet.charts.downloads('shared', '1.0.0')).toBe(1);
    expect(fleet.charts.indexRequests()).toBeLessThanOrEqual(1);
  });

  it('W1: acts at once when a HelmChartProxy names another login, and touches no release that is as it should be', async () => {
    await createSecret(fleet, 'spare-login', { ...ROBOT });
    await fleet.patchChartProxy('https-basic', { spec: { credentials: { secret: { name: 'spare-login' } } } });
    const proxy = await fleet.deployed('https-basic', 1);
    expect(proxy.status?.revision).toBe(1);
    await setLabels(fleet.api, { name: 'c1', namespace: fleet.namespace }, { later: 'yes' });
    await fleet.patchChartProxy('https-basic', { spec: { valuesTemplate: 'message: two\n' } });
    const changed = await fleet.deployed('https-basic', 1, { revision: 2 });
    expect(changed.spec['credentials']).toMatchObject({ secret: { name: 'spare-login' } });
  });
});
