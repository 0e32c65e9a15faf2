import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DoctorReport, Finding } from '../../src/app/doctor/finding.ts';
import type { FleetTree } from '../../src/app/tree/tree.ts';
import {
  CommandError,
  createCluster,
  deleteKubeconfig,
  eventually,
  Fleet,
  refusingKubeconfig,
  runProgram,
  setKubeconfig,
  simpleChart,
} from '../support/index.ts';

const ROOT = join(import.meta.dirname, '../..');
const NODE = join(ROOT, 'node_modules/node/bin/node');
const MAIN = join(ROOT, 'src/main.ts');

let fleet: Fleet;
let directory: string;

beforeAll(async () => {
  fleet = await Fleet.start({ clusters: 2, controllers: true });
  directory = await mkdtemp(join(tmpdir(), 'capstan-diagnostics-'));
  fleet.charts.publish(simpleChart({ name: 'app', version: '1.0.0', objects: 1 }));
  await fleet.createChartProxy('web', { chartName: 'app', releaseName: 'web', namespace: 'web' });
  await fleet.deployed('web', 1);
  await fleet.deployed('web', 2);
});
afterAll(async () => {
  await fleet.stop();
  await rm(directory, { recursive: true, force: true });
});

/** Runs a command as a user does, with the management cluster's kubeconfig. */
async function capstan(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const kubeconfig = `--kubeconfig=${fleet.environment.management.adminKubeconfigPath}`;
  const [command = '', ...rest] = args;
  try {
    const out = await runProgram(NODE, [MAIN, command, kubeconfig, ...rest], {
      env: { HOME: '/nonexistent', PATH: process.env['PATH'] ?? '' },
    });
    return { code: 0, out, err: '' };
  } catch (error) {
    if (!(error instanceof CommandError) || error.code === null) throw error;
    return { code: error.code, out: error.stdout, err: error.stderr };
  }
}

async function doctor(...args: string[]): Promise<{ code: number; findings: readonly Finding[] }> {
  const { code, out } = await capstan(
    'doctor',
    '-n',
    'fleet',
    '-o',
    'json',
    `--helm=${fleet.environment.binaries.helm}`,
    ...args,
  );
  return { code, findings: (JSON.parse(out) as DoctorReport).findings };
}

/** What doctor says about one thing. */
async function says(
  check: Finding['check'],
  subject: string,
  ...args: string[]
): Promise<Omit<Finding, 'check' | 'subject'>[]> {
  const { findings } = await doctor(...args);
  return findings
    .filter((finding) => finding.check === check && finding.subject === subject)
    .map(({ level, message, advice }) => ({ level, message, advice }));
}

function like(text: string): unknown {
  return expect.stringContaining(text);
}

describe('capstan tree', () => {
  it('shows clusters, their releases and how they are, and leaves with 0', async () => {
    const { code, out } = await capstan('tree', '-n', 'fleet');
    expect(code).toBe(0);
    expect(out).toMatch(/^fleet\/c1 {2}Provisioned\n└─ web {2}web\/web {2}app-1\.0\.0 {2}deployed 1\nfleet\/c2/);
    expect(out).toContain('2 releases on 2 clusters, all healthy');
  });

  it('says what is the matter, and leaves with 1', async () => {
    await fleet.createChartProxy('broken', { chartName: 'absent', releaseName: 'broken', namespace: 'broken' });
    await eventually(async () => {
      const { code, out } = await capstan('tree', '-A', '--unhealthy', '-o', 'json');
      const { branches, summary } = JSON.parse(out) as FleetTree;
      expect([code, summary.unhealthyReleases]).toEqual([1, 2]);
      expect(branches.map(({ name, releases }) => [name, releases.map(({ release }) => release)])).toEqual([
        ['fleet/c1', ['broken']],
        ['fleet/c2', ['broken']],
      ]);
      expect(branches[0]?.releases[0]?.reason).toContain('absent');
    });
    await fleet.removeChartProxy('broken');
  });

  it('leaves with 2 for a name that nothing has, and for a server that is not there', async () => {
    expect(await capstan('tree', '-n', 'fleet', 'nowhere')).toMatchObject({ code: 2, err: like('"nowhere"') });
    const dead = join(directory, 'dead.kubeconfig');
    await writeFile(dead, await refusingKubeconfig('dead', await fleet.environment.ports.take()));
    expect(await capstan('tree', `--kubeconfig=${dead}`)).toMatchObject({ code: 2, err: like('ECONNREFUSED') });
  });
});

