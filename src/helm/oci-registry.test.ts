import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTelemetry } from '../telemetry/index.ts';
import { TestAuthority } from '../kube/certificates.test-support.ts';
import { ChartServer, archive, basic, sha256 } from './chart-server.test-support.ts';
import type { Answer, Responder, SeenRequest } from './chart-server.test-support.ts';
import { CachedChartStore } from './chart-store.ts';
import type { GivenChartStoreOptions } from './chart-store.ts';
import { parseChallenge } from './oci-auth.ts';
import type { ChartSource, RepositoryCredentials } from './types.ts';

const signal = new AbortController().signal;
const control = { signal };
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const LAYER = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';

let server: ChartServer;
/** Blobs of the registry and its token server. */
let store: ChartServer;
let directory: string;
let registry: FakeRegistry;
const opened: CachedChartStore[] = [];

/** One repository of a registry, `charts/nginx`, by its tags. */
class FakeRegistry {
  readonly tags = new Map<string, Buffer>();
  layerType = LAYER;
  pageSize = 1000;
  announced: string | undefined;
  redirectBlobs: string | undefined;

  push(tag: string, content: Buffer): this {
    this.tags.set(tag, content);
    return this;
  }

  readonly answer: Responder = (request): Answer => {
    const [kind = '', name = '', more] = request.path.replace('/v2/charts/nginx/', '').split('/');
    if (!request.path.startsWith('/v2/charts/nginx/') || more !== undefined) return { status: 404 };
    if (kind === 'tags') return this.#list(request);
    return kind === 'manifests' ? this.#manifest(name) : this.#blob(name);
  };

  #list({ query }: SeenRequest): Answer {
    const tags = [...this.tags.keys()];
    const from = tags.indexOf(query.get('last') ?? '') + 1;
    const page = tags.slice(from, from + this.pageSize);
    const last = page.at(-1);
    const link: Record<string, string> =
      from + page.length < tags.length
        ? { link: `</v2/charts/nginx/tags/list?last=${last ?? ''}&n=2>; rel="next"` }
        : {};
    return { body: JSON.stringify({ name: 'charts/nginx', tags: page }), headers: link };
  }

  #manifest(tag: string): Answer {
    const content = this.tags.get(decodeURIComponent(tag));
    if (content === undefined) return { status: 404 };
    const layers = [{ mediaType: this.layerType, digest: `sha256:${sha256(content)}`, size: content.length }];
    const body = JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST, layers });
    return { body, headers: { 'docker-content-digest': this.announced ?? `sha256:${sha256(body)}` } };
  }

  #blob(digest: string): Answer {
    const content = [...this.tags.values()].find((each) => `sha256:${sha256(each)}` === digest);
    if (content === undefined) return { status: 404 };
    return this.redirectBlobs === undefined
      ? { body: content }
      : { status: 307, headers: { location: `${this.redirectBlobs}/${digest}` } };
  }
}

beforeAll(async () => {
  const authority = await TestAuthority.create();
  server = await ChartServer.start(authority);
  store = await ChartServer.start(authority);
});

afterAll(async () => {
  await Promise.all([server.stop(), store.stop()]);
});

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'capstan-oci-test-'));
  registry = new FakeRegistry();
  registry.push('1.0.0', archive('nginx', '1.0.0')).push('1.2.0', archive('nginx', '1.2.0'));
  server.requests.length = 0;
  store.requests.length = 0;
  server.responder = registry.answer;
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map(async (each) => each.close()));
  await rm(directory, { recursive: true, force: true });
});

function open(options: GivenChartStoreOptions = {}): CachedChartStore {
  const made = new CachedChartStore({ directory, ...options, http: { backoffMs: 1, attempts: 2 } }, createTelemetry());
  opened.push(made);
  return made;
}

function source(version = '', access: RepositoryCredentials = {}): ChartSource {
  return { repoURL: `oci://${server.host}/charts`, chartName: 'nginx', version, access: { ca: server.ca, ...access } };
}

