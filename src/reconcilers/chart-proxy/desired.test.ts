import { describe, expect, it } from 'vitest';
import type { HelmChartProxySpec, HelmReleaseProxy } from '../../api/index.ts';
import { immutableChanges, newReleaseProxy, updatedReleaseProxy } from './desired.ts';
import type { Placement } from './desired.ts';
import { VALUES, chartProxy, cluster, releaseProxy } from './objects.test-support.ts';

function placement(spec: Partial<HelmChartProxySpec> = {}, more: Partial<Placement> = {}): Placement {
  return { chartProxy: chartProxy(spec), cluster: cluster(), clusterApiVersion: 'cluster.x-k8s.io/v1beta2', ...more };
}

/** As a CRD with CAAPH's defaults stores it. */
function stored(proxy: HelmReleaseProxy): HelmReleaseProxy {
  const options = proxy.spec.options ?? {};
  return {
    ...proxy,
    spec: {
      ...proxy.spec,
      options: {
        timeout: '10m0s',
        enableClientCache: false,
        ...options,
        install: { createNamespace: true, ...options.install },
        upgrade: { maxHistory: 10, ...options.upgrade },
      },
    },
  };
}

describe('newReleaseProxy', () => {
  it('carries what CAAPH’s carry: labels, owner, cluster, chart, values', () => {
    const made = newReleaseProxy(placement({ version: '1.2.3', reconcileStrategy: 'Continuous' }), VALUES);
    expect(made).toMatchObject({
      apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
      kind: 'HelmReleaseProxy',
      metadata: {
        namespace: 'fleet',
        labels: {
          'cluster.x-k8s.io/cluster-name': 'w1',
          'helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name': 'hcp',
        },
        ownerReferences: [
          { kind: 'HelmChartProxy', name: 'hcp', uid: 'hcp-uid', controller: true, blockOwnerDeletion: true },
        ],
      },
      spec: {
        chartName: 'nginx',
        repoURL: 'https://charts.test',
        releaseName: 'web',
        namespace: 'apps',
        version: '1.2.3',
        reconcileStrategy: 'Continuous',
        values: 'a: 1\n',
        clusterRef: {
          kind: 'Cluster',
          apiVersion: 'cluster.x-k8s.io/v1beta2',
          name: 'w1',
          namespace: 'fleet',
          uid: 'w1-uid',
        },
      },
    });
  });

  it('fills in defaults of credentials and CA, and leaves the user’s object alone (W14)', () => {
    const given = placement({
      credentials: { secret: { name: 's' } },
      tlsConfig: { caSecret: { name: 'ca' } },
    });
    const before = structuredClone(given.chartProxy);
    const made = newReleaseProxy(given, VALUES);
    expect(made.spec.credentials).toEqual({ secret: { name: 's', namespace: 'fleet' }, key: 'config.json' });
    expect(made.spec.tlsConfig).toEqual({ caSecret: { name: 'ca', namespace: 'fleet' } });
    expect(given.chartProxy).toEqual(before);
  });

  it('keeps a namespace and key that were given', () => {
    const made = newReleaseProxy(
      placement({ credentials: { secret: { name: 's', namespace: 'n' }, key: 'k' } }),
      VALUES,
    );
    expect(made.spec.credentials).toEqual({ secret: { name: 's', namespace: 'n' }, key: 'k' });
  });

  it('carries the watch-filter label (W7) and full names where labels cannot (W22)', () => {
    const name = 'n'.repeat(80);
    const made = newReleaseProxy(placement({}, { chartProxy: chartProxy({}, { name }), watchFilter: 'mine' }), VALUES);
    expect(made.metadata.labels?.['cluster.x-k8s.io/watch-filter']).toBe('mine');
    expect(made.metadata.annotations?.['helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-full-name']).toBe(name);
    for (const value of Object.values(made.metadata.labels ?? {})) expect(value.length).toBeLessThanOrEqual(63);
  });
});

