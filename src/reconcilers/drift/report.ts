/** From what a session knows to the object's status and conditions. Pure; sorted and bounded, so that it does not flap. */
import type { Condition, DriftObjectStatus, DriftStatus, HelmReleaseProxy } from '../../api/index.ts';
import { RELEASE_IN_SYNC, bounded, getCondition, removeConditions, setCondition } from '../conditions.ts';
import type { ConditionInput } from '../conditions.ts';
import { drifts, objectText } from './finding.ts';
import type { Finding } from './finding.ts';
import type { DriftPolicy } from './policy.ts';

export const RULES_VALID = 'DriftRulesValid';

/** Objects in the status. */
const MAX_DETAILS = 10;
/** Objects, and fields of each, in the condition's message. */
const MAX_NAMED = 3;
/** Characters of a condition's message; a HelmChartProxy repeats names only. */
const MAX_MESSAGE = 1024;

/** What a session, or a release that cannot be looked at, has to report. */
export interface Report {
  readonly policy: DriftPolicy;
  readonly revision: number;
  readonly objects: number;
  readonly corrections: number;
  readonly lastDetectedTime: string | undefined;
  readonly lastCorrectedTime: string | undefined;
  readonly findings: readonly Finding[];
  /** What was put back by the last pass that corrected something. */
  readonly corrected: readonly DriftObjectStatus[];
  /** Every object was looked at. */
  readonly isSwept: boolean;
  /** Why changes to some objects are not noticed, or objects not looked at. */
  readonly problems: readonly string[];
  /** Rules that match nothing. */
  readonly unmatched: readonly string[];
}

/** The object as the report has it; the same one when nothing changes. */
export function withReport(proxy: HelmReleaseProxy, report: Report, now: Date): HelmReleaseProxy {
  if (isNoNewsYet(proxy, report)) return proxy;
  const { generation } = proxy.metadata;
  const rules = rulesCondition(report);
  const before = proxy.status?.conditions;
  const kept = rules === undefined ? removeConditions(before, [RULES_VALID]) : before;
  const inputs = [inSyncCondition(report), ...(rules === undefined ? [] : [rules])];
  const conditions = inputs.reduce<readonly Condition[] | undefined>(
    (list, input) => setCondition(list, input, generation, now),
    kept,
  );
  return { ...proxy, status: { ...proxy.status, drift: statusOf(report), conditions: [...(conditions ?? [])] } };
}

/** After a restart what was said of the revision stands until more is known: a fleet must not turn unknown and back. */
function isNoNewsYet({ status }: HelmReleaseProxy, report: Report): boolean {
  if (report.isSwept || report.findings.length > 0) return false;
  return status?.drift?.revision === report.revision && getCondition(status.conditions, RELEASE_IN_SYNC) !== undefined;
}

/** The object of which nothing is looked at: what was said of it is not known any more. The same one when nothing was said. */
export function withoutReport(proxy: HelmReleaseProxy): HelmReleaseProxy {
  if (!isReported(proxy)) return proxy;
  const conditions = removeConditions(proxy.status?.conditions, [RELEASE_IN_SYNC, RULES_VALID]);
  return { ...proxy, status: { ...proxy.status, drift: undefined, conditions } };
}

/** The release cannot be compared now, e.g. since its newest revision failed. What was found before is void. */
export function withReason(proxy: HelmReleaseProxy, message: string, now: Date): HelmReleaseProxy {
  const input = { type: RELEASE_IN_SYNC, status: 'Unknown', reason: 'DriftUnverified', message } as const;
  const conditions = setCondition(proxy.status?.conditions, input, proxy.metadata.generation, now);
  return { ...proxy, status: { ...proxy.status, conditions } };
}

export function isReported({ status }: HelmReleaseProxy): boolean {
  return (
    status?.drift !== undefined ||
    getCondition(status?.conditions, RELEASE_IN_SYNC) !== undefined ||
    getCondition(status?.conditions, RULES_VALID) !== undefined
  );
}

