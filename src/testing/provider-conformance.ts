import type { ClusterName, Provider } from '../runtime/index.ts';
import { cameAndWent, restarts, stops } from './provider-conformance-life.ts';
import { refusals, rotations } from './provider-conformance-credentials.ts';
import { Stage } from './provider-conformance-stage.ts';

/** A real cluster that the checks may use. */
export interface ConformanceCluster {
  /** What reaches it now. */
  kubeconfig(): string;
  /** Replaces the credentials; resolves with the new kubeconfig once it works. The old credentials may be refused from then on. */
  rotate(): Promise<string>;
}

/** One provider, and the hand that moves what it discovers. Made for one check, and disposed of after it. */
export interface ConformanceSubject {
  readonly provider: Provider;
  /** Makes `label` (lower case letters) a cluster with this kubeconfig where the provider looks, or changes its kubeconfig. Resolves with the name that the provider gives it, the same for the same label. */
  declare(label: string, kubeconfig: string): Promise<ClusterName>;
  /** Takes it away. */
  withdraw(label: string): Promise<void>;
  dispose(): Promise<void>;
}

export interface ProviderConformanceOptions {
  readonly create: () => Promise<ConformanceSubject>;
  /** Starts a cluster, or gives one that runs: equal labels, equal cluster, for all checks. At most two are asked for. */
  readonly startCluster: (label: string) => Promise<ConformanceCluster>;
  /** The provider's clusters are always the same one (e.g. the management cluster): what needs others to come or go is left out. */
  readonly fixed?: boolean;
  /** Limit of each single wait, milliseconds; 60 s. */
  readonly limitMs?: number;
}

/** One promise of the contract. `run` rejects with NotConformingError when it is not kept, or with the signal's reason. */
export interface ConformanceCheck {
  readonly name: string;
  readonly run: (signal?: AbortSignal) => Promise<void>;
}

/** A check's body. */
export interface Scenario {
  readonly name: string;
  /** Needs clusters that come, go or break. */
  readonly moves: boolean;
  readonly play: (stage: Stage) => Promise<void>;
}

const DEFAULT_LIMIT_MS = 60_000;

/**
 * What every provider must do (contract: Provider and ClusterSink in runtime/types.ts), as named checks for any test
 * framework: each one makes a subject, puts it before a real fleet, and looks at what the fleet comes to know. Checks may
 * run in any order, not at the same time: they share clusters.
 *
 * ```ts
 * for (const { name, run } of providerConformance(options)) it(name, () => run());
 * ```
 */
export function providerConformance(options: ProviderConformanceOptions): readonly ConformanceCheck[] {
  const limitMs = options.limitMs ?? DEFAULT_LIMIT_MS;
  const scenarios = [...cameAndWent, ...rotations, ...refusals, ...stops, ...restarts];
  return scenarios
    .filter(({ moves }) => !moves || options.fixed !== true)
    .map(({ name, play }) => ({
      name,
      run: async (signal = new AbortController().signal) => {
        const stage = new Stage(await options.create(), options, { limitMs, signal });
        try {
          await play(stage);
          stage.expectNoOffence();
        } finally {
          await stage.close();
        }
      },
    }));
}
