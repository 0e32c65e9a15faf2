/**
 * Reads `metadata.managedFields` (KEP-555, server-side apply): who wrote which field. What is not proven there is not
 * told: nobody removed a field, as far as this file knows, and a field that nobody owns has no author.
 */
import type { KubeObject, ManagedFieldsEntry } from '../kube/index.ts';
import { isKnownController } from './known-controllers.ts';
import { elementKeys, ownership } from './owned-fields.ts';
import type { FieldSet, Ownership } from './owned-fields.ts';
import { childOf, isMapOrList } from './owned-fields.ts';
import type { Author, Path } from './types.ts';

/**
 * Names that stand for nobody: the server books on `before-first-apply` what was there before anyone was tracked, and on
 * `unknown` what came from clients that did not say who they are.
 */
const NOBODY: ReadonlySet<string> = new Set(['', 'unknown', 'before-first-apply']);

/** An entry that counts, and how it owns a path. */
interface Owner {
  readonly entry: ManagedFieldsEntry;
  readonly owned: Ownership;
}

/** Whether the server keeps managedFields of this object; without them nothing here knows anything. */
export function hasManagedFields(live: KubeObject): boolean {
  return (live.metadata.managedFields?.length ?? 0) > 0;
}

/** Entries that say something about what the manifest sets: all but those of the status subresource; `scale` counts. */
export function specEntries(live: KubeObject): readonly ManagedFieldsEntry[] {
  return (live.metadata.managedFields ?? []).filter(({ subresource }) => subresource !== 'status');
}

/** All managers that own the field, as such or because they own what it is an inseparable part of (an atomic list). */
export function ownersOf(live: KubeObject, path: Path): Author[] {
  return exactOwners(live, path).map(({ entry }) => authorFrom(entry));
}

/** All managers that own the field or something below it. */
export function ownersWithin(live: KubeObject, path: Path): Author[] {
  return owners(live, path).map(({ entry }) => authorFrom(entry));
}

/**
 * Who, other than Helm, wrote the field: the newest entry that owns it, or, where nobody owns a map or list itself, something
 * below it. undefined where that is not proven: Helm owns it as well, two own it since the same second, or nobody does.
 */
export function authorOf(live: KubeObject, path: Path, helmManagers: ReadonlySet<string>): Author | undefined {
  const exact = exactOwners(live, path);
  if (exact.length > 0) {
    return exact.some(({ entry }) => isHelms(entry, helmManagers))
      ? undefined
      : newest(exact.map(({ entry }) => entry));
  }
  const below = owners(live, path).map(({ entry }) => entry);
  return newest(below.filter((entry) => !isHelms(entry, helmManagers)));
}

/**
 * Managers other than Helm's that own one of the fields or something below it, sorted: their edits can change the field
 * without touching Helm's entries, so their entries belong into the object's mark.
 */
export function foreignWatch(live: KubeObject, paths: readonly Path[], helmManagers: ReadonlySet<string>): string[] {
  const names = new Set<string>();
  for (const entry of specEntries(live)) {
    const { manager = '' } = entry;
    if (helmManagers.has(manager) || names.has(manager)) continue;
    if (paths.some((path) => ownership(fieldsOf(entry), live, path) !== undefined)) names.add(manager);
  }
  return [...names].sort();
}

/** Whether a server-side apply of this manager owns the field, or something below it: leaving it out of the next apply removes it. */
export function ownedByApply(live: KubeObject, path: Path, manager: string): boolean {
  return specEntries(live).some(
    (entry) =>
      entry.manager === manager && entry.operation === 'Apply' && ownership(fieldsOf(entry), live, path) !== undefined,
  );
}

/**
 * Fields that only managers own who are neither Helm's nor a part of Kubernetes (known-controllers.ts), nor write through a
 * subresource: what was put in by hand. Leaves, and list elements that were put in whole, as one path each.
 */
