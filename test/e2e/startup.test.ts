import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CommandError, installCrds, refusingKubeconfig, runProgram } from '../support/index.ts';
import { CertificateAuthority, startEnvironment, startSilentServer } from '../support/index.ts';
import type { Environment, TestCluster } from '../support/index.ts';

const ROOT = join(import.meta.dirname, '../..');
const CRDS = ['helmchartproxies.yaml', 'helmreleaseproxies.yaml'].map((file) => join(ROOT, 'src/api/crds', file));
/** The manager tells a management cluster that does not answer after 10 s; a loaded machine may need much longer. */
const LIMIT_MS = 60_000;

/** Somebody's first try, with something wrong in it: what counts is what they read, and that a script sees the failure. */
describe('an administrator who starts the manager with something amiss is told what to do', () => {
  let environment: Environment;
  let management: TestCluster;
  let directory: string;

  beforeAll(async () => {
    environment = await startEnvironment({ clusters: 0 });
    management = environment.management;
    directory = await mkdtemp(join(tmpdir(), 'capstan-startup-'));
  });

  afterAll(async () => {
    await environment.stop();
    await rm(directory, { recursive: true, force: true });
  });

  /** Runs `capstan manager`; it must fail by itself. What it wrote is for people: no stack trace. */
  async function failure(flags: string[]): Promise<{ code: number | null; text: string }> {
    const args = [
      join(ROOT, 'src/main.ts'),
      'manager',
      `--kubeconfig=${management.adminKubeconfigPath}`,
      `--helm=${environment.binaries.helm}`,
      '--health-addr=127.0.0.1:0',
      '--diagnostics-address=0',
      ...flags,
    ];
    const node = join(ROOT, 'node_modules/node/bin/node');
    const error = await runProgram(node, args, { timeoutMs: LIMIT_MS, env: { HOME: directory } }).then(
      () => new Error('the manager started and ended well'),
      (reason: unknown) => reason,
    );
    if (!(error instanceof CommandError)) throw error;
    expect(error.stderr).not.toMatch(/^\s+at .*:\d+:\d+/m);
    expect(error.stderr).not.toContain('[object Object]');
    return { code: error.code, text: error.stderr };
  }

  async function file(name: string, content: string, mode = 0o600): Promise<string> {
    const path = join(directory, name);
    await writeFile(path, content, { mode });
    return path;
  }

  /** The administrator's kubeconfig with something replaced. */
  async function kubeconfigWith(name: string, replace: (text: string) => string): Promise<string> {
    const good = await management.kubectl(['config', 'view', '--raw', '-o', 'yaml']);
    const bad = replace(good);
    expect(bad).not.toBe(good);
    return file(name, bad);
  }

  it.each([
    ['an unknown flag', '--sync-perod=1m', /sync-perod/],
    ['a value that is no duration', '--sync-period=soon', /--sync-period must be a duration .*"soon"/],
    ['a concurrency of zero', '--helm-release-proxy-concurrency=0', /--helm-release-proxy-concurrency .*at least 1/],
    ['an unknown log format', '--log-format=xml', /--log-format must be json, text or auto/],
    ['an address without a port', '--health-addr=localhost', /--health-addr/],
    ['leader election outside a cluster', '--leader-elect', /--leader-elect-resource-namespace/],
  ])('%s: the flag is named, exit code 2', async (_what, flag, message) => {
    const { code, text } = await failure([flag]);
    expect(text).toMatch(message);
    expect(text).toMatch(/--help/);
    expect(code).toBe(2);
  });

  it('no API server: the address, and that --kubeconfig is to be checked', async () => {
    const port = await environment.ports.take();
    const kubeconfig = await file('refusing', await refusingKubeconfig('refusing', port));
    const { code, text } = await failure([`--kubeconfig=${kubeconfig}`]);
    expect(text).toMatch(new RegExp(`management cluster at https://127\\.0\\.0\\.1:${port} does not answer`));
    expect(text).toMatch(/check --kubeconfig/);
    expect(code).toBe(1);
  });

  it('an API server that accepts and never answers: told within a limit', async () => {
    const silent = await startSilentServer();
    try {
      const kubeconfig = await file('silent', silent.kubeconfig);
      const { code, text } = await failure([`--kubeconfig=${kubeconfig}`]);
      expect(text).toMatch(/does not answer/);
      expect(code).toBe(1);
    } finally {
      await silent.stop();
    }
  });

  it('no such kubeconfig: its path', async () => {
    const { code, text } = await failure([`--kubeconfig=${join(directory, 'nowhere')}`]);
    expect(text).toContain(join(directory, 'nowhere'));
    expect(code).toBe(1);
  });

  it('a kubeconfig that is none: its path', async () => {
    const path = await file('garbage', 'this is: [no kubeconfig\n');
    const { code, text } = await failure([`--kubeconfig=${path}`]);
    expect(text).toContain(path);
    expect(code).toBe(1);
  });

  it('credentials that the API server refuses: that fresh ones are needed, and the token is not printed', async () => {
    const path = await kubeconfigWith('refused', (text) => text.replace(/token: .*/, 'token: canary-token-7c1d'));
    const { code, text } = await failure([`--kubeconfig=${path}`]);
    expect(text).toMatch(/credentials are refused/);
    expect(text).not.toContain('canary-token-7c1d');
    expect(code).toBe(1);
  });

  it('an API server with another certificate authority: that the certificate is not trusted', async () => {
    const other = Buffer.from((await CertificateAuthority.create('another')).certificate).toString('base64');
    const path = await kubeconfigWith('untrusted', (text) =>
      text.replace(/certificate-authority-data: .*/, `certificate-authority-data: ${other}`),
    );
    const { code, text } = await failure([`--kubeconfig=${path}`]);
    expect(text).toMatch(/certificate is not trusted/);
    expect(code).toBe(1);
  });

  it('no CRDs: which, and how to install them', async () => {
    const { code, text } = await failure([]);
    expect(text).toMatch(/does not serve HelmChartProxy and HelmReleaseProxy/);
    expect(text).toMatch(/kubectl apply -k deploy\/crds/);
    expect(code).toBe(1);
  });

  it('no helm: where it was looked for', async () => {
    const { code, text } = await failure(['--helm=/nowhere/helm']);
    expect(text).toMatch(/--helm \/nowhere\/helm/);
    expect(text).toMatch(/install Helm 3\.17 or later/);
    expect(code).toBe(1);
  });

  it.each([
    ['too old', '#!/bin/sh\necho v3.12.3\n', /3\.12\.3/],
    ['another program', '#!/bin/sh\necho "usage: helm <ship>"\n', /no Helm/],
    ['broken', '#!/bin/sh\necho "cannot be run here" >&2\nexit 3\n', /cannot be run here/],
  ])('a helm that is %s: so much, and which is needed', async (what, script, message) => {
    const helm = await file(`helm-${what.replaceAll(' ', '-')}`, script, 0o755);
    const { code, text } = await failure([`--helm=${helm}`]);
    expect(text).toMatch(message);
    expect(text).toMatch(/install Helm 3\.17 or later/);
    expect(code).toBe(1);
  });

  it.each(['--health-addr', '--diagnostics-address'])('a port in use: which flag, which address (%s)', async (flag) => {
    await installCrds(management.api, CRDS);
    const taken = createServer();
    taken.listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    try {
      const { code, text } = await failure([`${flag}=127.0.0.1:${port}`]);
      const message = text.split('\n').filter((line) => !line.startsWith('{'));
      expect(message.join('\n')).toMatch(
        new RegExp(`${flag}.*127\\.0\\.0\\.1:${port}|127\\.0\\.0\\.1:${port}.*${flag}`),
      );
      expect(code).toBe(1);
    } finally {
      taken.close();
    }
  });
});
