/** Helm's storage of one cluster, read once and without a watch. */
import { contentOf } from '../../helm/storage/content.ts';
import { markOf, recordName, SECRETS } from '../../helm/storage/record-secret.ts';
import type { RecordSecret } from '../../helm/storage/record-secret.ts';
import { decodeRawRecord } from '../../helm/storage/record.ts';
import type { ReleaseMark, StoredContent } from '../../helm/index.ts';
import type { CallOptions, KubeClient } from '../../kube/index.ts';

const OWNER_SELECTOR = 'owner=helm';

/** The records of one release, newest first; never empty. */
export type History = readonly ReleaseMark[];

/** All releases of a namespace, or of all, by metadata alone, sorted by namespace and name. Rejects with a KubeError. */
export async function readHistories(
  client: KubeClient,
  namespace: string | undefined,
  call: CallOptions,
): Promise<readonly History[]> {
  const { items } = await client.list(
    SECRETS,
    { labelSelector: OWNER_SELECTOR, ...(namespace !== undefined && { namespace }) },
    { ...call, form: 'metadata' },
  );
  const marks = items.map(markOf).filter((mark) => mark !== undefined);
  const releases = Map.groupBy(marks, ({ namespace: of, name }) => `${of}/${name}`);
  return [...releases]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, history]) => history.sort((a, b) => b.revision - a.revision));
}

/** What a record holds; undefined when it went meanwhile. Rejects with a KubeError, or a HelmError (RecordInvalid). */
export async function readContent(
  client: KubeClient,
  mark: ReleaseMark,
  call: CallOptions,
): Promise<StoredContent | undefined> {
  const secret = await client.find<RecordSecret>(SECRETS, { namespace: mark.namespace, name: recordName(mark) }, call);
  if (secret === undefined) return undefined;
  const { uid = '', resourceVersion = '' } = secret.metadata;
  const raw = await decodeRawRecord(secret.data?.['release'] ?? '');
  return contentOf(raw, { recordUid: uid, recordVersion: resourceVersion });
}
