/**
 * FieldsV1, the set of fields of one manager (KEP-555; k8s.io/structured-merge-diff, fieldpath): a tree whose keys are
 * `f:name` (a map's key), `k:{"key":"value"}` (a list's element by its keys), `v:value` (a set's element), `i:0` (by
 * position), and `.` for the node itself. A node without keys is a leaf: owned, and everything in it where it is atomic.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Path } from './types.ts';

export type FieldSet = Readonly<Record<string, unknown>>;

/** How a set has a path. `depth`: how many segments of the path the set has. */
export interface Ownership {
  /** `self`: the path is in the set. `above`: a leaf on the way to it is. `below`: only something further down is. */
  readonly how: 'self' | 'above' | 'below';
  readonly depth: number;
}

/** Whether and how a set has a path into the live object, by whose list elements the set's keys are resolved. */
export function ownership(fields: FieldSet, live: unknown, path: Path): Ownership | undefined {
  let node = fields;
  let value: unknown = live;
  for (const [depth, segment] of path.entries()) {
    if (depth > 0 && isLeaf(node)) return { how: 'above', depth };
    const inner = step(node, value, segment);
    if (inner === undefined) return undefined;
    node = inner;
    value = childOf(value, segment);
  }
  if (path.length === 0 && isLeaf(node)) return undefined;
  return { how: isLeaf(node) || node['.'] !== undefined ? 'self' : 'below', depth: path.length };
}

/** A set's children that are in the live value, each with its segment. */
export function elementKeys(node: FieldSet, value: unknown): [string | number, FieldSet][] {
  return Object.keys(node).flatMap((key): [string | number, FieldSet][] => {
    const inner = node[key];
    const segment = key === '.' ? undefined : segmentOf(key, value);
    return segment === undefined || !isMapOrList(inner) ? [] : [[segment, inner]];
  });
}

export function childOf(value: unknown, segment: string | number): unknown {
  if (Array.isArray(value)) return typeof segment === 'number' ? (value[segment] as unknown) : undefined;
  return isMapOrList(value) && Object.hasOwn(value, segment) ? value[segment] : undefined;
}

export function isMapOrList(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isLeaf(node: FieldSet): boolean {
  for (const _ in node) return false;
  return true;
}

function step(node: FieldSet, value: unknown, segment: string | number): FieldSet | undefined {
  if (typeof segment === 'string') return fieldSet(node[`f:${segment}`]);
  const element = childOf(value, segment);
  for (const key of Object.keys(node)) {
    if (names(key, element, segment)) return fieldSet(node[key]);
  }
  return undefined;
}

function segmentOf(key: string, value: unknown): string | number | undefined {
  if (key.startsWith('f:')) {
    const field = key.slice(2);
    return childOf(value, field) === undefined ? undefined : field;
  }
  if (!Array.isArray(value)) return undefined;
  const index = value.findIndex((element: unknown, position) => names(key, element, position));
  return index === -1 ? undefined : index;
}

/** Whether a key of a list's node is the element's. */
function names(key: string, element: unknown, index: number): boolean {
  const text = key.slice(2);
  switch (key.slice(0, 2)) {
    case 'k:': {
      const keys = parsed(text);
      if (!isMapOrList(keys) || !isMapOrList(element)) return false;
      return Object.keys(keys).every((name) => isDeepStrictEqual(element[name], keys[name]));
    }
    case 'v:':
      return isDeepStrictEqual(element, parsed(text));
    case 'i:':
      return Number(text) === index;
    default:
      return false;
  }
}

function fieldSet(node: unknown): FieldSet | undefined {
  return isMapOrList(node) ? node : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // Not what a server writes: then it names nothing.
    return undefined;
  }
}
