import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { TestAuthority } from './certificates.test-support.ts';
import { inClusterKubeconfig } from './connection-options.ts';
import { identityOf, readKubeconfig, writeKubeconfig } from './kubeconfig.ts';
import type { KubeconfigOptions } from './kubeconfig.ts';

const STRICT: KubeconfigOptions = { allowExec: false, allowFiles: false };
const authority = await TestAuthority.create();
const pem = await authority.issue('someone');

interface Parts {
  cluster?: Record<string, unknown>;
  user?: Record<string, unknown>;
}

function kubeconfig({ cluster = {}, user = {} }: Parts = {}): string {
  return JSON.stringify({
    'current-context': 'one',
    contexts: [
      { name: 'one', context: { cluster: 'c', user: 'u', namespace: 'n' } },
      { name: 'anonymous', context: { cluster: 'c' } },
      { name: 'dangling', context: { cluster: 'nowhere', user: 'u' } },
    ],
    clusters: [{ name: 'c', cluster: { server: 'https://api.test:6443', ...cluster } }],
    users: [{ name: 'u', user }],
  });
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

describe('reading', () => {
  it('takes YAML, the current context and everything that it names', () => {
    const access = readKubeconfig(
      `
current-context: one
contexts: [{name: one, context: {cluster: c, user: u}}]
clusters:
- name: c
  cluster: {server: 'https://api.test:6443/k8s/clusters/x/', tls-server-name: other.test, proxy-url: 'http://proxy.test:3128'}
users:
- name: u
  user: {token: abc, as: someone, as-groups: [a, b], as-uid: '7', as-user-extra: {scopes: [view]}}
`,
      STRICT,
    );
    expect(access).toMatchObject({
      server: 'https://api.test:6443/k8s/clusters/x',
      tlsServerName: 'other.test',
      insecure: false,
      proxyUrl: 'http://proxy.test:3128',
      user: {
        token: 'abc',
        impersonate: { user: 'someone', uid: '7', groups: ['a', 'b'], extra: { scopes: ['view'] } },
      },
    });
  });

  it('takes the context that it is asked for', () => {
    expect(readKubeconfig(kubeconfig({ user: { token: 'x' } }), { ...STRICT, context: 'anonymous' }).user).toEqual({});
  });

  it.each([
    { text: 'not: [valid', message: 'it is no valid YAML' },
    { text: 'just text', message: 'it is no YAML mapping' },
    { text: '{}', message: 'it has no current-context' },
    {
      text: kubeconfig().replace('"current-context":"one"', '"current-context":"other"'),
      message: 'its contexts have no entry "other"',
    },
    {
      text: kubeconfig().replace('"current-context":"one"', '"current-context":"dangling"'),
      message: 'its clusters have no entry "nowhere"',
    },
    { text: kubeconfig({ cluster: { server: '' } }), message: 'cluster.server is missing' },
    { text: kubeconfig({ cluster: { server: 'ftp://x' } }), message: 'cluster.server is no http(s) address' },
    { text: kubeconfig({ cluster: { server: 'https://user:pw@x' } }), message: 'must have neither query nor user' },
    { text: kubeconfig({ cluster: { 'proxy-url': 'gopher://x' } }), message: 'cluster.proxy-url is no' },
    { text: kubeconfig({ user: { token: 12345 } }), message: 'user.token is no text (quote it)' },
    {
      text: kubeconfig({ user: { 'client-key-data': base64(pem.key) } }),
      message: 'a client certificate or its key, not both',
    },
    {
      text: kubeconfig({
        user: { 'client-certificate-data': base64(pem.cert), 'client-key-data': base64('nonsense') },
      }),
      message: 'no valid PEM',
    },
    { text: kubeconfig({ user: { exec: 'text' } }), message: 'exec is no mapping' },
  ])('says $message', ({ text, message }) => {
    expect(() => readKubeconfig(text, STRICT)).toThrow(message);
    expect(() => readKubeconfig(text, STRICT)).toThrow(expect.objectContaining({ code: 'KubeconfigInvalid' }));
  });

  it('quotes nothing of a text that it cannot parse', () => {
    const text = 'users:\n- user:\n    token: hunter2: "oops\n';
    let message = '';
    try {
      readKubeconfig(text, STRICT);
    } catch (error) {
      message = error instanceof Error ? `${error.message} ${String(error.cause)}` : '';
    }
    expect(message).toContain('line 3');
    expect(message).not.toContain('hunter2');
  });
});

describe('what runs programs or reads files', () => {
  it.each([
    [{ exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'aws' } }, 'an exec plugin'],
    [{ 'auth-provider': { name: 'oidc', config: {} } }, 'an auth provider'],
  ])('refuses %o unless it is allowed, and says what to do', (user, what) => {
    const text = kubeconfig({ user });
    expect(() => readKubeconfig(text, STRICT)).toThrow(expect.objectContaining({ code: 'ExecPluginRefused' }));
    expect(() => readKubeconfig(text, STRICT)).toThrow(new RegExp(`${what}.*use a token or a client certificate`));
    expect(readKubeconfig(text, { ...STRICT, allowExec: true }).server).toBe('https://api.test:6443');
  });

  it.each([
    [{ user: { tokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token' } }, 'user.tokenFile'],
    [{ user: { 'client-certificate': 'a', 'client-key': 'b' } }, 'user.client-certificate'],
    [{ cluster: { 'certificate-authority': '/etc/passwd' } }, 'cluster.certificate-authority'],
  ])('refuses files unless they are allowed: %o', (parts, where) => {
    expect(() => readKubeconfig(kubeconfig(parts), STRICT)).toThrow(where);
    expect(() => readKubeconfig(kubeconfig(parts), STRICT)).toThrow(
      expect.objectContaining({ code: 'FileReferenceRefused' }),
    );
  });

  it("reads files from the kubeconfig's directory where it may; data win over files", async () => {
    const baseDir = await mkdtemp(join(tmpdir(), 'capstan-kube-'));
    await writeFile(join(baseDir, 'ca.crt'), authority.ca);
    const options = { ...STRICT, allowFiles: true, baseDir };
    const fromFile = readKubeconfig(kubeconfig({ cluster: { 'certificate-authority': 'ca.crt' } }), options);
    expect(fromFile.ca).toBe(authority.ca);
    const both = { 'certificate-authority': 'missing.crt', 'certificate-authority-data': base64(authority.ca) };
    expect(readKubeconfig(kubeconfig({ cluster: both }), options).ca).toBe(authority.ca);
    const missing = kubeconfig({ cluster: { 'certificate-authority': 'missing.crt' } });
    expect(() => readKubeconfig(missing, options)).toThrow("the kubeconfig's file for cluster.certificate-authority");
    await rm(baseDir, { recursive: true });
  });
});

describe('identity', () => {
  const identity = (parts: Parts): string => identityOf(readKubeconfig(kubeconfig(parts), STRICT));

  it('is the server, its CA, its name and how it is verified; credentials are not part of it', () => {
    const same = identity({ user: { token: 'a' } });
    expect(identity({ user: { token: 'b' } })).toBe(same);
    expect(identity({ cluster: { 'proxy-url': 'http://proxy.test' } })).toBe(same);
    for (const cluster of [
      { server: 'https://other.test:6443' },
      { 'certificate-authority-data': base64(authority.ca) },
      { 'tls-server-name': 'x' },
      { 'insecure-skip-tls-verify': true },
    ]) {
      expect(identity({ cluster })).not.toBe(same);
    }
  });

  it('does not change with the white space of a CA', () => {
    const of = (ca: string): string => identity({ cluster: { 'certificate-authority-data': base64(ca) } });
    expect(of(`${authority.ca}\n`)).toBe(of(authority.ca));
  });
});

it('writes what it read, so that nothing else is needed', () => {
  const text = kubeconfig({
    cluster: {
      'certificate-authority-data': base64(authority.ca),
      'tls-server-name': 'x',
      'proxy-url': 'http://p.test',
    },
    user: {
      'client-certificate-data': base64(pem.cert),
      'client-key-data': base64(pem.key),
      as: 'someone',
      'as-groups': ['a'],
      'as-user-extra': { k: ['v'] },
    },
  });
  const access = readKubeconfig(text, STRICT);
  expect(readKubeconfig(writeKubeconfig(access), STRICT)).toEqual(access);
});

describe('in a cluster', () => {
  it('goes by the environment and the mounted service account', async () => {
    const root = await mkdtemp(join(tmpdir(), 'capstan-kube-'));
    await writeFile(join(root, 'ca.crt'), authority.ca);
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' };
    const access = readKubeconfig(inClusterKubeconfig(env, root), { ...STRICT, allowFiles: true });
    expect(access).toMatchObject({
      server: 'https://[fd00::1]:6443',
      ca: authority.ca,
      user: { tokenFile: join(root, 'token') },
    });
    await rm(root, { recursive: true });
  });

  it('says so where there is none', () => {
    const text = inClusterKubeconfig({}, '/nowhere');
    expect(() => readKubeconfig(text, { ...STRICT, allowFiles: true })).toThrow('cluster.server is missing');
  });
});
