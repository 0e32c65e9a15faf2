import { existsSync } from 'node:fs';
import { mkdtemp, readFile, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTelemetry } from '../telemetry/index.ts';
import { TestAuthority } from '../kube/certificates.test-support.ts';
import { ChartServer, archive, basic, indexYaml, repository, sha256 } from './chart-server.test-support.ts';
import type { PublishedChart } from './chart-server.test-support.ts';
import { CachedChartStore } from './chart-store.ts';
import type { GivenChartStoreOptions } from './chart-store.ts';
import type { ChartSource, RepositoryCredentials } from './types.ts';

const signal = new AbortController().signal;
const control = { signal };

let authority: TestAuthority;
let server: ChartServer;
let other: ChartServer;
let directory: string;
let charts: PublishedChart[];
const opened: CachedChartStore[] = [];

beforeAll(async () => {
  authority = await TestAuthority.create();
  server = await ChartServer.start(authority);
  other = await ChartServer.start(authority);
});

afterAll(async () => {
  await Promise.all([server.stop(), other.stop()]);
});

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'capstan-charts-test-'));
  charts = [published('nginx', '1.0.0'), published('nginx', '1.2.0'), published('nginx', '2.0.0-rc.1')];
  for (const each of [server, other]) {
    each.requests.length = 0;
    each.responder = repository(() => charts);
  }
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map(async (store) => store.close()));
  await rm(directory, { recursive: true, force: true });
});

function published(name: string, version: string, more: Partial<PublishedChart> = {}): PublishedChart {
  return { name, version, body: archive(name, version), ...more };
}

function open(options: GivenChartStoreOptions = {}, telemetry = createTelemetry()): CachedChartStore {
  const store = new CachedChartStore({ directory, ...options, http: { backoffMs: 1, ...options.http } }, telemetry);
  opened.push(store);
  return store;
}

function source(version = '', access: RepositoryCredentials = {}, more: Partial<ChartSource> = {}): ChartSource {
  return { repoURL: server.url, chartName: 'nginx', version, access: { ca: server.ca, ...access }, ...more };
}

