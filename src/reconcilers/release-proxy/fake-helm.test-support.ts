/** Helm, its storage and its charts in memory. For the tests of this folder. */
import { HelmError } from '../../helm/index.ts';
import type {
  ChartSource,
  ChartStore,
  DeployRequest,
  HelmEngine,
  OperationControl,
  ReleaseKey,
  ReleaseMark,
  ReleaseReader,
  ReleaseStatus,
  ReleaseSummary,
  StoredContent,
} from '../../helm/index.ts';
import { pathOf } from './fake-api.test-support.ts';

/** Helm's storage on one workload cluster, with the reader's view of it. */
export class FakeStorage {
  readonly #records = new Map<string, ReleaseSummary[]>();
  readonly #handlers = new Set<(key: ReleaseKey) => void>();
  #version = 1000;
  readers = 0;
  fetches = 0;
  /** Set: storage cannot be read. */
  failure: Error | undefined;
  /** The watch shows what was there this many changes ago; 0: all. */
  frozen: Map<string, ReleaseSummary[]> | undefined;

  records(key: ReleaseKey): ReleaseSummary[] {
    return this.#records.get(pathOf(key)) ?? [];
  }

  newest(key: ReleaseKey): ReleaseSummary | undefined {
    return this.records(key).at(-1);
  }

  put(key: ReleaseKey, parts: Partial<ReleaseSummary> & { status: ReleaseStatus; revision: number }): ReleaseSummary {
    this.#version += 1;
    const record: ReleaseSummary = {
      namespace: key.namespace,
      name: key.name,
      chartName: 'app',
      chartVersion: '1.0.0',
      valuesDigest: 'digest of ',
      lastDeployed: new Date(0).toISOString(),
      description: '',
      recordUid: `${key.name}.v${parts.revision}`,
      ...parts,
      recordVersion: String(this.#version),
    };
    const others = this.records(key).filter((other) => other.revision !== record.revision);
    this.#records.set(pathOf(key), [...others, record]);
    this.tell(key);
    return record;
  }

  clear(key: ReleaseKey): void {
    this.#records.delete(pathOf(key));
    this.tell(key);
  }

  /** Documents of each release's manifest, by its path. */
  readonly manifests = new Map<string, StoredContent['documents']>();

  /** From now on the watch shows nothing newer. */
  freeze(): void {
    this.frozen = new Map(this.#records);
  }

  tell(key: ReleaseKey): void {
    for (const handler of this.#handlers) handler(key);
  }

  reader(): ReleaseReader {
    this.readers += 1;
    const own = new Set<(key: ReleaseKey) => void>();
    const check = (): void => {
      if (this.failure !== undefined) throw this.failure;
    };
    const seen = (key: ReleaseKey): ReleaseSummary[] =>
      this.frozen === undefined ? this.records(key) : (this.frozen.get(pathOf(key)) ?? []);
    return {
      synced: async () => Promise.resolve(),
      marks: (key) => [...seen(key)].reverse().map((record): ReleaseMark => ({ ...record })),
      newest: async (key) => {
        check();
        return Promise.resolve(seen(key).at(-1));
      },
      refresh: async (key) => {
        this.fetches += 1;
        check();
        return Promise.resolve(this.newest(key));
      },
      content: async (mark) => {
        check();
        this.fetches += 1;
        const found = seen(mark).find(({ recordVersion }) => recordVersion === mark.recordVersion);
        if (found === undefined) return Promise.resolve(undefined);
        const { revision, recordUid, recordVersion } = found;
        const documents = this.manifests.get(pathOf(mark)) ?? [];
        const size = JSON.stringify(documents).length;
        return Promise.resolve({
          revision,
          recordUid,
          recordVersion,
          applyMethod: found.applyMethod ?? 'client',
          size,
          documents,
          crds: () => [],
        });
      },
      markFailed: async (summary) => {
        check();
        if (summary.recordVersion !== this.newest(summary)?.recordVersion)
          throw new HelmError('RecordChanged', 'the record is another by now');
        this.put(summary, { ...summary, status: 'failed' });
        return Promise.resolve();
      },
      onChange: (handler) => {
        this.#handlers.add(handler);
        own.add(handler);
        return () => this.#handlers.delete(handler);
      },
      close: () => {
        this.readers -= 1;
        for (const handler of own) this.#handlers.delete(handler);
      },
    };
  }
}

export interface Call {
  readonly verb: 'install' | 'upgrade' | 'uninstall';
  readonly cluster: string;
  readonly release: ReleaseKey;
  readonly request?: DeployRequest;
}

/** A Helm that does to FakeStorage what Helm does to its storage. */
export class FakeEngine implements HelmEngine {
  readonly calls: Call[] = [];
  /** Rejects the next operations with this, after what a failed one leaves behind. */
  failure: Error | undefined;
  /** Called in the middle of each operation. */
  during: ((call: Call, signal: AbortSignal) => void | Promise<void>) | undefined;
  readonly #storage: (cluster: string) => FakeStorage;

  constructor(storage: (cluster: string) => FakeStorage) {
    this.#storage = storage;
  }

  verbs(): string[] {
    return this.calls.map((call) => call.verb);
  }

  async version(): Promise<{ major: number; full: string }> {
    return Promise.resolve({ major: 4, full: '4.1.4' });
  }

  async install(target: { cluster: string }, request: DeployRequest, control: OperationControl): Promise<void> {
    const storage = await this.#begin(
      { verb: 'install', cluster: target.cluster, release: request.release, request },
      control,
    );
    const newest = storage.newest(request.release);
    if (newest !== undefined && !(request.replace === true && newest.status === 'uninstalled'))
      throw new HelmError('ReleaseExists', 'cannot re-use a name that is still in use');
    this.#deploy(storage, request, (newest?.revision ?? 0) + 1);
  }

  async upgrade(target: { cluster: string }, request: DeployRequest, control: OperationControl): Promise<void> {
    const storage = await this.#begin(
      { verb: 'upgrade', cluster: target.cluster, release: request.release, request },
      control,
    );
    const newest = storage.newest(request.release);
    if (newest === undefined) throw new HelmError('ReleaseNotFound', 'release: not found');
    if (newest.status.startsWith('pending-')) throw new HelmError('ReleasePending', 'another operation is in progress');
    if (!['deployed', 'failed', 'superseded'].includes(newest.status))
      throw new HelmError('NoDeployedRelease', `"${newest.name}" has no deployed releases`);
    this.#deploy(storage, request, newest.revision + 1);
  }

  async uninstall(
    target: { cluster: string },
    request: { release: ReleaseKey; options: { uninstall: { keepHistory?: boolean } } },
    control: OperationControl,
  ): Promise<void> {
    const storage = await this.#begin(
      { verb: 'uninstall', cluster: target.cluster, release: request.release },
      control,
    );
    if (this.failure !== undefined) throw this.failure;
    const newest = storage.newest(request.release);
    if (request.options.uninstall.keepHistory === true && newest !== undefined)
      storage.put(request.release, { ...newest, status: 'uninstalled' });
    else storage.clear(request.release);
  }

