import type { Discovery, Follower, KubeObject, Resource, WatchNotice, WatchSet, WatchTarget } from '../kube/index.ts';
import type { Logger } from '../telemetry/index.ts';
import type { TrackedKind } from './tracked-kind.ts';

const CRDS: WatchTarget = {
  resource: {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    plural: 'customresourcedefinitions',
    namespaced: false,
  },
  form: 'metadata',
};

/** When discovery is asked after a CRD stirred, milliseconds: it follows the CRD's own condition with some delay. */
const AFTER_NEWS_MS: readonly number[] = [500, 2_000, 6_000];

/** Kinds of an aggregated API server come without a CRD, so discovery is asked now and then, milliseconds: two requests each time. */
const POLL_MS = 60_000;

/** Part of the poll's time that is left to chance, so that clusters do not fall into step. */
const POLL_JITTER = 0.2;

const DISCOVERY_TIMEOUT_MS = 30_000;

export interface UnservedOptions {
  readonly afterNewsMs?: readonly number[];
  readonly pollMs?: number;
  /** A number in [0, 1); Math.random by default. */
  readonly random?: () => number;
}

export interface UnservedDependencies {
  readonly watches: WatchSet;
  readonly discovery: Discovery;
  /** With the cluster's name. */
  readonly log: Logger;
  /** The kind is served now; it is not waited for any more. */
  readonly onServed: (kind: TrackedKind, resource: Resource) => void;
}

/** Waits for kinds that the cluster does not serve yet. While there is none it watches nothing and asks nothing. */
export class UnservedKinds implements Follower {
  readonly #dependencies: UnservedDependencies;
  readonly #afterNewsMs: readonly number[];
  readonly #pollMs: number;
  readonly #random: () => number;
  readonly #kinds = new Set<TrackedKind>();
  readonly #stop = new AbortController();
  #poll: NodeJS.Timeout | undefined;
  #news: NodeJS.Timeout[] = [];
  #isListing = false;
  #isNews = false;
  #asking: Promise<void> | undefined;
  #askAgain = false;

  constructor(dependencies: UnservedDependencies, options: UnservedOptions = {}) {
    this.#dependencies = dependencies;
    this.#afterNewsMs = options.afterNewsMs ?? AFTER_NEWS_MS;
    this.#pollMs = options.pollMs ?? POLL_MS;
    this.#random = options.random ?? Math.random;
  }

  add(kind: TrackedKind): void {
    if (this.#stop.signal.aborted) return;
    this.#kinds.add(kind);
    if (this.#kinds.size > 1) return;
    this.#dependencies.watches.follow(this, CRDS, this);
    this.#pollLater();
  }

  delete(kind: TrackedKind): void {
    if (this.#kinds.delete(kind) && this.#kinds.size === 0) this.#rest();
  }

  /** Nothing is told afterwards. */
  close(): void {
    this.#stop.abort(new Error('the tracker was closed'));
    this.#kinds.clear();
    this.#rest();
  }

  notice(notice: WatchNotice<KubeObject>): void {
    if (notice.type === 'init') this.#isListing = true;
    if (notice.type === 'initDone') this.#isListing = false;
    // A CRD that is in the first list may have come after discovery was asked.
    if ('object' in notice && this.#concerns(notice.object)) this.#isNews = true;
    if (this.#isListing || !this.#isNews) return;
    this.#isNews = false;
    this.#askSoon();
  }

  /** A CRD's name is `<plural>.<group>`. */
  #concerns({ metadata }: KubeObject): boolean {
    return [...this.#kinds].some(({ group }) => metadata.name.endsWith(`.${group}`));
  }

  #rest(): void {
    this.#dependencies.watches.release(this);
    clearTimeout(this.#poll);
    this.#dropNews();
    this.#isListing = false;
    this.#isNews = false;
  }

  #dropNews(): void {
    for (const timer of this.#news) clearTimeout(timer);
    this.#news = [];
  }

  /** Later news put it off: a chart's CRDs come in a crowd. */
  #askSoon(): void {
    this.#dropNews();
    this.#news = this.#afterNewsMs.map((ms) => {
      const timer = setTimeout(() => {
        this.#ask();
      }, ms);
      return timer.unref();
    });
  }

  #pollLater(): void {
    clearTimeout(this.#poll);
    const ms = this.#pollMs * (1 + POLL_JITTER * (2 * this.#random() - 1));
    this.#poll = setTimeout(() => {
      this.#ask();
      this.#pollLater();
    }, ms);
    this.#poll.unref();
  }

  /** One question at a time; its failure is heard here. */
  #ask(): void {
    if (this.#asking !== undefined) {
      this.#askAgain = true;
      return;
    }
    this.#asking = this.#look()
      .catch((error: unknown) => {
        if (this.#stop.signal.aborted) return;
        this.#dependencies.log.debug('discovery could not be asked for kinds that are waited for', { err: error });
      })
      .finally(() => {
        this.#asking = undefined;
        if (this.#askAgain && this.#kinds.size > 0) this.#ask();
        this.#askAgain = false;
      });
  }

  async #look(): Promise<void> {
    const { discovery, onServed } = this.#dependencies;
    const { signal } = this.#stop;
    discovery.invalidate();
    for (const kind of [...this.#kinds]) {
      const { group, version } = kind;
      const asked = { group, version, kind: kind.kind };
      const resource = await discovery.find(asked, { signal, timeoutMs: DISCOVERY_TIMEOUT_MS });
      if (resource === undefined || !this.#kinds.has(kind)) continue;
      this.delete(kind);
      onServed(kind, resource);
    }
  }
}