describe('a chart over HTTPS', () => {
  it('is downloaded once and read from the cache afterwards', async () => {
    const store = open();
    const first = await store.acquire(source('1.2.0'), control);
    first.release();
    const second = await store.acquire(source('1.2.0'), control);
    expect(second.archive).toEqual(first.archive);
    expect(second.archive).toMatchObject({ name: 'nginx', version: '1.2.0', appVersion: '1.10' });
    expect(sha256(await readFile(second.archive.path))).toBe(second.archive.digest.slice('sha256:'.length));
    expect(server.paths()).toEqual(['/index.yaml', '/charts/nginx-1.2.0.tgz']);
  });

  it('is downloaded once for many callers at a time', async () => {
    const store = open();
    const held = await Promise.all(Array.from({ length: 50 }, async () => store.acquire(source('1.2.0'), control)));
    expect(new Set(held.map(({ archive: { path } }) => path)).size).toBe(1);
    expect(server.count('/charts/nginx-1.2.0.tgz')).toBe(1);
    expect(server.count('/index.yaml')).toBe(1);
  });

  it('goes on for the others when one caller leaves', async () => {
    const gate = Promise.withResolvers<undefined>();
    const answer = repository(() => charts);
    server.responder = async (request) => {
      if (request.path.endsWith('.tgz')) await gate.promise;
      return answer(request);
    };
    const store = open();
    const leaving = new AbortController();
    const left = store.acquire(source('1.2.0'), { signal: leaving.signal });
    const stays = store.acquire(source('1.2.0'), control);
    await expect.poll(() => server.count('/charts/nginx-1.2.0.tgz')).toBe(1);
    leaving.abort();
    await expect(left).rejects.toMatchObject({ code: 'Cancelled' });
    gate.resolve(undefined);
    expect((await stays).archive.version).toBe('1.2.0');
    expect(server.count('/charts/nginx-1.2.0.tgz')).toBe(1);
  });

  it.each([
    ['', '1.2.0'],
    ['~1.0', '1.0.0'],
    ['^1', '1.2.0'],
    ['>0.0.0-0', '2.0.0-rc.1'],
    ['>= 1, < 1.1', '1.0.0'],
    ['v1.0.0', '1.0.0'],
  ])('of version %j is %s', async (wanted, version) => {
    expect(await open().resolve(source(wanted), control)).toMatchObject({ version });
  });

  it('that was resolved says its digest without a download', async () => {
    const resolved = await open().resolve(source('1.0.0'), control);
    expect(resolved).toEqual({ version: '1.0.0', digest: `sha256:${sha256(charts[0]?.body ?? '')}` });
    expect(server.paths()).toEqual(['/index.yaml']);
  });

  it('is found by an absolute address, by one relative to the host, and by an index at a path with a query', async () => {
    charts = [
      published('nginx', '1.0.0', { url: `${server.url}/elsewhere/a.tgz` }),
      published('nginx', '2.0.0', { url: '/b.tgz' }),
      published('nginx', '3.0.0'),
    ];
    server.responder = ({ path, query }) => {
      if (path === '/stable/index.yaml' && query.get('token') === 't') return { body: indexYaml(charts) };
      if (path === '/elsewhere/a.tgz') return { body: charts[0]?.body ?? '' };
      if (path === '/b.tgz') return { body: charts[1]?.body ?? '' };
      if (path === '/stable/charts/nginx-3.0.0.tgz' && query.get('token') === 't')
        return { body: charts[2]?.body ?? '' };
      return { status: 404 };
    };
    const store = open();
    const at = { repoURL: `${server.url}/stable/?token=t` };
    for (const version of ['1.0.0', '2.0.0', '3.0.0']) {
      expect((await store.acquire(source(version, {}, at), control)).archive.version).toBe(version);
    }
  });

  it('is read from an index in JSON, compressed, and from one that is laid out otherwise', async () => {
    const body = charts[1]?.body ?? Buffer.alloc(0);
    const entry = { version: '1.2.0', urls: ['charts/nginx-1.2.0.tgz'], digest: sha256(body) };
    const json = JSON.stringify({ apiVersion: 'v1', entries: { nginx: [entry] } });
    const flow = `entries: {nginx: [{version: "1.2.0", urls: [charts/nginx-1.2.0.tgz], digest: ${sha256(body)}}]}`;
    for (const text of [json, flow]) {
      server.responder = ({ path }) =>
        path === '/index.yaml'
          ? { body: gzipSync(text), headers: { 'content-encoding': 'gzip' } }
          : { body: path === '/charts/nginx-1.2.0.tgz' ? body : '' };
      expect((await open().acquire(source('1.2.0'), control)).archive.version).toBe('1.2.0');
    }
  });
});

describe('an index', () => {
  it('is asked for again when it is no longer fresh, with its entity tag', async () => {
    const telemetry = createTelemetry();
    const store = open({ freshness: { freshMs: 0 } }, telemetry);
    await store.resolve(source(), control);
    await store.resolve(source(), control);
    expect(server.requests.map(({ headers }) => headers['if-none-match'] === undefined)).toEqual([true, false]);
    charts.push(published('nginx', '1.3.0'));
    expect(await store.resolve(source(), control)).toMatchObject({ version: '1.3.0' });
    const metric = telemetry.metrics.getSingleMetric('capstan_chart_index_requests_total');
    const values = (await metric?.get())?.values.map(({ labels, value }) => [labels['result'], value]);
    expect(values).toEqual([
      ['fetched', 2],
      ['not_modified', 1],
    ]);
  });

  it('that is fresh is asked for at once when a version is missing in it, but not over and over', async () => {
    const store = open();
    await store.resolve(source(), control);
    charts.push(published('nginx', '1.3.0'));
    expect(await store.resolve(source('1.3.0'), control)).toMatchObject({ version: '1.3.0' });
    expect(server.count('/index.yaml')).toBe(2);
    await expect(store.resolve(source('9.9.9'), control)).rejects.toMatchObject({ code: 'VersionNotFound' });
    await expect(store.resolve(source('9.9.9'), control)).rejects.toThrow(
      /^chart "nginx" version "9.9.9" of https:\/\/127.0.0.1:\d+\/: no such version; available versions: 2.0.0-rc.1, 1.3.0, 1.2.0, 1.0.0$/,
    );
    expect(server.count('/index.yaml')).toBe(2);
  });

  it('of pre-releases alone has no stable version, and its pre-releases are named', async () => {
    charts.splice(0, charts.length, published('nginx', '2.0.0-rc.1'));
    await expect(open().resolve(source(), control)).rejects.toThrow(
      /: no stable version; available versions: 2\.0\.0-rc\.1$/,
    );
  });

  it('stands while the repository is down, and exact versions need none', async () => {
    const store = open({ freshness: { freshMs: 0, failureMs: 0 }, http: { attempts: 1 } });
    (await store.acquire(source('1.2.0'), control)).release();
    server.responder = () => ({ status: 503 });
    expect(await store.resolve(source(), control)).toMatchObject({ version: '1.2.0' });
    server.requests.length = 0;
    expect(await store.resolve(source('1.2.0'), control)).toMatchObject({ version: '1.2.0' });
    expect((await store.acquire(source('1.2.0'), control)).archive.version).toBe('1.2.0');
    expect(server.requests).toEqual([]);
  });

  it('that cannot be had is told to everybody without asking for each', async () => {
    server.responder = () => ({ status: 503 });
    const store = open({ http: { attempts: 2 } });
    await expect(store.resolve(source(), control)).rejects.toMatchObject({ code: 'RepositoryUnreachable' });
    await expect(store.resolve(source('1.0.0'), control)).rejects.toThrow(/HTTP status 503/);
    expect(server.count('/index.yaml')).toBe(2);
  });

  it('without the chart names the like', async () => {
    await expect(open().resolve(source('', {}, { chartName: 'nginx-ingress' }), control)).rejects.toMatchObject({
      code: 'ChartNotFound',
      message: expect.stringContaining('no such chart; it has nginx') as string,
    });
  });

  it('that is none is said to be none', async () => {
    server.responder = () => ({ body: '<html>\n  <p>hello</p>' });
    await expect(open().resolve(source(), control)).rejects.toMatchObject({ code: 'RepositoryInvalid' });
  });
});

