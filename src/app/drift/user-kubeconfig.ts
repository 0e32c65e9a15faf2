import { readFileSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { parse } from 'yaml';
import { Connection } from '../../kube/index.ts';
import type { ConnectionOptions } from '../../kube/index.ts';
import { errorText } from '../../telemetry/index.ts';
import { AppError } from '../errors.ts';
import type { Environment } from '../options.ts';
import type { DriftOptions } from './options.ts';

/** The cluster that the user's kubeconfig names. */
export interface UserCluster {
  readonly connection: Connection;
  /** For people: the context's name. */
  readonly name: string;
}

type Section = Record<string, unknown>;

/** Where entries name files, relative to the kubeconfig that they stand in (client-go, clientcmd's loader). */
const FILE_FIELDS: readonly (readonly [list: string, entry: string, fields: readonly string[]])[] = [
  ['clusters', 'cluster', ['certificate-authority']],
  ['users', 'user', ['client-certificate', 'client-key', 'tokenFile']],
];

const ADVICE = 'name one with --kubeconfig, and a context of it with --context';

/**
 * Connects as kubectl does: --kubeconfig, the files of $KUBECONFIG merged, ~/.kube/config, then the Pod's service account.
 * The user's own kubeconfig may run programs and name files. Throws AppError (KUBECONFIG).
 */
export function connectUser(
  options: Pick<DriftOptions, 'kubeconfig' | 'context' | 'userAgent' | 'timeoutMs'>,
  env: Environment,
): UserCluster {
  const common = {
    userAgent: options.userAgent,
    requestTimeoutMs: options.timeoutMs,
    connectTimeoutMs: options.timeoutMs,
  };
  try {
    const merged = mergedKubeconfig(options.kubeconfig, env.home);
    if (merged === undefined) return connectInCluster(env, common);
    const name = options.context === '' ? currentContext(merged) : options.context;
    const connection = Connection.fromKubeconfig(JSON.stringify(merged), {
      ...common,
      clusterName: name,
      context: name,
      allowExec: true,
    });
    return { connection, name };
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('KUBECONFIG', errorText(error), { advice: ADVICE, cause: error });
  }
}

function connectInCluster(env: Environment, common: Omit<ConnectionOptions, 'clusterName'>): UserCluster {
  const { serviceHost, servicePort } = env;
  if (serviceHost === '') throw new AppError('KUBECONFIG', 'there is no kubeconfig', { advice: ADVICE });
  const name = 'in-cluster';
  const connection = Connection.inCluster({
    ...common,
    clusterName: name,
    env: { KUBERNETES_SERVICE_HOST: serviceHost, KUBERNETES_SERVICE_PORT: servicePort || undefined },
  });
  return { connection, name };
}

/**
 * One kubeconfig of all files: of entries with one name, and of current-context, the first counts (kubectl's rule). Files
 * of a list that are not there are passed over, as kubectl does; a single one must be there. undefined: there is none.
 */
function mergedKubeconfig(list: string, home: string): Section | undefined {
  const named = list.split(delimiter).filter((path) => path !== '');
  const paths = named.length > 0 || home === '' ? named : [join(home, '.kube', 'config')];
  const sections = paths.map((path) => readFile(path, named.length === 1)).filter((section) => section !== undefined);
  if (sections.length === 0) {
    if (named.length > 0) throw new AppError('KUBECONFIG', `none of ${named.join(', ')} is there`, { advice: ADVICE });
    return undefined;
  }
  const merged: Section = { apiVersion: 'v1', kind: 'Config' };
  for (const key of ['clusters', 'users', 'contexts'])
    merged[key] = sections.flatMap((section) => listOf(section[key]));
  merged['current-context'] = sections.map((section) => section['current-context']).find((name) => Boolean(name));
  return merged;
}

function readFile(path: string, mustExist: boolean): Section | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (missing && !mustExist) return undefined;
    const why = missing ? 'is not there' : `cannot be read: ${errorText(error)}`;
    throw new AppError('KUBECONFIG', `the kubeconfig ${path} ${why}`, { advice: ADVICE, cause: error });
  }
  const root = parseSection(text);
  if (root === undefined)
    throw new AppError('KUBECONFIG', `the kubeconfig ${path} is no YAML mapping`, { advice: ADVICE });
  return withAbsoluteFiles(root, dirname(path));
}

/** The parser's own message quotes the text, which is a secret as a whole. */
function parseSection(text: string): Section | undefined {
  try {
    const root: unknown = parse(text, { logLevel: 'error' });
    return isSection(root) ? root : undefined;
  } catch {
    return undefined;
  }
}

function withAbsoluteFiles(root: Section, directory: string): Section {
  for (const [list, kind, fields] of FILE_FIELDS) {
    for (const entry of listOf(root[list])) {
      if (isSection(entry) && isSection(entry[kind])) makeAbsolute(entry[kind], fields, directory);
    }
  }
  return root;
}

function makeAbsolute(section: Section, fields: readonly string[], directory: string): void {
  for (const field of fields) {
    const path = section[field];
    if (typeof path === 'string' && path !== '' && !isAbsolute(path)) section[field] = join(directory, path);
  }
}

function currentContext(merged: Section): string {
  const name = merged['current-context'];
  if (typeof name === 'string' && name !== '') return name;
  throw new AppError('KUBECONFIG', 'the kubeconfig has no current-context', { advice: ADVICE });
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isSection(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
