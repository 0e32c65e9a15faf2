import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const PREFIX = 'capstan-helm-';

/**
 * Private directories of helm processes: one base per Capstan process, one directory in it per operation. A base whose
 * process was killed is removed by the next Capstan that works in the same `workDir`: kubeconfigs may lie in it.
 */
export class PrivateDirectories {
  readonly #workDir: string;
  #base: Promise<string> | undefined;

  constructor(workDir: string) {
    this.#workDir = workDir;
  }

  /** Makes a directory (0700) with the given files (0600) in it; names may have folders. Give it to `remove` afterwards. */
  async make(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
    this.#base ??= this.#makeBase().catch((error: unknown) => {
      this.#base = undefined;
      throw error;
    });
    const directory = await mkdtemp(join(await this.#base, 'op-'));
    try {
      for (const [name, content] of Object.entries(files)) {
        const path = join(directory, name);
        if (name.includes('/')) await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await writeFile(path, content, { mode: 0o600, flag: 'wx' });
      }
    } catch (error) {
      await this.remove(directory);
      throw error;
    }
    return directory;
  }

  async remove(directory: string): Promise<void> {
    await rm(directory, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Removes the base. For the end of the process. */
  async close(): Promise<void> {
    const base = this.#base;
    this.#base = undefined;
    if (base !== undefined) await base.then(async (path) => this.remove(path)).catch(() => undefined);
  }

  async #makeBase(): Promise<string> {
    await mkdir(this.#workDir, { recursive: true });
    await this.#sweep();
    const started = (await startTime(process.pid)) ?? '0';
    return mkdtemp(join(this.#workDir, `${PREFIX}${process.pid}.${started}-`));
  }

  async #sweep(): Promise<void> {
    for (const name of await readdir(this.#workDir)) {
      if (name.startsWith(PREFIX) && !(await ownerLives(name))) {
        // Another user's, or one that is swept by somebody else right now: not worth failing an operation for.
        await this.remove(join(this.#workDir, name)).catch(() => undefined);
      }
    }
  }
}

/**
 * The pid alone does not tell: in a container Capstan is number 1 again after each restart. Where the system keeps
 * no /proc, nothing is known and nothing is swept.
 */
async function ownerLives(name: string): Promise<boolean> {
  const match = /^(\d+)\.(\d+)-/.exec(name.slice(PREFIX.length));
  if (match === null || match[2] === '0') return true;
  return (await startTime(Number(match[1]))) === match[2];
}

/** Field 22 of /proc/PID/stat (proc(5)): clock ticks from boot to the start of the process. */
async function startTime(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${String(pid)}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
