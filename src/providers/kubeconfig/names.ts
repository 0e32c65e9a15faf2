import { basename, extname } from 'node:path';
import { clusterName } from '../../runtime/index.ts';
import type { ClusterName } from '../../runtime/index.ts';

const EXTENSIONS = ['.yaml', '.yml', '.json', '.kubeconfig', '.conf'];
/** What a cluster's name must not hold: all but printable ASCII, what separates its parts, and the escape itself. */
const UNSAFE = /[^\x21-\x7e]|[#/+%]/gu;
/** Kubernetes documentation, "Labels and Selectors", syntax of values. */
const MAX_LABEL_VALUE = 63;

/** A file's name may be longer than a cluster's once it is escaped. */
const MAX_PLACEHOLDER = 253;

/** The file's name without its extension. */
export function stemOf(file: string): string {
  const extension = extname(file);
  return basename(file, EXTENSIONS.includes(extension) ? extension : '');
}

/** `stem+context`, always: a context that is added or removed must not rename another. Throws InvalidClusterNameError when it is too long. */
export function contextClusterName(file: string, context: string): ClusterName {
  return clusterName(`${escaped(stemOf(file))}+${escaped(context)}`);
}

/** Stands for a file that never gave a context, so that its trouble is seen. */
export function fileClusterName(file: string): ClusterName {
  return clusterName(escaped(stemOf(file)).slice(0, MAX_PLACEHOLDER));
}

/** Injective: two texts never give one name. */
function escaped(text: string): string {
  return text.replaceAll(UNSAFE, (character) => encodeURIComponent(character.isWellFormed() ? character : '\ufffd'));
}

/** The nearest valid label value, for people who select by file or context. */
export function labelValue(text: string): string {
  const safe = text.replaceAll(/[^-A-Za-z0-9_.]/g, '-').slice(0, MAX_LABEL_VALUE);
  return safe.replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '');
}