describe('a chart in a registry', () => {
  it('is found by its tag, checked against the manifest, and downloaded once', async () => {
    const charts = open();
    const held = await charts.acquire(source('1.2.0'), control);
    expect(held.archive).toMatchObject({ name: 'nginx', version: '1.2.0' });
    expect(held.archive.digest).toBe(`sha256:${sha256(registry.tags.get('1.2.0') ?? '')}`);
    await charts.acquire(source('1.2.0'), control);
    await charts.resolve(source('1.2.0'), control);
    expect(server.paths()).toEqual([
      '/v2/charts/nginx/manifests/1.2.0',
      `/v2/charts/nginx/blobs/${held.archive.digest}`,
    ]);
  });

  it.each([
    ['', '1.2.0'],
    ['~1.0', '1.0.0'],
    ['1', '1.2.0'],
    ['>=1.0.0-0', '2.0.0-rc.1'],
    ['1.3.0+build', '1.3.0+build'],
    ['>1.2', '1.3.0+build'],
  ])('of version %j is %s', async (wanted, version) => {
    registry.push('2.0.0-rc.1', archive('nginx', '2.0.0-rc.1')).push('latest', archive('nginx', '9.9.9'));
    if (wanted === '1.3.0+build' || wanted === '>1.2') registry.push('1.3.0_build', archive('nginx', '1.3.0+build'));
    const held = await open().acquire(source(wanted), control);
    expect(held.archive.version).toBe(version);
  });

  it('is looked for on every page of tags', async () => {
    registry.pageSize = 2;
    for (let patch = 0; patch < 9; patch += 1) registry.push(`3.0.${patch}`, archive('nginx', `3.0.${patch}`));
    expect(await open().resolve(source(), control)).toMatchObject({ version: '3.0.8' });
    expect(server.count('/v2/charts/nginx/tags/list')).toBe(6);
  });

  it('of a floating version costs nothing while the tags are fresh', async () => {
    const charts = open();
    await charts.resolve(source(), control);
    await charts.resolve(source(), control);
    await charts.resolve(source('^1.0.0'), control);
    expect(server.paths()).toEqual(['/v2/charts/nginx/tags/list', '/v2/charts/nginx/manifests/1.2.0']);
  });

  it('that is not there is told with what is', async () => {
    await expect(open().resolve(source('9.9.9'), control)).rejects.toMatchObject({
      code: 'VersionNotFound',
      message: expect.stringMatching(
        /^chart "nginx" version "9.9.9" of oci:.*available versions: 1.2.0, 1.0.0$/,
      ) as string,
    });
    await expect(open().resolve({ ...source(), chartName: 'other' }, control)).rejects.toMatchObject({
      code: 'ChartNotFound',
    });
  });

  it('must be a chart, and what the registry says it is', async () => {
    registry.layerType = 'application/vnd.oci.image.layer.v1.tar+gzip';
    await expect(open().acquire(source('1.2.0'), control)).rejects.toMatchObject({ code: 'ChartInvalid' });
    registry.layerType = 'application/tar+gzip';
    expect((await open().acquire(source('1.2.0'), control)).archive.version).toBe('1.2.0');
    registry.announced = `sha256:${sha256('another manifest')}`;
    await expect(open().acquire(source('1.2.0'), control)).rejects.toMatchObject({ code: 'DigestMismatch' });
  });

  it('is refused when its bytes are others', async () => {
    server.responder = async (request) => {
      const answer = await registry.answer(request);
      return request.path.includes('/blobs/') ? { body: archive('nginx', '6.6.6') } : answer;
    };
    await expect(open().acquire(source('1.2.0'), control)).rejects.toMatchObject({ code: 'DigestMismatch' });
  });
});

