/** What a release's `driftDetection` asks for, with defaults. */
import { LRUCache } from 'lru-cache';
import type { DriftDetectionSpec, DriftMode } from '../../api/index.ts';
import { compileRules } from '../../drift/index.ts';
import type { ComparisonPolicy, InventoryObject } from '../../drift/index.ts';

export interface DriftDefaults {
  /** Of a spec that names no mode. */
  readonly mode: DriftMode;
  /** Field managers that are Helm. */
  readonly helmManagers: readonly string[];
}

export interface DriftPolicy {
  /** Equal for equal specs. */
  readonly text: string;
  readonly mode: DriftMode;
  readonly correction: 'Apply' | 'Upgrade';
  readonly comparison: ComparisonPolicy;
  readonly includeCRDs: boolean;
  /** The spec has ignore rules or quantities. */
  readonly hasRules: boolean;
  /** What is wrong with them, one text per rule. */
  readonly problems: readonly string[];
  /**
   * An ignore rule that cannot be read was to keep something from being put back, and nobody knows what: until it is mended
   * drift is only told.
   */
  readonly mayCorrect: boolean;
}

const DEFAULTS: Required<Omit<DriftDetectionSpec, 'mode'>> = {
  correction: 'Apply',
  extraFields: 'Ignore',
  includeCRDs: false,
  ignore: [],
  quantities: [],
};

/** Pure. Never throws: rules that are wrong are in `problems`. Callers: this controller, and `capstan drift`. */
export function policyOf(spec: DriftDetectionSpec | undefined, defaults: DriftDefaults): DriftPolicy {
  const asked = { ...DEFAULTS, mode: defaults.mode, ...spec };
  const { mode, correction, extraFields, includeCRDs } = asked;
  const ignore = compileRules(asked.ignore, 'ignore');
  const quantities = compileRules(asked.quantities, 'quantities');
  return {
    text: textOf(spec),
    mode,
    correction,
    includeCRDs,
    comparison: { extraFields, ignore, quantities, helmManagers: new Set(defaults.helmManagers) },
    hasRules: asked.ignore.length + asked.quantities.length > 0,
    problems: [...ignore.problems, ...quantities.problems],
    mayCorrect: mode === 'Correct' && ignore.problems.length === 0,
  };
}

/** One text per rule whose target matches nothing of the release. */
export function unmatchedRules(policy: DriftPolicy, objects: readonly InventoryObject[]): readonly string[] {
  const { ignore, quantities } = policy.comparison;
  return policy.hasRules ? [...ignore.unmatched(objects), ...quantities.unmatched(objects)] : [];
}

/** Different specs kept compiled: a fleet's objects have the few of their HelmChartProxies. */
const MAX_POLICIES = 500;

/** Policies by spec, so that a fleet's thousand copies of one spec are compiled once. Equal specs give the same policy. */
export class Policies {
  readonly #defaults: DriftDefaults;
  readonly #byText = new LRUCache<string, DriftPolicy>({ max: MAX_POLICIES });

  constructor(defaults: DriftDefaults) {
    this.#defaults = defaults;
  }

  of(spec: DriftDetectionSpec | undefined): DriftPolicy {
    const text = textOf(spec);
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const policy = policyOf(spec, this.#defaults);
    this.#byText.set(text, policy);
    return policy;
  }

  /** Without compiling anything: most objects are asked only this. */
  modeOf(spec: DriftDetectionSpec | undefined): DriftMode {
    return spec?.mode ?? this.#defaults.mode;
  }
}

/** The API server keeps the fields of a structural schema's object in one order. */
function textOf(spec: DriftDetectionSpec | undefined): string {
  return JSON.stringify(spec ?? {});
}
