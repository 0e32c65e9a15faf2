import { HelmError, isHelmError } from '../errors.ts';
import type { StoredContent } from '../types.ts';
import { isObject, parseValues } from '../values-yaml.ts';
import type { JsonObject, JsonValue } from '../values-yaml.ts';
import { interpretRecord } from './record.ts';
import type { RawRecord } from './record.ts';

/** A line that begins a document, as the reader behind Helm's client takes it (k8s.io/apimachinery, util/yaml): what stands before it keeps its last line break. */
const SEPARATOR = /^---[^\S\n]*(?:#[^\n]*)?(?:\n|$)/m;

const CRD_FILE = /^crds\/.*\.(ya?ml|json)$/;

/** What a raw record says that a release consists of. Throws RecordInvalid that names the document, never its text. */
export function contentOf(
  raw: RawRecord,
  of: { readonly recordUid: string; readonly recordVersion: string },
): StoredContent {
  const record = interpretRecord(raw);
  return {
    ...of,
    revision: record.version,
    applyMethod: record.applyMethod,
    size: record.manifest.length,
    documents: parseDocuments(record.manifest, 'the stored manifest'),
    crds: () => crdFiles(raw).flatMap(({ name, text }) => parseDocuments(text, name)),
  };
}

/** A manifest's documents, as Helm's YAML reads them; empty ones are none. */
function parseDocuments(manifest: string, what: string): JsonObject[] {
  return manifest.split(SEPARATOR).flatMap((text, index) => {
    const document = parseDocument(text, `document ${index + 1} of ${what}`);
    return Object.keys(document).length === 0 ? [] : [document];
  });
}

function parseDocument(text: string, what: string): JsonObject {
  try {
    return parseValues(text);
  } catch (error) {
    if (!isHelmError(error, 'ValuesInvalid')) throw error;
    throw new HelmError(
      'RecordInvalid',
      `${what} cannot be read as a YAML map`,
      error.line === undefined ? {} : { line: error.line },
    );
  }
}

/** The chart's own crds/; those of its dependencies are not in the record. */
function crdFiles(raw: RawRecord): { name: string; text: string }[] {
  const chart = raw['chart'];
  const files = isObject(chart ?? null) ? (chart as JsonObject)['files'] : undefined;
  return (Array.isArray(files) ? files : []).flatMap((file: JsonValue) => {
    if (!isObject(file)) return [];
    const { name, data } = file;
    if (typeof name !== 'string' || typeof data !== 'string' || !CRD_FILE.test(name)) return [];
    return [{ name, text: Buffer.from(data, 'base64').toString('utf8') }];
  });
}
