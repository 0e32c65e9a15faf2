import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { CertificateAuthority, ChartRepository, chartFromFiles, createCluster, Fleet } from '../support/index.ts';
import { simpleChart } from '../support/index.ts';
import { RecordingProxy } from './recording-proxy.ts';
import { createSecret, dockerConfig } from './secrets.ts';

/** Nothing of these may be seen anywhere but where the user put it. */
const CANARY = {
  values: 'canary-in-values-4711',
  password: 'canary-password-4712',
  kubeconfig: 'canary-kubeconfig-4713',
};

/** A chart that an API server refuses, quoting what it was given. */
const UNNAMEABLE = chartFromFiles(
  { name: 'unnameable', version: '1.0.0' },
  {
    'templates/object.yaml':
      'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "{{ .Values.password }}_IS_NO_NAME"\ndata: {}\n',
  },
);
/** A chart whose schema refuses the value, and Helm quotes it. */
const PICKY = chartFromFiles(
  { name: 'picky', version: '1.0.0' },
  {
    'values.yaml': 'password: short\n',
    'values.schema.json': JSON.stringify({
      type: 'object',
      properties: { password: { type: 'string', enum: ['short', 'shorter'], maxLength: 7, pattern: '^[a-f]+$' } },
    }),
    'templates/object.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: "{{ .Release.Name }}" }\n',
  },
);
/** A chart that makes of a text what must be a number. */
const MISTYPED = chartFromFiles(
  { name: 'mistyped', version: '1.0.0' },
  {
    'templates/object.yaml': [
      'apiVersion: v1',
      'kind: Service',
      'metadata: { name: "{{ .Release.Name }}" }',
      'spec: { ports: [{ port: "{{ .Values.password }}" }] }',
      '',
    ].join('\n'),
  },
);
/** A chart whose template chokes on the value. */
const CHOKING = chartFromFiles(
  { name: 'choking', version: '1.0.0' },
  { 'templates/object.yaml': 'apiVersion: v1\nkind: ConfigMap\n{{ .Values.password }}: : {\n' },
);

