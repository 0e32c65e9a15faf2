import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { testTelemetry } from '../../runtime/fakes.test-support.ts';
import { clusterName } from '../../runtime/index.ts';
import type { ClusterAbout, ClusterSink } from '../../runtime/index.ts';
import { CONTEXT_LABEL, FILE_LABEL, KubeconfigFileProvider } from './file-provider.ts';
import type { KubeconfigFileProviderOptions } from './file-provider.ts';

let directory: string;
let told: string[];
let abouts: Map<string, ClusterAbout | undefined>;
let ends: (() => Promise<void>)[];
let log: ReturnType<typeof testTelemetry>['log'];

const sink: ClusterSink = {
  discover: (name, { message }, about) => {
    told.push(`discover ${name}: ${message.replaceAll(directory, '')}`);
    abouts.set(name, about);
  },
  engage: (name, { kubeconfig }, about) => {
    told.push(`engage ${name} ${/"server":"([^"]*)"/.exec(kubeconfig)?.[1] ?? ''}`);
    abouts.set(name, about);
  },
  disengage: (name) => void told.push(`disengage ${name}`),
};

function kubeconfig(contexts: Record<string, string>): string {
  const names = Object.keys(contexts);
  return JSON.stringify({
    contexts: names.map((name) => ({ name, context: { cluster: name, user: 'me' } })),
    clusters: names.map((name) => ({ name, cluster: { server: contexts[name] } })),
    users: [{ name: 'me', user: { token: 'hush' } }],
  });
}

/** As editors and kubectl's `config` do not, but whoever wants no half file read does. */
async function put(name: string, text: string): Promise<void> {
  await writeFile(join(directory, `${name}.tmp`), text);
  await rename(join(directory, `${name}.tmp`), join(directory, name));
}

function provide(paths: string[], more: Partial<KubeconfigFileProviderOptions> = {}): KubeconfigFileProvider {
  const test = testTelemetry();
  log = test.log;
  return new KubeconfigFileProvider({ paths, telemetry: test.telemetry, ...more });
}

function start(provider: KubeconfigFileProvider): () => Promise<void> {
  const end = new AbortController();
  const run = provider.run(sink, end.signal);
  const stop = async (): Promise<void> => {
    end.abort(new Error('the test is over'));
    await run;
  };
  ends.push(stop);
  return stop;
}

/** Waits for what is told next, and takes it. */
async function next(lines: string[]): Promise<void> {
  await vi.waitFor(() => expect([...told].sort()).toEqual([...lines].sort()), { timeout: 10_000 });
  told = [];
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'capstan-files-'));
  told = [];
  abouts = new Map();
  ends = [];
});
afterEach(async () => {
  await Promise.all(ends.map(async (end) => end()));
  await rm(directory, { recursive: true, force: true });
});

describe('a directory of kubeconfigs', () => {
  it('gives every context of every file, and passes over what is none', async () => {
    await put('b.yaml', kubeconfig({ x: 'https://bx', y: 'https://by' }));
    await put('a', kubeconfig({ x: 'https://ax' }));
    await put('.hidden', 'no');
    await put('a.yaml~', 'no');
    await mkdir(join(directory, 'below'));
    start(provide([directory], { labels: { fleet: 'files' }, namespace: 'apps' }));
    await next(['engage a+x https://ax', 'engage b+x https://bx', 'engage b+y https://by']);
    expect(abouts.get('b+y')).toEqual({
      labels: { fleet: 'files', [FILE_LABEL]: 'b', [CONTEXT_LABEL]: 'y' },
      namespace: 'apps',
    });
  });

  it('is watched: files and contexts that come, change and go, each by itself', async () => {
    await put('a.yaml', kubeconfig({ x: 'https://1', y: 'https://2' }));
    start(provide([directory], { pollMs: 60_000 }));
    await next(['engage a+x https://1', 'engage a+y https://2']);
    await put('b.yaml', kubeconfig({ x: 'https://3' }));
    await next(['engage b+x https://3']);
    await put('a.yaml', kubeconfig({ x: 'https://1', y: 'https://4', z: 'https://5' }));
    await next(['engage a+y https://4', 'engage a+z https://5']);
    await put('a.yaml', kubeconfig({ x: 'https://1' }));
    await next(['disengage a+y', 'disengage a+z']);
    await rm(join(directory, 'a.yaml'));
    await next(['disengage a+x']);
  });

  it('may be a mount that swaps a link, as kubelets do', async () => {
    for (const [version, server] of [
      ['..v1', 'https://1'],
      ['..v2', 'https://2'],
    ] as const) {
      await mkdir(join(directory, version));
      await writeFile(join(directory, version, 'a.yaml'), kubeconfig({ x: server }));
    }
    await symlink('..v1', join(directory, '..data'));
    await symlink(join('..data', 'a.yaml'), join(directory, 'a.yaml'));
    start(provide([directory], { pollMs: 60_000 }));
    await next(['engage a+x https://1']);
    await symlink('..v2', join(directory, '..data_tmp'));
    await rename(join(directory, '..data_tmp'), join(directory, '..data'));
    await next(['engage a+x https://2']);
  });

  it('that does not exist yet is found by the poll, and so is one that was replaced', async () => {
    const late = join(directory, 'late');
    start(provide([late], { pollMs: 50 }));
    await vi.waitFor(() => expect(log.of('names no file')).toHaveLength(1));
    await mkdir(late);
    await put('late/a.yaml', kubeconfig({ x: 'https://1' }));
    await next(['engage a+x https://1']);
    await rename(late, join(directory, 'old'));
    await next(['disengage a+x']);
    await mkdir(late);
    await put('late/a.yaml', kubeconfig({ x: 'https://2' }));
    await next(['engage a+x https://2']);
  });
});