export function ownedOnlyByUnknown(live: KubeObject, helmManagers: ReadonlySet<string>): Path[] {
  const all = live.metadata.managedFields ?? [];
  const isUnknown = (entry: ManagedFieldsEntry): boolean =>
    entry.subresource === undefined && !isHelms(entry, helmManagers) && !isKnownController(entry.manager ?? '');
  const others = all.filter((entry) => !isUnknown(entry));
  const found = new Map<string, Path>();
  for (const entry of all) {
    if (!isUnknown(entry)) continue;
    for (const path of handPaths({ live, all, others }, { node: fieldsOf(entry), value: live, path: [] })) {
      found.set(JSON.stringify(path), path);
    }
  }
  return [...found.values()];
}

interface Entries {
  readonly live: KubeObject;
  readonly all: readonly ManagedFieldsEntry[];
  /** Whose ownership makes a field more than something put in by hand. */
  readonly others: readonly ManagedFieldsEntry[];
}

interface Place {
  readonly node: FieldSet;
  readonly value: unknown;
  readonly path: Path;
}

function handPaths(entries: Entries, { node, value, path }: Place): Path[] {
  const keys = Object.keys(node).filter((key) => key !== '.');
  if (keys.length === 0) return path.length > 0 && isUnshared(entries, path) ? [path] : [];
  const isElement = typeof path.at(-1) === 'number';
  if (isElement && node['.'] !== undefined && isUnshared(entries, path)) return [path];
  return elementKeys(node, value).flatMap(([segment, inner]) =>
    handPaths(entries, { node: inner, value: childOf(value, segment), path: [...path, segment] }),
  );
}

/** Nobody else owns it, nor anything below it. An owner of the empty map above it does not own what was put in later. */
function isUnshared({ live, all, others }: Entries, path: Path): boolean {
  const deepest = exact(ownersAmong(live, all, path));
  return (
    !deepest.some(({ entry }) => others.includes(entry)) &&
    !others.some((entry) => ownership(fieldsOf(entry), live, path)?.how === 'below')
  );
}

function exactOwners(live: KubeObject, path: Path): Owner[] {
  return exact(owners(live, path));
}

function owners(live: KubeObject, path: Path): Owner[] {
  return ownersAmong(live, specEntries(live), path);
}

function ownersAmong(live: KubeObject, entries: readonly ManagedFieldsEntry[], path: Path): Owner[] {
  const found = entries.flatMap((entry) => {
    const owned = ownership(fieldsOf(entry), live, path);
    return owned === undefined ? [] : [{ entry, owned }];
  });
  // A leaf above the path is either atomic, then everyone's leaf is, or a map that was empty when it was written.
  const depth = Math.max(0, ...found.map(({ owned }) => owned.depth));
  return found.filter(({ owned }) => owned.depth === depth);
}

function exact(found: readonly Owner[]): Owner[] {
  return found.filter(({ owned }) => owned.how !== 'below');
}

function newest(entries: readonly ManagedFieldsEntry[]): Author | undefined {
  const named = entries.filter(({ manager = '' }) => !NOBODY.has(manager));
  const [first, second] = named.toSorted((one, other) => timeOf(other) - timeOf(one));
  if (first === undefined) return undefined;
  const isTie = second !== undefined && second.manager !== first.manager && timeOf(second) === timeOf(first);
  return isTie ? undefined : authorFrom(first);
}

/** Milliseconds; an entry without a time is older than any with one. */
function timeOf({ time }: ManagedFieldsEntry): number {
  return time === undefined ? 0 : Date.parse(time);
}

function authorFrom({ manager = '', operation = 'Update', time, subresource }: ManagedFieldsEntry): Author {
  return { manager, operation, ...(time !== undefined && { time }), ...(subresource !== undefined && { subresource }) };
}

function isHelms({ manager = '' }: ManagedFieldsEntry, helmManagers: ReadonlySet<string>): boolean {
  return helmManagers.has(manager);
}

function fieldsOf(entry: ManagedFieldsEntry): FieldSet {
  const { fieldsV1 } = entry;
  return fieldsV1 !== undefined && isMapOrList(fieldsV1) ? fieldsV1 : {};
}
