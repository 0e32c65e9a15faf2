import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTelemetry } from '../telemetry/index.ts';
import { isHelmError } from './errors.ts';
import { helmProcessOptions } from './options.ts';
import type { HelmProcessOptions } from './options.ts';
import { HelmProcesses } from './process.ts';
import type { HelmRun } from './process.ts';

/** Longer than any of these tests may take: what is ended by it was not ended by what is tested. */
const LONG_MS = 60_000;

let directory: string;
let workDir: string;
const opened: HelmProcesses[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'capstan-process-test-'));
  workDir = join(directory, 'work');
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map(async (processes) => processes.close(0)));
  await rm(directory, { recursive: true, force: true });
});

/** A program in place of helm. */
async function script(body: string): Promise<string> {
  const path = join(directory, `helm-${String(Math.random()).slice(2)}`);
  await writeFile(path, `#!/bin/sh\n${body}\n`);
  await chmod(path, 0o755);
  return path;
}

function processes(helmPath: string, more: Partial<HelmProcessOptions> = {}): HelmProcesses {
  const telemetry = createTelemetry();
  const made = new HelmProcesses(helmProcessOptions({ helmPath, workDir, setpriv: false, ...more }), telemetry);
  opened.push(made);
  return made;
}

function run(more: Partial<HelmRun> = {}): HelmRun {
  return { operation: 'install', args: [], limitMs: LONG_MS, signal: new AbortController().signal, ...more };
}

async function eventually<T>(attempt: () => Promise<T> | T): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (tries === 500) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

async function lines(path: string): Promise<string[]> {
  return (await readFile(path, 'utf8')).trim().split('\n');
}

