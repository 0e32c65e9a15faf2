/**
 * From what an object wants and what Helm's storage holds to what is to be done: pure, and the one place of that decision
 * (DESIGN §3; caaph §1.11 "Upgrade decision", W3, W16, W20). What Helm 3.22 and 4.1 do with each state was tried on a real
 * API server: `upgrade` works on deployed, failed (also when no revision ever got deployed) and superseded; it refuses
 * uninstalled, uninstalling, unknown and pending-*. `install` refuses every name that has a record.
 */
import type { ReleaseStatus, ReleaseSummary } from '../../helm/index.ts';
import type { Takeover } from './takeover.ts';
import { sameVersion } from './versions.ts';

/** What the object wants, resolved. */
export interface Desired {
  readonly chartVersion: string;
  /** Digest of the chart's archive, where it is known. */
  readonly chartDigest?: string;
  /** Canonical digest of the object's values. */
  readonly valuesDigest: string;
}

/** What was written down after the object's last successful operation, or adoption. */
export interface Recorded {
  readonly revision?: number;
  readonly chartDigest?: string;
  readonly valuesDigest?: string;
}

export type Decision =
  /** The release is as wanted. */
  | { readonly action: 'none'; readonly reason: string }
  /** There is no record of it. */
  | { readonly action: 'install'; readonly reason: string }
  /** Helm upgrades it as it is. */
  | { readonly action: 'upgrade'; readonly reason: string }
  /** The newest record must be marked failed before Helm upgrades it. */
  | { readonly action: 'recover'; readonly reason: string }
  /** An uninstall must be brought to its end, if it has not come there, and Helm install over what it left. */
  | { readonly action: 'reinstall'; readonly reason: string }
  /** Somebody else may be working on it until then (epoch, milliseconds). */
  | { readonly action: 'wait'; readonly reason: string; readonly untilMs: number };

/** What the release's state alone decides; `compare`: content decides. */
export type StateDecision = Decision | { readonly action: 'compare' };

/** First half: needs neither chart nor values, so a release that is waited for costs nothing. `held` is asked only for a release that somebody holds. */
export function decideByState(observed: ReleaseSummary | undefined, held: () => Takeover): StateDecision {
  if (observed === undefined) return { action: 'install', reason: 'the release is not there' };
  return BY_STATE[observed.status](observed, held);
}

/** Second half, for a deployed release. */
export function decideByContent(desired: Desired, observed: ReleaseSummary, recorded: Recorded): Decision {
  // Where the newest revision is the one that we made, what we made it from is known exactly: values that Helm merged
  // with older ones, or a chart whose index entry has another version than the chart itself, must not upgrade for ever.
  const ours = recorded.revision === observed.revision ? recorded : {};
  const digests = [desired.chartDigest, ours.chartDigest];
  const isSame = digests[0] !== undefined && digests[0] === digests[1];
  if (!isSame && !sameVersion(desired.chartVersion, observed.chartVersion))
    return { action: 'upgrade', reason: `chart version ${observed.chartVersion} is to be ${desired.chartVersion}` };
  // Only where both are known: a release that CAAPH or a person made has no record, and is adopted as it is.
  if (!isSame && !digests.includes(undefined))
    return { action: 'upgrade', reason: `chart version ${desired.chartVersion} was published anew with other content` };
  if (desired.valuesDigest !== observed.valuesDigest && desired.valuesDigest !== ours.valuesDigest)
    return { action: 'upgrade', reason: 'the values differ' };
  return { action: 'none', reason: 'the release is as wanted' };
}

/** Both halves. */
export function decide(
  desired: Desired,
  observed: ReleaseSummary | undefined,
  recorded: Recorded,
  held: () => Takeover,
): Decision {
  const byState = decideByState(observed, held);
  if (byState.action !== 'compare') return byState;
  return observed === undefined
    ? { action: 'install', reason: 'the release is not there' }
    : decideByContent(desired, observed, recorded);
}

type Rule = (observed: ReleaseSummary, held: () => Takeover) => StateDecision;

const pending: Rule = (observed, held) => {
  const verdict = held();
  return verdict.free
    ? { action: 'recover', reason: `the release was left in state ${observed.status}: ${verdict.why}` }
    : { action: 'wait', reason: `another operation (${observed.status}) may be in progress`, untilMs: verdict.untilMs };
};

const BY_STATE: Readonly<Record<ReleaseStatus, Rule>> = {
  deployed: () => ({ action: 'compare' }),
  failed: () => ({ action: 'upgrade', reason: 'the last operation failed' }),
  // The newest revision is never superseded unless the one after it was removed by hand.
  superseded: () => ({ action: 'upgrade', reason: 'no revision of the release is deployed' }),
  unknown: () => ({ action: 'recover', reason: 'the state of the release is unknown to Helm' }),
  uninstalled: () => ({ action: 'reinstall', reason: 'the release was uninstalled and its history kept' }),
  uninstalling: (_observed, held) => {
    const verdict = held();
    return verdict.free
      ? { action: 'reinstall', reason: `the release was left in state uninstalling: ${verdict.why}` }
      : { action: 'wait', reason: 'the release may be being uninstalled by somebody else', untilMs: verdict.untilMs };
  },
  'pending-install': pending,
  'pending-upgrade': pending,
  'pending-rollback': pending,
};
