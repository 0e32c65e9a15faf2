import { describe, expect, it } from 'vitest';
import { INSTALLED_ANNOTATION, WORKLOAD_CLUSTER_UID_ANNOTATION } from '../../api/index.ts';
import type { HelmReleaseProxy } from '../../api/index.ts';
import { decide } from './decide.ts';
import type { Action, Observed } from './decide.ts';
import { T0, T1, chartProxy, cluster, continuous, installOnce, releaseProxy } from './objects.test-support.ts';

const PAUSED = { annotations: { 'cluster.x-k8s.io/paused': '' } };
const MOVED = { annotations: { 'clusterctl.cluster.x-k8s.io/delete-for-move': '' } };
const GOING = { deletionTimestamp: T1 };
const once = chartProxy({ reconcileStrategy: 'InstallOnce' });

function observed(changes: Partial<Observed>): Observed {
  return {
    chartProxy: chartProxy(),
    cluster: cluster(),
    selected: true,
    proxy: releaseProxy(),
    strategy: continuous,
    workloadUid: undefined,
    engaged: false,
    ...changes,
  };
}

function installed(
  changes: Partial<HelmReleaseProxy['metadata']> = {},
  uid: string | undefined = 'w1-uid',
): HelmReleaseProxy {
  const made = releaseProxy(once, cluster(), {
    ...changes,
    annotations: { [INSTALLED_ANNOTATION]: 'true', ...changes.annotations },
  });
  return { ...made, spec: { ...made.spec, clusterRef: { ...made.spec.clusterRef, uid } } };
}

/** What InstallOnce sees of a HelmReleaseProxy that is handed off. */
function handedOff(changes: Partial<Observed>): Observed {
  return observed({ chartProxy: once, strategy: installOnce, proxy: installed(), ...changes });
}

const recreated = cluster('w1', { uid: 'w1-uid-2', creationTimestamp: T1 });
const moved = cluster('w1', { uid: 'w1-uid-2', creationTimestamp: T0 });
const noted = installed({ annotations: { [WORKLOAD_CLUSTER_UID_ANNOTATION]: 'kube-system-1' } });

