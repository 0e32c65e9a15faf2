import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../kube/index.ts';
import { compare } from './compare.ts';
import { leaves } from './document.ts';
import { FIELD_MANAGER, limits } from './dry-run.ts';
import { removalOrder } from './edits.ts';
import type { Look, Moved } from './look.ts';
import { MOVED } from './look.ts';
import { matchesPattern, pointerOf, valueAt } from './pointer.ts';
import { refusalOf } from './refusal.ts';
import { isWithin, twinPath } from './twin.ts';
import type { FieldDrift, JsonObject, LiveObject, Path } from './types.ts';

/** Dry runs of single removals, when the server refuses all of them at once. */
const MAX_SINGLE_TRIES = 10;

const REFUSED = 'refused';

/**
 * kubectl's own records: of an edit, which says nothing to any controller and which the next `kubectl apply` writes again; and
 * of a restart that was asked for, which would come a second time if it were taken away.
 */
const RECORDS: ReadonlySet<string | number> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  'kubectl.kubernetes.io/restartedAt',
]);

/**
 * Fields that somebody put in (drift.md §8, scenarios 1 and 14): where the manifest says null, in every mode; elsewhere, when
 * `extraFields` asks for it, those that are owned by nobody but managers that are neither Helm nor a controller of Kubernetes.
 * What the server itself sets to the same value when it is taken away is a default and no drift: a dry run tells.
 */
export async function addedFields(look: Look): Promise<readonly FieldDrift[] | Moved> {
  const { extraFields } = look.policy;
  const found = [...nulled(look), ...(extraFields === 'Ignore' ? [] : addedByHand(look))];
  const candidates = withoutInner(found).filter(
    (path) => !look.ignore.some((pattern) => matchesPattern(path, pattern)),
  );
  if (candidates.length === 0) return [];
  const kept = await withoutDefaults(look, candidates);
  if (kept === MOVED) return MOVED;
  return kept.map((path) => {
    const author = look.owners.authorOf(path);
    return {
      change: 'added',
      path,
      wanted: undefined,
      live: valueAt(look.live, path),
      ...(author !== undefined && { author }),
    };
  });
}

/** Whether the manifest has an explicit null at this path of the live object. */
export function isNulled(look: Pick<Look, 'object' | 'live'>, livePath: Path): boolean {
  return look.object.nulls.some((path) => {
    const twin = twinPath(look.object.wanted, look.live, path);
    return twin !== undefined && pointerOf(twin) === pointerOf(livePath);
  });
}

function nulled(look: Look): Path[] {
  return look.object.nulls.flatMap((path) => {
    const twin = twinPath(look.object.wanted, look.live, path);
    const value = twin === undefined ? undefined : valueAt(look.live, twin);
    if (twin === undefined || value === undefined || value === null) return [];
    // Somebody must have put it there, who need not be one to name (`unknown`).
    return look.owners.isForeign(twin) ? [twin] : [];
  });
}

/** Owned by hand and not in the manifest, the highest path of which all is owned so: a probe, not each of its fields. */
function addedByHand(look: Look): Path[] {
  const unknown = look.owners.unknown().filter(isComparable);
  if (unknown.length === 0) return [];
  const owned = new Set(unknown.map(pointerOf));
  const notSet = pathsNotSet(look);
  return unknown.flatMap((path) => {
    const above = notSet.find((other) => isWithin(path, other));
    return above === undefined ? [] : [highest(look.live, { path, above, owned })];
  });
}

/** Paths of the live object that the manifest has nothing for: the comparison, the other way round. */
function pathsNotSet(look: Look): Path[] {
  const { object, live, ignore, quantities } = look;
  return compare(live, object.wanted, { id: object.id, nulls: [], ignore, quantities })
    .filter(({ change }) => change === 'removed')
    .map(({ path }) => path);
}

function highest(live: JsonObject, of: { path: Path; above: Path; owned: ReadonlySet<string> }): Path {
  let best = of.path;
  for (let length = of.path.length - 1; length >= of.above.length; length -= 1) {
    const path = of.path.slice(0, length);
    const value = valueAt(live, path);
    const all = value === undefined ? [] : leaves(value, path);
    if (!all.every((leaf) => isOwned(leaf, of.owned))) break;
    best = path;
  }
  return best;
}

/** A list's element is owned as a whole. */
function isOwned(leaf: Path, owned: ReadonlySet<string>): boolean {
  return leaf.some((_, index) => owned.has(pointerOf(leaf.slice(0, index + 1))));
}

/** Of metadata, labels and annotations: a finalizer or an owner that is taken away is somebody's clean-up that never comes. */
function isComparable(path: Path): boolean {
  const [top, second] = path;
  if (top === 'status' || top === 'apiVersion' || top === 'kind') return false;
  if (path.some((segment) => RECORDS.has(segment))) return false;
  return top !== 'metadata' || second === 'labels' || second === 'annotations';
}

function withoutInner(paths: readonly Path[]): Path[] {
  const unique = [...new Map(paths.map((path) => [pointerOf(path), path])).values()];
  return unique.filter((path) => !unique.some((other) => other !== path && isWithin(path, other)));
}

async function withoutDefaults(look: Look, paths: readonly Path[]): Promise<readonly Path[] | Moved> {
  const together = await tryRemoval(look, paths);
  if (together === MOVED) return MOVED;
  if (together !== REFUSED) return together;
  if (paths.length === 1) return paths;
  const kept: Path[] = [];
  for (const path of paths.slice(0, MAX_SINGLE_TRIES)) {
    const alone = await tryRemoval(look, [path]);
    if (alone === MOVED) return MOVED;
    // What cannot be taken away by itself was put in all the same.
    if (alone === REFUSED || alone.length > 0) kept.push(path);
  }
  return [...kept, ...paths.slice(MAX_SINGLE_TRIES)];
}

/** The paths that are gone, or have another value, when all of them are taken away. */
async function tryRemoval(look: Look, paths: readonly Path[]): Promise<readonly Path[] | Moved | typeof REFUSED> {
  look.call.onDryRun?.();
  try {
    const result = await removePaths(look, look.live, { paths, dryRun: true });
    return paths.filter((path) => {
      const twin = twinPath(look.live, result, path);
      return twin === undefined || !isDeepStrictEqual(valueAt(result, twin), valueAt(look.live, path));
    });
  } catch (error) {
    const refusal = refusalOf(error, look.object, look.live);
    if (refusal === undefined) throw error;
    if (refusal.kind === 'conflict' || refusal.kind === 'waiting') return MOVED;
    // Who may not write at all, may not write one by one.
    return refusal.kind === 'invalid' || refusal.kind === 'immutable' ? REFUSED : paths;
  }
}

/** Takes paths out of one version of the live object (RFC 6902); the server answers 409 when it is another by now. */
export async function removePaths(
  look: Pick<Look, 'client' | 'object' | 'resource' | 'call'>,
  live: LiveObject,
  what: { readonly paths: readonly Path[]; readonly dryRun?: boolean },
): Promise<LiveObject> {
  const { namespace, name } = look.object.id;
  const { resourceVersion } = (live as KubeObject).metadata;
  const body = [
    { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
    ...removalOrder(what.paths).map((path) => ({ op: 'remove', path: pointerOf(path) })),
  ];
  const options = { fieldManager: FIELD_MANAGER, dryRun: what.dryRun, ...limits(look.call) };
  return look.client.patch<LiveObject>(look.resource, { namespace, name }, { type: 'json', body }, options);
}
