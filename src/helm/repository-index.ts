import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { counter } from '../telemetry/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { FreshCache } from './chart-store-fresh.ts';
import type { FreshnessOptions } from './chart-store-fresh.ts';
import { describeUrl, drain, header, readBody } from './chart-store-http.ts';
import type { RepositoryAnswer, RepositoryHttp } from './chart-store-http.ts';
import { basicHeader, noSuchVersion } from './chart-store-target.ts';
import type {
  ChartQuery,
  DownloadRun,
  LocatedChart,
  RepositoryClient,
  RepositoryTarget,
} from './chart-store-target.ts';
import { chooseVersion, newestVersions } from './chart-store-versions.ts';
import { HelmError } from './errors.ts';
import { IndexDocument } from './repository-index-document.ts';
import type { IndexEntry } from './repository-index-document.ts';

/** An index as one answer gave it, with what makes the next request conditional (RFC 9110 §13.1). */
interface FetchedIndex {
  readonly document: IndexDocument;
  readonly etag?: string;
  readonly lastModified?: string;
}

/** How an index was come by, as the metric's label says it. */
type IndexResult = 'fetched' | 'not_modified' | 'cached' | 'failed';

/** Bytes; the largest public indexes have about 30 MB. */
const MAX_INDEX_BYTES = 128 * 1024 * 1024;

/** Chart repositories over HTTP(S) (https://helm.sh/docs/topics/chart_repository/): an index.yaml, and archives where it says. */
export class HttpRepositories implements RepositoryClient {
  readonly #http: RepositoryHttp;
  readonly #indexes: FreshCache<FetchedIndex>;
  readonly #count: (result: IndexResult) => void;

  constructor(http: RepositoryHttp, options: FreshnessOptions, telemetry: Telemetry) {
    this.#http = http;
    this.#count = indexCounter(telemetry);
    this.#indexes = new FreshCache(
      options,
      ({ document }) => document.size,
      () => {
        this.#count('cached');
      },
    );
  }

  async locate(query: ChartQuery, signal: AbortSignal, suspect?: LocatedChart): Promise<LocatedChart> {
    const index = await this.#indexes.get({
      key: query.target.key,
      signal,
      suffices: ({ document }) => {
        const entry = choose(document.entries(query.chartName) ?? [], query.version);
        return entry !== undefined && (suspect === undefined || !isSame(located(entry, query.target), suspect));
      },
      fetch: async (known, until) => this.#fetch(query.target, known, until),
    });
    const entries = index.document.entries(query.chartName);
    if (entries === undefined) throw noSuchChart(index.document.names, query.chartName);
    const entry = choose(entries, query.version);
    if (entry === undefined) throw noSuchVersion(newestVersions(versionsOf(entries), 6), query.version);
    return located(entry, query.target);
  }

  knownDigest(query: ChartQuery): string | undefined {
    const entries = this.#indexes.peek(query.target.key)?.document.entries(query.chartName) ?? [];
    const digest = entries.find(({ version }) => version === query.version)?.digest;
    return digest === undefined ? undefined : `sha256:${digest}`;
  }

  async download({ target }: ChartQuery, chart: LocatedChart, run: DownloadRun): Promise<void> {
    await this.#http.exchange(
      // Not "accept-encoding: gzip": an archive is to come as it lies there.
      { url: chart.url, headers: { accept: '*/*' }, trust: target.trust, authorize: (url) => authorize(target, url) },
      async (answer) => {
        if (answer.statusCode !== 200) throw await refusal(answer, 'the archive that the index names');
        await run.write(answer.body as AsyncIterable<Buffer>);
      },
      run.signal,
    );
  }

  async close(): Promise<void> {
    await this.#indexes.close();
  }

  async #fetch(target: RepositoryTarget, known: FetchedIndex | undefined, signal: AbortSignal): Promise<FetchedIndex> {
    try {
      const index = await this.#http.exchange(
        {
          url: under(target.url, 'index.yaml'),
          headers: { 'accept-encoding': 'gzip', ...conditions(known) },
          trust: target.trust,
          authorize: (url) => authorize(target, url),
        },
        async (answer) => readIndex(answer, known),
        signal,
      );
      this.#count(index === known ? 'not_modified' : 'fetched');
      return index;
    } catch (error) {
      this.#count('failed');
      throw error;
    }
  }
}

