/** `capstan drift` as people run it: on real API servers, with real helm and kubectl, and with no manager anywhere. */
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import type { TestCluster } from '../support/index.ts';
import { createCluster, Fleet, refusingKubeconfig, setKubeconfig, startSilentServer } from '../support/index.ts';
import { capstanDrift, driftReport, haul, objectIn, releaseIn, rowsOf, SHOP } from './drift-cli.ts';
import type { CliOutcome } from './drift-cli.ts';

let fleet: Fleet;

beforeAll(async () => {
  fleet = await Fleet.start({ clusters: 2, manager: false });
});
afterAll(async () => {
  await fleet.stop();
});

/** Access of a user with these rules alone, in all namespaces, as a kubeconfig file. */
async function userOf(cluster: TestCluster, name: string, rules: object[]): Promise<string> {
  const { api } = cluster;
  await api.create('/api/v1/namespaces/default/serviceaccounts', { metadata: { name } });
  const roles = '/apis/rbac.authorization.k8s.io/v1';
  await api.create(`${roles}/clusterroles`, { metadata: { name }, rules });
  await api.create(`${roles}/clusterrolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ kind: 'ServiceAccount', name, namespace: 'default' }],
  });
  const token = (await cluster.kubectl(['create', 'token', name, '-n', 'default'])).trim();
  const config = parse(cluster.kubeconfig) as { users: { user: object }[] };
  config.users[0]!.user = { token };
  const path = join(cluster.directory, `${name}.kubeconfig`);
  await writeFile(path, stringify(config));
  return path;
}

const READ_ALL = { apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list'] };

describe('on a cluster with Helm releases', () => {
  let cluster: TestCluster;
  let kubeconfig: string;
  const drift = async (...args: string[]): Promise<CliOutcome> => capstanDrift(['--kubeconfig', kubeconfig, ...args]);

  /** Everything in the namespace that could be written to. */
  const versions = async (): Promise<string> =>
    cluster.kubectl([
      'get',
      'deployments,services,configmaps,secrets',
      '-n',
      'shop',
      '-o=jsonpath={.items[*].metadata.resourceVersion}',
    ]);

  beforeAll(async () => {
    cluster = fleet.cluster(1);
    kubeconfig = cluster.adminKubeconfigPath;
    await haul(cluster, { name: 'shop', namespace: 'shop' }, SHOP);
    await haul(cluster, { name: 'calm', namespace: 'calm' }, { 'config.yaml': SHOP['config.yaml']! });
  });

  it('says that nothing differs, and leaves with 0', async () => {
    const outcome = await drift('-A');
    expect(outcome).toEqual({ code: 0, out: 'no drift in 5 objects of 2 releases on 1 cluster\n', err: '' });
  });

  it('has kubectl’s default namespace, and tells where to look when it is empty', async () => {
    expect(await drift()).toMatchObject({ code: 0, out: 'no drift in 0 objects of 0 releases on 1 cluster\n' });
    const { report } = await driftReport(['--kubeconfig', kubeconfig, '-nshop']);
    expect(report.releases.map(({ name }) => name)).toEqual(['shop']);
  });

  describe('after edits', () => {
    let before: string;

    beforeAll(async () => {
      await cluster.kubectl(['scale', 'deployment', 'shop', '-n', 'shop', '--replicas=5']);
      await cluster.kubectl(['set', 'image', 'deployment/shop', '-n', 'shop', 'main=shop:evil']);
      await cluster.kubectl([
        'patch',
        'configmap',
        'shop',
        '-n',
        'shop',
        '--type=merge',
        '--field-manager=mallory',
        '-p',
        JSON.stringify({
          data: {
            lines: 'one\ntwo\nthree\nfour\nFIVE\u001b]0;gotcha\u0007\nsix\nseven\neight\nnine\n',
            added: 'by hand',
          },
        }),
      ]);
      await cluster.kubectl([
        'patch',
        'secret',
        'shop',
        '-n',
        'shop',
        '--type=merge',
        '-p',
        '{"stringData":{"password":"sesame-of-mallory"}}',
      ]);
      await cluster.kubectl(['delete', 'service', 'shop', '-n', 'shop']);
      before = await versions();
    });

    it('prints a row per field with its author, and leaves with 1', async () => {
      const { code, out, err } = await drift('-A');
      expect({ code, err }).toEqual({ code: 1, err: '' });
      const rows = rowsOf(out).map((row) => row.slice(2, 8));
      expect(rows).toEqual([
        ['shop', '1', 'Secret shop', '/data/password', '*** -> ***', 'kubectl-patch (Update)'],
        ['shop', '1', 'ConfigMap shop', '/data/lines', expect.stringMatching(/^"one/), 'mallory (Update)'],
        ['shop', '1', 'Service shop', '-', 'missing', '-'],
        ['shop', '1', 'Deployment shop', '/spec/replicas', '2 -> 5', 'kubectl (Update)'],
        [
          'shop',
          '1',
          'Deployment shop',
          '/spec/template/spec/containers/0/image',
          '"shop:1" -> "shop:evil"',
          'kubectl-set (Update)',
        ],
      ]);
      expect(rowsOf(out)[0]![8]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(out.trimEnd().split('\n').at(-1)).toBe('1 of 2 releases on 1 of 1 cluster drifts (4 of 5 objects)');
    });

    it('tells nothing of a Secret’s values in any form, and lets no text reach the terminal as a command', async () => {
      const forms = [['--diff'], ['--diff', '--color=always'], ['-o', 'json'], ['-o', 'yaml'], ['--ignore-rules'], []];
      for (const form of forms) {
        const { out, err } = await drift('-A', ...form);
        for (const value of ['sesame-of-the-chart', 'sesame-of-mallory']) {
          expect(out + err).not.toContain(value);
          expect(out + err).not.toContain(Buffer.from(value).toString('base64'));
        }
        expect(out).not.toContain('\u001b]');
        expect(out).not.toContain('\u0007');
      }
    });

    it('prints a diff per object', async () => {
      const { code, out } = await drift('-n', 'shop', 'shop', '--diff');
      expect(code).toBe(1);
      expect(out).toContain('--- ConfigMap shop of shop/shop revision 1\n+++ ConfigMap shop on ');
      expect(out).toMatch(
        /@@ \/data\/lines: changed by mallory \(Update\), .*Z @@\n two\n three\n four\n-five\n\+FIVE.*\n six\n seven\n eight\n/,
      );
      expect(out).toMatch(/@@ \/spec\/replicas: changed by kubectl \(Update\) @@\n-2\n\+5\n/);
      expect(out).toMatch(/@@ \/data\/password: changed .* @@\n-\*\*\*\n\+\*\*\*\n/);
      // The missing Service as a whole.
      expect(out).toMatch(/\+\+\+ Service shop on .*: missing\n-apiVersion: v1\n-kind: Service\n/);
      expect(out).not.toContain('\u001b[');
      const coloured = await drift('-n', 'shop', '--diff', '--color', 'always');
      expect(coloured.out).toContain('\u001b[32m+5\u001b[39m');
    });

    it('prints JSON and YAML of one shape', async () => {
      const { code, report } = await driftReport(['--kubeconfig', kubeconfig, '-A']);
      expect(code).toBe(1);
      expect(report).toMatchObject({
        kind: 'DriftReport',
        version: 1,
        summary: {
          clusters: 1,
          clustersDrifted: 1,
          clustersFailed: 0,
          releases: 2,
          releasesDrifted: 1,
          releasesFailed: 0,
          objects: 5,
          objectsDrifted: 4,
        },
        problems: [],
      });
      expect(objectIn(releaseIn(report, 'shop'), 'Deployment').fields).toContainEqual({
        path: '/spec/template/spec/containers/0/image',
        change: 'changed',
        wanted: '"shop:1"',
        live: '"shop:evil"',
        manager: 'kubectl-set',
        operation: 'Update',
        time: expect.stringMatching(/Z$/) as string,
      });
      const { out } = await drift('-A', '-o', 'yaml');
      expect(parse(out)).toEqual(report);
    });

    it('reports what somebody added when asked to', async () => {
      const { report } = await driftReport(['--kubeconfig', kubeconfig, '-n', 'shop', '--extra-fields', 'Report']);
      expect(objectIn(releaseIn(report, 'shop'), 'ConfigMap').fields).toContainEqual(
        expect.objectContaining({ path: '/data/added', change: 'added', live: '"by hand"', manager: 'mallory' }),
      );
    });

    it('compares the same without dry runs', async () => {
      const [withDryRun, without] = [
        await driftReport(['--kubeconfig', kubeconfig, '-A']),
        await driftReport(['--kubeconfig', kubeconfig, '-A', '--no-dry-run']),
      ];
      expect(without.code).toBe(1);
      expect(without.report.summary).toEqual(withDryRun.report.summary);
    });

    it('needs no more than to read', async () => {
      const reader = await userOf(cluster, 'reader', [READ_ALL]);
      const { code, report } = await driftReport(['--kubeconfig', reader, '-A']);
      expect(code).toBe(1);
      const deployment = objectIn(releaseIn(report, 'shop'), 'Deployment');
      expect(deployment.fields?.map(({ path }) => path)).toEqual([
        '/spec/replicas',
        '/spec/template/spec/containers/0/image',
      ]);
      expect(deployment.notes?.join()).toContain('dry run');
    });

    it('says which permission is missing, and leaves with 2', async () => {
      const nobody = await userOf(cluster, 'nobody', []);
      const { code, err } = await drift('--kubeconfig', nobody, '-A');
      expect(code).toBe(2);
      expect(err).toMatch(/no permission: .*cannot list resource "secrets" in API group ""/);
      const half = await userOf(cluster, 'half', [
        { apiGroups: [''], resources: ['secrets', 'services'], verbs: ['get', 'list'] },
        { apiGroups: ['apps'], resources: ['*'], verbs: ['get', 'list'] },
      ]);
      const partly = await driftReport(['--kubeconfig', half, '-n', 'shop']);
      expect(partly.code).toBe(2);
      const release = releaseIn(partly.report, 'shop');
      expect(objectIn(release, 'ConfigMap')).toMatchObject({
        state: 'Unverified',
        message: expect.stringMatching(/no permission: .*cannot get resource "configmaps"/) as string,
      });
      expect(objectIn(release, 'Service').state).toBe('Missing');
    });

    it('wrote nothing in all of this', async () => {
      expect(await versions()).toBe(before);
    });
  });

  it('tells a name that no release has, and looks at the others', async () => {
    const { code, out, err } = await drift('-A', 'calm', 'nosuch');
    expect({ code, err }).toEqual({ code: 2, err: 'error: there is no release "nosuch" in any namespace\n' });
    expect(out).toBe('no drift in 1 object of 1 release on 1 cluster\n');
  });

  it('compares with the deployed revision when the newest one failed, and says so', async () => {
    const release = { name: 'fickle', namespace: 'fickle' };
    await haul(cluster, release, { 'config.yaml': SHOP['config.yaml']! });
    const broken = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: Not_A_Name\n';
    await haul(cluster, release, { 'broken.yaml': broken }, { args: ['upgrade'] }).catch(() => undefined);
    const { code, report } = await driftReport(['--kubeconfig', kubeconfig, '-n', 'fickle']);
    expect(code).toBe(0);
    expect(releaseIn(report, 'fickle')).toMatchObject({
      revision: 1,
      notes: ['revision 2 is failed: compared with revision 1, which is deployed'],
    });
  });

  it('leaves an uninstalled release with a kept history out', async () => {
    await haul(cluster, { name: 'gone', namespace: 'gone' }, { 'config.yaml': SHOP['config.yaml']! });
    await cluster.helm(['uninstall', 'gone', '-n', 'gone', '--keep-history']);
    expect(await drift('-n', 'gone')).toMatchObject({ code: 0 });
    const named = await drift('-n', 'gone', 'gone');
    expect(named.code).toBe(2);
    expect(named.err).toContain('no revision is deployed: revision 1 is uninstalled');
  });

  it('knows what Helm 3 installed, and looks at the CRDs of a chart on request', async () => {
    const crd = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'boats.harbour.test' },
      spec: {
        group: 'harbour.test',
        names: { kind: 'Boat', plural: 'boats' },
        scope: 'Namespaced',
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    };
    const templates = { 'config.yaml': SHOP['config.yaml']!, 'crds/boats.yaml': stringify(crd) };
    await haul(cluster, { name: 'harbour', namespace: 'harbour' }, templates, { helm: 3 });
    const lines = { data: { lines: 'none\n' } };
    await cluster.kubectl(['patch', 'cm', 'shop', '-n', 'harbour', '--type=merge', '-p', JSON.stringify(lines)]);
    const args = ['--kubeconfig', kubeconfig, '-n', 'harbour'];
    const without = releaseIn((await driftReport(args)).report, 'harbour');
    expect(without).toMatchObject({ objects: 1, drifted: 1 });
    expect(objectIn(without, 'ConfigMap').fields).toMatchObject([{ path: '/data/lines', manager: 'kubectl-patch' }]);
    const unserved = { spec: { versions: [{ ...crd.spec.versions[0], served: false }] } };
    await cluster.kubectl(['patch', 'crd', 'boats.harbour.test', '--type=merge', '-p', JSON.stringify(unserved)]);
    const found = releaseIn((await driftReport([...args, '--include-crds'])).report, 'harbour');
    expect(objectIn(found, 'CustomResourceDefinition').fields).toMatchObject([
      { path: '/spec/versions/0/served', change: 'changed', wanted: 'true', live: 'false' },
    ]);
  });

  it('reads $KUBECONFIG as kubectl does', async () => {
    const other = join(cluster.directory, 'contexts.yaml');
    const [name] = (parse(cluster.kubeconfig) as { contexts: { name: string }[] }).contexts.map(
      (context) => context.name,
    );
    await writeFile(
      other,
      stringify({
        contexts: [{ name: 'calm', context: { cluster: name, user: name, namespace: 'calm' } }],
        'current-context': 'calm',
      }),
    );
    const KUBECONFIG = [join(cluster.directory, 'missing'), other, kubeconfig].join(':');
    const { report } = await driftReport([], { KUBECONFIG });
    expect(report.clusters).toEqual([{ name: 'calm' }]);
    expect(report.releases.map((release) => release.name)).toEqual(['calm']);
    const named = await driftReport(['--context', name!, '-A'], { KUBECONFIG });
    expect(named.report.clusters).toEqual([{ name }]);
    expect(await capstanDrift(['--context', 'nosuch'], { KUBECONFIG })).toMatchObject({
      code: 2,
      err: expect.stringContaining('its contexts have no entry "nosuch"') as string,
    });
  });

  it('leaves with 2 where there is no server, no kubeconfig, or a wrong flag', async () => {
    const refusing = join(cluster.directory, 'refusing.kubeconfig');
    await writeFile(refusing, await refusingKubeconfig('refusing', 1));
    expect(await capstanDrift(['--kubeconfig', refusing])).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringMatching(/^capstan drift: refusing \(https:.*ECONNREFUSED/) as string,
    });
    const none = await capstanDrift([]);
    expect(none).toMatchObject({ code: 2, err: expect.stringContaining('there is no kubeconfig') as string });
    const wrong = await drift('--extra-field=Report');
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('did you mean --extra-fields') as string });
    expect(await drift('--cluster=a/b')).toMatchObject({
      code: 2,
      err: expect.stringContaining('serves no HelmReleaseProxies') as string,
    });
  });

  it('runs the exec plugin of the user’s own kubeconfig', async () => {
    const config = parse(cluster.kubeconfig) as { users: { user: { token?: string; exec?: object } }[] };
    const { token } = config.users[0]!.user;
    const plugin = join(cluster.directory, 'plugin.sh');
    const credential = { apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: { token } };
    await writeFile(plugin, `#!/bin/sh\necho '${JSON.stringify(credential)}'\n`);
    await chmod(plugin, 0o700);
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: plugin, interactiveMode: 'Never' };
    config.users[0]!.user = { exec };
    const path = join(cluster.directory, 'exec.kubeconfig');
    await writeFile(path, stringify(config));
    expect(await capstanDrift(['--kubeconfig', path, '-n', 'calm'])).toMatchObject({ code: 0 });
    // Another's kubeconfig may not.
    await createCluster(fleet.api, { name: 'execs', namespace: 'execs', kubeconfig: stringify(config) });
    await declareRelease('execs', 'execs', 'calm');
    const args = ['--kubeconfig', fleet.environment.management.adminKubeconfigPath, '-n', 'execs'];
    const refused = await capstanDrift(args);
    expect(refused.code).toBe(2);
    expect(refused.err).toContain('exec plugin');
    expect(await capstanDrift([...args, '--allow-exec-plugins'])).toMatchObject({ code: 0 });
  });
});

