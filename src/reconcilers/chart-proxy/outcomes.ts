/**
 * How the placements of each HelmChartProxy ended, in memory: conditions belong to the HelmChartProxy, but work is per
 * placement. After a restart every placement is looked at once, which fills it again; until then the condition that stands
 * in the object is believed (status.ts).
 */

/** What became of one placement. */
export type Outcome =
  /** As it should be, or nothing may be done. */
  | { readonly state: 'done' }
  /** Could not be done; stands in the condition. */
  | { readonly state: 'failed'; readonly reason: string; readonly message: string }
  /** The release is being removed and comes again. */
  | { readonly state: 'reinstalling'; readonly message: string };

export interface PlacementOutcome {
  /** Generation of the HelmChartProxy that was acted on. */
  readonly generation: number;
  readonly outcome: Outcome;
}

/** By uid of the HelmChartProxy, then by Cluster name (HelmChartProxy and Cluster share their namespace). */
export class Outcomes {
  readonly #byChartProxy = new Map<string, Map<string, PlacementOutcome>>();

  /** Notes an outcome; true when it says something else than before. */
  settle(uid: string, cluster: string, settled: PlacementOutcome): boolean {
    const known = this.#byChartProxy.get(uid) ?? new Map<string, PlacementOutcome>();
    const before = known.get(cluster);
    known.set(cluster, settled);
    this.#byChartProxy.set(uid, known);
    return before === undefined || before.generation !== settled.generation || !equal(before.outcome, settled.outcome);
  }

  /** Is any of its placements in this state? */
  has(uid: string, state: Outcome['state']): boolean {
    return [...this.of(uid).values()].some(({ outcome }) => outcome.state === state);
  }

  /** Nothing is placed there any more. */
  drop(uid: string, cluster: string): boolean {
    return this.#byChartProxy.get(uid)?.delete(cluster) ?? false;
  }

  /** The HelmChartProxy is gone. */
  forget(uid: string): void {
    this.#byChartProxy.delete(uid);
  }

  of(uid: string): ReadonlyMap<string, PlacementOutcome> {
    return this.#byChartProxy.get(uid) ?? new Map<string, PlacementOutcome>();
  }
}

function equal(a: Outcome, b: Outcome): boolean {
  return a.state === b.state && text(a) === text(b);
}

function text(outcome: Outcome): string {
  return outcome.state === 'done' ? '' : outcome.message;
}
