import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { AppError } from '../errors.ts';
import type { Environment } from '../options.ts';
import type { DriftOptions } from './options.ts';
import { connectUser } from './user-kubeconfig.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

function file(name: string, content: object | string): string {
  const path = join(directory, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, typeof content === 'string' ? content : stringify(content));
  return path;
}

function config(name: string, server: string, more: object = {}): object {
  return {
    clusters: [{ name, cluster: { server } }],
    users: [{ name, user: { token: 'hunter2' } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: `of-${name}` } }],
    'current-context': name,
    ...more,
  };
}

/** Where it would connect to. */
async function connect(kubeconfig: string, parts: { context?: string; home?: string } = {}): Promise<object> {
  const options: DriftOptions = {
    kubeconfig,
    context: parts.context ?? '',
    namespace: '',
    allNamespaces: false,
    cluster: undefined,
    direct: false,
    names: [],
    extraFields: undefined,
    includeCRDs: false,
    dryRun: true,
    view: 'table',
    output: 'text',
    color: 'auto',
    timeoutMs: 1_000,
    concurrency: 1,
    allowExecPlugins: false,
    userAgent: 'test',
  };
  const env: Environment = {
    kubeconfig: '',
    home: parts.home ?? '',
    noColor: false,
    podNamespace: '',
    hostname: '',
    isTerminal: false,
    temporaryDirectory: '',
    workingDirectory: '',
    path: '',
    serviceHost: '',
    tracing: false,
    servicePort: '',
    httpProxy: '',
    httpsProxy: '',
    noProxy: '',
  };
  const { connection, name } = connectUser(options, env);
  const { server, namespace } = connection;
  await connection.close();
  return { name, server, namespace };
}

async function refusal(kubeconfig: string, parts: { context?: string } = {}): Promise<string> {
  try {
    await connect(kubeconfig, parts);
  } catch (error) {
    if (error instanceof AppError) return `${error.code}: ${error.message}`;
    throw error;
  }
  throw new Error('was accepted');
}

describe('the user’s kubeconfig', () => {
  it('is the current context’s, or the one that is named', async () => {
    const one = file('one', config('one', 'https://one:6443'));
    expect(await connect(one)).toEqual({ name: 'one', server: 'https://one:6443', namespace: 'of-one' });
    const list = [file('missing/../empty', 'apiVersion: v1\n'), one, file('two', config('two', 'https://two'))].join(
      ':',
    );
    expect(await connect(list)).toMatchObject({ name: 'one' });
    expect(await connect(list, { context: 'two' })).toMatchObject({ server: 'https://two', namespace: 'of-two' });
  });

  it('takes the first of entries with one name, and passes over files of a list that are not there', async () => {
    const [a, b] = [file('a', config('same', 'https://a')), file('b', config('same', 'https://b'))];
    expect(await connect([join(directory, 'nosuch'), b, a].join(':'))).toMatchObject({ server: 'https://b' });
  });

  it('is in the home directory when nothing names one', async () => {
    file('.kube/config', config('home', 'https://home'));
    expect(await connect('', { home: directory })).toMatchObject({ name: 'home' });
  });

  it('names files relative to its own directory', async () => {
    file('sub/token', 'hunter2');
    const user = { users: [{ name: 'one', user: { tokenFile: 'token' } }] };
    expect(await connect(file('sub/config', config('one', 'https://one', user)))).toMatchObject({ name: 'one' });
    const ca = { clusters: [{ name: 'one', cluster: { server: 'https://one', 'certificate-authority': 'ca.crt' } }] };
    expect(await refusal(file('sub/other', config('one', 'https://one', ca)))).toContain(
      'certificate-authority cannot be read',
    );
  });

  it('is refused with what is wrong, without a word of it', async () => {
    const tests: [string, string][] = [
      [join(directory, 'nosuch'), 'is not there'],
      [`${join(directory, 'nosuch')}:${join(directory, 'neither')}`, 'none of '],
      [file('broken', 'users: [hunter2'), 'is no YAML mapping'],
      [file('text', 'hunter2'), 'is no YAML mapping'],
      [file('contextless', config('one', 'https://one', { 'current-context': '' })), 'has no current-context'],
      ['', 'there is no kubeconfig'],
    ];
    for (const [path, message] of tests) {
      const text = await refusal(path);
      expect(text).toMatch(/^KUBECONFIG: /);
      expect(text).toContain(message);
      expect(text).not.toContain('hunter2');
    }
    const one = file('one', config('one', 'https://one'));
    expect(await refusal(one, { context: 'two' })).toContain('no entry "two"');
  });
});