/** The counter of index requests; OCI registries count their tag lists in it. */
export function indexCounter(telemetry: Telemetry): (result: IndexResult) => void {
  const requests = counter(
    telemetry.metrics,
    'capstan_chart_index_requests_total',
    'Chart indexes and tag lists asked for, by how they were come by',
    ['result'],
  );
  return (result) => {
    requests.inc({ result });
  };
}

function conditions(known: FetchedIndex | undefined): Record<string, string> {
  return {
    ...(known?.etag === undefined ? {} : { 'if-none-match': known.etag }),
    ...(known?.lastModified === undefined ? {} : { 'if-modified-since': known.lastModified }),
  };
}

async function readIndex(answer: RepositoryAnswer, known: FetchedIndex | undefined): Promise<FetchedIndex> {
  if (answer.statusCode === 304 && known !== undefined) {
    await drain(answer);
    return known;
  }
  if (answer.statusCode !== 200) throw await refusal(answer, 'its index.yaml');
  let body = await readBody(answer, MAX_INDEX_BYTES);
  if (header(answer, 'content-encoding') === 'gzip') body = await unzip(body);
  const etag = header(answer, 'etag');
  const lastModified = header(answer, 'last-modified');
  return {
    document: await IndexDocument.read(body.toString('utf8')),
    ...(etag === undefined ? {} : { etag }),
    ...(lastModified === undefined ? {} : { lastModified }),
  };
}

async function unzip(body: Buffer): Promise<Buffer> {
  try {
    return await promisify(gunzip)(body, { maxOutputLength: MAX_INDEX_BYTES });
  } catch (error) {
    throw new HelmError('RepositoryInvalid', 'its index.yaml cannot be unpacked', { cause: error });
  }
}

/** What a status other than the wanted one means. */
export async function refusal(answer: RepositoryAnswer, what: string): Promise<HelmError> {
  await drain(answer);
  const status = answer.statusCode;
  const text = `${what} at ${describeUrl(answer.url)} (HTTP status ${status})`;
  if (status === 401) return new HelmError('RepositoryUnauthorized', `credentials are missing or wrong for ${text}`);
  if (status === 403) return new HelmError('RepositoryUnauthorized', `it refuses ${text}`);
  if (status === 404 || status === 410) return new HelmError('ChartNotFound', `it does not have ${text}`);
  return new HelmError('RepositoryUnreachable', `it does not give ${text}`);
}

function authorize(target: RepositoryTarget, url: URL): string | undefined {
  const login = target.login(url);
  if (login === undefined) return undefined;
  return login.registryToken === undefined ? basicHeader(login) : `Bearer ${login.registryToken}`;
}

function versionsOf(entries: readonly IndexEntry[]): string[] {
  return entries.map(({ version }) => version);
}

function choose(entries: readonly IndexEntry[], wanted: string): IndexEntry | undefined {
  const version = chooseVersion(wanted, versionsOf(entries));
  return version === undefined ? undefined : entries.find((entry) => entry.version === version);
}

function located(entry: IndexEntry, target: RepositoryTarget): LocatedChart {
  // As Helm: the first address is the one.
  const [reference] = entry.urls;
  const url = reference === undefined ? null : URL.parse(reference, under(target.url, '').href);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw new HelmError('RepositoryInvalid', `its index has no HTTP address for version ${entry.version}`);
  }
  // A token in the repository's query is for its charts too (Helm keeps it likewise).
  if (reference !== undefined && !/^[a-z]+:/i.test(reference) && url.search === '') url.search = target.url.search;
  return { version: entry.version, url, ...(entry.digest === undefined ? {} : { digest: `sha256:${entry.digest}` }) };
}

function isSame(a: LocatedChart, b: LocatedChart): boolean {
  return a.version === b.version && a.digest === b.digest && a.url.href === b.url.href;
}

/** An address below that of the repository, which may end in a slash or not; a query stays. */
function under(repository: URL, name: string): URL {
  const url = new URL(repository);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${name}`;
  return url;
}

function noSuchChart(names: readonly string[], wanted: string): HelmError {
  const similar = names.filter((name) => name.includes(wanted) || wanted.includes(name)).slice(0, 5);
  const hint = similar.length > 0 ? `; it has ${similar.join(', ')}` : `; it has ${names.length} others`;
  return new HelmError('ChartNotFound', `the repository has no such chart${hint}`);
}
