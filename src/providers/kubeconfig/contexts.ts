import { isAbsolute, join } from 'node:path';
import { parse } from 'yaml';
import type { ConnectionSpec } from '../../runtime/index.ts';

/** One context of a kubeconfig file, by itself. */
export interface Context {
  readonly name: string;
  /** A kubeconfig of this context alone: another context's change is none of this one. */
  readonly spec: ConnectionSpec;
  /** What the context's extension LABELS_EXTENSION says. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Name of an entry in a context's `extensions` whose `extension` maps labels to values (client-go's clientcmd v1 format). */
export const LABELS_EXTENSION = 'capstan.dev/labels';

type Section = Readonly<Record<string, unknown>>;

/**
 * Every context of a kubeconfig file that lies in `directory`, where its relative file names start (client-go's
 * ResolveLocalPaths). What is wrong with one context is told by whoever connects; what is wrong with the whole throws an
 * Error that quotes nothing of it.
 */
export function readContexts(text: string, directory: string): Context[] {
  const root = parseRoot(text);
  if (!('contexts' in root)) throw new Error('it is no kubeconfig: it has no contexts');
  const found = new Map<string, Context>();
  for (const entry of sections(root, 'contexts')) {
    const name = entry['name'];
    // As client-go: of two of a name the first counts.
    if (typeof name === 'string' && name !== '' && !found.has(name)) {
      found.set(name, { name, spec: specOf(root, entry, directory), labels: labelsOf(entry) });
    }
  }
  return [...found.values()];
}

function parseRoot(text: string): Section {
  let root: unknown;
  try {
    root = parse(text, { logLevel: 'error' });
  } catch {
    // The parser's message quotes the text, which is a secret.
    throw new Error('it is no valid YAML');
  }
  if (!isSection(root)) throw new Error(text.trim() === '' ? 'it is empty' : 'it is no YAML mapping');
  return root;
}

function specOf(root: Section, entry: Section, directory: string): ConnectionSpec {
  const context = isSection(entry['context']) ? entry['context'] : {};
  const clusters = named(root, 'clusters', context['cluster']).map((cluster) =>
    located(cluster, 'cluster', ['certificate-authority'], directory),
  );
  const users = named(root, 'users', context['user']).map((user) =>
    withPlugin(located(user, 'user', ['client-certificate', 'client-key', 'tokenFile'], directory), directory),
  );
  const { name } = entry;
  // Extensions are other programs' notes; their change is none of the connection.
  const contexts = [{ name, context: { ...context, extensions: undefined } }];
  return { kubeconfig: JSON.stringify({ 'current-context': name, contexts, clusters, users }) };
}

function named(root: Section, list: string, name: unknown): Section[] {
  return sections(root, list)
    .filter((item) => item['name'] === name)
    .slice(0, 1);
}

function sections(from: Section, list: string): Section[] {
  const items = from[list];
  return Array.isArray(items) ? items.filter(isSection) : [];
}

/** The entry with the file names in its section made absolute. */
function located(entry: Section, section: string, fields: readonly string[], directory: string): Section {
  const value = entry[section];
  if (!isSection(value)) return entry;
  const absolute: Record<string, string> = {};
  for (const field of fields) {
    const path = value[field];
    if (typeof path === 'string' && path !== '' && !isAbsolute(path)) absolute[field] = join(directory, path);
  }
  return { ...entry, [section]: { ...value, ...absolute } };
}

/** A plugin's command with a slash in it is a path; one without is looked up in PATH. */
function withPlugin(entry: Section, directory: string): Section {
  const user = entry['user'];
  const exec = isSection(user) ? user['exec'] : undefined;
  const command = isSection(exec) ? exec['command'] : undefined;
  if (!isSection(user) || !isSection(exec) || typeof command !== 'string') return entry;
  if (isAbsolute(command) || !command.includes('/')) return entry;
  return { ...entry, user: { ...user, exec: { ...exec, command: join(directory, command) } } };
}

function labelsOf(entry: Section): Record<string, string> {
  const context = isSection(entry['context']) ? entry['context'] : {};
  const extension = named(context, 'extensions', LABELS_EXTENSION)[0]?.['extension'];
  if (!isSection(extension)) return {};
  return Object.fromEntries(
    Object.entries(extension).filter((label): label is [string, string] => typeof label[1] === 'string'),
  );
}

function isSection(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
