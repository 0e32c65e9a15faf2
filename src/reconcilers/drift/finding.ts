/** What is known of an object that is not as it should be: all that is kept of it between passes, and shown of it. */
import type { DriftFieldStatus, DriftObjectStatus } from '../../api/index.ts';
import { describeFields, objectKey } from '../../drift/index.ts';
import type { FieldDrift, ObjectId, Verdict } from '../../drift/index.ts';

/** An object of which nothing could be found out. */
export const UNVERIFIED = 'Unverified';

/** Verdicts that are findings. */
export type Differing = Exclude<Verdict, { state: 'InSync' | 'Excluded' }>;

/** What becomes of the object; docs/drift.md. */
export type Action = 'Reported' | 'Pending' | 'Corrected' | 'Stopped' | 'NeedsRecreation' | 'Refused' | 'Waiting';

export interface Finding {
  readonly key: string;
  readonly id: ObjectId;
  /** As it stands in status.drift.details: texts, bounded, masked where they are a Secret's. */
  readonly status: DriftObjectStatus & { readonly action: Action };
  /** When it is to be looked at again, whatever the tracker says (epoch, milliseconds); undefined: when it stirs. */
  readonly dueAtMs: number | undefined;
  /** The pause until then, where no watch sees the object (out-of-sight.ts); milliseconds. */
  readonly unseenMs?: number;
}

/** Fields of one object in the status. */
const MAX_FIELDS = 10;
/** Characters of a message; the server's own can be long. */
const MAX_MESSAGE = 512;

/** A finding of a verdict; `action` and the time are the caller's. */
export function findingOf(id: ObjectId, verdict: Differing, next: { action: Action; dueAtMs?: number }): Finding {
  const { fields, more } = fieldsOf(id, verdict.state === 'Modified' ? verdict.fields : []);
  const message = verdict.state === 'Foreign' ? `belongs to the release ${verdict.owner}` : undefined;
  return {
    key: objectKey(id),
    id,
    status: {
      ...named(id),
      state: verdict.state,
      action: next.action,
      ...(message !== undefined && { message }),
      ...(fields.length > 0 && { fields: [...fields] }),
      ...(more > 0 && { moreFields: more }),
    },
    dueAtMs: next.dueAtMs,
  };
}

/** An object that could not be looked at. `message` must hold no values. */
export function unverified(id: ObjectId, message: string, dueAtMs: number): Finding {
  const status = { ...named(id), state: UNVERIFIED, action: 'Waiting', message: cut(message) } as const;
  return { key: objectKey(id), id, status, dueAtMs };
}

/** The same finding, of which something else becomes. */
export function becoming(finding: Finding, next: { action: Action; message?: string; dueAtMs?: number }): Finding {
  const { action, message, dueAtMs } = next;
  const status = { ...finding.status, action };
  delete status.message;
  if (message !== undefined) status.message = cut(message);
  return { ...finding, status, dueAtMs };
}

export function drifts({ status }: Finding): boolean {
  return status.state !== UNVERIFIED;
}

/** Equal for two findings of which the second is no news: the same fields, changed by the same managers at the same times. */
export function signatureOf(status: DriftObjectStatus): string {
  const fields = (status.fields ?? []).map(({ path, change, manager, time }) => [path, change, manager, time]);
  return JSON.stringify([status.state, fields, status.moreFields]);
}

/** Of an object in a status, as `objectKey` has it. */
export function keyOfStatus({ apiVersion, kind, namespace, name }: DriftObjectStatus): string {
  const slash = apiVersion.indexOf('/');
  const [group, version] = slash < 0 ? ['', apiVersion] : [apiVersion.slice(0, slash), apiVersion.slice(slash + 1)];
  return objectKey({ group, version, kind, name, ...(namespace !== undefined && { namespace }) });
}

/** `/spec/replicas changed by kubectl-edit`: no values. */
export function fieldText({ path, change, manager }: DriftFieldStatus): string {
  return `${path} ${change}${manager === undefined ? '' : ` by ${manager}`}`;
}

/** `ConfigMap web/settings (/data/mode changed by kubectl-edit)`: no values. `max`: fields named. */
export function objectText(status: DriftObjectStatus, max: number): string {
  const { kind, namespace, name, state, fields = [], moreFields = 0 } = status;
  const where = `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
  if (fields.length === 0) return `${where} (${WORDS[state] ?? state})`;
  const rest = fields.length + moreFields - max;
  const texts = fields.slice(0, max).map(fieldText).join(', ');
  return `${where} (${texts}${rest > 0 ? ` and ${rest} more` : ''})`;
}

/** Names of managers that the fields' owners prove, each once. */
export function managersOf(status: DriftObjectStatus): string[] {
  return [...new Set((status.fields ?? []).flatMap(({ manager }) => (manager === undefined ? [] : [manager])))];
}

const WORDS: Readonly<Record<string, string>> = {
  Missing: 'missing',
  Terminating: 'being deleted',
  Foreign: 'of another release',
  NotServed: 'its kind is not served',
  Unverified: 'could not be read',
};

function named({ group, version, kind, namespace, name }: ObjectId): Omit<DriftObjectStatus, 'state'> {
  const apiVersion = group === '' ? version : `${group}/${version}`;
  return { apiVersion, kind, ...(namespace !== undefined && { namespace }), name };
}

function fieldsOf(id: ObjectId, fields: readonly FieldDrift[]): { fields: readonly DriftFieldStatus[]; more: number } {
  return describeFields(id, fields, MAX_FIELDS);
}

function cut(text: string): string {
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE - 1)}…` : text;
}
