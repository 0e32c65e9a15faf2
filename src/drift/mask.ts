import type { KubeError } from '../kube/index.ts';
import { isObject } from './twin.ts';
import type { InventoryObject, JsonValue, LiveObject } from './types.ts';

/** What a condition's or status' message can hold for one object. */
const MAX_MESSAGE_CHARS = 512;

/** What stands after the value in a complaint is rarely longer. */
const REASON_CHARS = 100;

/** Shorter values are masked only where they are quoted: masking each `a` would leave no message. */
const MIN_BARE_CHARS = 4;

/**
 * What the server said, bounded. A server quotes the values that it does not like; of a Secret none may get into a status,
 * an event or a log: quoted texts but the object's own name are masked, and so is every value of the Secret wherever it stands.
 */
export function maskMessage(error: KubeError, object: InventoryObject, live?: LiveObject): string {
  const message = withoutRequest(error.message);
  const safe = isSecret(object)
    ? safeForSecret(error, message, maskSecret(message, object, live))
    : told(error, message);
  return safe.length <= MAX_MESSAGE_CHARS ? safe : shorten(safe);
}

/** The reason stands at the end, after the quoted value. */
function shorten(text: string): string {
  const half = Math.floor((MAX_MESSAGE_CHARS - 3) / 2);
  return `${text.slice(0, half)} … ${text.slice(text.length - half)}`;
}

/** Of a message that was cut within a long value, what the server says thereafter. */
function told(error: KubeError, message: string): string {
  if (!message.includes('…') || error.complaints.length === 0) return message;
  const reasons = error.complaints.map(
    ({ field, text }) => `${field ?? 'object'}: …${(text ?? '').slice(-REASON_CHARS)}`,
  );
  return `${reasons.join('; ')} (${error.reason ?? 'HTTP'} ${String(error.status ?? '')})`;
}

/** KubeErrors begin with method and path, which say nothing that the report does not. */
function withoutRequest(message: string): string {
  return message.replace(/^[A-Z]+ \/\S+: /, '');
}

function isSecret(object: InventoryObject): boolean {
  return object.id.group === '' && object.id.kind === 'Secret';
}

/** A message that was cut may end within a value, where it cannot be recognised: then only which fields, and why by name. */
function safeForSecret(error: KubeError, message: string, masked: string): string {
  if (!message.includes('…')) return masked;
  const fields = error.complaints.map(({ reason, field }) => `${field ?? 'object'}: ${reason ?? 'refused'}`);
  return ['refused by the server', ...fields, `(${error.reason ?? 'HTTP'} ${String(error.status ?? '')})`].join(' ');
}

function maskSecret(message: string, object: InventoryObject, live: LiveObject | undefined): string {
  const quoted = message.replace(/"(?:[^"\\]|\\.)*(?:"|$)/g, (text) =>
    text === JSON.stringify(object.id.name) ? text : '"***"',
  );
  const values = [...secretTexts(object.wanted), ...secretTexts(live)].filter((text) => text.length >= MIN_BARE_CHARS);
  // The longest first: a value can be part of another.
  values.sort((one, other) => other.length - one.length);
  return values.reduce((text, value) => text.replaceAll(value, '***'), quoted);
}

/** Values of a Secret in both of their forms, and of its annotations: `last-applied-configuration` holds them all once more. */
function secretTexts(secret: JsonValue | undefined): string[] {
  if (!isObject(secret)) return [];
  const metadata = isObject(secret['metadata']) ? secret['metadata'] : {};
  const data = stringsIn(secret['data']);
  const decoded = data.map((value) => Buffer.from(value, 'base64').toString('utf8'));
  const annotations = isObject(metadata['annotations']) ? metadata['annotations'] : {};
  const told = Object.entries(annotations).filter(([key]) => !key.startsWith('meta.helm.sh/'));
  return [...data, ...decoded, ...stringsIn(secret['stringData']), ...stringsIn(Object.fromEntries(told))];
}

function stringsIn(value: JsonValue | undefined): string[] {
  return isObject(value) ? Object.values(value).filter((entry) => typeof entry === 'string') : [];
}