/** True while a process is there and is no zombie. */
async function lives(pid: string): Promise<boolean> {
  try {
    return !/^State:\s+Z/m.test(await readFile(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

async function gone(pid: string): Promise<void> {
  await eventually(async () => {
    expect(await lives(pid), `process ${pid} lives`).toBe(false);
  });
}

describe('HelmProcesses.run', () => {
  it('resolves with output and code', async () => {
    const helm = await script('echo "out $1 $2"; echo err >&2; exit 3');
    const exit = await processes(helm).run(run({ args: ['a', 'b c'] }));
    expect(exit).toMatchObject({ end: 'exited', code: 3, stdout: 'out a b c\n', stderr: 'err\n' });
  });

  it('runs in a private directory that is gone afterwards', async () => {
    const out = join(directory, 'out');
    const helm = await script(`pwd > ${out}; stat -c '%a %n' . kubeconfig sub/file >> ${out}; cat sub/file >> ${out}`);
    await processes(helm).run(run({ files: { kubeconfig: 'k', 'sub/file': 'content' } }));
    const [cwd, ...rest] = await lines(out);
    expect(cwd).toContain(workDir);
    expect(rest).toEqual(['700 .', '600 kubeconfig', '600 sub/file', 'content']);
    await expect(stat(cwd!)).rejects.toThrow('ENOENT');
  });

  it('asks for files that are made by a function when there is a slot', async () => {
    const helm = await script('while [ ! -f "$1/go" ]; do sleep 0.01; done; cat kubeconfig');
    const made = processes(helm, { maxProcesses: 1 });
    const first = made.run(run({ args: [directory], files: { kubeconfig: 'x' } }));
    let current = 'old';
    const second = made.run(run({ args: [directory], files: () => ({ kubeconfig: current }) }));
    current = 'new';
    await writeFile(join(directory, 'go'), '');
    await first;
    expect((await second).stdout).toBe('new');
  });

  it('gives it a bare environment whose every path lies in the directory', async () => {
    process.env['CAPSTAN_TEST_SECRET'] = 'leaked';
    const helm = await script('env; pwd');
    const exit = await processes(helm).run(run());
    delete process.env['CAPSTAN_TEST_SECRET'];
    const all = exit.stdout.trim().split('\n');
    const cwd = all.pop()!;
    const environment = new Map(
      all.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
    for (const name of ['HOME', 'TMPDIR', 'XDG_CACHE_HOME', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'KUBECONFIG']) {
      expect(environment.get(name), name).toMatch(cwd);
    }
    for (const name of environment.keys()) {
      if (name.startsWith('HELM_') && name !== 'HELM_DRIVER') expect(environment.get(name), name).toMatch(cwd);
    }
    expect(environment.get('PATH')).toBe('/usr/local/bin:/usr/bin:/bin');
    expect([...environment.keys()].filter((name) => /CAPSTAN|KUBERNETES_|PROXY|proxy|NODE/.test(name))).toEqual([]);
  });

  it('passes on the proxies and variables that it was given', async () => {
    const helm = await script('echo "$HTTPS_PROXY $https_proxy $HTTP_PROXY $NO_PROXY $OWN"');
    const proxy = { httpProxy: 'http://plain:1', httpsProxy: 'http://secure:2', noProxy: 'localhost' };
    const exit = await processes(helm, { proxy, environment: { OWN: 'mine', HOME: '/nowhere' } }).run(run());
    expect(exit.stdout).toBe('http://secure:2 http://secure:2 http://plain:1 localhost mine\n');
  });

  it('feeds standard input, or closes it', async () => {
    const made = processes(await script('cat; echo end'));
    expect((await made.run(run({ stdin: 'values: é\n' }))).stdout).toBe('values: é\nend\n');
    expect((await made.run(run())).stdout).toBe('end\n');
  });

  it('is not disturbed by a process that does not read its input', async () => {
    const exit = await processes(await script('exit 4')).run(run({ stdin: 'x'.repeat(1_000_000) }));
    expect(exit).toMatchObject({ end: 'exited', code: 4 });
  });

  it('keeps head and tail of long output', async () => {
    const helm = await script('echo first; head -c 300000 /dev/zero | tr "\\0" x; echo; echo last');
    const { stdout } = await processes(helm).run(run());
    expect(stdout).toMatch(/^first\nx+\n\.\.\. \d+ bytes left out \.\.\.\nx+\nlast\n$/);
    expect(stdout.length).toBeLessThan(70_000);
  });

  it('keeps output whole when it is the result, and ends what writes too much', async () => {
    const helm = await script('head -c "$1" /dev/zero | tr "\\0" x; sleep "$2"');
    const made = processes(helm);
    const fits = await made.run(run({ args: ['300000', '0'], wholeOutput: 300_000 }));
    expect(fits).toMatchObject({ end: 'exited', code: 0 });
    expect(fits.stdout).toBe('x'.repeat(300_000));
    const exit = await made.run(run({ args: ['300001', '100'], wholeOutput: 300_000 }));
    expect(exit).toMatchObject({ end: 'overflow', code: -1, stdout: '' });
  });

  it('ends it at its limit with SIGTERM, and says so', async () => {
    const helm = await script('trap "echo term; exit 1" TERM; echo $$ > pidfile; sleep 100 & wait');
    const exit = await processes(helm).run(run({ limitMs: 200 }));
    expect(exit).toMatchObject({ end: 'limit', code: -1, stdout: 'term\n' });
  });

  it('follows with SIGKILL what does not heed SIGTERM, and its children', async () => {
    const pids = join(directory, 'pids');
    const helm = await script(
      `trap "" TERM; (trap "" TERM; while :; do sleep 0.1; done) & echo $$ $! > ${pids}; while :; do sleep 0.1; done`,
    );
    const exit = await processes(helm, { graceMs: 100 }).run(run({ limitMs: 500 }));
    expect(exit).toMatchObject({ end: 'limit', code: -1 });
    for (const pid of (await lines(pids))[0]!.split(' ')) await gone(pid);
  });

  it('takes down what a process leaves behind with its output open', async () => {
    const pids = join(directory, 'pids');
    const helm = await script(`sleep 100 & echo $! > ${pids}; echo done`);
    const exit = await processes(helm).run(run());
    expect(exit).toMatchObject({ end: 'exited', code: 0, stdout: 'done\n' });
    await gone((await lines(pids))[0]!);
  });

  it('ends it when the signal aborts', async () => {
    const started = join(directory, 'started');
    const helm = await script(`echo > ${started}; exec sleep 100`);
    const made = processes(helm);
    const stop = new AbortController();
    const running = made.run(run({ signal: stop.signal }));
    await eventually(async () => readFile(started));
    expect(made.running).toBe(1);
    stop.abort();
    expect(await running).toMatchObject({ end: 'aborted', code: -1 });
    expect(made.running).toBe(0);
  });

  it('takes for done what was done when the signal aborted', async () => {
    const started = join(directory, 'started');
    const helm = await script(`trap "exit 0" TERM; echo > ${started}; sleep 100 & wait`);
    const stop = new AbortController();
    const running = processes(helm).run(run({ signal: stop.signal }));
    await eventually(async () => readFile(started));
    stop.abort();
    expect(await running).toMatchObject({ end: 'exited', code: 0 });
  });

  it('tells when somebody else killed it', async () => {
    const exit = await processes(await script('kill -KILL $$')).run(run());
    expect(exit).toMatchObject({ end: 'killed', code: -1 });
  });

  it('does not start what was cancelled before', async () => {
    const made = processes(await script('exit 0'));
    const aborted = made.run(run({ signal: AbortSignal.abort(new Error('gone')) }));
    await expect(aborted).rejects.toMatchObject({ code: 'Cancelled', handling: 'stop' });
  });

  it('says what to do when there is no helm', async () => {
    const missing = processes(join(directory, 'nowhere')).run(run());
    await expect(missing).rejects.toMatchObject({ code: 'HelmMissing', handling: 'never' });
    await expect(missing).rejects.toThrow(/Install Helm 3\.17/);
    const plain = join(directory, 'not-executable');
    await writeFile(plain, '');
    await expect(processes(plain).run(run())).rejects.toMatchObject({ code: 'HelmMissing' });
  });

  it('leaves no directory behind however a run ends', async () => {
    const helm = await script('exec sleep 100');
    const made = processes(helm);
    await made.run(run({ limitMs: 100 }));
    await expect(processes(join(directory, 'nowhere')).run(run())).rejects.toThrow();
    const [base] = await readdir(workDir);
    expect(await readdir(join(workDir, base!))).toEqual([]);
  });
});

describe('slots', () => {
  it('bounds how many compute, and does not count those that wait for workloads', async () => {
    const helm = await script('echo > "$1"; while [ ! -f "$2" ]; do sleep 0.01; done');
    const made = processes(helm, { maxProcesses: 2, maxWaitingProcesses: 5 });
    const go = join(directory, 'go');
    const started = async (): Promise<string[]> => (await readdir(directory)).filter((name) => name.startsWith('s-'));
    const short = [1, 2, 3].map(async (n) => made.run(run({ args: [join(directory, `s-${String(n)}`), go] })));
    await eventually(async () => {
      expect(await started()).toHaveLength(2);
    });
    // The pool is full: this one is there only because it waits for workloads.
    const waiting = made.run(run({ pool: 'wait', args: [join(directory, 's-wait'), go] }));
    await eventually(async () => {
      expect(await started()).toContain('s-wait');
    });
    expect(await started()).toHaveLength(3);
    expect(made.running).toBe(3);
    await writeFile(go, '');
    await Promise.all([...short, waiting]);
    expect(await started()).toHaveLength(4);
  });

  it('lets one that waits for a slot be cancelled', async () => {
    const made = processes(await script('exec sleep 100'), { maxProcesses: 1 });
    const stopFirst = new AbortController();
    const first = made.run(run({ signal: stopFirst.signal }));
    await eventually(() => {
      expect(made.running).toBe(1);
    });
    const stopSecond = new AbortController();
    const second = made.run(run({ signal: stopSecond.signal }));
    stopSecond.abort(new Error('cluster gone'));
    const error: unknown = await second.catch((reason: unknown) => reason);
    expect(isHelmError(error, 'Cancelled')).toBe(true);
    expect(error).toHaveProperty('cause.message', 'cluster gone');
    stopFirst.abort();
    expect((await first).end).toBe('aborted');
  });
});

describe('close', () => {
  it('ends all, waits for them, and starts nothing afterwards', async () => {
    const helm = await script(`echo $$ >> ${join(directory, 'pids')}; exec sleep 100`);
    const made = processes(helm, { maxProcesses: 2 });
    const runs = [1, 2].map(async () => made.run(run()));
    const queued = made.run(run()).catch((error: unknown) => error);
    await eventually(async () => {
      expect(await lines(join(directory, 'pids'))).toHaveLength(2);
    });
    await made.close();
    expect((await Promise.all(runs)).map(({ end }) => end)).toEqual(['aborted', 'aborted']);
    expect(await queued).toMatchObject({ code: 'Cancelled' });
    for (const pid of await lines(join(directory, 'pids'))) await gone(pid);
    expect(made.running).toBe(0);
    expect(await readdir(workDir)).toEqual([]);
    await expect(made.run(run())).rejects.toMatchObject({ code: 'Cancelled' });
  });

  it('kills at the end of its own grace what does not heed', async () => {
    const pids = join(directory, 'pids');
    const helm = await script(`trap "" TERM; echo $$ > ${pids}; while :; do sleep 0.1; done`);
    const made = processes(helm, { graceMs: LONG_MS });
    const running = made.run(run());
    await eventually(async () => readFile(pids));
    await made.close(50);
    expect((await running).end).toBe('aborted');
    await gone((await lines(pids))[0]!);
  });
});

describe('what a killed Capstan leaves behind', () => {
  it('is removed by the next one, and what lives is not', async () => {
    await mkdir(workDir);
    const living = spawn('sleep', ['100']);
    const startOf = (await readFile(`/proc/${String(living.pid)}/stat`, 'utf8')).split(') ')[1]!.split(' ')[19]!;
    const names = {
      alive: `capstan-helm-${String(living.pid)}.${startOf}-abc`,
      reused: `capstan-helm-${String(living.pid)}.${String(Number(startOf) - 1)}-abc`,
      dead: 'capstan-helm-4194305.17-abc',
      other: 'somebody-elses',
    };
    for (const name of Object.values(names)) await mkdir(join(workDir, name, 'op-1'), { recursive: true });
    const made = processes(await script('exit 0'));
    await made.run(run());
    await made.close();
    living.kill();
    await once(living, 'exit');
    expect((await readdir(workDir)).sort()).toEqual([names.alive, names.other].sort());
  });
});

describe('the parent-death signal', () => {
  it('is set through a setpriv that knows it', async () => {
    const calls = join(directory, 'calls');
    const setpriv = await script(`echo "$@" > ${calls}; shift 3; exec "$@"`);
    const helm = await script(`cat ${calls}; echo "helm $1"`);
    const exit = await processes(helm, { setpriv }).run(run({ args: ['version'] }));
    expect(exit.stdout).toBe(`--pdeathsig TERM -- ${helm} version\nhelm version\n`);
  });

  it('is done without where setpriv does not know it', async () => {
    const setpriv = await script('echo "unrecognized option: pdeathsig" >&2; exit 1');
    const exit = await processes(await script('echo plain'), { setpriv }).run(run());
    expect(exit.stdout).toBe('plain\n');
  });
});

describe('metrics', () => {
  it('count runs by cluster, operation and result, and those that run', async () => {
    const telemetry = createTelemetry();
    const helm = await script('exit "$1"');
    const made = new HelmProcesses(helmProcessOptions({ helmPath: helm, workDir, setpriv: false }), telemetry);
    opened.push(made);
    await made.run(run({ cluster: 'ns/one', args: ['0'] }));
    await made.run(run({ cluster: 'ns/one', args: ['1'] }));
    await expect(made.run(run({ cluster: 'ns/one', signal: AbortSignal.abort() }))).rejects.toThrow();
    const text = await telemetry.metrics.metrics();
    const total = (result: string): string => `{cluster="ns/one",operation="install",result="${result}"} 1`;
    for (const result of ['success', 'error', 'cancelled']) {
      expect(text).toContain(`capstan_helm_operations_total${total(result)}`);
    }
    expect(text).toContain('capstan_helm_processes{pool="short"} 0');
    expect(text).toContain('capstan_helm_operation_seconds_count{operation="install"} 2');
    made.forget('ns/one');
    expect(await telemetry.metrics.metrics()).not.toContain('ns/one');
  });
});