describe('a file', () => {
  it('named by its path, by a glob and by its directory is one file', async () => {
    await put('a.yaml', kubeconfig({ x: 'https://1' }));
    await put('b.conf', kubeconfig({ x: 'https://2' }));
    start(provide([join(directory, 'a.yaml'), join(directory, '*.yaml')]));
    await next(['engage a+x https://1']);
  });

  it('that becomes unusable is a reason for each of its clusters, and mended it is declared again', async () => {
    await put('a.yaml', kubeconfig({ x: 'https://1', y: 'https://2' }));
    await put('b.yaml', kubeconfig({ x: 'https://3' }));
    start(provide([directory]));
    await next(['engage a+x https://1', 'engage a+y https://2', 'engage b+x https://3']);
    await put('a.yaml', 'hush: [');
    const why = '/a.yaml: it is no valid YAML';
    await next([`discover a+x: ${why}`, `discover a+y: ${why}`]);
    await put('a.yaml', kubeconfig({ x: 'https://1', y: 'https://2' }));
    await next(['engage a+x https://1', 'engage a+y https://2']);
  });

  it('that is half written, cut where it is valid with fewer contexts, ends no cluster', async () => {
    const whole = kubeconfig({ x: 'https://1', y: 'https://2' });
    await put('a.yaml', whole);
    start(provide([directory]));
    await next(['engage a+x https://1', 'engage a+y https://2']);
    await put('a.yaml', 'contexts:\n');
    await put('b.yaml', kubeconfig({ z: 'https://3' }));
    await next(['engage b+z https://3']);
    await put('a.yaml', whole);
    await put('c.yaml', kubeconfig({ z: 'https://4' }));
    await next(['engage c+z https://4']);
  });

  it('that has lost a context for good ends its cluster', async () => {
    await put('a.yaml', kubeconfig({ x: 'https://1', y: 'https://2' }));
    start(provide([directory]));
    await next(['engage a+x https://1', 'engage a+y https://2']);
    await put('a.yaml', 'contexts:\n');
    await next(['disengage a+x', 'disengage a+y']);
  });

  it('that never was usable stands for itself until it is', async () => {
    await put('a.yaml', 'just: yaml');
    start(provide([directory]));
    await next(['discover a: /a.yaml: it is no kubeconfig: it has no contexts']);
    await put('a.yaml', kubeconfig({ x: 'https://1' }));
    await next(['disengage a', 'engage a+x https://1']);
  });

  it('that is too large or no file is not read', async () => {
    await put('a.yaml', ' '.repeat(1024 * 1024 + 1));
    start(provide([directory]));
    await next(['discover a: /a.yaml: it is larger than 1 MiB']);
  });

  it('that cannot be read says so, and hides no other', async () => {
    await symlink('a.yaml', join(directory, 'a.yaml'));
    await put('b.yaml', kubeconfig({ x: 'https://1' }));
    start(provide([directory]));
    await next([
      "discover a: /a.yaml: it cannot be read: ELOOP: too many symbolic links encountered, stat '/a.yaml'",
      'engage b+x https://1',
    ]);
  });

  it('of the same name as another in another directory leaves that one its clusters', async () => {
    for (const folder of ['m', 'n']) await mkdir(join(directory, folder));
    await put('n/a.yaml', kubeconfig({ x: 'https://n' }));
    start(provide([join(directory, 'm'), join(directory, 'n')]));
    await next(['engage a+x https://n']);
    await put('m/a.yaml', kubeconfig({ x: 'https://m' }));
    await vi.waitFor(() => expect(log.of('both give cluster a+x')).toHaveLength(1));
    expect(told).toEqual([]);
    await rm(join(directory, 'n/a.yaml'));
    await next(['engage a+x https://m']);
  });
});

describe('a run', () => {
  it('after another declares everything, and disengages what went meanwhile', async () => {
    await put('a.yaml', kubeconfig({ x: 'https://1', y: 'https://2' }));
    const provider = provide([directory]);
    const stop = start(provider);
    await next(['engage a+x https://1', 'engage a+y https://2']);
    await stop();
    await put('a.yaml', kubeconfig({ x: 'https://1' }));
    start(provider);
    await next(['disengage a+y', 'engage a+x https://1']);
  });

  it('declares a cluster again when asked to, and no other', async () => {
    await put('a.yaml', kubeconfig({ x: 'https://1', y: 'https://2' }));
    const provider = provide([directory]);
    start(provider);
    await next(['engage a+x https://1', 'engage a+y https://2']);
    provider.refresh(clusterName('a+y'));
    await next(['engage a+y https://2']);
  });

  it('tells no secret', async () => {
    await put('a.yaml', kubeconfig({ x: 'https://1' }));
    await put('b.yaml', 'hush: [hush');
    start(provide([directory]));
    await next(['discover b: /b.yaml: it is no valid YAML', 'engage a+x https://1']);
    expect(log.lines.join('\n') + JSON.stringify([...abouts.values()])).not.toContain('hush');
  });
});
