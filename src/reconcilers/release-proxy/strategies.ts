/** The registry of strategies by name. */
import type { HelmReleaseProxy } from '../../api/index.ts';
import { nameList } from '../conditions.ts';
import { ReconcilerError } from '../errors.ts';
import type { Strategy } from '../types.ts';

/** What an object without a `reconcileStrategy` means (caaph §1.2). */
const DEFAULT_STRATEGY = 'Continuous';
/** Names listed in a condition. */
const MAX_LISTED = 10;

export class StrategyRegistry {
  readonly #byName: ReadonlyMap<string, Strategy>;

  /** Throws when two strategies have one name: that is a mistake in the composition, not in an object. */
  constructor(strategies: readonly Strategy[]) {
    const byName = new Map<string, Strategy>();
    for (const strategy of strategies) {
      if (byName.has(strategy.name)) throw new Error(`two strategies are named ${strategy.name}`);
      byName.set(strategy.name, strategy);
    }
    this.#byName = byName;
  }

  /** The strategy that the object names, or undefined when nobody bound one. */
  find(proxy: HelmReleaseProxy): Strategy | undefined {
    return this.#byName.get(nameOf(proxy));
  }

  /** What the condition says of an object that names none of them. */
  unknown(proxy: HelmReleaseProxy): ReconcilerError {
    const known = nameList([...this.#byName.keys()].sort(), MAX_LISTED);
    const message = `reconcileStrategy "${nameOf(proxy)}" is not known to this manager; known are: ${known}`;
    return new ReconcilerError({ code: 'UnknownStrategy', class: 'User', message });
  }
}

function nameOf(proxy: HelmReleaseProxy): string {
  const name = proxy.spec.reconcileStrategy ?? '';
  return name === '' ? DEFAULT_STRATEGY : name;
}
