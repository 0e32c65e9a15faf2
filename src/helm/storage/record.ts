import { promisify } from 'node:util';
import { gunzip, gzip, constants } from 'node:zlib';
import { HelmError } from '../errors.ts';
import type { ReleaseStatus } from '../types.ts';
import { isObject } from '../values-yaml.ts';
import type { JsonObject, JsonValue } from '../values-yaml.ts';

/** A release's record as Helm 3 and 4 store it, decoded. Holds values and manifests: never logged. */
export interface ReleaseRecord {
  readonly name: string;
  readonly namespace: string;
  /** The revision. */
  readonly version: number;
  readonly info: ReleaseInfo;
  readonly chart: { readonly metadata: ChartMetadata };
  /** The user-supplied values; {} for none. */
  readonly config: JsonObject;
  /** YAML documents: what was rendered, without hooks and crds/. */
  readonly manifest: string;
  readonly hooks: readonly ReleaseHook[];
  /** Helm 3 says nothing, and always means the client's side. */
  readonly applyMethod: 'server' | 'client';
}

export interface ReleaseInfo {
  readonly status: ReleaseStatus;
  readonly description: string;
  /** RFC 3339; '' where Helm stored none. */
  readonly firstDeployed: string;
  readonly lastDeployed: string;
  readonly deleted: string;
  readonly notes: string;
}

export interface ChartMetadata {
  readonly name: string;
  readonly version: string;
  readonly appVersion: string;
}

export interface ReleaseHook {
  readonly name: string;
  readonly kind: string;
  readonly manifest: string;
  /** pre-install, test … */
  readonly events: readonly string[];
}

/** A record as the JSON that Helm wrote: for changing a part of it and leaving the rest. */
export type RawRecord = JsonObject;

/** Decompressed bytes. A Secret holds 1 MiB, and charts compress tenfold; what unfolds further is no release. */
const MAX_RECORD = 128 * 1024 * 1024;

/** Which gzip began with these bytes; records from before Helm compressed them do not. */
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b, 0x08]);

/**
 * Decodes `data.release` of a release's Secret: base64, as every value of a Secret, of base64 of gzip of JSON
 * (helm, pkg/storage/driver/util.go). Rejects with RecordInvalid.
 */
export async function decodeRawRecord(data: string): Promise<RawRecord> {
  try {
    const bytes = Buffer.from(Buffer.from(data, 'base64').toString('latin1'), 'base64');
    const compressed = bytes.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC);
    const json = compressed ? await promisify(gunzip)(bytes, { maxOutputLength: MAX_RECORD }) : bytes;
    const record = JSON.parse(json.toString('utf8')) as JsonValue;
    if (isObject(record)) return record;
  } catch (error) {
    // A JSON.parse error quotes the record.
    const what =
      error instanceof SyntaxError ? 'it is no JSON' : error instanceof Error ? error.message : String(error);
    throw new HelmError('RecordInvalid', `a release's record cannot be decoded: ${what}`);
  }
  throw new HelmError('RecordInvalid', "a release's record cannot be decoded: it is no object");
}

/** The reverse of `decodeRawRecord`, compressed as Helm does. */
export async function encodeRawRecord(record: RawRecord): Promise<string> {
  const compressed = await promisify(gzip)(JSON.stringify(record), { level: constants.Z_BEST_COMPRESSION });
  return Buffer.from(compressed.toString('base64'), 'latin1').toString('base64');
}

/** Decodes `data.release` of a release's Secret. Rejects with RecordInvalid. */
export async function decodeRecord(data: string): Promise<ReleaseRecord> {
  return interpretRecord(await decodeRawRecord(data));
}

/** What a raw record says. Fields that are missing or of another type are empty: Helm leaves out what is. */
export function interpretRecord(raw: RawRecord): ReleaseRecord {
  const info = object(raw['info']);
  const metadata = object(object(raw['chart'])['metadata']);
  return {
    name: text(raw['name']),
    namespace: text(raw['namespace']),
    version: typeof raw['version'] === 'number' ? raw['version'] : 0,
    info: {
      status: releaseStatus(text(info['status'])),
      description: text(info['description']),
      firstDeployed: text(info['first_deployed']),
      lastDeployed: text(info['last_deployed']),
      deleted: text(info['deleted']),
      notes: text(info['notes']),
    },
    chart: {
      metadata: {
        name: text(metadata['name']),
        version: text(metadata['version']),
        appVersion: text(metadata['appVersion']),
      },
    },
    config: object(raw['config']),
    manifest: text(raw['manifest']),
    hooks: list(raw['hooks']).map(hookOf),
    applyMethod: raw['apply_method'] === 'ssa' ? 'server' : 'client',
  };
}

/** A copy with status `failed` and the given description, as Helm leaves behind what it could not finish. */
export function failedRecord(raw: RawRecord, why: string): RawRecord {
  return { ...raw, info: { ...object(raw['info']), status: 'failed', description: why } };
}

const STATUSES: ReadonlySet<string> = new Set<ReleaseStatus>([
  'unknown',
  'deployed',
  'uninstalled',
  'superseded',
  'failed',
  'uninstalling',
  'pending-install',
  'pending-upgrade',
  'pending-rollback',
]);

/** Helm's word for a status; `unknown` for any other. */
export function releaseStatus(word: string): ReleaseStatus {
  return isStatus(word) ? word : 'unknown';
}

function isStatus(word: string): word is ReleaseStatus {
  return STATUSES.has(word);
}

function hookOf(value: JsonValue): ReleaseHook {
  const hook = object(value);
  return {
    name: text(hook['name']),
    kind: text(hook['kind']),
    manifest: text(hook['manifest']),
    events: list(hook['events']).map(text),
  };
}

function object(value: JsonValue | undefined): JsonObject {
  return value !== undefined && isObject(value) ? value : {};
}

function list(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}