/** A HelmReleaseProxy as the manager would have left it. */
async function declareRelease(
  namespace: string,
  cluster: string,
  release: string,
  spec: Record<string, unknown> = {},
): Promise<void> {
  await fleet.api.create(`/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/${namespace}/helmreleaseproxies`, {
    apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
    kind: 'HelmReleaseProxy',
    metadata: {
      name: `${release}-${cluster}`,
      labels: { 'helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name': `hcp-${release}` },
    },
    spec: {
      clusterRef: { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', namespace, name: cluster },
      chartName: release,
      repoURL: 'https://charts.invalid',
      releaseName: release,
      namespace: release,
      ...spec,
    },
  });
}

describe('on a management cluster', () => {
  let kubeconfig: string;
  const drift = async (...args: string[]): Promise<CliOutcome> =>
    capstanDrift(['--kubeconfig', kubeconfig, '-n', 'fleet', ...args]);
  const report = async (...args: string[]): ReturnType<typeof driftReport> =>
    driftReport(['--kubeconfig', kubeconfig, '-n', 'fleet', ...args]);

  beforeAll(async () => {
    kubeconfig = fleet.environment.management.adminKubeconfigPath;
    for (const index of [1, 2]) {
      for (const name of ['web', 'once']) {
        await haul(
          fleet.cluster(index),
          { name, namespace: name },
          { 'config.yaml': SHOP['config.yaml']!, 'deployment.yaml': SHOP['deployment.yaml']! },
        );
      }
      await declareRelease('fleet', `c${String(index)}`, 'web');
      await declareRelease('fleet', `c${String(index)}`, 'once', { reconcileStrategy: 'InstallOnce' });
    }
    for (const name of ['web', 'once']) {
      await fleet.cluster(2).kubectl(['scale', 'deployment', 'shop', '-n', name, '--replicas=7']);
    }
  });

  it('looks at the releases of all clusters, but those that are the clusters’ own', async () => {
    const { code, out, err } = await drift();
    expect({ code, err }).toEqual({
      code: 1,
      err: 'note: 2 InstallOnce releases were left out, which may differ; named ones are looked at\n',
    });
    expect(rowsOf(out).map((row) => row.slice(0, 7))).toEqual([
      ['fleet/c2', 'web', 'web', '1', 'Deployment shop', '/spec/replicas', '2 -> 7'],
    ]);
    expect(out).toContain('1 of 2 releases on 1 of 2 clusters drifts (1 of 4 objects)\n');
  });

  it('narrows by cluster and by name of release, HelmReleaseProxy or HelmChartProxy', async () => {
    expect(await drift('--cluster', 'fleet/c1')).toMatchObject({ code: 0 });
    const once = (await report('once')).report;
    expect(once.releases.map(({ cluster, drifted }) => [cluster, drifted])).toEqual([
      ['fleet/c1', 0],
      ['fleet/c2', 1],
    ]);
    expect((await report('web-c2')).report.releases).toMatchObject([
      { cluster: 'fleet/c2', helmReleaseProxy: { namespace: 'fleet', name: 'web-c2' }, helmChartProxy: 'hcp-web' },
    ]);
    expect((await report('hcp-web')).report.summary.releases).toBe(2);
    expect(await drift('nosuch')).toMatchObject({ code: 2, err: expect.stringContaining('"nosuch"') as string });
  });

  it('looks at its own releases when told to', async () => {
    await haul(
      fleet.environment.management,
      { name: 'own', namespace: 'own' },
      { 'config.yaml': SHOP['config.yaml']! },
    );
    const { report: found } = await driftReport(['--kubeconfig', kubeconfig, '--direct', '-n', 'own']);
    expect(found.releases).toMatchObject([{ name: 'own', drifted: 0, objects: 1 }]);
  });

  it('proposes rules that silence what was found', async () => {
    const { code, out } = await drift('web-c2', '--ignore-rules');
    expect(code).toBe(1);
    expect(out).toContain('# HelmChartProxy fleet/hcp-web');
    const [document] = parseAllDocuments(out).map((each) => each.toJS() as { driftDetection: object });
    const path = '/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/fleet/helmreleaseproxies/web-c2';
    await fleet.api.patch(path, { spec: document! });
    try {
      expect(await drift('web-c2')).toMatchObject({ code: 0 });
    } finally {
      await fleet.api.patch(path, { spec: { driftDetection: null } });
    }
  });

  it('tells rules that are wrong or match nothing', async () => {
    const path = '/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/fleet/helmreleaseproxies/web-c1';
    await fleet.api.patch(path, {
      spec: { driftDetection: { ignore: [{ paths: ['/spec'], target: { kind: 'Pod' } }] } },
    });
    try {
      const { report: found } = await report('web-c1');
      expect(found.releases[0]!.notes.join()).toContain('ignore[0]');
    } finally {
      await fleet.api.patch(path, { spec: { driftDetection: null } });
    }
  });

  it('tells clusters that cannot be read, and prints the others', async () => {
    const silent = await startSilentServer();
    try {
      await createCluster(fleet.api, {
        name: 'dead',
        namespace: 'fleet',
        kubeconfig: await refusingKubeconfig('dead', 1),
      });
      await createCluster(fleet.api, { name: 'mute', namespace: 'fleet', kubeconfig: silent.kubeconfig });
      await createCluster(fleet.api, { name: 'shy', namespace: 'fleet' });
      for (const name of ['dead', 'mute', 'shy']) await declareRelease('fleet', name, 'web');
      const { code, out, err } = await drift('--timeout', '2s');
      expect(code).toBe(2);
      expect(rowsOf(out)).toHaveLength(1);
      expect(out).toContain(
        '1 of 5 releases on 1 of 5 clusters drifts (1 of 4 objects); 3 clusters could not be read: fleet/dead, fleet/mute, fleet/shy\n',
      );
      expect(err).toMatch(/error: cluster fleet\/dead could not be read: .*ECONNREFUSED/);
      expect(err).toMatch(/error: cluster fleet\/mute could not be read: /);
      expect(err).toMatch(/error: cluster fleet\/shy could not be read: Secret fleet\/shy-kubeconfig is missing/);
      // The next one is reached again.
      await setKubeconfig(fleet.api, { name: 'dead', namespace: 'fleet' }, fleet.cluster(1).kubeconfig);
      expect(await drift('--cluster', 'fleet/dead')).toMatchObject({ code: 0 });
    } finally {
      await silent.stop();
    }
  });

  it('tells a release that is not there', async () => {
    await declareRelease('fleet', 'c1', 'phantom');
    const { code, err } = await drift('phantom');
    expect(code).toBe(2);
    expect(err).toContain(
      'release phantom/phantom on fleet/c1 could not be compared: there is no such release on the cluster',
    );
  });
});
