import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { withTimeout } from '../../kube/index.ts';
import type {
  ClusterAbout,
  ClusterName,
  ClusterSink,
  ConnectionSpec,
  NotConnectedReason,
  Provider,
} from '../../runtime/index.ts';
import { errorText } from '../../telemetry/index.ts';
import type { Logger, Telemetry } from '../../telemetry/index.ts';
import { Bell } from './bell.ts';
import { readContexts } from './contexts.ts';
import { DirectoryWatches } from './directory-watches.ts';
import { findFiles, readBounded, UnusableFileError } from './files.ts';
import type { FoundFiles } from './files.ts';
import { contextClusterName, fileClusterName, labelValue, stemOf } from './names.ts';

export interface KubeconfigFileProviderOptions extends Pick<ClusterAbout, 'labels' | 'namespace'> {
  /** Kubeconfig files, directories of them, and globs. */
  readonly paths: readonly string[];
  readonly telemetry: Telemetry;
  /** Stands in logs and before the names of clusters; `files`. */
  readonly name?: string;
  /** How often everything is looked at although nothing told of a change, milliseconds; 15 s. */
  readonly pollMs?: number;
}

/** Labels of the clusters of this provider, besides the options' and the context's own. */
export const FILE_LABEL = 'capstan.dev/file';
export const CONTEXT_LABEL = 'capstan.dev/context';
const DEFAULT_POLL_MS = 15_000;
/** Nobody writes one kubeconfig for as long as this. Milliseconds. */
const DOUBT_MS = 1_000;
/** One look at all files; a mount that hangs longer ends the run, which is then begun anew with back-off. */
const LOOK_LIMIT_MS = 30_000;
const GONE: FoundFiles = { files: [], directories: [] };

/** What was last said of a cluster. `file` has its context. */
interface Declared {
  readonly file: string;
  readonly about: ClusterAbout;
  readonly spec?: ConnectionSpec;
  readonly reason?: NotConnectedReason;
}

type Declarations = Map<ClusterName, Declared>;

/**
 * Discovers the clusters of kubeconfig files: one per file and context, named `file+context`. Directories are watched,
 * and everything is looked at now and then, for mounts that tell of nothing. A context or file that is gone disengages;
 * a file that has become unusable is told as a reason, and its clusters stay as they are. What a kubeconfig may do (exec
 * plugins, files) is for the connection factory to say.
 */
export class KubeconfigFileProvider implements Provider {
  readonly name: string;
  readonly #options: KubeconfigFileProviderOptions;
  readonly #log: Logger;
  /** Outlives a failed run: the next one disengages what vanished meanwhile. */
  #declared: Declarations = new Map();
  /** What a path came to when it could last be looked at. */
  readonly #found = new Map<string, FoundFiles>();
  /** Clusters to be declared though nothing changed; undefined: all. */
  #again: Set<ClusterName> | undefined;
  /** Files that were there at the last look. */
  #present: ReadonlySet<string> = new Set();
  /** Clusters whose context is not in its file, though that is there; since when (performance.now). */
  readonly #doubted = new Map<ClusterName, number>();
  readonly #bell = new Bell();
  #told = '';

  constructor(options: KubeconfigFileProviderOptions) {
    this.name = options.name ?? 'files';
    this.#options = options;
    this.#log = options.telemetry.log.with({ provider: this.name });
  }

