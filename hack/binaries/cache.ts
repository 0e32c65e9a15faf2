import { accessSync, constants, readFileSync } from 'node:fs';
import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Binary, BinaryName } from './catalogue.ts';
import { stampOf } from './catalogue.ts';

/** The environment variables that say where programs lie; read once, by the program that starts. */
export type CacheEnvironment = Record<string, string | undefined>;

/** The names that a KUBEBUILDER_ASSETS directory (as setup-envtest fills it) may supply. */
const ASSET_NAMES: readonly BinaryName[] = ['kube-apiserver', 'kube-controller-manager', 'etcd', 'kubectl'];

/** The programs that are taken from PATH where it has them. */
const PATH_NAMES: readonly BinaryName[] = ['docker-registry'];

/** Where programs are kept: outside the repository, so that a fresh clone finds them again. */
export class BinaryCache {
  readonly directory: string;
  readonly #environment: CacheEnvironment;

  constructor(environment: CacheEnvironment) {
    this.#environment = environment;
    const root = environment.CAPSTAN_CACHE || join(environment.XDG_CACHE_HOME || join(homedir(), '.cache'), 'capstan');
    this.directory = join(root, 'bin');
  }

  /** The absolute path of the program, or undefined where it must still be obtained. */
  locate(binary: Binary): string | undefined {
    return this.#foundOutside(binary.name) ?? (this.#isCached(binary) ? this.pathOf(binary.name) : undefined);
  }

  /** Where the program lies once it is cached. */
  pathOf(name: BinaryName): string {
    return join(this.directory, name);
  }

  /**
   * Puts a program into the cache in one step, so that a reader (or a second run) never meets half a file,
   * and a program that is running keeps its old file. The stamp goes last: without it the file counts for nothing.
   */
  async store(binary: Binary, make: (file: string, workDirectory: string) => Promise<void>): Promise<void> {
    const work = join(this.directory, `.work-${binary.name}-${process.pid}`);
    await mkdir(work, { recursive: true });
    try {
      const file = join(work, 'made');
      await make(file, work);
      await chmod(file, 0o755);
      await rm(this.#stampFile(binary.name), { force: true });
      await rename(file, this.pathOf(binary.name));
      const stamp = join(work, 'stamp');
      await writeFile(stamp, stampOf(binary));
      await rename(stamp, this.#stampFile(binary.name));
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }

  #foundOutside(name: BinaryName): string | undefined {
    const assets = this.#environment.KUBEBUILDER_ASSETS;
    const fromAssets = assets && ASSET_NAMES.includes(name) ? [assets] : [];
    const fromPath = PATH_NAMES.includes(name) ? (this.#environment.PATH ?? '').split(delimiter).filter(Boolean) : [];
    return [...fromAssets, ...fromPath].map((directory) => join(directory, name)).find(isExecutable);
  }

  #isCached(binary: Binary): boolean {
    if (!isExecutable(this.pathOf(binary.name))) return false;
    try {
      return readFileSync(this.#stampFile(binary.name), 'utf8') === stampOf(binary);
    } catch {
      return false;
    }
  }

  #stampFile(name: BinaryName): string {
    return join(this.directory, `.${name}.stamp`);
  }
}

/** Whether a command of that name is on PATH. */
export function onPath(command: string, environment: CacheEnvironment): boolean {
  const directories = (environment.PATH ?? '').split(delimiter).filter(Boolean);
  return directories.some((directory) => isExecutable(join(directory, command)));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
