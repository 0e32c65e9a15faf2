import { describe, expect, it } from 'vitest';
import { findLogin } from './docker-config.ts';

const auth = (text: string): string => Buffer.from(text).toString('base64');

function config(auths: Record<string, unknown>): string {
  return JSON.stringify({ auths });
}

describe('findLogin', () => {
  it.each([
    ['registry.test', 'registry.test', '/charts'],
    ['https://registry.test', 'registry.test', '/charts'],
    ['https://registry.test/v1/', 'registry.test', '/charts'],
    ['registry.test:5000', 'registry.test:5000', '/charts'],
    ['Registry.Test', 'registry.test', '/charts'],
    ['*.test', 'registry.test', '/charts'],
    ['reg*.test', 'registry.test', '/charts'],
    ['registry.test/charts', 'registry.test', '/charts/nginx'],
    ['https://index.docker.io/v1/', 'registry-1.docker.io', '/library'],
  ])('key %s is for %s%s', (key, host, path) => {
    expect(findLogin(config({ [key]: { auth: auth('me:pass:word') } }), host, path)).toEqual({
      username: 'me',
      password: 'pass:word',
    });
  });

  it.each([
    ['registry.test', 'registry.test:5000', '/charts'],
    ['registry.test:5000', 'registry.test', '/charts'],
    ['registry.test/charts', 'registry.test', '/charts-of-others'],
    ['*.test', 'a.registry.test', '/'],
    ['registry.test', 'evilregistry.test', '/'],
    ['registryxtest', 'registry.test', '/'],
  ])('key %s is not for %s%s', (key, host, path) => {
    expect(findLogin(config({ [key]: { auth: auth('me:secret') } }), host, path)).toBeUndefined();
  });

  it('prefers the longest path, then the exact host', () => {
    const text = config({
      '*.test': { auth: auth('glob:x') },
      'registry.test': { auth: auth('host:x') },
      'registry.test/charts': { auth: auth('path:x') },
    });
    expect(findLogin(text, 'registry.test', '/charts/a')?.username).toBe('path');
    expect(findLogin(text, 'registry.test', '/other')?.username).toBe('host');
    expect(findLogin(text, 'other.test', '/other')?.username).toBe('glob');
  });

  it('reads user and password, and tokens', () => {
    const text = config({
      a: { username: 'me', password: 'x' },
      b: { identitytoken: 'i', auth: auth('00000000:') },
      c: { registrytoken: 'r' },
    });
    expect(findLogin(text, 'a', '/')).toEqual({ username: 'me', password: 'x' });
    expect(findLogin(text, 'b', '/')).toEqual({ username: '00000000', password: '', identityToken: 'i' });
    expect(findLogin(text, 'c', '/')).toEqual({ registryToken: 'r' });
    expect(findLogin('{}', 'a', '/')).toBeUndefined();
  });

  it.each(['not json s3cret', '[]', '"s3cret"', '{"auths": "s3cret"}', config({ a: { auth: 's3cret' } })])(
    'refuses %s and quotes nothing of it',
    (text) => {
      const error = (() => {
        try {
          return findLogin(text, 'a', '/');
        } catch (thrown) {
          return thrown;
        }
      })();
      expect(error).toMatchObject({ code: 'CredentialsInvalid' });
      expect(String(error)).not.toContain('s3cret');
    },
  );
});