const table: [string, Observed, Action['type'], Partial<Action>?][] = [
  ['no HelmReleaseProxy yet: create', observed({ proxy: undefined }), 'create'],
  ['there is one: update (what differs decides)', observed({}), 'update'],
  [
    'no HelmReleaseProxy, unknown strategy: create, its controller tells',
    observed({ proxy: undefined, strategy: undefined }),
    'create',
  ],

  [
    'HelmChartProxy paused: nothing is written (W13)',
    observed({ chartProxy: chartProxy({ version: '2' }, PAUSED) }),
    'none',
  ],
  [
    'HelmChartProxy paused and unselected: nothing is deleted (W13)',
    observed({ chartProxy: chartProxy({}, PAUSED), selected: false }),
    'none',
  ],
  ['Cluster paused: no creation', observed({ proxy: undefined, cluster: cluster('w1', {}, { paused: true }) }), 'none'],
  [
    'Cluster paused: no reinstall',
    observed({ chartProxy: chartProxy({ chartName: 'other' }), cluster: cluster('w1', {}, { paused: true }) }),
    'none',
  ],
  [
    'HelmChartProxy being deleted: that is its own controller’s',
    observed({ chartProxy: chartProxy({}, GOING), proxy: undefined }),
    'none',
  ],
  ['HelmChartProxy moved away', observed({ chartProxy: chartProxy({}, MOVED), selected: false }), 'none'],
  [
    'HelmReleaseProxy moved away',
    observed({ proxy: releaseProxy(chartProxy(), cluster(), MOVED), selected: false }),
    'none',
  ],

  ['Cluster being deleted: no creation', observed({ proxy: undefined, cluster: cluster('w1', GOING) }), 'none'],
  ['Cluster being deleted: its HelmReleaseProxy stays', observed({ cluster: cluster('w1', GOING) }), 'none'],
  ['Cluster gone: delete', observed({ cluster: undefined, selected: false }), 'delete', { reinstall: false }],
  [
    'Cluster gone, InstallOnce handed off: delete (W12)',
    handedOff({ cluster: undefined, selected: false }),
    'delete',
    { reinstall: false },
  ],
  ['Cluster gone, nothing there', observed({ cluster: undefined, selected: false, proxy: undefined }), 'none'],

  ['not selected: delete', observed({ selected: false }), 'delete', { reinstall: false }],
  ['not selected, nothing there', observed({ selected: false, proxy: undefined }), 'none'],
  ['not selected, InstallOnce: stays', observed({ chartProxy: once, strategy: installOnce, selected: false }), 'none'],
  ['not selected, unknown strategy: delete', observed({ selected: false, strategy: undefined }), 'delete'],

  [
    'HelmReleaseProxy going, selected: wait, it comes again',
    observed({ proxy: releaseProxy(chartProxy(), cluster(), GOING) }),
    'wait',
    { reinstalling: true },
  ],
  [
    'HelmReleaseProxy going, not selected: wait',
    observed({ proxy: releaseProxy(chartProxy(), cluster(), GOING), selected: false }),
    'wait',
    { reinstalling: false },
  ],

  [
    'chartName changed: reinstall',
    observed({ chartProxy: chartProxy({ chartName: 'other' }) }),
    'delete',
    { reinstall: true },
  ],
  [
    'repoURL changed: reinstall',
    observed({ chartProxy: chartProxy({ repoURL: 'https://other.test' }) }),
    'delete',
    { reinstall: true },
  ],
  [
    'releaseName changed: reinstall',
    observed({ chartProxy: chartProxy({ releaseName: 'other' }) }),
    'delete',
    { reinstall: true },
  ],
  [
    'namespace changed: reinstall',
    observed({ chartProxy: chartProxy({ namespace: 'other' }) }),
    'delete',
    { reinstall: true },
  ],
  [
    'InstallOnce before its first success: a mended chartName counts (W21)',
    observed({
      chartProxy: chartProxy({ reconcileStrategy: 'InstallOnce', chartName: 'mended' }),
      strategy: installOnce,
      proxy: releaseProxy(once),
    }),
    'delete',
    { reinstall: true },
  ],
  [
    'InstallOnce handed off: spec changes are nothing',
    handedOff({
      chartProxy: chartProxy({
        reconcileStrategy: 'InstallOnce',
        chartName: 'other',
        version: '9',
        valuesTemplate: 'b: 2',
      }),
    }),
    'none',
  ],

  ['handed off, same Cluster', handedOff({}), 'none'],
  ['handed off by CAAPH, which notes no uid: noted', handedOff({ proxy: installed({}, '') }), 'adopt'],
  [
    'handed off, Cluster recreated, workload cluster differs: replaced (W12)',
    handedOff({ cluster: recreated, proxy: noted, workloadUid: 'kube-system-2', engaged: true }),
    'delete',
    { reinstall: true },
  ],
  [
    'handed off, Cluster object new, workload cluster the same (clusterctl move)',
    handedOff({ cluster: recreated, proxy: noted, workloadUid: 'kube-system-1', engaged: true }),
    'adopt',
  ],
  [
    'handed off, Cluster object new, cluster not engaged yet: wait',
    handedOff({ cluster: recreated, proxy: noted }),
    'wait',
    { reinstalling: false },
  ],
  [
    'handed off, no workload uid noted, Cluster younger: replaced',
    handedOff({ cluster: recreated }),
    'delete',
    { reinstall: true },
  ],
  ['handed off, no workload uid noted, Cluster as old: moved', handedOff({ cluster: moved }), 'adopt'],
  [
    'handed off, engaged but its uid may not be read: by age',
    handedOff({ cluster: moved, proxy: noted, engaged: true }),
    'adopt',
  ],
  ['Continuous, Cluster recreated: update notes it', observed({ cluster: recreated }), 'update'],
];

describe('decide', () => {
  it.each(table)('%s', (_name, given, type, details = {}) => {
    expect(decide(given)).toMatchObject({ type, ...details });
  });
});
