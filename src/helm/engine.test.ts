import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTelemetry } from '../telemetry/index.ts';
import { ProcessHelmEngine } from './engine.ts';
import { helmProcessOptions } from './options.ts';
import { HelmProcesses } from './process.ts';
import type { DeployRequest, HelmOptions, HelmTarget } from './types.ts';

const control = { signal: new AbortController().signal };

const options: HelmOptions = {
  timeoutMs: 5_000,
  install: { createNamespace: true },
  upgrade: { maxHistory: 10 },
  uninstall: {},
};

const release = { namespace: 'ns', name: 'demo' };

const target: HelmTarget = { cluster: 'fleet/one', kubeconfig: () => 'the kubeconfig' };

let directory: string;
let engine: ProcessHelmEngine | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'capstan-engine-test-'));
});

afterEach(async () => {
  await engine?.close(0);
  await rm(directory, { recursive: true, force: true });
});

function request(more: Partial<DeployRequest> = {}): DeployRequest {
  const chart = { path: '/charts/demo.tgz', name: 'demo', version: '1.0.0', digest: 'sha256:0' };
  return { release, chart, values: '', options, ...more };
}

/** An engine on a program in helm's place: `version` for that question, `body` for every other. */
async function engineOn(body: string, version = 'v4.1.4'): Promise<ProcessHelmEngine> {
  const helmPath = join(directory, 'helm');
  const asked = join(directory, 'asked');
  const ask = `if [ "$1" = version ]; then echo >> ${asked}; printf ${version}; exit 0; fi`;
  await writeFile(helmPath, `#!/bin/sh\n${ask}\necho "$@" > ${directory}/args\n${body}\n`);
  await chmod(helmPath, 0o755);
  return engineAt(helmPath);
}

function engineAt(helmPath: string): ProcessHelmEngine {
  const telemetry = createTelemetry();
  const given = { helmPath, workDir: join(directory, 'work'), setpriv: false as const, graceMs: 500 };
  engine = new ProcessHelmEngine(new HelmProcesses(helmProcessOptions(given), telemetry), telemetry);
  return engine;
}

async function read(name: string): Promise<string> {
  return readFile(join(directory, name), 'utf8');
}

describe('version', () => {
  it.each([
    ['v3.17.0', 3],
    ['v3.22.0', 3],
    ['v4.1.4', 4],
    ['v4.0.0-rc.1', 4],
    ['v5.0.0', 5],
  ])('takes %s', async (full, major) => {
    expect(await (await engineOn('', full)).version(control)).toEqual({ major, full });
  });

  it('refuses an old one and says what is wanted', async () => {
    const old = (await engineOn('', 'v3.16.4')).version(control);
    await expect(old).rejects.toMatchObject({ code: 'HelmTooOld' });
    await expect(old).rejects.toThrow(/v3\.16\.4.*3\.17/);
  });

  it('refuses what is no helm', async () => {
    await expect((await engineOn('', 'nothing')).version(control)).rejects.toMatchObject({ code: 'HelmMissing' });
    await expect(engineAt(join(directory, 'nowhere')).version(control)).rejects.toMatchObject({ code: 'HelmMissing' });
  });

  it('is asked once for all, and again after a failure', async () => {
    const good = await engineOn('');
    await Promise.all([good.version(control), good.version(control)]);
    await good.install(target, request(), control);
    expect(await read('asked')).toBe('\n');
    await rm(join(directory, 'helm'));
    const mended = engineAt(join(directory, 'helm'));
    await expect(mended.version(control)).rejects.toMatchObject({ code: 'HelmMissing' });
    await writeFile(join(directory, 'helm'), '#!/bin/sh\nprintf v4.1.4\n', { mode: 0o755 });
    expect(await mended.version(control)).toMatchObject({ major: 4 });
  });

  it('heeds the signal of each who asks, for himself', async () => {
    const one = await engineOn('');
    const stop = new AbortController();
    const stopped = one.version({ signal: stop.signal });
    const other = one.version(control);
    stop.abort();
    await expect(stopped).rejects.toMatchObject({ code: 'Cancelled' });
    expect(await other).toMatchObject({ major: 4 });
  });
});