describe('updatedReleaseProxy', () => {
  const fresh = stored(releaseProxy());

  it('is the same object when nothing differs but defaults', () => {
    expect(updatedReleaseProxy(fresh, placement(), VALUES)).toBe(fresh);
    const spelled = placement({ options: { wait: false, install: {}, upgrade: { maxHistory: 10 }, uninstall: {} } });
    expect(updatedReleaseProxy(fresh, spelled, VALUES)).toBe(fresh);
  });

  const changes: [string, Partial<HelmChartProxySpec>, (spec: HelmReleaseProxy['spec']) => unknown, unknown][] = [
    ['version', { version: '2' }, (spec) => spec.version, '2'],
    ['an option (W1)', { options: { wait: true } }, (spec) => spec.options?.wait, true],
    ['credentials (W1)', { credentials: { secret: { name: 's' } } }, (spec) => spec.credentials?.secret.name, 's'],
    [
      'tlsConfig (W1)',
      { tlsConfig: { insecureSkipTLSVerify: true } },
      (spec) => spec.tlsConfig?.insecureSkipTLSVerify,
      true,
    ],
    [
      'createNamespace: false (W6)',
      { options: { install: { createNamespace: false } } },
      (spec) => spec.options?.install?.createNamespace,
      false,
    ],
    ['maxHistory: 0 (W6)', { options: { upgrade: { maxHistory: 0 } } }, (spec) => spec.options?.upgrade?.maxHistory, 0],
    ['timeout', { options: { timeout: '5m' } }, (spec) => spec.options?.timeout, '5m'],
    ['driftDetection', { driftDetection: { mode: 'Warn' } }, (spec) => spec.driftDetection, { mode: 'Warn' }],
    [
      'a drift rule',
      { driftDetection: { ignore: [{ paths: ['/spec/replicas'] }] } },
      (spec) => spec.driftDetection?.ignore?.[0]?.paths,
      ['/spec/replicas'],
    ],
  ];
  it.each(changes)('%s reaches it', (_name, spec, read, value) => {
    const next = updatedReleaseProxy(fresh, placement(spec), VALUES);
    expect(read(next.spec)).toEqual(value);
    const again = stored(next);
    expect(updatedReleaseProxy(again, placement(spec), VALUES)).toBe(again);
  });

  it('takes away what the user took away', () => {
    const rich = updatedReleaseProxy(
      fresh,
      placement({ version: '2', credentials: { secret: { name: 's' } }, driftDetection: { mode: 'Correct' } }),
      VALUES,
    );
    const bare = updatedReleaseProxy(rich, placement(), { text: '', inputs: 'x' });
    expect(bare.spec).toMatchObject({ version: undefined, credentials: undefined, values: '' });
    expect(bare.spec.driftDetection).toBeUndefined();
  });

  it('adopts one that lost its owner, and notes the uid of its Cluster', () => {
    const orphan = { ...fresh, metadata: { ...fresh.metadata, ownerReferences: [] } };
    const recreated = cluster('w1', { uid: 'w1-uid-2' });
    const next = updatedReleaseProxy(orphan, placement({}, { cluster: recreated }), VALUES);
    expect(next.metadata.ownerReferences?.[0]?.uid).toBe('hcp-uid');
    expect(next.spec.clusterRef.uid).toBe('w1-uid-2');
  });
});

describe('immutableChanges', () => {
  const generated = releaseProxy(chartProxy({ releaseName: '' }), cluster(), {
    annotations: { 'helmreleaseproxy.addons.cluster.x-k8s.io/is-release-name-generated': 'true' },
  });
  const named = { ...generated, spec: { ...generated.spec, releaseName: 'nginx-1700000000' } };
  const cases: [string, Partial<HelmChartProxySpec>, HelmReleaseProxy, string[]][] = [
    ['same', {}, releaseProxy(), []],
    ['chartName', { chartName: 'o' }, releaseProxy(), ['chartName']],
    ['repoURL', { repoURL: 'oci://o' }, releaseProxy(), ['repoURL']],
    ['namespace', { namespace: 'o' }, releaseProxy(), ['namespace']],
    ['namespace default spelled out', { namespace: 'default' }, releaseProxy(chartProxy({ namespace: '' })), []],
    ['releaseName', { releaseName: 'o' }, releaseProxy(), ['releaseName']],
    ['releaseName taken away', { releaseName: '' }, releaseProxy(), ['releaseName']],
    ['generated name, none asked for', { releaseName: '' }, named, []],
    ['generated name, one asked for', { releaseName: 'mine' }, named, ['releaseName']],
    ['strategy unset and Continuous', { reconcileStrategy: 'Continuous' }, releaseProxy(), []],
    ['driftDetection', { driftDetection: { mode: 'Correct' } }, releaseProxy(), []],
    ['several', { chartName: 'o', namespace: 'o' }, releaseProxy(), ['chartName', 'namespace']],
  ];
  it.each(cases)('%s', (_name, spec, proxy, expected) => {
    expect(immutableChanges(chartProxy(spec), proxy)).toEqual(expected);
  });
});