describe('a registry with basic authentication', () => {
  const login = basic('robot', 's3cret');

  beforeEach(() => {
    server.responder = (request) =>
      request.headers.authorization === login
        ? registry.answer(request)
        : { status: 401, headers: { 'www-authenticate': 'Basic realm="charts"' } };
  });

  it('takes the login of a Docker config, asks once, and sends it to no blob store', async () => {
    registry.redirectBlobs = store.url;
    store.responder = ({ path }) => ({
      body: [...registry.tags.values()].find((each) => path === `/sha256:${sha256(each)}`) ?? '',
    });
    const auth = Buffer.from('robot:s3cret').toString('base64');
    const dockerConfigJson = JSON.stringify({ auths: { [`https://${server.host}/v2/`]: { auth } } });
    const held = await open().acquire(source('1.2.0', { dockerConfigJson }), control);
    expect(held.archive.version).toBe('1.2.0');
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([undefined, login, login]);
    expect(store.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });

  it('says that credentials are missing or wrong', async () => {
    await expect(open().resolve(source('1.2.0'), control)).rejects.toMatchObject({ code: 'RepositoryUnauthorized' });
    const wrong = source('1.2.0', { username: 'robot', password: 'wr0ng' });
    const failed = await open()
      .resolve(wrong, control)
      .catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'RepositoryUnauthorized' });
    expect(String(failed)).not.toContain('wr0ng');
  });

  it('shows its manifest to whoever is to get an archive that is here already', async () => {
    const charts = open();
    (await charts.acquire(source('1.2.0', { username: 'robot', password: 's3cret' }), control)).release();
    await expect(charts.acquire(source('1.2.0'), control)).rejects.toMatchObject({ code: 'RepositoryUnauthorized' });
    server.responder = registry.answer;
    await charts.acquire(source('1.2.0'), control);
    expect(server.count(/blobs/)).toBe(1);
  });
});

describe('a registry with a token server', () => {
  let tokens: Responder;

  beforeEach(() => {
    tokens = ({ headers }) => ({
      body: JSON.stringify({ token: headers.authorization === undefined ? 'anonymous' : 'for-robot', expires_in: 300 }),
    });
    store.responder = (request) => tokens(request);
    server.responder = (request) =>
      request.headers.authorization === 'Bearer for-robot'
        ? registry.answer(request)
        : {
            status: 401,
            headers: {
              'www-authenticate': `Bearer realm="${store.url}/token",service="registry",scope="repository:charts/nginx:pull"`,
            },
          };
  });

  it('gives a token for the login, which is used until it ends', async () => {
    const charts = open();
    const access = { username: 'robot', password: 's3cret' };
    await charts.acquire(source('1.2.0', access), control);
    await charts.acquire(source('1.0.0', access), control);
    expect(
      store.requests.map(({ headers, query }) => [headers.authorization, query.get('scope'), query.get('service')]),
    ).toEqual([[basic('robot', 's3cret'), 'repository:charts/nginx:pull', 'registry']]);
    expect(server.requests.filter(({ headers }) => headers.authorization?.startsWith('Basic'))).toEqual([]);
  });

  it('gives one for an identity token', async () => {
    tokens = ({ body, method }) => {
      const form = new URLSearchParams(body);
      const good =
        method === 'POST' && form.get('refresh_token') === 'refresh' && form.get('grant_type') === 'refresh_token';
      return good ? { body: JSON.stringify({ access_token: 'for-robot' }) } : { status: 400 };
    };
    const dockerConfigJson = JSON.stringify({ auths: { [server.host]: { identitytoken: 'refresh' } } });
    expect((await open().acquire(source('1.2.0', { dockerConfigJson }), control)).archive.version).toBe('1.2.0');
  });

  it('may give one that is not enough', async () => {
    await expect(open().resolve(source('1.2.0'), control)).rejects.toMatchObject({ code: 'RepositoryUnauthorized' });
    expect(store.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });

  it('gets no login where anybody could listen', async () => {
    server.responder = () => ({
      status: 401,
      headers: { 'www-authenticate': `Bearer realm="http://${store.host}/token"` },
    });
    const asked = open().resolve(source('1.2.0', { username: 'robot', password: 's3cret' }), control);
    await expect(asked).rejects.toMatchObject({ code: 'RepositoryInvalid' });
    expect(store.requests).toEqual([]);
  });
});

describe('a challenge', () => {
  it.each([
    ['Basic realm="x"', { scheme: 'basic' }],
    ['Bearer realm="https://t/x?a=b,c",service="s"', { scheme: 'bearer', realm: 'https://t/x?a=b,c', service: 's' }],
    ['bearer realm=https://t/x, scope="a,b"', { scheme: 'bearer', realm: 'https://t/x', scope: 'a,b' }],
    ['Basic realm="x", Bearer realm="https://t"', { scheme: 'bearer', realm: 'https://t' }],
    ['Negotiate', undefined],
    ['', undefined],
  ])('%s is understood', (text, challenge) => {
    expect(parseChallenge(text)).toEqual(challenge);
  });
});
