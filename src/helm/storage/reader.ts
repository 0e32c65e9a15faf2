import { LRUCache } from 'lru-cache';
import { isKubeError } from '../../kube/index.ts';
import type { CallOptions, Informer, KubeClient, KubeObject, WatchSet } from '../../kube/index.ts';
import type { Telemetry } from '../../telemetry/index.ts';
import { HelmError } from '../errors.ts';
import type {
  OperationControl,
  ReleaseKey,
  ReleaseMark,
  ReleaseReader,
  ReleaseSummary,
  StoredContent,
} from '../types.ts';
import { contentOf } from './content.ts';
import { RECORDS, SECRETS, canBeRecorded, markOf, recordName, selectorOf, summaryOf } from './record-secret.ts';
import type { RecordSecret } from './record-secret.ts';
import { decodeRawRecord, decodeRecord, encodeRawRecord, failedRecord } from './record.ts';

/** One engaged cluster, as the reader needs it. */
export interface ReleaseReaderDependencies {
  /** The cluster's name, for logs. */
  readonly cluster: string;
  readonly client: KubeClient;
  readonly watches: WatchSet;
  readonly telemetry: Telemetry;
}

/** Summaries kept per cluster, about half a kilobyte each: more than any cluster has releases. */
const MAX_SUMMARIES = 5_000;

/** Who wrote a record, in its managedFields. */
const FIELD_MANAGER = 'capstan';

const BY_RELEASE = 'helm-release';

/** Reads Helm's storage of one cluster (see ReleaseReader). The watch is held from the start until `close`. */
export class NativeReleaseReader implements ReleaseReader {
  readonly #cluster: string;
  readonly #client: KubeClient;
  readonly #watches: WatchSet;
  readonly #telemetry: Telemetry;
  readonly #records: Informer<KubeObject>;
  readonly #stopListening: () => void;
  readonly #handlers = new Set<Registration>();
  /** By uid of the record; an entry of another resourceVersion is out of date. */
  readonly #summaries = new LRUCache<string, ReleaseSummary>({ max: MAX_SUMMARIES });

