/** What `capstan drift` found, as -o json and yaml print it: docs/cli.md describes it, and it only grows. */
import type { ReportedField } from '../../drift/index.ts';
import { describeFields } from '../../drift/index.ts';
import type { InventoryObject, Verdict, Verification } from '../../drift/index.ts';

export interface DriftReport {
  readonly kind: 'DriftReport';
  readonly version: 1;
  readonly summary: DriftSummary;
  readonly clusters: readonly ClusterReport[];
  readonly releases: readonly ReleaseReport[];
  /** What could not be done apart from clusters and releases, e.g. a name that nothing has. */
  readonly problems: readonly string[];
}

export interface DriftSummary {
  readonly clusters: number;
  readonly clustersDrifted: number;
  /** Not reached, or not allowed to read. */
  readonly clustersFailed: number;
  readonly releases: number;
  readonly releasesDrifted: number;
  /** Not compared, or not wholly. */
  readonly releasesFailed: number;
  readonly objects: number;
  readonly objectsDrifted: number;
}

export interface ClusterReport {
  /** `namespace/name` of a Cluster, or the context's name. */
  readonly name: string;
  /** Why its releases could not be compared. */
  readonly error?: string;
}

export interface ReleaseReport {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  /** That the objects were compared with. */
  readonly revision?: number;
  /** On a management cluster. */
  readonly helmReleaseProxy?: { readonly namespace: string; readonly name: string };
  readonly helmChartProxy?: string;
  /** How many it has, how many differ, and how many are left out by annotation or rule. */
  readonly objects: number;
  readonly drifted: number;
  readonly excluded: number;
  /** Objects that differ or could not be compared, in install order. */
  readonly details: readonly ObjectReport[];
  readonly notes: readonly string[];
  /** Why it could not be compared. */
  readonly error?: string;
}

export interface ObjectReport {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  /** `Unverified`: it could not be compared. */
  readonly state: 'Modified' | 'Missing' | 'Terminating' | 'Foreign' | 'NotServed' | 'Unverified';
  readonly message?: string;
  readonly fields?: readonly ReportedField[];
  readonly moreFields?: number;
  readonly notes?: readonly string[];
}

/** What is known of one object before it is made presentable: `error` where there is no verdict. */
export interface Finding {
  readonly object: InventoryObject;
  readonly verification?: Verification;
  readonly error?: string;
}

/** A release's report and what it was made from; that holds values of Secrets. */
export interface ComparedRelease {
  readonly report: ReleaseReport;
  /** Those of `report.details`, in the same order. */
  readonly findings: readonly Finding[];
}

/** More fields of one object tell nothing new; a replaced ConfigMap may have thousands. */
const MAX_FIELDS = 1_000;

/** Does the finding belong in `details`? */
export function isRemarkable({ verification }: Finding): boolean {
  return verification === undefined || !['InSync', 'Excluded'].includes(verification.verdict.state);
}

/** Does the object differ from what the release wants? */
export function isDrift(finding: Finding): boolean {
  return finding.verification !== undefined && isRemarkable(finding);
}

/** One object for the report: bounded, and without values of Secrets. */
export function objectReport({ object, verification, error }: Finding): ObjectReport {
  const { group, version, kind, namespace, name } = object.id;
  return {
    apiVersion: group === '' ? version : `${group}/${version}`,
    kind,
    ...(namespace !== undefined && { namespace }),
    name,
    ...(verification === undefined
      ? { state: 'Unverified', message: error ?? 'not compared' }
      : { ...verdictReport(object, verification.verdict), ...notesOf(verification) }),
  };
}

function verdictReport({ id }: InventoryObject, verdict: Verdict): Pick<ObjectReport, 'state'> & Partial<ObjectReport> {
  switch (verdict.state) {
    case 'Modified': {
      const { fields, more } = describeFields(id, verdict.fields, MAX_FIELDS);
      return { state: 'Modified', fields, ...(more > 0 && { moreFields: more }) };
    }
    case 'Foreign':
      return { state: 'Foreign', message: `belongs to the release ${verdict.owner}` };
    case 'NotServed':
      return { state: 'NotServed', message: 'the cluster does not serve this kind' };
    case 'Terminating':
      return { state: 'Terminating', message: 'is being deleted' };
    default:
      return { state: 'Missing' };
  }
}

function notesOf({ notes }: Verification): Pick<ObjectReport, 'notes'> {
  return notes.length === 0 ? {} : { notes };
}

/** Counts of a whole look. */
export function summaryOf(clusters: readonly ClusterReport[], releases: readonly ReleaseReport[]): DriftSummary {
  const drifted = releases.filter((release) => release.drifted > 0);
  const sum = (count: (release: ReleaseReport) => number): number =>
    releases.reduce((total, of) => total + count(of), 0);
  return {
    clusters: clusters.length,
    clustersDrifted: new Set(drifted.map(({ cluster }) => cluster)).size,
    clustersFailed: clusters.filter(({ error }) => error !== undefined).length,
    releases: releases.length,
    releasesDrifted: drifted.length,
    releasesFailed: releases.filter(isIncomplete).length,
    objects: sum(({ objects }) => objects),
    objectsDrifted: sum((release) => release.drifted),
  };
}

/** Could a release, or an object of it, not be compared? */
export function isIncomplete(release: ReleaseReport): boolean {
  return release.error !== undefined || release.details.some(({ state }) => state === 'Unverified');
}

/** As `diff` has them. Trouble wins: who asks whether all is well must not be told so, nor drift alone, when not all was seen. */
export function exitCodeOf({ summary, problems }: DriftReport): 0 | 1 | 2 {
  if (summary.clustersFailed > 0 || summary.releasesFailed > 0 || problems.length > 0) return 2;
  return summary.releasesDrifted > 0 ? 1 : 0;
}
