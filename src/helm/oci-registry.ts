import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Telemetry } from '../telemetry/index.ts';
import { FreshCache } from './chart-store-fresh.ts';
import type { FreshnessOptions } from './chart-store-fresh.ts';
import { drain, header, readBody } from './chart-store-http.ts';
import type { RepositoryAnswer, RepositoryHttp } from './chart-store-http.ts';
import { noSuchVersion } from './chart-store-target.ts';
import type { ChartQuery, DownloadRun, LocatedChart, RepositoryClient } from './chart-store-target.ts';
import { chooseVersion, isExactVersion, newestVersions } from './chart-store-versions.ts';
import { HelmError, isHelmError } from './errors.ts';
import { RegistryAuthorization } from './oci-auth.ts';
import { indexCounter, refusal } from './repository-index.ts';

/** Media types of manifests that can hold a chart. */
const MANIFEST_TYPES = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
];
/** Of the layer that is the chart: Helm's own, and what it wrote before (https://helm.sh/docs/topics/registries/). */
const CHART_LAYERS = ['application/vnd.cncf.helm.chart.content.v1.tar+gzip', 'application/tar+gzip'];

const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;
const MAX_TAGS_BYTES = 8 * 1024 * 1024;
/** Tags asked for per page; registries may give fewer. */
const TAGS_PER_PAGE = 1000;
const MAX_TAG_PAGES = 100;
/** Where charts of exact versions are is remembered for this many. */
const MAX_LOCATED = 2000;

interface TagList {
  readonly versions: readonly string[];
}

/** Charts in OCI registries (OCI distribution spec 1.1): `oci://host/path` and the chart's name are the repository, its version the tag. */
export class OciRegistries implements RepositoryClient {
  readonly #http: RepositoryHttp;
  readonly #authorization: RegistryAuthorization;
  readonly #tags: FreshCache<TagList>;
  /** Exact versions: a tag is taken to be what it was. */
  readonly #located = new LRUCache<string, LocatedChart>({ max: MAX_LOCATED });
  readonly #count: ReturnType<typeof indexCounter>;

  constructor(http: RepositoryHttp, options: FreshnessOptions, telemetry: Telemetry) {
    this.#http = http;
    this.#authorization = new RegistryAuthorization(http);
    this.#count = indexCounter(telemetry);
    this.#tags = new FreshCache(
      options,
      ({ versions }) => 100 + versions.length * 16,
      () => {
        this.#count('cached');
      },
    );
  }

  async locate(query: ChartQuery, signal: AbortSignal, suspect?: LocatedChart): Promise<LocatedChart> {
    if (suspect !== undefined) this.#located.delete(keyOf(query, suspect.version));
    if (looksLikeTag(query.version)) {
      const known = this.#located.get(keyOf(query, query.version));
      if (known !== undefined) return known;
      // As Helm: what can be a version is a tag first. "1.2" may be one, or a range.
      const found = await this.#ifThere(this.#manifest(query, query.version, signal));
      if (found !== undefined) return this.#remember(query, found);
    }
    const version = await this.#choose(query, signal);
    const known = this.#located.get(keyOf(query, version));
    return known ?? this.#remember(query, await this.#manifest(query, version, signal));
  }

  knownDigest(query: ChartQuery): string | undefined {
    return this.#located.peek(keyOf(query, query.version))?.digest;
  }

  async download(query: ChartQuery, chart: LocatedChart, run: DownloadRun): Promise<void> {
    await this.#request(query, { url: chart.url, accept: '*/*', signal: run.signal }, async (answer) => {
      if (answer.statusCode !== 200) throw await refusal(answer, 'the archive');
      await run.write(answer.body as AsyncIterable<Buffer>);
    });
  }

  async close(): Promise<void> {
    await this.#tags.close();
  }

  #remember(query: ChartQuery, chart: LocatedChart): LocatedChart {
    this.#located.set(keyOf(query, chart.version), chart);
    return chart;
  }

  async #ifThere<T>(promise: Promise<T>): Promise<T | undefined> {
    try {
      return await promise;
    } catch (error) {
      if (isHelmError(error, 'ChartNotFound')) return undefined;
      throw error;
    }
  }

  async #choose(query: ChartQuery, signal: AbortSignal): Promise<string> {
    const { versions } = await this.#tags.get({
      key: keyOf(query, ''),
      signal,
      suffices: (list) => chooseVersion(query.version, list.versions) !== undefined,
      fetch: async (_, until) => this.#fetchTags(query, until),
    });
    const version = chooseVersion(query.version, versions);
    if (version === undefined) throw noSuchVersion(newestVersions(versions, 6), query.version);
    return version;
  }

  async #fetchTags(query: ChartQuery, signal: AbortSignal): Promise<TagList> {
    try {
      const versions: string[] = [];
      let url: URL | undefined = this.#api(query, `tags/list?n=${TAGS_PER_PAGE}`);
      for (let page = 0; url !== undefined && page < MAX_TAG_PAGES; page += 1) {
        const at: URL = url;
        const part = await this.#request(query, { url: at, accept: 'application/json', signal }, async (answer) =>
          readTags(answer, at),
        );
        versions.push(...part.versions);
        url = part.next;
      }
      this.#count('fetched');
      return { versions };
    } catch (error) {
      this.#count('failed');
      throw error;
    }
  }

  async #manifest(query: ChartQuery, version: string, signal: AbortSignal): Promise<LocatedChart> {
    const url = this.#api(query, `manifests/${encodeURIComponent(version.replaceAll('+', '_'))}`);
    return this.#request(query, { url, accept: MANIFEST_TYPES.join(', '), signal }, async (answer) => {
      if (answer.statusCode !== 200) throw await refusal(answer, 'the manifest');
      const body = await readBody(answer, MAX_MANIFEST_BYTES);
      const announced = header(answer, 'docker-content-digest');
      if (announced?.startsWith('sha256:') === true && announced !== sha256(body)) {
        throw new HelmError('DigestMismatch', `the registry announces the manifest ${announced} and serves another`);
      }
      const digest = chartLayer(body.toString('utf8'));
      return { version, digest, url: this.#api(query, `blobs/${digest}`) };
    });
  }

  /** One request, and a second one with what the registry asks for when it does. */
  async #request<T>(
    query: ChartQuery,
    wanted: { readonly url: URL; readonly accept: string; readonly signal: AbortSignal },
    consume: (answer: RepositoryAnswer) => Promise<T>,
  ): Promise<T> {
    const { target } = query;
    const repository = repositoryOf(query);
    let authorization = this.#authorization.known(target, repository);
    for (let attempt = 0; ; attempt += 1) {
      const result = await this.#http.exchange(
        {
          url: wanted.url,
          headers: { accept: wanted.accept },
          trust: target.trust,
          // Blobs are often redirected to a store that takes a signed address and chokes on, or should not see, a token.
          authorize: (url) => (url.origin === target.url.origin ? authorization : undefined),
        },
        async (answer) => {
          if (answer.statusCode !== 401 || attempt > 0) return { done: true as const, value: await consume(answer) };
          await drain(answer);
          return { done: false as const, challenge: header(answer, 'www-authenticate') };
        },
        wanted.signal,
      );
      if (result.done) return result.value;
      const { challenge } = result;
      authorization = await this.#authorization.answer(target, repository, { challenge, signal: wanted.signal });
    }
  }

  #api(query: ChartQuery, rest: string): URL {
    return new URL(`/v2/${repositoryOf(query)}/${rest}`, query.target.url.origin);
  }
}

