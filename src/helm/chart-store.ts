import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { LRUCache } from 'lru-cache';
import { counter, errorText, inSpan } from '../telemetry/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { ChartCache } from './chart-cache.ts';
import type { HeldArchive } from './chart-cache.ts';
import { SharedFlights, underControl } from './chart-store-flights.ts';
import type { FreshnessOptions } from './chart-store-fresh.ts';
import { RepositoryHttp } from './chart-store-http.ts';
import type { RepositoryHttpOptions } from './chart-store-http.ts';
import { describeQuery, readTarget } from './chart-store-target.ts';
import type { ChartQuery, LocatedChart, RepositoryClient } from './chart-store-target.ts';
import { isExactVersion } from './chart-store-versions.ts';
import { HelmError, isHelmError } from './errors.ts';
import { OciRegistries } from './oci-registry.ts';
import { HttpRepositories } from './repository-index.ts';
import type { ChartSource, ChartStore, OperationControl } from './types.ts';

export interface ChartStoreOptions {
  /** Archives lie in here, in a directory of this process. Not to be shared with another container. */
  readonly directory: string;
  /** Bytes of archives kept. Deployments bound the volume at this and a little more. */
  readonly maxBytes: number;
  /** Bytes of one archive. */
  readonly maxArchiveBytes: number;
  /** Limit of `resolve` and `acquire` where the caller names none, milliseconds. */
  readonly limitMs: number;
  readonly freshness: FreshnessOptions;
  readonly http: Partial<RepositoryHttpOptions>;
}

export type GivenChartStoreOptions = Partial<Omit<ChartStoreOptions, 'freshness'>> & {
  readonly freshness?: Partial<FreshnessOptions>;
};

/** The one place of these defaults. */
export function chartStoreOptions(given: GivenChartStoreOptions = {}): ChartStoreOptions {
  return {
    directory: tmpdir(),
    maxBytes: 1024 ** 3,
    // Helm's own limit for what an archive unpacks to.
    maxArchiveBytes: 100 * 1024 ** 2,
    limitMs: 120_000,
    http: {},
    ...given,
    freshness: {
      // Half of the default resync period: a floating version is looked up at each resync, at most once per repository.
      freshMs: 300_000,
      minRevalidateMs: 10_000,
      failureMs: 5_000,
      staleMs: 3_600_000,
      limitMs: 120_000,
      maxEntries: 256,
      maxSize: 32 * 1024 ** 2,
      ...given.freshness,
    },
  };
}

/** Which archive an exact version was, for one holder of credentials. */
interface Catalogued {
  readonly digest: string;
}

/** Exact versions remembered, over all repositories and credentials. */
const MAX_CATALOGUED = 5000;
/** Downloads for one caller whose file is gone before it is in use. */
const OBTAIN_ATTEMPTS = 3;

/**
 * Charts from HTTP(S) repositories and OCI registries, each downloaded once however many clusters want it.
 *
 * What one set of credentials may see is never given to another: versions are remembered by repository and credentials,
 * and an archive that is already here is given to newcomers only after the registry has shown them its manifest (OCI) or
 * the repository has given it to them too (HTTP, where the index and its archives may have different guards).
 */
export class CachedChartStore implements ChartStore {
  readonly #options: ChartStoreOptions;
  readonly #telemetry: Telemetry;
  readonly #http: RepositoryHttp;
  readonly #clients: Readonly<Record<'http' | 'oci', RepositoryClient>>;
  readonly #cache: ChartCache;
  readonly #catalogue = new LRUCache<string, Catalogued>({ max: MAX_CATALOGUED });
  readonly #downloads: SharedFlights<string>;
  /** Keys the fingerprints of credentials, so that they tell nothing even to who reads memory dumps or keys of maps. */
  readonly #secret = randomBytes(32);
  readonly #count: (result: 'success' | 'error') => void;

  constructor(given: GivenChartStoreOptions, telemetry: Telemetry) {
    const options = chartStoreOptions(given);
    this.#options = options;
    this.#telemetry = telemetry;
    this.#http = new RepositoryHttp(options.http);
    this.#clients = {
      http: new HttpRepositories(this.#http, options.freshness, telemetry),
      oci: new OciRegistries(this.#http, options.freshness, telemetry),
    };
    this.#cache = new ChartCache(options);
    this.#downloads = new SharedFlights(options.limitMs);
    const downloads = counter(telemetry.metrics, 'capstan_chart_downloads_total', 'Chart archives downloaded', [
      'result',
    ]);
    this.#count = (result) => {
      downloads.inc({ result });
    };
  }