  async run(sink: ClusterSink, signal: AbortSignal): Promise<void> {
    const watches = new DirectoryWatches(() => this.#bell.ring());
    this.#again = undefined;
    try {
      while (!signal.aborted) {
        const wanted = await withTimeout(signal, LOOK_LIMIT_MS, async (inner) => this.#look(watches, inner));
        this.#declare(sink, wanted);
        // One that cannot be read may hold contexts that nobody has heard of yet.
        if ([...wanted.values()].every(({ reason }) => reason === undefined)) sink.synced?.();
        await this.#bell.wait(this.#doubted.size > 0 ? DOUBT_MS : (this.#options.pollMs ?? DEFAULT_POLL_MS), signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      watches.close();
    }
  }

  /** After a 401: everything is read anew, and this cluster declared. */
  refresh(name: ClusterName): void {
    this.#again?.add(name);
    this.#bell.ring();
  }

  async #look(watches: DirectoryWatches, signal: AbortSignal): Promise<Declarations> {
    const problems: string[] = [];
    const found = await Promise.all(this.#options.paths.map(async (path) => this.#find(path, problems)));
    watches.set(new Set(found.flatMap(({ directories }) => directories)));
    const files = [...new Set(found.flatMap((some) => some.files))];
    const read = await Promise.all(files.map(async (file) => this.#read(file, signal)));
    this.#present = new Set(files.filter((_, index) => read[index] !== undefined));
    const wanted: Declarations = new Map();
    for (const [name, declared] of read.flatMap((some) => some ?? [])) {
      const other = wanted.get(name);
      // Of two of a name, the one that has it keeps it.
      if (other === undefined || this.#declared.get(name)?.file === declared.file) wanted.set(name, declared);
      if (other !== undefined) problems.push(`${other.file} and ${declared.file} both give cluster ${name}`);
    }
    this.#tell(problems);
    return wanted;
  }

  /** A path that cannot be looked at (not one that does not exist) names what it named before. */
  async #find(path: string, problems: string[]): Promise<FoundFiles> {
    try {
      const found = await findFiles(path);
      if (found.files.length === 0) problems.push(`${path} names no file`);
      this.#found.set(path, found);
    } catch (error) {
      problems.push(`${path} cannot be looked at: ${errorText(error)}`);
    }
    return this.#found.get(path) ?? GONE;
  }

  /** undefined: there is no such file. */
  async #read(file: string, signal: AbortSignal): Promise<[ClusterName, Declared][] | undefined> {
    try {
      const contexts = readContexts(await readBounded(file, signal), dirname(file));
      return contexts.map(({ name, spec, labels }) => [
        contextClusterName(file, name),
        { file, spec, about: this.#about(file, { ...labels, [CONTEXT_LABEL]: labelValue(name) }) },
      ]);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof UnusableFileError && error.missing) return undefined;
      return this.#unusable(file, { code: 'KubeconfigUnavailable', message: `${file}: ${errorText(error)}` });
    }
  }

  /** The clusters that the file gave before, or one that stands for it. */
  #unusable(file: string, reason: NotConnectedReason): [ClusterName, Declared][] {
    const before = [...this.#declared].filter(([, declared]) => declared.file === file);
    if (before.length === 0) return [[fileClusterName(file), { file, reason, about: this.#about(file, {}) }]];
    return before.map(([name, { about }]) => [name, { file, reason, about }]);
  }

  #about(file: string, labels: Readonly<Record<string, string>>): ClusterAbout {
    const own = { [FILE_LABEL]: labelValue(stemOf(file)) };
    return { labels: { ...this.#options.labels, ...labels, ...own }, namespace: this.#options.namespace };
  }

  #declare(sink: ClusterSink, wanted: Declarations): void {
    const again = this.#again;
    this.#again = new Set();
    for (const [name, declared] of wanted) {
      this.#doubted.delete(name);
      const news = again === undefined || again.has(name) || !isDeepStrictEqual(this.#declared.get(name), declared);
      if (!news) continue;
      if (declared.spec !== undefined) sink.engage(name, declared.spec, declared.about);
      else if (declared.reason !== undefined) sink.discover(name, declared.reason, declared.about);
    }
    this.#declared = new Map([...this.#remaining(sink, wanted), ...wanted]);
  }

  /** Ends the clusters that are gone; returns those that may only seem to be. */
  #remaining(sink: ClusterSink, wanted: Declarations): [ClusterName, Declared][] {
    return [...this.#declared].filter(([name, declared]) => {
      if (wanted.has(name)) return false;
      const remains = this.#mayBeHalfWritten(name, declared);
      if (!remains) sink.disengage(name, `its context is no longer in ${declared.file}`);
      return remains;
    });
  }

  /** A file written in place can be cut where it is valid YAML with fewer contexts: what it lacks is gone after a while. */
  #mayBeHalfWritten(name: ClusterName, { file }: Declared): boolean {
    const since = this.#doubted.get(name) ?? performance.now();
    const doubted = this.#present.has(file) && performance.now() - since < DOUBT_MS;
    if (doubted) this.#doubted.set(name, since);
    else this.#doubted.delete(name);
    return doubted;
  }

  /** The same every quarter of a minute is no news. */
  #tell(problems: readonly string[]): void {
    const text = problems.join('; ');
    if (text !== '' && text !== this.#told) this.#log.warn('some kubeconfig files are not as they should be', { text });
    this.#told = text;
  }
}
