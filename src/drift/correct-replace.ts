import { correctionFor } from './correct-refused.ts';
import { matching } from './document.ts';
import { FIELD_MANAGER, limits } from './dry-run.ts';
import { insertAt, placeFor, removalOrder, removeAt, setAt } from './edits.ts';
import type { Look } from './look.ts';
import type { Refusal } from './refusal.ts';
import { refusalOf } from './refusal.ts';
import { valueAt } from './pointer.ts';
import { isObject, twinPath } from './twin.ts';
import { complainedPath } from './typed-path.ts';
import type { Correction, FieldDrift, JsonObject, JsonValue, LiveObject, Path } from './types.ts';

/** How far around a field that validation names everything is made as in the manifest: the field's own map, and one above. */
const MAX_LEVELS = 3;

/** Shorter paths (`/spec`) are half of the object: to replace those would undo what others rightly own. */
const MIN_SUBTREE_DEPTH = 2;

export interface Replacing {
  readonly fields: readonly FieldDrift[];
  /** Into the wanted object: stays as it is live. */
  readonly untouched: readonly Path[];
  /** Why it could not be applied. */
  readonly refusal: Refusal;
}

/**
 * For what server-side apply cannot do: the live object with just the differing fields put right, as a replace (PUT) of the
 * verified version. Where validation refuses the fields together with what others set beside them (a live request above the
 * wanted limit: drift.md §8, scenario 16), the map around the named field is made wholly as in the manifest, then the one
 * above; a dry run says which one does before anything is written.
 */
export async function correctByReplacing(look: Look, replacing: Replacing): Promise<Correction> {
  let last: Refusal = replacing.refusal;
  const named = new Set(last.kind === 'invalid' ? last.fields : []);
  for (let level = 0; level < MAX_LEVELS; level += 1) {
    const target = targetFor(look, replacing, { named: [...named], level });
    if (target === undefined) break;
    const tried = await replace(look, target, true);
    if (tried.refusal === undefined || tried.refusal.kind === 'no-dry-run') return write(look, target);
    last = tried.refusal;
    if (last.kind !== 'invalid') break;
    for (const field of last.fields) named.add(field);
  }
  return correctionFor(last);
}

async function write(look: Look, target: JsonObject): Promise<Correction> {
  const { live, refusal } = await replace(look, target, false);
  return refusal === undefined ? { outcome: 'corrected', live, created: false } : correctionFor(refusal);
}

type Replaced =
  | { readonly live: LiveObject; readonly refusal?: undefined }
  | { readonly live?: undefined; readonly refusal: Refusal };

async function replace(look: Look, target: JsonObject, dryRun: boolean): Promise<Replaced> {
  if (dryRun) look.call.onDryRun?.();
  try {
    const options = { fieldManager: FIELD_MANAGER, dryRun, ...limits(look.call) };
    return { live: await look.client.replace<LiveObject>(look.resource, target as LiveObject, options) };
  } catch (error) {
    const refusal = refusalOf(error, look.object, look.live);
    if (refusal === undefined) throw error;
    return { refusal };
  }
}

/** undefined: there is nothing more to try. */
function targetFor(
  look: Look,
  replacing: Replacing,
  around: { named: readonly string[]; level: number },
): JsonObject | undefined {
  const { live, object } = look;
  const target: JsonObject = structuredClone(live);
  // The server keeps its own record; what is sent would only be compared with it.
  if (isObject(target['metadata'])) delete target['metadata']['managedFields'];
  const subtrees = around.named.flatMap((field) => subtreeOf(look, field, around.level) ?? []);
  if (subtrees.length === 0 && (around.level > 0 || around.named.length > 0)) return undefined;
  putRight(target, look, replacing.fields);
  for (const { path, value } of subtrees) setAt(target, path, structuredClone(value));
  restore(target, look, replacing.untouched);
  return valueAt(target, ['metadata', 'name']) === object.id.name ? target : undefined;
}

/** The differing fields, each by the manifest's value; what was added goes last, so that the paths of the others hold. */
function putRight(target: JsonObject, look: Look, fields: readonly FieldDrift[]): void {
  const { live, object } = look;
  for (const { change, path } of fields) {
    if (change === 'added') continue;
    const wantedPath = change === 'removed' ? path : twinPath(live, object.wanted, path);
    const value = wantedPath === undefined ? undefined : valueAt(object.wanted, wantedPath);
    const place = change === 'changed' ? path : placeFor(object.wanted, target, path);
    if (value === undefined || place === undefined) continue;
    if (change === 'changed') setAt(target, place, structuredClone(value));
    else insertAt(target, place, structuredClone(value));
  }
  const added = fields.filter(({ change }) => change === 'added').map(({ path }) => path);
  for (const path of removalOrder(added)) removeAt(target, path);
}

/** The part of the manifest around a field that the server named, `level` maps above the closest that the manifest has. */
function subtreeOf(look: Look, field: string, level: number): { path: Path; value: JsonValue } | undefined {
  const named = complainedPath(field, look.live);
  const known: { path: Path; value: JsonValue }[] = [];
  for (let length = MIN_SUBTREE_DEPTH; length <= named.length; length += 1) {
    const path = named.slice(0, length);
    const twin = twinPath(look.live, look.object.wanted, path);
    const value = twin === undefined ? undefined : valueAt(look.object.wanted, twin);
    if (value === undefined) break;
    known.push({ path, value });
  }
  return known.at(-1 - level);
}

/** What is not to be touched is as it was, in a replaced subtree, too. */
function restore(target: JsonObject, look: Look, untouched: readonly Path[]): void {
  const { live, object } = look;
  const paths = [
    ...look.ignore.flatMap((pattern) => matching(live, pattern)),
    ...untouched.map((path) => twinPath(object.wanted, live, path)).filter((path) => path !== undefined),
  ];
  for (const path of paths) {
    const value = valueAt(live, path);
    const place = placeFor(live, target, path);
    if (value !== undefined && place !== undefined) setAt(target, place, structuredClone(value));
  }
  const absent = look.ignore
    .flatMap((pattern) => matching(target, pattern))
    .filter((path) => isAbsent(target, live, path));
  for (const path of removalOrder(absent)) removeAt(target, path);
}

function isAbsent(target: JsonObject, live: LiveObject, path: Path): boolean {
  const twin = twinPath(target, live, path);
  return twin === undefined || valueAt(live, twin) === undefined;
}
