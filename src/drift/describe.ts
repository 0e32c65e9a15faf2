/** Texts of differences for status, terminals and Events: masked where they are a Secret's, and bounded. */
import { pointerOf } from './pointer.ts';
import type { FieldDrift, JsonValue, ObjectId } from './types.ts';

/** One differing field as people may see it. */
export interface ReportedField {
  /** JSON pointer. */
  readonly path: string;
  readonly change: FieldDrift['change'];
  readonly wanted?: string;
  readonly live?: string;
  readonly manager?: string;
  readonly operation?: string;
  readonly time?: string;
}

/** Characters of one value: a status must stay small, and who needs more has the cluster. */
const MAX_VALUE_CHARS = 256;
/** Characters of a path: keys can be long. */
const MAX_PATH_CHARS = 512;
/** Instead of a value that is not to be seen; neither its length nor a hash of it is told. */
export const MASK = '***';
/** Holds the whole object once more. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** At most `limit` fields, in the order of their paths, and how many more there are. */
export function describeFields(
  id: ObjectId,
  fields: readonly FieldDrift[],
  limit: number,
): { readonly fields: readonly ReportedField[]; readonly more: number } {
  const described = fields
    .map((field) => describeField(id, field))
    .sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  return { fields: described.slice(0, limit), more: Math.max(0, described.length - limit) };
}

/** Must the values at this path not be seen? */
export function isMasked(id: ObjectId, path: FieldDrift['path']): boolean {
  if (path.includes(LAST_APPLIED)) return true;
  if (id.group !== '' || id.kind !== 'Secret') return false;
  const [first, second] = path;
  if (first === 'kind' || first === 'apiVersion' || first === 'type' || first === 'immutable') return false;
  return first !== 'metadata' || second === undefined || second === 'annotations';
}

function describeField(id: ObjectId, field: FieldDrift): ReportedField {
  const masked = isMasked(id, field.path);
  const { author } = field;
  return {
    path: cut(pointerOf(field.path), MAX_PATH_CHARS),
    change: field.change,
    ...(field.wanted !== undefined && { wanted: masked ? MASK : textOf(field.wanted) }),
    ...(field.live !== undefined && { live: masked ? MASK : textOf(field.live) }),
    ...(author !== undefined && {
      manager: author.manager,
      operation: author.operation,
      ...(author.time !== undefined && { time: author.time }),
    }),
  };
}

/** Maps may hold the annotation that repeats a whole object. */
function textOf(value: JsonValue): string {
  const json = JSON.stringify(value, (key, inner: JsonValue) => (key === LAST_APPLIED ? MASK : inner));
  return cut(json, MAX_VALUE_CHARS);
}

function cut(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max - 1)}…` : text;
}