describe('capstan doctor', () => {
  it('finds nothing wrong with a healthy fleet, and says what it looked at', async () => {
    const { findings } = await doctor();
    // The CA of a test's API server lives for a week.
    expect(findings.filter(({ check }) => check === 'certificate').map(({ message }) => message)).toEqual([
      like('its CA expires in'),
      like('its CA expires in'),
    ]);
    expect(findings.filter(({ level, check }) => level !== 'ok' && check !== 'certificate')).toEqual([
      // This manager leads by definition.
      {
        check: 'leader',
        level: 'warn',
        subject: '',
        message: like('there is no Lease'),
        advice: like('--leader-elect'),
      },
    ]);
    const checks = new Set(findings.map(({ check }) => check));
    expect([...checks].sort()).toEqual([
      'api-server',
      'certificate',
      'cluster',
      'cluster-api',
      'collision',
      'crds',
      'helm',
      'leader',
      'other-controller',
      'permissions',
      'release',
      'selector',
    ]);
    const { out } = await capstan('doctor', '-n', 'fleet', '--helm=');
    expect(out).toMatch(/^ok {4}api-server/);
    expect(out).not.toContain('token');
  });

  it('tells a kubeconfig Secret that is missing, one that is no kubeconfig, and one that runs a program', async () => {
    const key = { namespace: 'fleet', name: 'c1' };
    await deleteKubeconfig(fleet.api, key);
    expect(await says('cluster', 'fleet/c1')).toEqual([
      { level: 'fail', message: like('Secret fleet/c1-kubeconfig is missing'), advice: like('control plane') },
    ]);
    await setKubeconfig(fleet.api, key, 'a secret that is no kubeconfig');
    const [told] = await says('cluster', 'fleet/c1');
    expect(told).toMatchObject({ level: 'fail', message: like('its kubeconfig cannot be used') });
    expect(JSON.stringify(told)).not.toContain('a secret that');
    const exec = `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],"clusters":[{"name":"x","cluster":{"server":"${fleet.cluster(1).server}"}}],"users":[{"name":"x","user":{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"/bin/sh"}}}]}`;
    await setKubeconfig(fleet.api, key, exec);
    expect(await says('cluster', 'fleet/c1')).toEqual([
      { level: 'fail', message: like('exec'), advice: like('--allow-exec-plugins') },
    ]);
    await setKubeconfig(fleet.api, key, fleet.cluster(1).kubeconfig);
    expect(await says('cluster', 'fleet/c1')).toMatchObject([{ level: 'ok' }]);
  });

  it('tells a server that is not there, and credentials that are refused', async () => {
    await createCluster(fleet.api, {
      name: 'dead',
      namespace: 'fleet',
      kubeconfig: await refusingKubeconfig('dead', await fleet.environment.ports.take()),
    });
    const refused = fleet.cluster(2).kubeconfig.replace(/token: .*/, 'token: forged');
    await createCluster(fleet.api, { name: 'refused', namespace: 'fleet', kubeconfig: refused });
    expect(await says('cluster', 'fleet/dead')).toEqual([
      { level: 'fail', message: like('ECONNREFUSED'), advice: like('network') },
    ]);
    const [told] = await says('cluster', 'fleet/refused');
    expect(told).toMatchObject({ level: 'fail', message: like('the credentials are refused') });
    expect(JSON.stringify(told)).not.toContain('forged');
    for (const name of ['dead', 'refused'])
      await fleet.api.delete(`/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet/clusters/${name}`);
  });

  it('tells a helm that is not there', async () => {
    expect(await says('helm', '/nowhere/helm', '--helm=/nowhere/helm')).toMatchObject([{ level: 'fail' }]);
  });

  it('tells each right that a ServiceAccount lacks', async () => {
    const { code, findings } = await doctor('--service-account=default/nobody');
    const missing = findings.filter(({ check }) => check === 'permissions');
    expect(code).toBe(1);
    expect(missing.map(({ subject }) => subject)).toContain('secrets');
    expect(missing.every(({ level }) => level === 'fail')).toBe(true);
    expect(missing.find(({ subject }) => subject === 'secrets')?.message).toBe(
      'ServiceAccount default/nobody may not get, list, watch secrets',
    );
  });

  it('tells CAAPH that runs beside, and who holds the Lease', async () => {
    const labels = { app: 'caaph' };
    const name = 'caaph-controller-manager';
    await fleet.api.create('/apis/apps/v1/namespaces/default/deployments', {
      metadata: { name },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            containers: [{ name: 'manager', image: 'example.com/cluster-api-helm/cluster-api-helm-controller:v0.4.0' }],
          },
        },
      },
    });
    await fleet.api.create('/apis/coordination.k8s.io/v1/namespaces/default/leases', {
      metadata: { name: 'controller-leader-election-caaph' },
      spec: {
        holderIdentity: 'caaph-0_1',
        leaseDurationSeconds: 15,
        renewTime: `${new Date().toISOString().slice(0, -1)}000Z`,
      },
    });
    expect(await says('other-controller', `default/${name}`)).toEqual([
      {
        level: 'fail',
        message: like('CAAPH'),
        advice: like(`kubectl scale deployment -n default ${name} --replicas 0`),
      },
    ]);
    expect(await says('leader', 'default/controller-leader-election-caaph')).toMatchObject([
      { level: 'ok', message: 'caaph-0_1 leads' },
    ]);
    await fleet.api.patch(`/apis/apps/v1/namespaces/default/deployments/${name}`, { spec: { replicas: 0 } });
    expect(await says('other-controller', `default/${name}`)).toEqual([]);
  });

  it('tells a release that CAAPH forgot, and a selector that selects nothing', async () => {
    const { cluster } = { cluster: fleet.cluster(1) };
    const archive = join(directory, 'app.tgz');
    await writeFile(archive, simpleChart({ name: 'app', version: '1.0.0', objects: 1 }).archive);
    await cluster.helm(['install', 'app-1700000000', archive, '-n', 'lost', '--create-namespace']);
    await cluster.helm(['install', 'theirs', archive, '-n', 'lost']);
    await fleet.createChartProxy('nobody', { chartName: 'app', clusterSelector: { matchLabels: { no: 'where' } } });
    const { findings } = await doctor();
    expect(findings.filter(({ check }) => check === 'orphan')).toEqual([
      {
        check: 'orphan',
        level: 'warn',
        subject: 'fleet/c1',
        message: 'release lost/app-1700000000 has a generated name, and no HelmReleaseProxy has it',
        advice: like('helm uninstall app-1700000000 -n lost'),
      },
    ]);
    expect(findings.filter(({ check }) => check === 'selector')).toMatchObject([
      { level: 'warn', subject: 'fleet/nobody' },
    ]);
    await fleet.removeChartProxy('nobody');
  });

  it('goes on where it may not read, and says so; it has not looked at everything then', async () => {
    const account = '/api/v1/namespaces/default/serviceaccounts';
    await fleet.api.create(account, { metadata: { name: 'reader' } });
    const { status } = (await fleet.api.create(`${account}/reader/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: {},
      spec: {},
    })) as unknown as { status: { token: string } };
    const { server, ca } = fleet.environment.management;
    const path = join(directory, 'reader.kubeconfig');
    await writeFile(
      path,
      JSON.stringify({
        'current-context': 'x',
        contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
        clusters: [
          { name: 'x', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } },
        ],
        users: [{ name: 'x', user: { token: status.token } }],
      }),
    );
    const { code, findings } = await doctor(`--kubeconfig=${path}`);
    expect(code).toBe(1);
    const levels = Object.fromEntries(findings.map(({ check, level }) => [check, level]));
    expect(levels).toMatchObject({
      'api-server': 'ok',
      crds: 'skip',
      permissions: 'fail',
      release: 'skip',
      leader: 'skip',
    });
    expect(JSON.stringify(findings)).toContain('no permission');
  });
});
