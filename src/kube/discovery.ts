import { withTimeout } from './abort.ts';
import { readAggregated, readGroups, readResources } from './discovery-documents.ts';
import type { ApiGroup, ServedKind } from './discovery-documents.ts';
import type { CallOptions, Discovery, KubeClient, Resource } from './types.ts';

export interface DiscoveryOptions {
  /** A miss asks the server again at most this often, milliseconds. Default 5 s: CRDs come seldom, and misses may come in crowds. */
  readonly minRefreshMs?: number;
}

const DEFAULT_MIN_REFRESH_MS = 5_000;

/** How long a caller waits who names no limit. */
const DEFAULT_WAIT_MS = 30_000;

/** API discovery of one server: two requests where it aggregates (KEP-3352), else one more per group version that is asked for. */
export class ApiDiscovery implements Discovery {
  readonly #client: Pick<KubeClient, 'raw'>;
  readonly #minRefreshMs: number;
  #known: Catalogue | undefined;
  /** One reading answers for all who ask meanwhile; each waits under his own signal and limit. */
  #reading: Promise<Catalogue> | undefined;

  constructor(client: Pick<KubeClient, 'raw'>, options: DiscoveryOptions = {}) {
    this.#client = client;
    this.#minRefreshMs = options.minRefreshMs ?? DEFAULT_MIN_REFRESH_MS;
  }

  async find(
    kind: { group: string; version?: string; kind: string },
    options: CallOptions = {},
  ): Promise<Resource | undefined> {
    return this.#ask(async (catalogue) => catalogue.find(kind), options);
  }

  async versions(group: string, options: CallOptions = {}): Promise<readonly string[]> {
    return (await this.#ask(async (catalogue) => catalogue.versions(group), options)) ?? [];
  }

  invalidate(): void {
    this.#known = undefined;
    this.#reading = undefined;
  }

  /** Asks what is known; on a miss reads anew, unless that was done a moment ago. */
  async #ask<R>(
    question: (catalogue: Catalogue) => Promise<R | undefined>,
    options: CallOptions,
  ): Promise<R | undefined> {
    const limit = options.timeoutMs ?? DEFAULT_WAIT_MS;
    return withTimeout(options.signal, limit, async () => this.#answer(question), 'API discovery');
  }

  async #answer<R>(question: (catalogue: Catalogue) => Promise<R | undefined>): Promise<R | undefined> {
    const known = this.#known;
    const answer = known === undefined ? undefined : await question(known);
    if (answer !== undefined) return answer;
    if (known !== undefined && performance.now() - known.readAt < this.#minRefreshMs) return undefined;
    return question(await this.#read());
  }

  async #read(): Promise<Catalogue> {
    if (this.#reading !== undefined) return this.#reading;
    const reading = readCatalogue(this.#client);
    this.#reading = reading;
    try {
      const catalogue = await reading;
      // After an `invalidate` meanwhile, what was read may be what was to be forgotten.
      if (this.#reading === reading) this.#known = catalogue;
      return catalogue;
    } finally {
      if (this.#reading === reading) this.#reading = undefined;
    }
  }
}

async function readCatalogue(client: Pick<KubeClient, 'raw'>): Promise<Catalogue> {
  return new Catalogue(client, (await readAggregated(client)) ?? (await readGroups(client)));
}

/** What a server served at one moment. */
class Catalogue {
  readonly readAt = performance.now();
  readonly #client: Pick<KubeClient, 'raw'>;
  readonly #groups: ReadonlyMap<string, ApiGroup>;
  readonly #asked = new Map<string, readonly ServedKind[]>();

  constructor(client: Pick<KubeClient, 'raw'>, groups: readonly ApiGroup[]) {
    this.#client = client;
    this.#groups = new Map(groups.map((group) => [group.name, group]));
  }

  async versions(group: string): Promise<readonly string[] | undefined> {
    return this.#groups.get(group)?.versions.map(({ version }) => version);
  }

  async find(wanted: { group: string; version?: string; kind: string }): Promise<Resource | undefined> {
    const versions = this.#groups.get(wanted.group)?.versions ?? [];
    for (const { version, kinds } of versions) {
      if (wanted.version !== undefined && wanted.version !== version) continue;
      const served = kinds ?? (await this.#kindsOf(wanted.group, version));
      const found = served.find(({ kind }) => kind === wanted.kind);
      if (found !== undefined) {
        return { group: wanted.group, version, plural: found.plural, namespaced: found.namespaced };
      }
    }
    return undefined;
  }

  async #kindsOf(group: string, version: string): Promise<readonly ServedKind[]> {
    const key = `${group}/${version}`;
    const known = this.#asked.get(key);
    if (known !== undefined) return known;
    const kinds = await readResources(this.#client, group, version);
    if (kinds === undefined) return [];
    this.#asked.set(key, kinds);
    return kinds;
  }
}
