import { describe, expect, it } from 'vitest';
import type { HelmChartProxy, HelmReleaseProxy } from '../../api/index.ts';
import type { ClusterObject, FleetObjects } from '../inspect/objects.ts';
import { paletteFor } from '../drift/terminal.ts';
import { treeSummary, treeText } from './print.ts';
import { fleetTree, treeExitCode } from './tree.ts';
import type { FleetTree, TreeQuestion } from './tree.ts';

function cluster(name: string, labels: Record<string, string> = {}): ClusterObject {
  return { metadata: { namespace: 'fleet', name, labels }, status: { phase: 'Provisioned' } };
}

function chartProxy(name: string, matchLabels: Record<string, string>): HelmChartProxy {
  const spec = { chartName: name, repoURL: 'https://charts', clusterSelector: { matchLabels } };
  return { apiVersion: 'v1', kind: 'HelmChartProxy', metadata: { namespace: 'fleet', name }, spec };
}

function release(
  chart: string,
  on: string,
  more: { ready?: string; message?: string; sync?: string } = {},
): HelmReleaseProxy {
  const conditions = [
    { type: 'Ready', status: more.ready ?? 'True', reason: 'HelmInstallOrUpgradeFailed', message: more.message ?? '' },
    { type: 'ReleaseInSync', status: more.sync ?? 'True', reason: 'DriftDetected', message: '' },
  ];
  return {
    apiVersion: 'v1',
    kind: 'HelmReleaseProxy',
    metadata: {
      namespace: 'fleet',
      name: `${chart}-${on}`,
      generation: 2,
      labels: { 'helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name': chart },
    },
    spec: {
      chartName: chart,
      repoURL: 'x',
      releaseName: chart,
      namespace: 'apps',
      clusterRef: { namespace: 'fleet', name: on },
    },
    status: { conditions, status: 'deployed', revision: 3, observedGeneration: 2, chartVersion: '1.2.0' },
  } as unknown as HelmReleaseProxy;
}

const FLEET: FleetObjects = {
  clusters: [cluster('west', { web: 'yes' }), cluster('east', { web: 'yes' }), cluster('idle')],
  chartProxies: [chartProxy('web', { web: 'yes' }), chartProxy('nobody', { no: 'where' })],
  releaseProxies: [
    release('web', 'east'),
    release('web', 'west', { ready: 'False', message: 'no space left' }),
    release('web', 'gone'),
  ],
};

function tree(question: Partial<TreeQuestion> = {}): FleetTree {
  return fleetTree(FLEET, { by: 'cluster', names: [], onlyUnhealthy: false, ...question });
}

describe('the tree of a fleet', () => {
  it('has the releases of each cluster, and clusters that are not there any more', () => {
    expect(treeText(tree(), paletteFor(false))).toBe(
      [
        'fleet/east  Provisioned',
        '└─ web  apps/web  web-1.2.0  deployed 3',
        'fleet/gone  there is no such Cluster',
        '└─ web  apps/web  web-1.2.0  deployed 3',
        'fleet/idle  Provisioned',
        'fleet/west  Provisioned',
        '└─ web  apps/web  web-1.2.0  deployed 3  HelmInstallOrUpgradeFailed: no space left',
        '',
      ].join('\n'),
    );
    expect(treeSummary(tree())).toBe('3 releases on 4 clusters, 1 not healthy, 1 other problem');
    expect(treeExitCode(tree())).toBe(1);
  });

  it('by chart has the clusters of each HelmChartProxy, and says which select none', () => {
    const { branches } = tree({ by: 'chart' });
    expect(branches.map(({ name, problem, releases }) => [name, problem, releases.length])).toEqual([
      ['fleet/nobody', 'its selector matches no Cluster', 0],
      ['fleet/web', '', 3],
    ]);
  });

  it('may be only what needs attention', () => {
    const { branches } = tree({ onlyUnhealthy: true });
    expect(branches.map(({ name }) => name)).toEqual(['fleet/gone', 'fleet/west']);
  });

  it.each([
    [['east'], ['fleet/east'], 0],
    [['fleet/west'], ['fleet/west'], 1],
    [['web'], ['fleet/east', 'fleet/gone', 'fleet/west'], 1],
    [['web-west'], ['fleet/west'], 1],
  ])('of %j is %j', (names, branches, code) => {
    const named = tree({ names });
    expect([named.branches.map(({ name }) => name), treeExitCode(named)]).toEqual([branches, code]);
  });

  it('has trouble with a name that nothing has', () => {
    const named = tree({ names: ['east', 'nowhere'] });
    expect([named.unknown, treeExitCode(named)]).toEqual([['nowhere'], 2]);
  });

  it('is not healthy while a release drifts, is behind, or was never looked at', () => {
    const behind = release('web', 'east');
    behind.metadata.generation = 3;
    const unseen = { ...release('web', 'east'), status: {} };
    const releaseProxies = [release('web', 'east', { sync: 'False' }), behind, unseen];
    const { branches } = fleetTree(
      { ...FLEET, releaseProxies },
      { by: 'cluster', names: ['east'], onlyUnhealthy: false },
    );
    expect(branches[0]?.releases.map(({ healthy, reason }) => [healthy, reason])).toEqual([
      [false, 'DriftDetected'],
      [false, 'its newest spec is not worked on yet'],
      [false, 'no controller has looked at it yet'],
    ]);
  });

  it('lets no foreign text move the cursor', () => {
    const releaseProxies = [release('web', 'east', { ready: 'False', message: '\u001b[2J\nx' })];
    expect(
      treeText(
        fleetTree({ ...FLEET, releaseProxies }, { by: 'cluster', names: ['east'], onlyUnhealthy: false }),
        paletteFor(false),
      ),
    ).toContain('\\u001b[2J\\u000ax');
  });
});
