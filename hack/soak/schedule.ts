import { setTimeout as sleep } from 'node:timers/promises';
import type { Fleet } from '../../test/support/index.ts';
import type { Site } from './sites.ts';

/** Between two things that happen, milliseconds, on average. */
const PACE_MS = 1_200;
/** A way to a cluster that fails does so for this long, milliseconds. */
const FAULT_MS = { least: 3_000, most: 60_000 };
/** How often each happens, relative to the others. */
const WEIGHTS = { comeOrGo: 4, select: 2, change: 5, edit: 6, damage: 3, cut: 3, stall: 2, rotate: 0.2 } as const;
type Deed = keyof typeof WEIGHTS;

/** What happens to the sites, by chance, from a seed. */
export class Schedule {
  readonly counts: Record<string, number> = {};
  readonly #fleet: Fleet;
  readonly #sites: readonly Site[];
  readonly #random: () => number;
  readonly #healing = new Set<NodeJS.Timeout>();

  constructor(fleet: Fleet, sites: readonly Site[], seed: number) {
    this.#fleet = fleet;
    this.#sites = sites;
    this.#random = randomFrom(seed);
  }

  /** Until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const deed = this.#pickDeed();
      this.counts[deed] = (this.counts[deed] ?? 0) + 1;
      await this.#do(deed, this.#sites[Math.floor(this.#random() * this.#sites.length)]!);
      await sleep(2 * PACE_MS * this.#random(), undefined, { signal }).catch(() => undefined);
    }
  }

  /** Every way is open again. */
  heal(): void {
    for (const timer of this.#healing) clearTimeout(timer);
    for (const site of this.#sites) site.fail('open');
  }

  async #do(deed: Deed, site: Site): Promise<void> {
    switch (deed) {
      case 'comeOrGo':
        return site.declared ? site.go() : site.come();
      case 'select':
        return site.declared ? site.select(!site.selected) : undefined;
      case 'change':
        return site.change();
      case 'edit':
        return site.edit();
      case 'damage':
        return site.damage();
      case 'cut':
      case 'stall':
        this.#break(site, deed === 'cut' ? 'cut' : 'stalled');
        return;
      case 'rotate':
        return this.#rotate(site.server);
    }
  }

  #break(site: Site, mode: 'cut' | 'stalled'): void {
    site.fail(mode);
    const timer = setTimeout(
      () => {
        this.#healing.delete(timer);
        site.fail('open');
      },
      FAULT_MS.least + this.#random() * (FAULT_MS.most - FAULT_MS.least),
    );
    this.#healing.add(timer);
  }

  /** New credentials for a server; the old ones are refused before the Secrets say so. */
  async #rotate(server: number): Promise<void> {
    await this.#fleet.cluster(server).rotateCredentials();
    for (const site of this.#sites) if (site.server === server && site.declared) await site.renewKubeconfig();
  }

  #pickDeed(): Deed {
    const all = Object.entries(WEIGHTS) as [Deed, number][];
    let left = this.#random() * all.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [deed, weight] of all) if ((left -= weight) < 0) return deed;
    return 'edit';
  }
}

/** Mulberry32: the same seed, the same story. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