describe('operations', () => {
  it('give helm the kubeconfig in a file and the values as one line of JSON on standard input', async () => {
    const helm = await engineOn(`cat "$KUBECONFIG" > ${directory}/kubeconfig; cat > ${directory}/stdin`);
    await helm.install(target, request({ values: 'b: 1.0\na: "\u2028"\ndup: 1\ndup: yes\n' }), control);
    expect(await read('kubeconfig')).toBe('the kubeconfig');
    expect(await read('stdin')).toBe(String.raw`{"b":1,"a":"\u2028","dup":true}`);
    expect(await read('args')).toMatch(/^install --namespace=ns .*--values=-.* -- demo \/charts\/demo\.tgz\n$/);
  });

  it('give no values when there are none', async () => {
    const helm = await engineOn('');
    for (const values of ['', '# only a comment\n', '{}', 'null']) {
      await helm.upgrade(target, request({ values }), control);
      expect(await read('args')).not.toContain('--values');
    }
  });

  it('refuse values before helm runs', async () => {
    const helm = await engineOn('');
    const refused = helm.install(target, request({ values: 'a: 1\n---\nb: 2\n' }), control);
    await expect(refused).rejects.toMatchObject({ code: 'ValuesInvalid', line: 2 });
    await expect(read('args')).rejects.toThrow('ENOENT');
  });

  it('refuse an option that this helm has not', async () => {
    const helm = await engineOn('');
    const recreate = { ...options, upgrade: { maxHistory: 10, recreate: true } };
    const refused = helm.upgrade(target, request({ options: recreate }), control);
    await expect(refused).rejects.toMatchObject({ code: 'OptionUnsupported', field: 'options.upgrade.recreate' });
    await expect(read('args')).rejects.toThrow('ENOENT');
  });

  it("fail with Helm's words, without the values", async () => {
    const helm = await engineOn(
      'echo "Error: UPGRADE FAILED: execution error at (x): not hunter2 for demo" >&2; exit 1',
    );
    const failed = helm.upgrade(target, request({ values: 'password: hunter2\nname: demo' }), control);
    await expect(failed).rejects.toMatchObject({
      code: 'ChartInvalid',
      message: 'execution error at (x): not *** for demo',
    });
  });

  it('fail with the code when helm said nothing', async () => {
    const failed = (await engineOn('exit 7')).rollback(target, { release, revision: 2, options }, control);
    await expect(failed).rejects.toMatchObject({ code: 'Failed', message: /rollback failed with code 7/ });
  });

  it('end at their limit and tell what helm said last', async () => {
    const body = 'trap "echo Error: UPGRADE FAILED: context canceled >&2; exit 1" TERM; sleep 100 & wait';
    const limited = { ...options, timeoutMs: 100 };
    const failed = (await engineOn(body)).upgrade(target, request({ options: limited }), { ...control, limitMs: 200 });
    await expect(failed).rejects.toMatchObject({ code: 'Timeout' });
    await expect(failed).rejects.toThrow(/helm upgrade was ended after \d+ s without a result: context canceled/);
  });

  it('are cancelled by the signal', async () => {
    const helm = await engineOn(`echo > ${directory}/started; exec sleep 100`);
    const stop = new AbortController();
    const running = helm.install(target, request(), { signal: stop.signal }).catch((error: unknown) => error);
    while ((await read('started').catch(() => undefined)) === undefined) await new Promise((go) => setTimeout(go, 10));
    expect(helm.running).toBe(1);
    stop.abort(new Error('cluster gone'));
    expect(await running).toMatchObject({ code: 'Cancelled', handling: 'stop', cause: { message: 'cluster gone' } });
    expect(helm.running).toBe(0);
  });

  it('are refused once the engine is closed', async () => {
    const helm = await engineOn('');
    await helm.version(control);
    await helm.close();
    await expect(helm.install(target, request(), control)).rejects.toMatchObject({ code: 'Cancelled' });
  });
});

describe('uninstall', () => {
  it.each(['uninstall: Release not loaded: demo: release: not found', 'the release named "demo" is already deleted'])(
    'is done when helm says: %s',
    async (said) => {
      const helm = await engineOn(`echo 'Error: ${said}' >&2; exit 1`);
      await helm.uninstall(target, { release, options }, control);
    },
  );

  it('fails when storage cannot be read', async () => {
    const said = 'uninstall: Release not loaded: demo: query: secrets is forbidden: User "u" cannot list';
    const helm = await engineOn(`echo 'Error: ${said}' >&2; exit 1`);
    await expect(helm.uninstall(target, { release, options }, control)).rejects.toMatchObject({ code: 'Forbidden' });
  });
});

describe('template', () => {
  it('resolves with the manifest and needs no cluster', async () => {
    const helm = await engineOn('ls; echo "kind: ConfigMap"');
    const text = await helm.template({ ...request(), kubeVersion: '1.35.0', apiVersions: ['a/v1'] }, control);
    expect(text).toBe('kind: ConfigMap\n');
    expect(await read('args')).toBe(
      'template --namespace=ns --kube-version=1.35.0 --api-versions=a/v1 -- demo /charts/demo.tgz\n',
    );
  });
});