  constructor(dependencies: ReleaseReaderDependencies) {
    this.#cluster = dependencies.cluster;
    this.#client = dependencies.client;
    this.#watches = dependencies.watches;
    this.#telemetry = dependencies.telemetry;
    this.#records = this.#watches.hold(this, RECORDS);
    this.#records.addIndex(BY_RELEASE, (secret) => {
      const mark = markOf(secret);
      return mark === undefined ? [] : [indexKey(mark)];
    });
    this.#stopListening = this.#records.addHandler({
      add: (secret, initial) => {
        // What the first list tells is no change.
        if (!initial || this.#records.hasSynced) this.#tell(secret);
      },
      update: (previous, secret) => {
        if (previous.metadata.resourceVersion !== secret.metadata.resourceVersion) this.#tell(secret);
      },
      delete: (secret) => {
        this.#summaries.delete(secret.metadata.uid ?? '');
        this.#tell(secret);
      },
    });
  }

  async synced(signal: AbortSignal, timeoutMs: number): Promise<void> {
    await this.#records.synced(signal, timeoutMs);
  }

  marks(key: ReleaseKey): readonly ReleaseMark[] {
    return newestFirst(this.#records.byIndex(BY_RELEASE, indexKey(key)));
  }

  async newest(key: ReleaseKey, control: OperationControl): Promise<ReleaseSummary | undefined> {
    const mark = this.marks(key)[0];
    if (mark === undefined) return undefined;
    // A record that went in between leaves it open what is the newest now.
    return (await this.#summary(mark, control)) ?? this.refresh(key, control);
  }

  async refresh(key: ReleaseKey, control: OperationControl): Promise<ReleaseSummary | undefined> {
    if (!canBeRecorded(key)) return undefined;
    const scope = { namespace: key.namespace, labelSelector: selectorOf(key) };
    const list = await this.#client.list<KubeObject>(SECRETS, scope, { ...callOptions(control), form: 'metadata' });
    for (const mark of newestFirst(list.items)) {
      const summary = await this.#summary(mark, control);
      // Pruned by Helm meanwhile, or uninstalled: then the next older ones are gone or going, too.
      if (summary !== undefined) return summary;
    }
    return undefined;
  }

  async content(mark: ReleaseMark, control: OperationControl): Promise<StoredContent | undefined> {
    const secret = await this.#find(mark, control);
    const { uid: recordUid = '', resourceVersion: recordVersion = '' } = secret?.metadata ?? {};
    if (secret === undefined || recordUid !== mark.recordUid || recordVersion !== mark.recordVersion) return undefined;
    return contentOf(await decodeRawRecord(secret.data?.['release'] ?? ''), { recordUid, recordVersion });
  }

  async markFailed(summary: ReleaseSummary, why: string, control: OperationControl): Promise<void> {
    const secret = await this.#find(summary, control);
    const { uid, resourceVersion } = secret?.metadata ?? {};
    if (secret === undefined || uid !== summary.recordUid || resourceVersion !== summary.recordVersion) {
      throw recordChanged(summary);
    }
    const raw = failedRecord(await decodeRawRecord(secret.data?.['release'] ?? ''), why);
    const labels = { ...secret.metadata.labels, status: 'failed', modifiedAt: String(Math.floor(Date.now() / 1000)) };
    const changed: RecordSecret = {
      ...secret,
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...secret.metadata, labels },
      data: { ...secret.data, release: await encodeRawRecord(raw) },
    };
    delete changed.metadata.managedFields;
    try {
      await this.#client.replace(SECRETS, changed, { ...callOptions(control), fieldManager: FIELD_MANAGER });
    } catch (error) {
      if (isKubeError(error, 'Conflict', 'NotFound')) throw recordChanged(summary, error);
      throw error;
    }
    this.#telemetry.log.info('a release was marked as failed', {
      cluster: this.#cluster,
      namespace: summary.namespace,
      release: summary.name,
      revision: summary.revision,
      was: summary.status,
      why,
    });
  }

  onChange(handler: (key: ReleaseKey) => void): () => void {
    const registration: Registration = { handler };
    this.#handlers.add(registration);
    return () => {
      this.#handlers.delete(registration);
    };
  }

  close(): void {
    this.#stopListening();
    this.#handlers.clear();
    this.#watches.release(this);
    this.#summaries.clear();
  }

  async #summary(mark: ReleaseMark, control: OperationControl): Promise<ReleaseSummary | undefined> {
    const known = this.#summaries.get(mark.recordUid);
    if (known?.recordVersion === mark.recordVersion) return known;
    const secret = await this.#find(mark, control);
    if (secret === undefined) return undefined;
    const summary = summaryOf(secret, await decodeRecord(secret.data?.['release'] ?? ''));
    this.#summaries.set(summary.recordUid, summary);
    return summary;
  }

  async #find(
    mark: Pick<ReleaseMark, 'namespace' | 'name' | 'revision'>,
    control: OperationControl,
  ): Promise<RecordSecret | undefined> {
    const key = { namespace: mark.namespace, name: recordName(mark) };
    return this.#client.find<RecordSecret>(SECRETS, key, callOptions(control));
  }

  #tell(secret: KubeObject): void {
    const mark = markOf(secret);
    if (mark === undefined) return;
    for (const { handler } of [...this.#handlers]) handler({ namespace: mark.namespace, name: mark.name });
  }
}

/** An object, so that the same function may be registered twice and removed once. */
interface Registration {
  readonly handler: (key: ReleaseKey) => void;
}

function indexKey(key: ReleaseKey): string {
  return `${key.namespace}/${key.name}`;
}

function newestFirst(secrets: readonly KubeObject[]): readonly ReleaseMark[] {
  return secrets
    .map(markOf)
    .filter((mark) => mark !== undefined)
    .sort((a, b) => b.revision - a.revision);
}

function callOptions(control: OperationControl): CallOptions {
  return { signal: control.signal, ...(control.limitMs === undefined ? {} : { timeoutMs: control.limitMs }) };
}

function recordChanged(summary: ReleaseSummary, cause?: unknown): HelmError {
  const { namespace, name, revision } = summary;
  return new HelmError(
    'RecordChanged',
    `the record of ${namespace}/${name} revision ${String(revision)} changed meanwhile`,
    {
      cause,
    },
  );
}
