import type { HelmReleaseProxy } from '../../api/index.ts';
import { matchesSelector, validateSelector } from '../../kube/index.ts';
import { clusterKeyOf, releaseKeyOf } from '../../reconcilers/release-proxy/proxy.ts';
import { spelledKey } from '../inspect/objects.ts';
import type { FleetObjects } from '../inspect/objects.ts';
import { releaseNode } from '../tree/health.ts';
import { Findings } from './finding.ts';
import type { Finding } from './finding.ts';

/** An uninstall takes minutes at most; what is on its way out for longer waits for something. Milliseconds. */
const STUCK_MS = 10 * 60_000;

/** What can be told from the objects of the management cluster alone. Pure; `nowMs`: milliseconds since the epoch. */
export function checkFleet(fleet: FleetObjects, nowMs: number): Finding[] {
  return [...checkReleases(fleet, nowMs), ...checkSelectors(fleet), ...checkCollisions(fleet)];
}

function checkReleases({ releaseProxies, clusters }: FleetObjects, nowMs: number): Finding[] {
  const found = new Findings('release');
  const known = new Set(clusters.map(spelledKey));
  for (const proxy of releaseProxies) {
    const node = releaseNode(proxy);
    const deletedAt = Date.parse(proxy.metadata.deletionTimestamp ?? '');
    if (nowMs - deletedAt > STUCK_MS)
      found.fail(
        node.helmReleaseProxy,
        `being deleted for ${Math.round((nowMs - deletedAt) / 60_000)} min`,
        'its conditions say what it waits for; the annotation addons.cluster.x-k8s.io/force-delete=true gives the release up (docs/api.md)',
      );
    else if (!known.has(node.cluster))
      found.warn(
        node.helmReleaseProxy,
        `its Cluster ${node.cluster} is not there`,
        'it goes by itself while a manager runs; see whether one does',
      );
    else if (!node.healthy)
      found.warn(node.helmReleaseProxy, node.reason, 'kubectl describe helmreleaseproxy tells more');
  }
  if (found.all.length === 0) found.ok('', `${releaseProxies.length} releases are as they should be`);
  return found.all;
}

function checkSelectors({ chartProxies, clusters }: FleetObjects): Finding[] {
  const found = new Findings('selector');
  for (const { metadata, spec } of chartProxies) {
    const name = `${metadata.namespace ?? ''}/${metadata.name}`;
    const problems = validateSelector(spec.clusterSelector, 'spec.clusterSelector');
    const near = clusters.filter((cluster) => cluster.metadata.namespace === metadata.namespace);
    if (problems.length > 0) found.fail(name, problems.join('; '), 'mend the selector');
    else if (!near.some((cluster) => matchesSelector(spec.clusterSelector, cluster.metadata.labels)))
      found.warn(
        name,
        `its selector matches none of the ${near.length} Clusters in its namespace`,
        'kubectl get clusters --show-labels',
      );
  }
  if (found.all.length === 0) found.ok('', `${chartProxies.length} HelmChartProxies select Clusters`);
  return found.all;
}

/** Two objects for one release: the older one has it, the other waits for ever. */
function checkCollisions({ releaseProxies }: FleetObjects): Finding[] {
  const found = new Findings('collision');
  const byRelease = Map.groupBy(
    releaseProxies.filter((proxy) => releaseKeyOf(proxy) !== undefined),
    spelledRelease,
  );
  for (const [release, proxies] of byRelease) {
    if (proxies.length < 2) continue;
    const names = proxies.map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`).sort();
    found.fail(
      release,
      `several HelmReleaseProxies are for it: ${names.join(', ')}`,
      'give one of the HelmChartProxies another releaseName or namespace',
    );
  }
  if (found.all.length === 0) found.ok('', 'no release has two owners');
  return found.all;
}

function spelledRelease(proxy: HelmReleaseProxy): string {
  const cluster = clusterKeyOf(proxy);
  const key = releaseKeyOf(proxy);
  return `${cluster.namespace}/${cluster.name}: ${key?.namespace ?? ''}/${key?.name ?? ''}`;
}