/** What a manager sees, and whom it tells. */
describe('a security officer who reads everything that a manager says', () => {
  let fleet: Fleet;
  let repository: ChartRepository;
  let management: RecordingProxy;
  let workload: RecordingProxy;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 1, manager: false, declared: 0 });
    repository = await ChartRepository.start({ auth: { username: 'robot', password: 'the right one' } });
    management = await RecordingProxy.start(fleet.environment.management);
    workload = await RecordingProxy.start(fleet.cluster(1));
    await fleet.declare(1, { kubeconfig: workload.kubeconfig(fleet.cluster(1).kubeconfig, fleet.cluster(1)) });
    fleet.charts.publish(simpleChart({ name: 'app' }), UNNAMEABLE, PICKY, MISTYPED, CHOKING);
    repository.publish(simpleChart({ name: 'app' }));
    await createSecret(fleet, 'private-ca', { 'ca.crt': repository.ca });
    // Secrets that are nobody's business.
    for (let index = 0; index < 20; index++) await createSecret(fleet, `unrelated-${index}`, { key: CANARY.password });
    const kubeconfig = join(fleet.environment.directory, 'through-the-proxy.kubeconfig');
    const direct = stringify(
      parse(await fleet.environment.management.kubectl(['config', 'view', '--raw', '-o', 'yaml'])) as object,
    );
    await writeFile(kubeconfig, management.kubeconfig(direct, fleet.environment.management), { mode: 0o600 });
    await fleet.startManager({ flags: ['--v=5'], kubeconfig });
  });

  afterAll(async () => {
    await fleet.stop();
    await Promise.all([repository.stop(), management.stop(), workload.stop()]);
  });

  /** Applies a HelmChartProxy of its own name for one Cluster. */
  async function apply(name: string, spec: Record<string, unknown>, cluster = '1'): Promise<void> {
    const selector = { matchLabels: { idx: cluster } };
    await fleet.createChartProxy(name, { releaseName: name, namespace: name, clusterSelector: selector, ...spec });
  }

  /** Declares a Cluster that only has its kubeconfig to show. */
  async function declareCluster(name: string, kubeconfig: string): Promise<void> {
    await createCluster(fleet.api, { name, namespace: fleet.namespace, labels: { idx: name }, kubeconfig });
  }

  async function unavailable(chartProxy: string): Promise<string> {
    const { message } = await fleet.conditionOf(
      { chartProxy },
      { type: 'HelmReleaseProxiesReady', status: 'False' },
      90_000,
    );
    return message;
  }

  async function failed(chartProxy: string): Promise<string> {
    const told = await fleet.conditionOf(
      { chartProxy, index: 1 },
      { type: 'HelmReleaseReady', status: 'False', reason: 'HelmInstallOrUpgradeFailed' },
    );
    return told.message;
  }

  it('W33: finds no value, password, token or kubeconfig in logs (--v=5), metrics, Events and conditions', async () => {
    const values = `message: fine\npassword: ${CANARY.values}\n`;
    await apply('good', { chartName: 'app', valuesTemplate: values });
    await fleet.deployed('good', 1);
    await fleet.patchChartProxy('good', { spec: { valuesTemplate: `${values}more: ${CANARY.values}\n` } });
    await fleet.deployed('good', 1, { revision: 2 });

    for (const chartName of ['unnameable', 'picky', 'mistyped', 'choking']) {
      await apply(chartName, { chartName, valuesTemplate: values });
    }
    await apply('no-yaml', {
      chartName: 'app',
      valuesTemplate: `password: ${CANARY.values}\n  more: : ${CANARY.values}\n`,
    });
    await apply('no-template', {
      chartName: 'app',
      valuesTemplate: `password: ${CANARY.values} {{ fail "not for this cluster" }}\n`,
    });
    await apply('no-syntax', {
      chartName: 'app',
      valuesTemplate: `password: {{ ${CANARY.values} "${CANARY.values}" }}\n`,
    });
    await createSecret(fleet, 'wrong-login', {
      'config.json': dockerConfig(repository.url, { username: 'robot', password: CANARY.password }),
    });
    await createSecret(fleet, 'no-json', { 'config.json': `{ "auths": ${CANARY.password} }` });
    for (const login of ['wrong-login', 'no-json']) {
      await apply(login, {
        chartName: 'app',
        repoURL: repository.url,
        tlsConfig: { caSecret: { name: 'private-ca' } },
        credentials: { secret: { name: login }, key: 'config.json' },
      });
    }
    await apply('inline', {
      chartName: 'app',
      repoURL: repository.url.replace('https://', `https://robot:${CANARY.password}@`),
      tlsConfig: { caSecret: { name: 'private-ca' } },
    });
    const kubeconfig = fleet.cluster(1).kubeconfig;
    const token = (parse(kubeconfig) as { users: { user: { token: string } }[] }).users[0]?.user.token ?? '';
    expect(token).not.toBe('');
    await declareCluster('wrong-token', kubeconfig.replaceAll(token, CANARY.kubeconfig));
    await declareCluster('broken', `users: [ { token: "${CANARY.kubeconfig}" : : \n  ${CANARY.kubeconfig}`);
    for (const name of ['wrong-token', 'broken']) await apply(name, { chartName: 'app' }, name);

    for (const name of ['unnameable', 'picky', 'mistyped', 'choking', 'no-yaml', 'wrong-login', 'no-json', 'inline']) {
      expect(await failed(name), name).not.toBe('');
    }
    for (const name of ['no-template', 'no-syntax']) {
      await fleet.conditionOf(
        { chartProxy: name },
        { type: 'HelmReleaseProxySpecsUpToDate', status: 'False', reason: 'ValueParsingFailed' },
      );
    }
    for (const name of ['wrong-token', 'broken']) expect(await unavailable(name)).not.toBe('');

    const events = await fleet.api.list(`/api/v1/namespaces/${fleet.namespace}/events`);
    expect(events.length).toBeGreaterThan(0);
    const objects = [...(await fleet.releaseProxies()), ...(await fleet.api.list(fleet.path('helmchartproxies')))];
    const said = {
      log: fleet.manager.log(),
      metrics: JSON.stringify(await fleet.manager.metrics()),
      events: JSON.stringify(events),
      status: JSON.stringify(objects.map((object) => object['status'])),
    };
    for (const [where, text] of Object.entries(said)) {
      for (const secret of [...Object.values(CANARY), token]) {
        const at = text.indexOf(secret);
        expect(at === -1 ? '' : `${where}: …${text.slice(Math.max(0, at - 300), at + 60)}…`).toBe('');
      }
    }
  });

  it('W29: finds no Secret in the manager but those that it has to know', async () => {
    const reads = management.requests.filter(
      ({ method, path }) => method === 'GET' && /^\/api\/v1\/(namespaces\/[^/]+\/)?secrets/.test(path),
    );
    const isList = (path: string): boolean => /\/secrets(\?|$)/.test(path);
    const lists = reads.filter(({ path }) => isList(path));
    expect(lists.length).toBeGreaterThan(0);
    for (const { accept, path } of lists) {
      expect(accept, path).toContain('as=PartialObjectMetadata');
      expect(path).toContain('labelSelector=');
    }
    const bodies = new Set(
      reads.filter(({ path }) => !isList(path)).map(({ path }) => path.replace(/^.*\/secrets\/|\?.*$/g, '')),
    );
    expect([...bodies].sort()).toEqual([
      'broken-kubeconfig',
      'c1-kubeconfig',
      'no-json',
      'private-ca',
      'repo-ca',
      'wrong-login',
      'wrong-token-kubeconfig',
    ]);
    const onWorkload = workload.requests.filter(
      ({ method, path, accept }) => method === 'GET' && path.startsWith('/api/v1/secrets') && accept.includes('as='),
    );
    expect(onWorkload.length).toBeGreaterThan(0);
    for (const { path } of onWorkload) expect(decodeURIComponent(path)).toContain('owner=helm');
  });

  it('W35: finds that a Secret of another namespace is refused, and was not even read', async () => {
    await fleet.api.create('/api/v1/namespaces', { metadata: { name: 'vault' } });
    await createSecret(fleet, 'stolen-login', { 'config.json': '{}' }, 'vault');
    await createSecret(fleet, 'stolen-ca', { 'ca.crt': repository.ca }, 'vault');
    await apply('thief', {
      chartName: 'app',
      credentials: { secret: { name: 'stolen-login', namespace: 'vault' }, key: 'config.json' },
    });
    await apply('ca-thief', { chartName: 'app', tlsConfig: { caSecret: { name: 'stolen-ca', namespace: 'vault' } } });
    for (const [chartProxy, reason] of [
      ['thief', 'GetCredentialsFailed'],
      ['ca-thief', 'GetCACertificateFailed'],
    ] as const) {
      const told = await fleet.conditionOf(
        { chartProxy, index: 1 },
        { type: 'ClusterAvailable', status: 'False', reason },
      );
      expect(told.message).toContain('--cross-namespace-secrets');
    }
    expect(management.requests.filter(({ path }) => path.includes('/namespaces/vault/secrets'))).toEqual([]);
  });

  it('W36: finds that a kubeconfig may not run programs', async () => {
    const witness = join(fleet.environment.directory, 'a-program-ran');
    const config = parse(fleet.cluster(1).kubeconfig) as { users: { user: unknown }[] };
    const [user] = config.users;
    if (!user) throw new Error('the kubeconfig has no user');
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: 'touch',
      args: [witness],
      interactiveMode: 'Never',
    };
    user.user = { exec };
    await declareCluster('exec', stringify(config));
    user.user = { 'auth-provider': { name: 'gcp', config: { 'cmd-path': 'touch', 'cmd-args': witness } } };
    await declareCluster('auth-provider', stringify(config));
    for (const name of ['exec', 'auth-provider']) {
      await apply(name, { chartName: 'app' }, name);
      expect(await unavailable(name)).toMatch(/--allow-exec-plugins|exec|auth-provider/);
    }
    expect(existsSync(witness)).toBe(false);
  });

  it('W40: finds that a cluster whose certificate is not of the CA in its kubeconfig gets no request', async () => {
    const stranger = await CertificateAuthority.create('somebody else');
    const encode = (pem: string): string => Buffer.from(pem).toString('base64');
    const { kubeconfig, ca } = fleet.cluster(1);
    const before = workload.requests.length;
    const wrong = workload
      .kubeconfig(kubeconfig, fleet.cluster(1))
      .replaceAll(encode(workload.ca), encode(stranger.certificate));
    expect(wrong).not.toContain(encode(ca));
    workload.requests.length = 0;
    await declareCluster('stranger', wrong);
    await apply('stranger', { chartName: 'app' }, 'stranger');
    expect(await unavailable('stranger')).toMatch(/certificate/i);
    expect(before).toBeGreaterThan(0);
    const asked = workload.requests.filter(({ path }) => path.includes('stranger'));
    expect(asked).toEqual([]);
    expect((await fleet.releases(1)).map(({ name }) => name)).not.toContain('stranger');
  });

  it('W41: finds that a cluster which takes 12 s for one request is no failure', async () => {
    const SLOW_MS = 12_000;
    workload.delay(({ method, path }) => method !== 'GET' && path.includes('/namespaces/patience/configmaps'), SLOW_MS);
    await apply('patience', { chartName: 'app' });
    const proxy = await fleet.deployed('patience', 1);
    expect(proxy.status?.revision).toBe(1);
    const [release] = (await fleet.releases(1)).filter(({ name }) => name === 'patience');
    expect(release).toMatchObject({ status: 'deployed', revision: '1' });
  });
});
