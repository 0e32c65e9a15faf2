import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeObject } from '../../test/support/index.ts';
import { Mirror } from '../../test/support/index.ts';
import type { Bed } from './bed.ts';
import { RELEASE_NAMESPACE } from './bed.ts';

type ConfigMap = KubeObject & { data?: Record<string, string> };

/** What a person may do to an object; every one of them is drift. */
const EDITS = ['change', 'remove-key', 'delete', 'unlabel'] as const;
export type Edit = (typeof EDITS)[number];

export interface Correction {
  edit: Edit;
  /** From the answer to the edit to the moment when a watcher saw the object as it should be. Milliseconds. */
  ms: number;
}

/** Helm's label, without which its objects are not found. */
const HELM_LABEL = 'app.kubernetes.io/managed-by';
/** Most time (ms) for one correction. */
const LIMIT_MS = 60_000;
const COLLECTION = `/api/v1/namespaces/${RELEASE_NAMESPACE}/configmaps`;

/** Edits objects on all clusters at once, on each one after the other; resolves with how long each one stayed wrong. */
export async function editAll(bed: Bed, count: number, pauseMs = 0): Promise<Correction[]> {
  const { clusters } = bed.options;
  const each = Math.ceil(count / clusters);
  const done = await Promise.all(
    Array.from({ length: clusters }, async (_, index) => editCluster(bed, index + 1, { count: each, pauseMs })),
  );
  return done.flat();
}

/** Annotates objects as another controller would: no drift. */
export async function annotateAll(bed: Bed, count: number): Promise<void> {
  const { clusters } = bed.options;
  await Promise.all(
    Array.from({ length: clusters }, async (_, index) => {
      const { api } = bed.fleet.cluster(index + 1);
      for (let turn = 0; turn < Math.ceil(count / clusters); turn++) {
        const path = `${COLLECTION}/${objectName(bed, turn)}?fieldManager=another-controller`;
        await api.patch(path, { metadata: { annotations: { 'bench.example/turn': String(turn) } } });
      }
    }),
  );
}

async function editCluster(
  bed: Bed,
  index: number,
  { count, pauseMs }: { count: number; pauseMs: number },
): Promise<Correction[]> {
  const { api } = bed.fleet.cluster(index);
  // Told at the moment of each event: asking again and again would measure the asking.
  const mirror = await Mirror.start<ConfigMap>(api, COLLECTION);
  const corrections: Correction[] = [];
  try {
    for (let turn = 0; turn < count; turn++) {
      const edit = EDITS[turn % EDITS.length] ?? 'change';
      const name = objectName(bed, turn);
      const before = mirror.objects().find(({ metadata }) => metadata.name === name);
      const edited = await editOne(bed, index, { edit, name });
      const from = performance.now();
      await mirror.until(
        (all) => {
          const now = all.find(({ metadata }) => metadata.name === name);
          return isRight(now, before, edited) ? undefined : `${name} is still ${edit}d`;
        },
        { what: `${name} is put back`, timeoutMs: LIMIT_MS, signal: bed.options.signal },
      );
      corrections.push({ edit, ms: performance.now() - from });
      if (pauseMs > 0) await sleep(pauseMs, undefined, { signal: bed.options.signal });
    }
  } finally {
    await mirror.stop();
  }
  return corrections;
}

/** Resolves with the object as the edit left it; undefined when it is gone. */
async function editOne(
  bed: Bed,
  index: number,
  { edit, name }: { edit: Edit; name: string },
): Promise<ConfigMap | undefined> {
  const { api } = bed.fleet.cluster(index);
  const path = `${COLLECTION}/${name}`;
  const by = `${path}?fieldManager=bench-person`;
  switch (edit) {
    case 'change':
      return api.patch<ConfigMap>(by, { data: { message: `edited ${performance.now()}` } });
    case 'remove-key':
      return api.patch<ConfigMap>(by, { data: { settings: null } });
    case 'unlabel':
      return api.patch<ConfigMap>(by, { metadata: { labels: { [HELM_LABEL]: null } } });
    case 'delete':
      await api.delete(path);
      return undefined;
  }
}

/** As before the edit, in a version that came after it. */
function isRight(now: ConfigMap | undefined, before: ConfigMap | undefined, edited: ConfigMap | undefined): boolean {
  if (now === undefined || before === undefined) return false;
  const later =
    edited === undefined
      ? now.metadata.uid !== before.metadata.uid
      : Number(now.metadata.resourceVersion) > Number(edited.metadata.resourceVersion);
  return (
    later &&
    JSON.stringify(sorted(now.data)) === JSON.stringify(sorted(before.data)) &&
    now.metadata.labels?.[HELM_LABEL] === 'Helm'
  );
}

function sorted(data: Record<string, string> = {}): [string, string][] {
  return Object.entries(data).sort(([a], [b]) => a.localeCompare(b));
}

function objectName(bed: Bed, turn: number): string {
  const names = bed.names();
  const release = names[turn % names.length] ?? '';
  return `${release}-${Math.floor(turn / names.length) % bed.configMaps}`;
}
