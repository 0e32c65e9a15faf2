import { copyFile, mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { rmSync } from 'node:fs';
import { basename, isAbsolute, join, relative } from 'node:path';

/** The folder `.demo` in the checkout: kubeconfigs, manifests and the manager's log, for the user to work with. */
export class DemoFolder {
  readonly path: string;
  /** Where the user types commands; paths are shown relative to it. */
  readonly workingDirectory: string;

  private constructor(path: string, workingDirectory: string) {
    this.path = path;
    this.workingDirectory = workingDirectory;
  }

  /** Makes it, and clears what an earlier run left. @throws Error where a demo is running in this checkout already. */
  static async create(path: string, workingDirectory: string): Promise<DemoFolder> {
    const folder = new DemoFolder(path, workingDirectory);
    const owner = await folder.#owner();
    if (owner !== undefined && isAlive(owner)) {
      throw new Error(`a demo is running in this checkout already (pid ${owner}); end it with Ctrl-C in its terminal`);
    }
    await rm(path, { recursive: true, force: true });
    await mkdir(path, { recursive: true, mode: 0o700 });
    await folder.write('pid', `${process.pid}\n`);
    return folder;
  }

  file(name: string): string {
    return join(this.path, name);
  }

  /** The path of a file as the user would type it. */
  shown(name: string): string {
    const path = this.file(name);
    const near = relative(this.workingDirectory, path);
    return near.startsWith('..') || isAbsolute(near) ? path : near;
  }

  /** Kubeconfigs are secrets: everything in here is for its owner alone. */
  async write(name: string, content: string): Promise<void> {
    await writeFile(this.file(name), content, { mode: 0o600 });
  }

  /** Copies the logs below `directory` (one folder per cluster) into `logs/`; resolves with its path. */
  async keepLogs(directory: string): Promise<string> {
    await mkdir(this.file('logs'), { recursive: true });
    for (const entry of await readdir(directory, { recursive: true })) {
      const source = join(directory, entry);
      if (!entry.endsWith('.log') || !(await stat(source)).isFile()) continue;
      const cluster = entry === basename(entry) ? '' : `${basename(join(source, '..'))}-`;
      await copyFile(source, join(this.file('logs'), `${cluster}${basename(entry)}`));
    }
    return this.shown('logs');
  }

  /** Removes the folder. */
  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }

  /** As remove, for an exit that waits for nothing. */
  removeNow(): void {
    rmSync(this.path, { recursive: true, force: true });
  }

  async #owner(): Promise<number | undefined> {
    const text = await readFile(this.file('pid'), 'utf8').catch(() => '');
    const pid = Number(text.trim());
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Another user's process exists as well; ESRCH alone says that there is none.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
