import { hash } from 'node:crypto';
import type { KubeObject, ManagedFieldsEntry } from '../kube/index.ts';
import { isKnownController } from './known-controllers.ts';
import { hasManagedFields, specEntries } from './managed-fields.ts';
import { OPT_OUT_ANNOTATION } from './set-apart.ts';

/** Whose entries are in a mark. */
export interface MarkScope {
  /** Field managers that are Helm. */
  readonly helm: ReadonlySet<string>;
  /** Other managers that own what the manifest sets (a verdict's `watch`). */
  readonly also: readonly string[];
  /** Everybody's but the known controllers': where fields that the manifest does not set count, too. */
  readonly wide: boolean;
}

/** The mark of what is not there; no object has it. */
export const ABSENT = 0;

/** What a number holds without loss, in whole bytes. */
const MARK_BYTES = 6;

/** Between the parts of what is hashed: occurs in no JSON text and no name. */
const SEPARATOR = '\n';

/**
 * A number of 48 bits that changes when somebody may have changed what the manifest sets (DESIGN §5.1): Helm's entries with
 * their times, as the server takes a field out of Helm's set when another manager changes it, and moves the time when the
 * same manager writes another value. Status, and annotations and labels of others, leave it as it is. An object without
 * managedFields has another mark with each version. Never 0.
 */
export function markOf(object: KubeObject, scope: MarkScope): number {
  const { uid = '', deletionTimestamp, annotations, resourceVersion = '' } = object.metadata;
  const parts = [uid, deletionTimestamp === undefined ? 'there' : 'going', annotations?.[OPT_OUT_ANNOTATION] ?? ''];
  if (!hasManagedFields(object)) parts.push(resourceVersion);
  for (const entry of specEntries(object)) if (isInScope(entry, scope)) parts.push(textOf(entry));
  return hash('sha256', parts.join(SEPARATOR), 'buffer').readUIntBE(0, MARK_BYTES) || 1;
}

/**
 * A number of 31 bits that changes when anybody out of scope wrote, status included: times have whole seconds, so a write
 * that leaves no trace in the mark may still be explained by one of theirs.
 */
export function restOf(object: KubeObject, scope: MarkScope): number {
  const others = (object.metadata.managedFields ?? []).filter((entry) => !isMarked(entry, scope));
  return hash('sha256', others.map(textOf).join(SEPARATOR), 'buffer').readUInt32BE(0) >>> 1;
}

/**
 * Whether somebody in scope may write without a trace: whoever wrote in the newest second of all may do so again within
 * it, and entries of the scale subresource have no time at all (seen on 1.35).
 */
export function canWriteUnseen(object: KubeObject, scope: MarkScope): boolean {
  let inScope = '';
  let others = '';
  for (const entry of object.metadata.managedFields ?? []) {
    const { time } = entry;
    if (!isMarked(entry, scope)) others = latest(others, time ?? '');
    else if (time === undefined) return true;
    else inScope = latest(inScope, time);
  }
  return inScope >= others;
}

/** RFC 3339 in UTC, as servers write it, sorts as text. */
function latest(one: string, other: string): string {
  return one > other ? one : other;
}

function isMarked(entry: ManagedFieldsEntry, scope: MarkScope): boolean {
  return entry.subresource !== 'status' && isInScope(entry, scope);
}

function isInScope({ manager = '' }: ManagedFieldsEntry, { helm, also, wide }: MarkScope): boolean {
  return helm.has(manager) || also.includes(manager) || (wide && !isKnownController(manager));
}

function textOf({ manager, operation, apiVersion, time, fieldsV1, subresource }: ManagedFieldsEntry): string {
  return JSON.stringify([manager, operation, apiVersion, time, subresource, fieldsV1]);
}