describe('failures that pass', () => {
  it('are tried again: status 500, 429 and a connection that breaks in the middle', async () => {
    const answer = repository(() => charts);
    const failures = new Map([
      ['/index.yaml', [{ status: 500 }, { status: 429, headers: { 'retry-after': '0' } }]],
      ['/charts/nginx-1.2.0.tgz', [{ body: charts[1]?.body ?? '', cut: true }]],
    ]);
    server.responder = (request) => failures.get(request.path)?.shift() ?? answer(request);
    const held = await open().acquire(source('1.2.0'), control);
    expect(await readFile(held.archive.path)).toEqual(charts[1]?.body);
    expect(server.count('/index.yaml')).toBe(3);
    expect(server.count('/charts/nginx-1.2.0.tgz')).toBe(2);
  });

  it('end at the limit of the caller', async () => {
    server.responder = () => ({ hang: true });
    const asked = open().resolve(source(), { signal, limitMs: 50 });
    await expect(asked).rejects.toMatchObject({ code: 'Timeout' });
  });

  it('are none when the answer is no: 404 is asked for once', async () => {
    server.responder = () => ({ status: 404 });
    await expect(open().resolve(source(), control)).rejects.toMatchObject({ code: 'ChartNotFound' });
    expect(server.count('/index.yaml')).toBe(1);
  });
});

