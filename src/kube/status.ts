import {
  AlreadyExistsError,
  ConflictError,
  ForbiddenError,
  GoneError,
  InvalidError,
  NotFoundError,
  ServerError,
  TimedOutError,
  TooManyRequestsError,
  UnauthorizedError,
} from './errors.ts';
import type { Complaint, KubeError, KubeErrorDetails } from './errors.ts';

/** metav1.Status, as far as it is read. */
export interface Status {
  readonly kind?: string;
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: {
    readonly name?: string;
    readonly retryAfterSeconds?: number;
    readonly causes?: readonly { readonly reason?: string; readonly field?: string; readonly message?: string }[];
  };
}

/** What was asked, for messages. */
export interface Asked {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
}

/** Server messages can quote whole objects; a log line and a condition cannot hold them. */
const MAX_MESSAGE_CHARS = 1024;

/** What a complaint says after the value that it quotes, and a few more of them than anyone reads. */
const MAX_COMPLAINT_CHARS = 300;
const MAX_COMPLAINTS = 10;

/** Waits beyond this are not believed: a proxy's clock or a typing error would silence a cluster. */
const MAX_RETRY_AFTER_MS = 300_000;

/** The error for an HTTP answer of 400 and above. `body` is the answer's text, a Status or not. */
export function errorFromResponse(
  asked: Asked,
  answer: { readonly status: number; readonly body: string; readonly retryAfter?: string | undefined },
): KubeError {
  const status = parseStatus(answer.body);
  const told = status?.message ?? plain(answer.body);
  return build(asked, {
    code: answer.status,
    status,
    message: told,
    retryAfterMs: parseRetryAfter(answer.retryAfter) ?? secondsOf(status),
  });
}

/** The error for the Status in a watch's ERROR event. */
export function errorFromStatus(asked: Asked, status: Status): KubeError {
  return build(asked, {
    code: status.code ?? 500,
    status,
    message: status.message ?? '',
    retryAfterMs: secondsOf(status),
  });
}

/** Milliseconds of a Retry-After header: seconds, or an HTTP date (RFC 9110 §10.2.3). */
export function parseRetryAfter(header: string | undefined, now = Date.now()): number | undefined {
  if (header === undefined || header === '') return undefined;
  const seconds = Number(header);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - now;
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS) : undefined;
}

function build(
  asked: Asked,
  told: { code: number; status: Status | undefined; message: string; retryAfterMs: number | undefined },
): KubeError {
  const { code, status } = told;
  const details: KubeErrorDetails = {
    status: code,
    reason: status?.reason,
    causes: causesOf(status),
    complaints: complaintsOf(status),
    retryAfterMs: told.retryAfterMs,
  };
  const text = `${asked.method} ${asked.path}: ${safeMessage(asked, told)} (${status?.reason ?? 'HTTP'} ${code})`;
  if (code === 404) return new NotFoundError(text, { ...details, notServed: !status?.details?.name });
  const Class = code === 409 && status?.reason === 'AlreadyExists' ? AlreadyExistsError : classOf(code);
  return new Class(text, details);
}

function causesOf(status: Status | undefined): string[] {
  return (status?.details?.causes ?? []).flatMap((cause) => cause.reason ?? []);
}

function complaintsOf(status: Status | undefined): Complaint[] {
  return (status?.details?.causes ?? [])
    .slice(0, MAX_COMPLAINTS)
    .map(({ reason, field, message }) => ({ reason, field, text: message?.slice(-MAX_COMPLAINT_CHARS) }));
}

type ErrorClass = new (message: string, details: KubeErrorDetails) => KubeError;

function classOf(code: number): ErrorClass {
  return CLASSES[code] ?? (code >= 500 ? ServerError : InvalidError);
}

const CLASSES: Readonly<Record<number, ErrorClass>> = {
  401: UnauthorizedError,
  403: ForbiddenError,
  408: TimedOutError,
  409: ConflictError,
  410: GoneError,
  429: TooManyRequestsError,
  504: TimedOutError,
};

/** A refusal to decode quotes the body that was sent, and a Secret's body is not for messages. */
function safeMessage(asked: Asked, told: { code: number; message: string }): string {
  if (told.code === 400 && /\/secrets(\/|$)/.test(asked.path)) return 'the server could not take the object';
  if (told.message === '') return 'no message';
  return told.message.length <= MAX_MESSAGE_CHARS ? told.message : `${told.message.slice(0, MAX_MESSAGE_CHARS)}…`;
}

function parseStatus(body: string): Status | undefined {
  if (!body.startsWith('{')) return undefined;
  try {
    const parsed = JSON.parse(body) as Status;
    return parsed.kind === 'Status' ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** Answers of proxies are HTML pages: their first words are enough. */
function plain(body: string): string {
  return body
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 200);
}

function secondsOf(status: Status | undefined): number | undefined {
  const seconds = status?.details?.retryAfterSeconds;
  return seconds === undefined ? undefined : Math.min(seconds * 1000, MAX_RETRY_AFTER_MS);
}