  async close(): Promise<void> {
    return Promise.resolve();
  }

  async rollback(): Promise<void> {
    return Promise.reject(new Error('not expected'));
  }

  async test(): Promise<void> {
    return Promise.reject(new Error('not expected'));
  }

  async template(): Promise<string> {
    return Promise.reject(new Error('not expected'));
  }

  async #begin(call: Call, control: OperationControl): Promise<FakeStorage> {
    this.calls.push(call);
    await this.during?.(call, control.signal);
    return this.#storage(call.cluster);
  }

  #deploy(storage: FakeStorage, request: DeployRequest, revision: number): void {
    const record = { revision, chartVersion: request.chart.version, valuesDigest: `digest of ${request.values}` };
    storage.put(request.release, { ...record, status: this.failure === undefined ? 'deployed' : 'failed' });
    if (this.failure !== undefined) throw this.failure;
  }
}

/** A repository with one chart per name, of a version and a digest that tests change. */
export class FakeCharts implements ChartStore {
  version = '1.0.0';
  digest: string | undefined = 'sha256:chart';
  failure: Error | undefined;
  acquired = 0;
  held = 0;
  readonly sources: ChartSource[] = [];

  async resolve(source: ChartSource): Promise<{ version: string; digest?: string }> {
    this.sources.push(source);
    if (this.failure !== undefined) throw this.failure;
    return Promise.resolve({ version: this.#version(source), digest: this.digest });
  }

  async acquire(source: ChartSource): ReturnType<ChartStore['acquire']> {
    this.sources.push(source);
    if (this.failure !== undefined) throw this.failure;
    this.acquired += 1;
    this.held += 1;
    const archive = { path: '/chart.tgz', name: source.chartName, version: this.#version(source) };
    return Promise.resolve({
      archive: { ...archive, digest: this.digest ?? 'sha256:chart' },
      release: () => {
        this.held -= 1;
      },
    });
  }

  #version(source: ChartSource): string {
    return source.version === undefined || source.version === '' ? this.version : source.version;
  }
}