describe('what was announced', () => {
  it('is what must come: another content is refused, and nothing of it stays', async () => {
    charts = [published('nginx', '1.0.0', { digest: sha256('something else') })];
    const store = open();
    await expect(store.acquire(source('1.0.0'), control)).rejects.toMatchObject({ code: 'DigestMismatch' });
    const [own] = await readdir(directory);
    const files = await readdir(join(directory, own ?? ''), { recursive: true });
    expect(files.filter((name) => /tgz|part/.test(name))).toEqual([]);
  });

  it('may have been replaced since: the index is read anew', async () => {
    const store = open();
    await store.resolve(source('1.0.0'), control);
    charts = [published('nginx', '1.0.0', { body: archive('nginx', '1.0.0', { 'values.yaml': 'a: 2' }) })];
    const held = await store.acquire(source('1.0.0'), control);
    expect(held.archive.digest).toBe(`sha256:${sha256(charts[0]?.body ?? '')}`);
  });

  it('is noticed when it was replaced, as soon as anybody reads the index', async () => {
    const store = open({ freshness: { freshMs: 0 } });
    (await store.acquire(source('1.0.0'), control)).release();
    charts = [published('nginx', '1.0.0', { body: archive('nginx', '1.0.0', { 'values.yaml': 'a: 2' }) })];
    await store.resolve(source(), control);
    const digest = `sha256:${sha256(charts[0]?.body ?? '')}`;
    expect(await store.resolve(source('1.0.0'), control)).toEqual({ version: '1.0.0', digest });
    expect((await store.acquire(source('1.0.0'), control)).archive.digest).toBe(digest);
  });

  it('need not be announced: an index without digests does', async () => {
    charts = [published('nginx', '1.0.0', { digest: '' })];
    const store = open();
    expect(await store.resolve(source('1.0.0'), control)).toEqual({ version: '1.0.0' });
    (await store.acquire(source('1.0.0'), control)).release();
    expect(await store.resolve(source('1.0.0'), control)).toMatchObject({
      digest: `sha256:${sha256(charts[0]?.body ?? '')}`,
    });
    await store.acquire(source('1.0.0'), control);
    expect(server.count(/tgz$/)).toBe(1);
  });

  it('must be a chart', async () => {
    for (const body of [Buffer.from('not a chart'), gzipSync('neither'), Buffer.alloc(0)]) {
      charts = [published('nginx', '1.0.0', { body })];
      await expect(open().acquire(source('1.0.0'), control)).rejects.toMatchObject({ code: 'ChartInvalid' });
    }
  });

  it('may state another version than the index: the chart is right, once it was seen', async () => {
    charts = [published('nginx', 'v1.0.0', { body: archive('nginx', '1.0.0') })];
    const store = open();
    expect(await store.resolve(source('v1.0.0'), control)).toMatchObject({ version: 'v1.0.0' });
    expect((await store.acquire(source('v1.0.0'), control)).archive.version).toBe('1.0.0');
    expect(await store.resolve(source('v1.0.0'), control)).toMatchObject({ version: '1.0.0' });
    expect(await store.resolve(source(''), control)).toMatchObject({ version: '1.0.0' });
  });
});

describe('credentials', () => {
  const login = basic('robot', 's3cret');

  beforeEach(() => {
    const answer = repository(() => charts);
    server.responder = (request) => (request.headers.authorization === login ? answer(request) : { status: 401 });
  });

  function dockerConfig(host: string): string {
    return JSON.stringify({ auths: { [host]: { auth: Buffer.from('robot:s3cret').toString('base64') } } });
  }

  it.each([
    ['user and password', () => ({ username: 'robot', password: 's3cret' }), () => server.url],
    ['a Docker config', () => ({ dockerConfigJson: dockerConfig(server.host) }), () => server.url],
    ['the URL', () => ({}), () => server.url.replace('https://', 'https://robot:s3cret@')],
  ])('from %s reach the repository', async (_, access, repoURL) => {
    const held = await open().acquire(source('1.0.0', access(), { repoURL: repoURL() }), control);
    expect(held.archive.version).toBe('1.0.0');
  });

  it('that are missing or wrong are said to be, and are in no error', async () => {
    await expect(open().resolve(source(), control)).rejects.toMatchObject({ code: 'RepositoryUnauthorized' });
    const repoURL = server.url.replace('https://', 'https://robot:wr0ng@');
    const failed = await open()
      .resolve(source('', {}, { repoURL }), control)
      .catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'RepositoryUnauthorized' });
    expect(String(failed)).not.toContain('wr0ng');
  });

  it('give nobody else a way to the archives they opened', async () => {
    const store = open();
    (await store.acquire(source('1.0.0', { username: 'robot', password: 's3cret' }), control)).release();
    for (const access of [
      {},
      { username: 'robot', password: 'wrong' },
      { dockerConfigJson: dockerConfig('elsewhere') },
    ]) {
      await expect(store.acquire(source('1.0.0', access), control)).rejects.toMatchObject({
        code: 'RepositoryUnauthorized',
      });
      await expect(store.resolve(source('1.0.0', access), control)).rejects.toMatchObject({
        code: 'RepositoryUnauthorized',
      });
    }
  });

  it('that open the archives are asked for though the index is open to all', async () => {
    const answer = server.responder;
    const publicly = repository(() => charts);
    server.responder = (request) => (request.path === '/index.yaml' ? publicly(request) : answer(request));
    const store = open();
    (await store.acquire(source('1.0.0', { username: 'robot', password: 's3cret' }), control)).release();
    await expect(store.acquire(source('1.0.0'), control)).rejects.toMatchObject({ code: 'RepositoryUnauthorized' });
  });

  it('stay with their host: neither a redirect nor an address in the index takes them elsewhere', async () => {
    charts = [
      published('nginx', '1.0.0', { url: `${other.url}/a.tgz` }),
      published('nginx', '2.0.0', { url: 'redirected.tgz' }),
    ];
    const answer = server.responder;
    server.responder = (request) =>
      request.path === '/redirected.tgz'
        ? { status: 302, headers: { location: `${other.url}/b.tgz` } }
        : answer(request);
    other.responder = ({ path }) => ({ body: charts[path === '/a.tgz' ? 0 : 1]?.body ?? '' });
    const store = open();
    for (const version of ['1.0.0', '2.0.0']) {
      await store.acquire(source(version, { username: 'robot', password: 's3cret' }), control);
    }
    expect(other.requests.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined]);
  });
});

