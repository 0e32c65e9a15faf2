import { glob, readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/** What a list of paths comes to. */
export interface FoundFiles {
  /** Absolute, sorted, each once. */
  readonly files: readonly string[];
  /** Where a change would be seen. */
  readonly directories: readonly string[];
}

/** A kubeconfig is a few KiB, and what comes from a ConfigMap or Secret is at most 1 MiB; what is larger is something else. */
const MAX_BYTES = 1024 * 1024;
const MAGIC = /[*?[\]{}]/;
/** Kubelets' `..data`, editors' and backup files. */
const PASSED_OVER = /^\.|~$|\.(swp|tmp|bak|lock)$/;

/** A file that cannot be used; the message says why, and quotes nothing of it. */
export class UnusableFileError extends Error {
  /** True: it is not there, and no error. */
  readonly missing: boolean;

  constructor(message: string, options: ErrorOptions & { readonly missing?: boolean } = {}) {
    super(message, options);
    this.name = 'UnusableFileError';
    this.missing = options.missing ?? false;
  }
}

/** Files that a path names now: itself, those in it when it is a directory (not below), or those that match it as a glob. What does not exist names none; any other error rejects. */
export async function findFiles(path: string): Promise<FoundFiles> {
  if (MAGIC.test(path)) return globbed(path);
  const absolute = resolve(path);
  const found = await kindOf(absolute);
  if (found !== 'directory') {
    return { files: found === undefined ? [] : [absolute], directories: [dirname(absolute)] };
  }
  const names = (await readdir(absolute)).filter((name) => !PASSED_OVER.test(name)).sort();
  const files: string[] = [];
  for (const name of names) if (await mayBeFile(join(absolute, name))) files.push(join(absolute, name));
  return { files, directories: [absolute] };
}

async function globbed(pattern: string): Promise<FoundFiles> {
  const files: string[] = [];
  for await (const match of glob(pattern)) if (await mayBeFile(resolve(match))) files.push(resolve(match));
  const fixed = pattern.split('/').slice(
    0,
    pattern.split('/').findIndex((part) => MAGIC.test(part)),
  );
  const base = resolve(pattern.startsWith('/') ? '/' : '.', ...fixed);
  return { files: files.sort(), directories: [...new Set([base, ...files.map((file) => dirname(file))])] };
}

/** Reads a file of bounded size. Rejects with UnusableFileError. */
export async function readBounded(file: string, signal: AbortSignal): Promise<string> {
  try {
    const found = await stat(file);
    if (!found.isFile()) throw new UnusableFileError('it is no regular file');
    if (found.size > MAX_BYTES) throw new UnusableFileError('it is larger than 1 MiB');
    return await readFile(file, { encoding: 'utf8', signal });
  } catch (cause) {
    if (cause instanceof UnusableFileError) throw cause;
    signal.throwIfAborted();
    throw new UnusableFileError('it cannot be read', { cause, missing: isMissing(cause) });
  }
}

/** One entry that cannot be looked at must not hide the others: whoever reads it tells what is wrong. */
async function mayBeFile(path: string): Promise<boolean> {
  try {
    return (await kindOf(path)) === 'file';
  } catch {
    return true;
  }
}

/** Links are followed; undefined when there is nothing (any more). */
async function kindOf(path: string): Promise<'file' | 'directory' | 'other' | undefined> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return 'directory';
    return found.isFile() ? 'file' : 'other';
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(codeOf(error));
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}
