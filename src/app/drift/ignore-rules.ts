import type { DriftRule } from '../../api/index.ts';
import { pointerOf } from '../../drift/index.ts';
import type { ComparedRelease, Finding } from './report.ts';

/** Rules for the spec of one HelmChartProxy or HelmReleaseProxy. */
export interface RuleGroup {
  /** Where to paste them. */
  readonly target: string;
  readonly ignore: readonly DriftRule[];
}

/** What one rule may have (the CRD's limit). */
const MAX_PATHS = 50;

/**
 * The rules that would silence what was found: one per object, those of one HelmChartProxy together, each once however
 * many clusters it comes from. A missing object is left out as a whole; what belongs to another release or is not served
 * is no matter of rules.
 */
export function ignoreRules(releases: readonly ComparedRelease[]): readonly RuleGroup[] {
  const groups = Map.groupBy(releases, targetOf);
  return [...groups].flatMap(([target, of]) => {
    const rules = of.flatMap(({ findings }) => findings.flatMap(rulesOf));
    const unique = new Map(rules.map((rule) => [JSON.stringify(rule), rule]));
    return unique.size === 0 ? [] : [{ target, ignore: [...unique.values()] }];
  });
}

function targetOf({ report }: ComparedRelease): string {
  const { helmChartProxy, helmReleaseProxy, cluster, namespace, name } = report;
  if (helmReleaseProxy === undefined) return `release ${namespace}/${name} on ${cluster}`;
  return helmChartProxy === undefined
    ? `HelmReleaseProxy ${helmReleaseProxy.namespace}/${helmReleaseProxy.name}`
    : `HelmChartProxy ${helmReleaseProxy.namespace}/${helmChartProxy}`;
}

function rulesOf({ object, verification }: Finding): DriftRule[] {
  const verdict = verification?.verdict;
  const paths = verdict?.state === 'Modified' ? verdict.fields.map(({ path }) => pointerOf(path)) : [];
  if (verdict?.state === 'Missing') paths.push('');
  const { group, kind, namespace, name } = object.id;
  const target = {
    ...(group !== '' && { group: literal(group) }),
    kind: literal(kind),
    name: literal(name),
    ...(namespace !== undefined && { namespace: literal(namespace) }),
  };
  const sorted = [...new Set(paths)].sort();
  return Array.from({ length: Math.ceil(sorted.length / MAX_PATHS) }, (_, index) => ({
    target,
    paths: sorted.slice(index * MAX_PATHS, (index + 1) * MAX_PATHS),
  }));
}

/** A pattern of RE2 that matches this text alone. */
function literal(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, '\\$&');
}