describe('trust', () => {
  it('needs the CA, or to be told to go without', async () => {
    const store = open();
    const untrusted = await store.resolve(source('', { ca: undefined }), control).catch((error: unknown) => error);
    expect(untrusted).toMatchObject({ code: 'RepositoryUntrusted' });
    // Node's advice on how to start Node is for nobody who reads a condition.
    expect(String(untrusted)).not.toContain('Node.js');
    const foreign = (await TestAuthority.create()).ca;
    await expect(store.resolve(source('', { ca: foreign }), control)).rejects.toMatchObject({
      code: 'RepositoryUntrusted',
    });
    const lax = source('', { ca: undefined, insecureSkipTLSVerify: true });
    expect(await store.resolve(lax, control)).toMatchObject({ version: '1.2.0' });
    expect(await store.resolve(source(), control)).toMatchObject({ version: '1.2.0' });
  });

  it.each(['ftp://example.test/x', 'nothing', 'file:///etc', 'oci:'])('has no place for %s', async (repoURL) => {
    await expect(open().resolve(source('', {}, { repoURL }), control)).rejects.toMatchObject({
      code: 'RepositoryInvalid',
    });
  });
});

describe('the cache', () => {
  it('keeps two repositories with a chart of one name apart', async () => {
    other.responder = repository(() => [
      published('nginx', '1.2.0', { body: archive('nginx', '1.2.0', { x: 'other' }) }),
    ]);
    const store = open();
    const here = await store.acquire(source('1.2.0'), control);
    const there = await store.acquire(source('1.2.0', {}, { repoURL: other.url }), control);
    expect(there.archive.digest).not.toBe(here.archive.digest);
    expect(await readFile(there.archive.path)).not.toEqual(await readFile(here.archive.path));
  });

  it('lets go of what was used longest ago, and never of what is held', async () => {
    charts = ['1.0.0', '1.1.0', '1.2.0'].map((version) => published('nginx', version));
    const store = open({ maxBytes: (charts[0]?.body.length ?? 0) * 2 + 20 });
    const held = await store.acquire(source('1.0.0'), control);
    const released = await store.acquire(source('1.1.0'), control);
    released.release();
    (await store.acquire(source('1.2.0'), control)).release();
    expect(existsSync(held.archive.path)).toBe(true);
    expect(existsSync(released.archive.path)).toBe(false);
    expect(await readFile(held.archive.path)).toEqual(charts[0]?.body);
    await store.acquire(source('1.1.0'), control);
    expect(server.count('/charts/nginx-1.1.0.tgz')).toBe(2);
    expect(server.count('/charts/nginx-1.0.0.tgz')).toBe(1);
  });

  it('is private, and gone after close', async () => {
    const store = open();
    const { archive: kept } = await store.acquire(source('1.2.0'), control);
    expect((await stat(dirname(kept.path))).mode & 0o777).toBe(0o700);
    expect((await stat(kept.path)).mode & 0o777).toBe(0o600);
    await store.close();
    expect(await readdir(directory)).toEqual([]);
  });

  it('fetches anew what somebody removed', async () => {
    const store = open();
    const held = await store.acquire(source('1.2.0'), control);
    held.release();
    await rm(held.archive.path);
    expect(existsSync((await store.acquire(source('1.2.0'), control)).archive.path)).toBe(true);
  });

  it('refuses what is too large', async () => {
    await expect(open({ maxArchiveBytes: 100 }).acquire(source('1.2.0'), control)).rejects.toMatchObject({
      code: 'ChartInvalid',
      message: expect.stringContaining('larger than 100 bytes') as string,
    });
  });
});
