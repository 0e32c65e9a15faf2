import type { KubeErrorCode } from '../kube/index.ts';
import { isKubeError, KubeError, NotFoundError } from '../kube/index.ts';
import { maskMessage } from './mask.ts';
import type { InventoryObject, LiveObject } from './types.ts';

/** Why a server does not take an object. Everything that is no refusal (the connection, credentials, patience) is thrown on. */
export type Refusal =
  /** Written by somebody meanwhile, gone, or made anew. */
  | { readonly kind: 'conflict'; readonly message: string }
  /** Its namespace is missing or going, or its kind is not served (any more). */
  | { readonly kind: 'waiting'; readonly message: string }
  /** A list names one key twice, or a value has the wrong type: server-side apply cannot take such a document, while a create or replace may. */
  | { readonly kind: 'not-appliable'; readonly message: string }
  /** A field that cannot be changed. */
  | { readonly kind: 'immutable'; readonly message: string }
  /** A webhook that has side effects: it must not be called for a dry run (API concepts, "Dry-run authorization"). */
  | { readonly kind: 'no-dry-run'; readonly message: string }
  /** Validation: these fields, as the server names them, cannot go together with the rest. */
  | { readonly kind: 'invalid'; readonly message: string; readonly fields: readonly string[] }
  /** Quota, admission, permission. */
  | { readonly kind: 'denied'; readonly message: string };

/**
 * Texts of API machinery before its own writing of a status: 500 with no reason, seen on 1.35. The last one is of a server
 * that does not take a resourceVersion as the condition that an object be not there (dry-run.ts).
 */
const TYPED =
  /failed to create typed patch object|failed to convert new object|unable to convert unstructured|resourceVersion should not be set/;

/** The same for a webhook that does not answer, or is not reachable (500 InternalError). */
const WEBHOOK = /failed calling webhook|failed to call webhook/;

/** Servers (aggregated ones) that take no such patch: method not allowed, unsupported media type. */
const UNTYPED: ReadonlySet<number> = new Set([405, 415]);

/** From the validation of Kubernetes' own kinds: the ways in which it says that a field stays what it was. */
const IMMUTABLE =
  /field is immutable|is immutable|may not (be )?change|cannot (be )?change|can(not| ?not) be (updated|modified)|updates? to .{1,300} (is|are) forbidden|updates? may not change|may only change|is forbidden after creation/i;

/** Whether the server said that the document has fields that its schema does not. */
export function namesUnknownFields(error: unknown): error is KubeError {
  return isKubeError(error, 'Server', 'Invalid') && error.message.includes('field not declared in schema');
}

/** What kind of refusal an error is; undefined: it is none, and is to be thrown on. */
export function refusalOf(error: unknown, object: InventoryObject, live?: LiveObject): Refusal | undefined {
  if (!(error instanceof KubeError)) return undefined;
  const refusal = classify(error);
  return refusal === undefined ? undefined : { ...refusal, message: maskMessage(error, object, live) };
}

/** A refusal before its message is made. */
type Class =
  | { readonly kind: Exclude<Refusal['kind'], 'invalid'> }
  | { readonly kind: 'invalid'; readonly fields: readonly string[] };

function classify(error: KubeError): Class | undefined {
  return TYPED.test(error.message) ? { kind: 'not-appliable' } : CLASSES[error.code]?.(error);
}

const CLASSES: Readonly<Partial<Record<KubeErrorCode, (error: KubeError) => Class | undefined>>> = {
  Conflict: () => ({ kind: 'conflict' }),
  AlreadyExists: () => ({ kind: 'conflict' }),
  Gone: () => ({ kind: 'conflict' }),
  NotFound: (error) => ({ kind: isNamespaceOrKind(error) ? 'waiting' : 'conflict' }),
  Forbidden: ({ causes }) => ({ kind: causes.includes('NamespaceTerminating') ? 'waiting' : 'denied' }),
  Invalid: (error) => (UNTYPED.has(error.status ?? 0) ? { kind: 'not-appliable' } : classifyInvalid(error)),
  Server: ({ message }) => (WEBHOOK.test(message) ? { kind: 'denied' } : undefined),
};

function isNamespaceOrKind(error: KubeError): boolean {
  return error instanceof NotFoundError && (error.notServed || error.message.includes('namespaces "'));
}

function classifyInvalid(error: KubeError): Class {
  if (error.message.includes('does not support dry run')) return { kind: 'no-dry-run' };
  const { complaints } = error;
  // A uid that differs is another object under the same name.
  if (complaints.some(({ field }) => field === 'metadata.uid')) return { kind: 'conflict' };
  if (saysImmutable(error)) return { kind: 'immutable' };
  const fields = complaints.flatMap(({ field }) => field ?? []);
  return fields.length > 0 ? { kind: 'invalid', fields } : { kind: 'denied' };
}

function saysImmutable({ complaints, message }: KubeError): boolean {
  return complaints.length === 0 ? IMMUTABLE.test(message) : complaints.some(({ text = '' }) => IMMUTABLE.test(text));
}
