import type { Complaint } from '../kube/index.ts';
import { InvalidError, isKubeError, KubeError, NotFoundError } from '../kube/index.ts';
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
  const message = maskMessage(error, object, live);
  switch (error.code) {
    case 'Conflict':
    case 'AlreadyExists':
    case 'Gone':
      return { kind: 'conflict', message };
    case 'NotFound':
      return { kind: isNamespaceOrKind(error) ? 'waiting' : 'conflict', message };
    case 'Forbidden':
      return { kind: error.causes.includes('NamespaceTerminating') ? 'waiting' : 'denied', message };
    case 'Invalid':
      return invalid(error, message);
    case 'Server':
      return ofServer(error, message);
    default:
      return undefined;
  }
}

function isNamespaceOrKind(error: KubeError): boolean {
  return error instanceof NotFoundError && (error.notServed || error.message.includes('namespaces "'));
}

function invalid(error: KubeError, message: string): Refusal {
  if (error.message.includes('does not support dry run')) return { kind: 'no-dry-run', message };
  if (TYPED.test(error.message)) return { kind: 'not-appliable', message };
  if (error instanceof InvalidError && (error.status === 415 || error.status === 405)) {
    return { kind: 'not-appliable', message };
  }
  const { complaints } = error;
  // A uid that differs is another object under the same name.
  if (complaints.some(({ field }) => field === 'metadata.uid')) return { kind: 'conflict', message };
  if (complaints.some(isImmutable) || (complaints.length === 0 && IMMUTABLE.test(error.message))) {
    return { kind: 'immutable', message };
  }
  const fields = complaints.flatMap(({ field }) => field ?? []);
  return fields.length > 0 ? { kind: 'invalid', message, fields } : { kind: 'denied', message };
}

function isImmutable(complaint: Complaint): boolean {
  return IMMUTABLE.test(complaint.text ?? '');
}

function ofServer(error: KubeError, message: string): Refusal | undefined {
  if (TYPED.test(error.message)) return { kind: 'not-appliable', message };
  return WEBHOOK.test(error.message) ? { kind: 'denied', message } : undefined;
}
