import { matchesSelector } from '../../kube/index.ts';
import type { FleetObjects } from '../inspect/objects.ts';
import { spelledKey } from '../inspect/objects.ts';
import { conditionOf, releaseNode, told } from './health.ts';
import type { ReleaseNode } from './health.ts';

/** A cluster or a HelmChartProxy, and what hangs on it. */
export interface Branch {
  readonly name: string;
  /** A Cluster's phase; '' for a HelmChartProxy. */
  readonly phase: string;
  /** Why it is not healthy itself; '' when it is. */
  readonly problem: string;
  readonly releases: readonly ReleaseNode[];
}

/** As -o json and yaml print it: docs/cli.md describes it, and it only grows. */
export interface FleetTree {
  readonly kind: 'FleetTree';
  readonly version: 1;
  readonly by: 'cluster' | 'chart';
  readonly summary: {
    readonly clusters: number;
    readonly releases: number;
    readonly unhealthyReleases: number;
    /** Clusters or HelmChartProxies with a problem of their own. */
    readonly problems: number;
  };
  readonly branches: readonly Branch[];
  /** Names that nothing has. */
  readonly unknown: readonly string[];
}

export interface TreeQuestion {
  readonly by: 'cluster' | 'chart';
  readonly names: readonly string[];
  readonly onlyUnhealthy: boolean;
}

/** What there is, ordered by name. Pure. */
export function fleetTree(fleet: FleetObjects, question: TreeQuestion): FleetTree {
  const releases = fleet.releaseProxies.map(releaseNode);
  const all = question.by === 'cluster' ? byCluster(fleet, releases) : byChart(fleet, releases);
  const named = question.names.length === 0 ? all : all.flatMap((branch) => pruned(branch, new Set(question.names)));
  const unhealthy = named.flatMap((branch) => attention(branch));
  const branches = question.onlyUnhealthy ? unhealthy : named;
  const shown = named.flatMap((branch) => branch.releases);
  return {
    kind: 'FleetTree',
    version: 1,
    by: question.by,
    summary: {
      clusters: new Set(question.by === 'cluster' ? named.map(({ name }) => name) : shown.map(({ cluster }) => cluster))
        .size,
      releases: shown.length,
      unhealthyReleases: shown.filter(({ healthy }) => !healthy).length,
      problems: named.filter(({ problem }) => problem !== '').length,
    },
    branches: branches.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    unknown: question.names.filter((name) => !all.some((branch) => pruned(branch, new Set([name])).length > 0)),
  };
}

/** 0: all is well; 1: something needs attention; 2: a name that nothing has. */
export function treeExitCode({ summary, unknown }: FleetTree): 0 | 1 | 2 {
  if (unknown.length > 0) return 2;
  return summary.unhealthyReleases + summary.problems > 0 ? 1 : 0;
}

function byCluster({ clusters }: FleetObjects, releases: readonly ReleaseNode[]): Branch[] {
  const known = clusters.map((cluster) => {
    const name = spelledKey(cluster);
    const phase = cluster.status?.phase ?? '';
    return { name, phase, problem: '', releases: of(releases, (release) => release.cluster === name) };
  });
  const names = new Set(known.map(({ name }) => name));
  const gone = new Set(releases.map(({ cluster }) => cluster).filter((cluster) => !names.has(cluster)));
  return [
    ...known,
    ...[...gone].map((name) => ({
      name,
      phase: '',
      problem: 'there is no such Cluster',
      releases: of(releases, (release) => release.cluster === name),
    })),
  ];
}

function byChart({ chartProxies, clusters }: FleetObjects, releases: readonly ReleaseNode[]): Branch[] {
  return chartProxies.map((chartProxy) => {
    const { namespace = '', name } = chartProxy.metadata;
    const ready = conditionOf(chartProxy, 'Ready');
    const selects = clusters.some(
      ({ metadata }) =>
        metadata.namespace === namespace && isSelected(chartProxy.spec.clusterSelector, metadata.labels),
    );
    const own = ready !== undefined && ready.status !== 'True' ? told(ready) : '';
    return {
      name: `${namespace}/${name}`,
      phase: '',
      problem: own === '' && !selects ? 'its selector matches no Cluster' : own,
      releases: of(
        releases,
        (release) => release.helmChartProxy === name && release.helmReleaseProxy.startsWith(`${namespace}/`),
      ),
    };
  });
}

function isSelected(
  selector: FleetObjects['chartProxies'][number]['spec']['clusterSelector'],
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  try {
    return matchesSelector(selector, labels);
  } catch {
    // What is wrong with it is told by its condition.
    return false;
  }
}

function of(releases: readonly ReleaseNode[], belongs: (release: ReleaseNode) => boolean): ReleaseNode[] {
  return releases.filter(belongs).toSorted((a, b) => (a.helmReleaseProxy < b.helmReleaseProxy ? -1 : 1));
}

/** The branch itself when it is named (with or without namespace), else what of it is. */
function pruned(branch: Branch, names: ReadonlySet<string>): Branch[] {
  if (isNamed(branch.name, names)) return [branch];
  const releases = branch.releases.filter(({ release, helmReleaseProxy, helmChartProxy = '', cluster }) =>
    [release, helmReleaseProxy, helmChartProxy, cluster].some((name) => isNamed(name, names)),
  );
  return releases.length === 0 ? [] : [{ ...branch, releases }];
}

function isNamed(name: string, names: ReadonlySet<string>): boolean {
  return name !== '' && (names.has(name) || names.has(name.slice(name.indexOf('/') + 1)));
}

function attention(branch: Branch): Branch[] {
  const releases = branch.releases.filter(({ healthy }) => !healthy);
  return releases.length === 0 && branch.problem === '' ? [] : [{ ...branch, releases }];
}
