import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Chart, Fleet, KubeObject, Proxy } from '../support/index.ts';
import { runProgram } from '../support/index.ts';

const PREFIX = 'helmreleaseproxy.addons.cluster.x-k8s.io';
const API_VERSION = 'addons.cluster.x-k8s.io/v1alpha1';
const SINCE = '2026-01-01T00:00:00Z';

/** A HelmReleaseProxy as CAAPH leaves it, and the release behind it. */
export interface LegacyPlacement {
  cluster: number;
  releaseName: string;
  /** Values of each revision that CAAPH made; none where it never got to one. */
  revisions: string[];
  /** CAAPH made the release's name up. */
  generated?: boolean;
  /** What CAAPH says is wrong; left out where the release is deployed. */
  failure?: string;
}

/** A HelmChartProxy as CAAPH leaves it. */
export interface LegacyChartProxy {
  name: string;
  chart: string;
  spec: Record<string, unknown>;
  /** spec.namespace of the HelmReleaseProxies. */
  namespace: string;
  placements: LegacyPlacement[];
}

/**
 * Leaves state behind as CAAPH does (what it wrote was read off a recording of it): objects, labels, annotations,
 * finalizers, generated names, conditions; releases by Helm 3 under CAAPH's field manager `manager`. No trace of Capstan.
 */
export class CaaphState {
  readonly #fleet: Fleet;
  readonly #helm: string;

  private constructor(fleet: Fleet, helm: string) {
    this.#fleet = fleet;
    this.#helm = helm;
  }

  static async prepare(fleet: Fleet): Promise<CaaphState> {
    // Helm's field manager is the base name of its own path.
    const helm = join(fleet.environment.directory, 'manager');
    await symlink(fleet.environment.binaries.helm3, helm);
    return new CaaphState(fleet, helm);
  }

  /** Installs, then upgrades, a release once per revision. */
  async release(chart: Chart, namespace: string, placement: LegacyPlacement): Promise<void> {
    const { releaseName, cluster, revisions } = placement;
    const archive = join(this.#fleet.environment.directory, `${chart.name}-${chart.version}.tgz`);
    await writeFile(archive, chart.archive);
    for (const [index, values] of revisions.entries()) {
      const what = index === 0 ? ['install', '--create-namespace'] : ['upgrade'];
      const home = join(this.#fleet.environment.directory, 'caaph-home');
      await runProgram(
        this.#helm,
        [
          ...what,
          releaseName,
          archive,
          `--namespace=${namespace}`,
          '--values=-',
          `--kubeconfig=${this.#fleet.cluster(cluster).adminKubeconfigPath}`,
        ],
        { stdin: values, env: { HOME: home } },
      );
    }
  }

  /** The HelmChartProxy with its status and all of its HelmReleaseProxies. */
  async chartProxy(legacy: LegacyChartProxy): Promise<void> {
    const fleet = this.#fleet;
    const tlsConfig = { caSecret: { name: 'repo-ca', namespace: fleet.namespace } };
    const created = await fleet.createChartProxy(
      legacy.name,
      { chartName: legacy.chart, tlsConfig, ...legacy.spec },
      { finalizers: ['helmchartproxy.addons.cluster.x-k8s.io'] },
    );
    const proxies: Proxy[] = [];
    for (const placement of legacy.placements) proxies.push(await this.#releaseProxy(created, legacy, placement));
    const names = proxies.map((proxy) => `HelmReleaseProxy/${proxy.metadata.name ?? ''}`);
    const failure = legacy.placements.find((placement) => placement.failure !== undefined)?.failure;
    const sources = ` (sources: ${names.join(', ')})`;
    await fleet.api.patch(`${fleet.path('helmchartproxies')}/${legacy.name}/status`, {
      status: {
        observedGeneration: created.metadata.generation,
        matchingClusters: legacy.placements.map(({ cluster }) => clusterRef(fleet, cluster)),
        conditions: conditions(created, [
          ['Ready', failure === undefined ? 'InfoReported' : 'IssuesReported', `${failure ?? ''}${sources}`],
          [
            'HelmReleaseProxiesReady',
            failure === undefined ? 'InfoReported' : 'IssuesReported',
            `${failure ?? ''}${sources}`,
          ],
          ['HelmReleaseProxySpecsUpToDate', 'UpToDate', ''],
        ]),
      },
    });
  }

  async #releaseProxy(owner: Proxy, legacy: LegacyChartProxy, placement: LegacyPlacement): Promise<Proxy> {
    const fleet = this.#fleet;
    const { cluster, releaseName, revisions, generated, failure } = placement;
    const { version, reconcileStrategy, repoURL, tlsConfig } = owner.spec;
    const proxy = await fleet.api.create<Proxy>(fleet.path('helmreleaseproxies'), {
      apiVersion: API_VERSION,
      kind: 'HelmReleaseProxy',
      metadata: {
        generateName: `${legacy.chart}-c${cluster}-`,
        labels: { 'cluster.x-k8s.io/cluster-name': `c${cluster}`, [`${PREFIX}/helmchartproxy-name`]: legacy.name },
        annotations: {
          ...(generated && { [`${PREFIX}/is-release-name-generated`]: 'true' }),
          ...(failure === undefined && { [`${PREFIX}/release-successfully-installed`]: 'true' }),
        },
        finalizers: [PREFIX],
        ownerReferences: [
          {
            apiVersion: API_VERSION,
            kind: 'HelmChartProxy',
            name: legacy.name,
            uid: owner.metadata.uid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      spec: {
        clusterRef: clusterRef(fleet, cluster),
        chartName: legacy.chart,
        repoURL,
        tlsConfig,
        releaseName,
        namespace: legacy.namespace,
        options: { enableClientCache: false, install: { createNamespace: true }, upgrade: { maxHistory: 10 } },
        ...(version !== undefined && { version }),
        ...(reconcileStrategy !== undefined && { reconcileStrategy }),
        ...(revisions.length > 0 && { values: revisions.at(-1) }),
      },
    });
    const release = failure === undefined ? { status: 'deployed', revision: revisions.length } : {};
    await fleet.api.patch(`${fleet.path('helmreleaseproxies')}/${proxy.metadata.name ?? ''}/status`, {
      status: {
        observedGeneration: proxy.metadata.generation,
        ...release,
        conditions: conditions(proxy, [
          ['Ready', failure === undefined ? 'InfoReported' : 'IssuesReported', failure ?? ''],
          ['ClusterAvailable', 'Available', ''],
          ['HelmReleaseReady', failure === undefined ? 'Ready' : 'HelmInstallOrUpgradeFailed', failure ?? ''],
        ]),
      },
    });
    return proxy;
  }
}

function clusterRef(fleet: Fleet, cluster: number): Record<string, string> {
  return { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: `c${cluster}`, namespace: fleet.namespace };
}

function conditions(of: KubeObject, list: readonly (readonly [string, string, string])[]): object[] {
  const bad = ['IssuesReported', 'HelmInstallOrUpgradeFailed'];
  return list.map(([type, reason, message]) => ({
    type,
    reason,
    message,
    status: bad.includes(reason) ? 'False' : 'True',
    observedGeneration: of.metadata.generation,
    lastTransitionTime: SINCE,
  }));
}