/** The path of the repository in the registry. */
function repositoryOf({ target, chartName }: ChartQuery): string {
  return `${target.url.pathname}/${chartName}`.split('/').filter(Boolean).join('/');
}

function keyOf(query: ChartQuery, version: string): string {
  return JSON.stringify([version, query.chartName, query.target.key]);
}

/** A tag, as the distribution spec has them, that begins like a version; a range begins otherwise, or has spaces or commas. */
function looksLikeTag(version: string): boolean {
  return isExactVersion(version) || /^v?\d+(?:\.\d+)?$/.test(version);
}

async function readTags(answer: RepositoryAnswer, at: URL): Promise<{ versions: string[]; next: URL | undefined }> {
  if (answer.statusCode !== 200) throw await refusal(answer, 'a list of versions');
  const list = parseJson((await readBody(answer, MAX_TAGS_BYTES)).toString('utf8'));
  const tags = Array.isArray(list['tags']) ? list['tags'].filter((tag) => typeof tag === 'string') : [];
  const next = /<([^>]*)>\s*;\s*rel="?next"?/i.exec(header(answer, 'link') ?? '')?.[1];
  const url = next === undefined ? null : URL.parse(next, at.href);
  return {
    // A tag may hold no "+"; Helm writes "_" for it. What is no full version is none of Helm's.
    versions: tags.map((tag) => tag.replaceAll('_', '+')).filter(isExactVersion),
    next: url?.origin === at.origin ? url : undefined,
  };
}

function chartLayer(manifest: string): string {
  const { layers } = parseJson(manifest);
  for (const layer of Array.isArray(layers) ? (layers as unknown[]) : []) {
    if (typeof layer !== 'object' || layer === null) continue;
    const { mediaType, digest } = layer as { mediaType?: unknown; digest?: unknown };
    const isChart = typeof mediaType === 'string' && CHART_LAYERS.includes(mediaType);
    if (isChart && typeof digest === 'string' && /^sha256:[0-9a-f]{64}$/.test(digest)) return digest;
  }
  throw new HelmError('ChartInvalid', 'what the registry has under that name is not a Helm chart');
}

function parseJson(text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) return parsed as Record<string, unknown>;
  } catch {
    // Told below.
  }
  throw new HelmError('RepositoryInvalid', 'the registry gives an answer that is not JSON');
}

function sha256(body: Buffer): string {
  return `sha256:${createHash('sha256').update(body).digest('hex')}`;
}