function statusOf(report: Report): DriftStatus {
  const drifting = sorted(report.findings.map(({ status }) => status));
  const shown = new Set(drifting.map(nameOf));
  // What was put back and differs again is shown once, as it is now.
  const all = [...drifting, ...sorted(report.corrected.filter((status) => !shown.has(nameOf(status))))];
  const more = all.length - MAX_DETAILS;
  return {
    revision: report.revision,
    objects: report.objects,
    drifted: report.findings.filter(drifts).length,
    corrections: report.corrections,
    ...(report.lastDetectedTime !== undefined && { lastDetectedTime: report.lastDetectedTime }),
    ...(report.lastCorrectedTime !== undefined && { lastCorrectedTime: report.lastCorrectedTime }),
    ...(all.length > 0 && { details: all.slice(0, MAX_DETAILS) }),
    ...(more > 0 && { more }),
  };
}

function inSyncCondition(report: Report): ConditionInput {
  const drifting = report.findings.filter(drifts);
  const input = drifting.length > 0 ? driftingCondition(report, drifting) : quietCondition(report);
  return { type: RELEASE_IN_SYNC, ...input, message: bounded(input.message, MAX_MESSAGE) };
}

function driftingCondition(report: Report, drifting: readonly Finding[]): Omit<ConditionInput, 'type'> {
  const stopped = drifting.filter(({ status }) => status.action === 'Stopped');
  if (stopped.length > 0) return { status: 'False', reason: 'DriftNotConverging', message: named(stopped) };
  const failed = drifting.filter(({ status }) => ['Refused', 'NeedsRecreation'].includes(status.action));
  if (failed.length > 0) return { status: 'False', reason: 'DriftCorrectionFailed', message: named(failed) };
  const { policy } = report;
  const held = policy.mode === 'Correct' && !policy.mayCorrect;
  const note = held ? '; nothing is put back while an ignore rule cannot be read' : '';
  return { status: 'False', reason: 'DriftDetected', message: `${named(drifting)}${note}` };
}

function quietCondition(report: Report): Omit<ConditionInput, 'type'> {
  const { findings, isSwept, problems, objects, revision } = report;
  if (!isSwept) {
    const message = `the objects of revision ${revision} are looked at for the first time`;
    return { status: 'Unknown', reason: 'Verifying', message };
  }
  const why = [...(findings.length > 0 ? [named(findings)] : []), ...problems];
  if (why.length > 0) return { status: 'Unknown', reason: 'DriftUnverified', message: why.join('; ') };
  const message = `${objects} ${objects === 1 ? 'object is' : 'objects are'} as in revision ${revision}`;
  return { status: 'True', reason: 'InSync', message };
}

function rulesCondition({ policy, unmatched }: Report): ConditionInput | undefined {
  if (!policy.hasRules) return undefined;
  const say = (status: 'True' | 'False', reason: string, texts: readonly string[]): ConditionInput => {
    return { type: RULES_VALID, status, reason, message: bounded(texts.join('; '), MAX_MESSAGE) };
  };
  if (policy.problems.length > 0) return say('False', 'IgnoreRuleInvalid', policy.problems);
  if (unmatched.length > 0) return say('False', 'IgnoreRuleMatchesNothing', unmatched);
  return say('True', 'Valid', []);
}

function named(findings: readonly Finding[]): string {
  const statuses = sorted(findings.map(({ status }) => status));
  const texts = statuses.slice(0, MAX_NAMED).map((status) => {
    const text = objectText(status, MAX_NAMED);
    return status.message === undefined ? text : `${text}: ${status.message}`;
  });
  const more = statuses.length - MAX_NAMED;
  return `${texts.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}

function sorted(list: readonly DriftObjectStatus[]): DriftObjectStatus[] {
  const keys = new Map(list.map((status) => [status, nameOf(status)]));
  return [...list].sort((a, b) => compare(keys.get(a) ?? '', keys.get(b) ?? ''));
}

function nameOf({ apiVersion, kind, namespace, name }: DriftObjectStatus): string {
  return `${kind} ${namespace ?? ''}/${name} ${apiVersion}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