  /**
   * As the contract says. The version is the one that the chart itself states, once its archive was seen: repositories
   * may write it otherwise (a tag v1.2.3 of a chart 1.2.3), and releases carry the chart's. Rejects with HelmError.
   */
  async resolve(source: ChartSource, control: OperationControl): Promise<{ version: string; digest?: string }> {
    return this.#run('chart.resolve', source, control, async (query, signal) => {
      const catalogued = this.#catalogued(query);
      const known = catalogued === undefined ? undefined : this.#cache.peek(query.target.address, catalogued.digest);
      if (known !== undefined) return { version: known.version, digest: known.digest };
      const { version, digest } = await this.#client(query).locate(query, signal);
      const found = digest ?? this.#catalogued({ ...query, version })?.digest;
      const archive = found === undefined ? undefined : this.#cache.peek(query.target.address, found);
      return { version: archive?.version ?? version, ...(found === undefined ? {} : { digest: found }) };
    });
  }

  /** As the contract says. Rejects with HelmError. */
  async acquire(source: ChartSource, control: OperationControl): Promise<HeldArchive> {
    return this.#run('chart.acquire', source, control, async (query, signal) => {
      const held = await this.#holdCatalogued(query);
      if (held !== undefined) return held;
      const chart = await this.#client(query).locate(query, signal);
      try {
        return await this.#obtain(query, chart, signal);
      } catch (error) {
        // The index or tag may be older than the archive: published anew, or taken away.
        if (!isHelmError(error, 'DigestMismatch', 'ChartNotFound')) throw error;
        const again = await this.#client(query).locate(query, signal, chart);
        if (again.digest === chart.digest && again.url.href === chart.url.href) throw error;
        return this.#obtain(query, again, signal);
      }
    });
  }

  /** Ends downloads and connections and removes the archives. */
  async close(): Promise<void> {
    await this.#downloads.close();
    await Promise.all([this.#clients.http.close(), this.#clients.oci.close()]);
    await this.#http.close();
    await this.#cache.close();
  }

  async #run<T>(
    name: string,
    source: ChartSource,
    control: OperationControl,
    fn: (query: ChartQuery, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { chartName, version = '' } = source;
    const attributes = { 'capstan.chart.name': chartName, 'capstan.chart.version': version };
    return inSpan(this.#telemetry.tracer, name, attributes, async () => {
      const query: ChartQuery = { target: readTarget(source, this.#secret), chartName, version: version.trim() };
      try {
        return await underControl(control, this.#options.limitMs, async (signal) => fn(query, signal));
      } catch (error) {
        throw explain(query, error);
      }
    });
  }

  #client(query: ChartQuery): RepositoryClient {
    return this.#clients[query.target.kind];
  }

  /** Undefined for ranges, for what was never fetched, and for what the repository is known to have replaced since. */
  #catalogued(query: ChartQuery): Catalogued | undefined {
    if (!isExactVersion(query.version)) return undefined;
    const catalogued = this.#catalogue.get(keyOf(query));
    const now = this.#client(query).knownDigest(query);
    return now === undefined || now === catalogued?.digest ? catalogued : undefined;
  }

  async #holdCatalogued(query: ChartQuery): Promise<HeldArchive | undefined> {
    const catalogued = this.#catalogued(query);
    return catalogued === undefined ? undefined : this.#cache.hold(query.target.address, catalogued.digest);
  }

  async #obtain(query: ChartQuery, chart: LocatedChart, signal: AbortSignal): Promise<HeldArchive> {
    const exact: ChartQuery = { ...query, version: chart.version };
    const { address, kind } = query.target;
    for (let attempt = 1; ; attempt += 1) {
      const known = await this.#holdCatalogued(exact);
      if (known !== undefined) return known;
      const shown =
        kind === 'oci' && chart.digest !== undefined ? await this.#cache.hold(address, chart.digest) : undefined;
      if (shown !== undefined) {
        this.#catalogue.set(keyOf(exact), { digest: shown.archive.digest });
        return shown;
      }
      const digest = await this.#downloads.join(keyOf(exact), signal, async (until) =>
        this.#download(exact, chart, until),
      );
      const held = await this.#cache.hold(address, digest);
      if (held !== undefined) return held;
      // Somebody else removes the files: no use in filling a sieve.
      if (attempt === OBTAIN_ATTEMPTS) throw new HelmError('Failed', 'its archive vanishes from the chart cache');
    }
  }

  async #download(query: ChartQuery, chart: LocatedChart, signal: AbortSignal): Promise<string> {
    const attributes = { 'capstan.chart.name': query.chartName, 'capstan.chart.version': chart.version };
    return inSpan(this.#telemetry.tracer, 'chart.download', attributes, async () => {
      try {
        const held = await this.#cache.put(query.target.address, chart.digest, async (write) => {
          await this.#client(query).download(query, chart, {
            signal,
            write: async (chunks) => write(chunks, signal),
          });
          return signal;
        });
        this.#catalogue.set(keyOf(query), { digest: held.archive.digest });
        // Those who wait take their own hold before the next turn of the event loop.
        setImmediate(() => {
          held.release();
        });
        this.#count('success');
        this.#telemetry.log.info('chart downloaded', { ...attributes, 'capstan.chart.digest': held.archive.digest });
        return held.archive.digest;
      } catch (error) {
        this.#count('error');
        throw error;
      }
    });
  }
}

function keyOf(query: ChartQuery): string {
  return JSON.stringify([query.version, query.chartName, query.target.key]);
}

function explain(query: ChartQuery, error: unknown): HelmError {
  const known = error instanceof HelmError;
  // A code of this room keeps its meaning; the words get the chart they are about.
  return new HelmError(
    known ? error.code : 'Failed',
    `${describeQuery(query)}: ${known ? error.message : errorText(error)}`,
    {
      cause: error,
    },
  );
}
