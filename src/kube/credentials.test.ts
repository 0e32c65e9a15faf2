import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Credentials } from './credentials.ts';
import type { UserAccess } from './kubeconfig.ts';

const { signal } = new AbortController();

function credentials(user: UserAccess): Credentials {
  return new Credentials({ server: 'http://127.0.0.1:1', insecure: false, user });
}

/** A kubeconfig's exec section for a program that prints what the JavaScript expression gives. */
function exec(expression: string): UserAccess {
  const script = `process.stdout.write(JSON.stringify(${expression}))`;
  return { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: process.execPath, args: ['-e', script] } };
}

describe('fixed credentials', () => {
  it.each([
    [{ token: 'abc\n' }, { authorization: 'Bearer abc' }],
    [{ username: 'u', password: 'ü' }, { authorization: `Basic ${Buffer.from('u:ü').toString('base64')}` }],
    [{ token: 'abc', username: 'u' }, { authorization: 'Bearer abc' }],
    [
      { impersonate: { user: 'x', uid: '1', groups: ['a', 'b'], extra: { 'k/v': ['1'] } } },
      {
        'impersonate-user': 'x',
        'impersonate-uid': '1',
        'impersonate-group': ['a', 'b'],
        'impersonate-extra-k%2Fv': ['1'],
      },
    ],
    [{}, {}],
  ])('%o', async (user, headers) => {
    expect((await credentials(user).current(signal)).headers).toEqual(headers);
    expect(await credentials(user).renew(signal)).toBe(false);
  });

  it('passes client certificates on to the TLS session', async () => {
    expect(await credentials({ cert: 'c', key: 'k' }).current(signal)).toMatchObject({ cert: 'c', key: 'k' });
  });
});

describe('a token file', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('is read again after a minute, and when it is asked to', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'capstan-kube-'));
    const tokenFile = join(directory, 'token');
    const token = async (): Promise<unknown> => (await held.current(signal)).headers['authorization'];
    const held = credentials({ tokenFile });
    await writeFile(tokenFile, 'first');
    vi.useFakeTimers({ toFake: ['performance'] });
    expect(await token()).toBe('Bearer first');
    await writeFile(tokenFile, 'second');
    expect(await token()).toBe('Bearer first');
    vi.advanceTimersByTime(60_001);
    expect(await token()).toBe('Bearer second');
    expect(await held.renew(signal)).toBe(false);
    await writeFile(tokenFile, 'third');
    expect(await held.renew(signal)).toBe(true);
    expect(await token()).toBe('Bearer third');
    await writeFile(tokenFile, 'fourth');
    expect(held.inlined().user).toEqual({ tokenFile: undefined, token: 'fourth' });
    await rm(directory, { recursive: true });
    await expect(held.renew(signal)).rejects.toThrow('the token file cannot be read');
  });
});

describe('an exec plugin', () => {
  it('is run once for all who ask together; its token stands in the kubeconfig that is handed out', async () => {
    const user = exec(`{ kind: 'ExecCredential', status: { token: 'from ' + process.pid } }`);
    const held = credentials(user);
    expect(held.inlined().user).toBe(user);
    const [one, two] = await Promise.all([held.current(signal), held.current(signal)]);
    expect(one.headers['authorization']).toMatch(/^Bearer from \d+$/);
    expect(two).toEqual(one);
    expect(await held.current(signal)).toEqual(one);
    expect(held.inlined().user).toMatchObject({
      exec: undefined,
      token: /from \d+/.exec(String(one.headers['authorization']))?.[0],
    });
    expect(await held.renew(signal)).toBe(true);
  });

  it('gives client certificates too', async () => {
    const held = credentials(exec(`{ status: { clientCertificateData: 'cert', clientKeyData: 'key' } }`));
    expect(await held.current(signal)).toMatchObject({ headers: {}, cert: 'cert', key: 'key' });
  });

  it('fails with what went wrong, and does not quote what it printed', async () => {
    const missing = credentials({ exec: { command: '/no/such/plugin' } });
    await expect(missing.current(signal)).rejects.toMatchObject({ code: 'KubeconfigInvalid' });
    const garbled = credentials({ exec: { command: process.execPath, args: ['-e', 'console.log("hunter2")'] } });
    const failure: unknown = await garbled.current(signal).catch((error: unknown) => error);
    expect(failure).toMatchObject({ message: 'the credential plugin failed' });
    expect(failure).not.toHaveProperty('cause');
  });
});
