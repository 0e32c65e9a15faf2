import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  CONTEXT_LABEL,
  KubeconfigFileProvider,
  KubeconfigSecretProvider,
} from '../../src/providers/kubeconfig/index.ts';
import { KUBECONFIG_LABEL, MULTICLUSTER_RUNTIME_LABEL } from '../../src/providers/kubeconfig/index.ts';
import { CapiProvider } from '../../src/providers/capi/index.ts';
import { LocalProvider } from '../../src/providers/local/index.ts';
import { clusterName, kubeConnectionFactory, Manager, prefixed, SupervisedFleet } from '../../src/runtime/index.ts';
import { providerConformance } from '../../src/testing/index.ts';
import type { ConformanceCluster, ProviderConformanceOptions } from '../../src/testing/index.ts';
import { createCluster, ensureNamespace, eventually, installCapi, startEnvironment } from '../support/index.ts';
import type { Environment } from '../support/index.ts';
import { capiSubject, fileSubject, handSubject, localSubject, managementOf } from './provider-subjects.ts';
import { quiet, secretSubject } from './provider-subjects.ts';
import type { Fault } from './provider-subjects.ts';

let environment: Environment;

beforeAll(async () => {
  // Certificates: a rotated one is refused within a second or two, tokens are remembered for ten.
  environment = await startEnvironment({ clusters: 2, credentials: 'certificate' });
  await installCapi(environment.management.api);
});

afterAll(async () => {
  await environment.stop();
});

async function startCluster(label: string): Promise<ConformanceCluster> {
  const cluster = environment.clusters[label === 'one' ? 0 : 1]!;
  return Promise.resolve({
    kubeconfig: () => cluster.kubeconfig,
    rotate: async () => cluster.rotateCredentials(),
  });
}

const subjects: Record<string, Pick<ProviderConformanceOptions, 'create' | 'fixed'>> = {
  'Cluster API': { create: async () => capiSubject(environment.management) },
  'kubeconfig Secrets of one namespace': {
    create: async () => secretSubject(environment.management, { label: KUBECONFIG_LABEL, key: 'kubeconfig' }),
  },
  "multicluster-runtime's Secrets of all namespaces": {
    create: async () =>
      secretSubject(environment.management, { label: MULTICLUSTER_RUNTIME_LABEL, key: 'value', everywhere: true }),
  },
  'a directory of kubeconfig files': { create: async () => fileSubject(environment.directory, 'directory') },
  'a glob of kubeconfig files': { create: async () => fileSubject(environment.directory, 'glob') },
  'the management cluster itself': {
    create: async () => Promise.resolve(localSubject(environment.clusters[0]!)),
    fixed: true,
  },
};

for (const [what, options] of Object.entries(subjects)) {
  describe(`a provider of ${what}`, () => {
    for (const { name, run } of providerConformance({ ...options, startCluster })) it(name, async () => run());
  });
}

describe('the conformance checks', () => {
  /** The name of the check that must notice it. */
  const faults: [Fault, RegExp, RegExp][] = [
    ['heeds no signal', /^its run ends within a second/, /goes on 1000 ms after/],
    ['disengages at the end', /^its run ends within a second/, /is engaged: not within|ended the engagement/],
    ['throws in refresh', /^refresh never throws/, /threw/],
    ['drops what is broken', /^a bad new kubeconfig leaves/, /carries a warning: not within/],
    ['declares after its end', /^its run ends within a second/, /no run was under way/],
    ['forgets what went meanwhile', /^a second run learns/, /is disengaged: not within/],
    ['renames', /^a cluster that comes back/, /another name/],
    ['rejects', /^a cluster that is there at the start/, /its run rejected: the inventory/],
  ];

  it.each(faults)('notice a provider that %s', async (fault, check, complaint) => {
    const checks = providerConformance({
      create: async () => Promise.resolve(handSubject(fault)),
      startCluster,
      limitMs: 3_000,
    });
    const found = checks.find(({ name }) => check.test(name));
    await expect(found?.run()).rejects.toThrow(complaint);
  });

  for (const { name, run } of providerConformance({ create: async () => Promise.resolve(handSubject()), startCluster }))
    it(`pass for a provider without fault: ${name}`, async () => run());

  it('end with the reason of their signal', async () => {
    const [check] = providerConformance({ create: async () => Promise.resolve(handSubject()), startCluster });
    await expect(check?.run(AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough');
  });
});

describe('a platform engineer whose clusters come from everywhere', () => {
  it('has them in one fleet under names that do not meet, with the labels of what declares them', async () => {
    const { management, clusters } = environment;
    const namespace = 'everywhere';
    await ensureNamespace(management.api, namespace);
    await createCluster(management.api, { namespace, name: 'a', kubeconfig: clusters[0]!.kubeconfig });
    await management.api.create(`/api/v1/namespaces/${namespace}/secrets`, {
      metadata: { name: 'a', labels: { [KUBECONFIG_LABEL]: 'true', tier: 'edge' } },
      data: { kubeconfig: Buffer.from(clusters[1]!.kubeconfig).toString('base64') },
    });
    const { cluster, close } = managementOf(management.kubeconfig);
    const telemetry = quiet();
    const fleet = new SupervisedFleet({ telemetry, factory: kubeConnectionFactory({ telemetry }) });
    const manager = new Manager({
      telemetry,
      fleet,
      providers: [
        new CapiProvider({ management: cluster, telemetry, namespace }),
        prefixed(new KubeconfigSecretProvider({ management: cluster, telemetry })),
        prefixed(new KubeconfigFileProvider({ paths: [clusters[0]!.kubeconfigPath], telemetry })),
        prefixed(new LocalProvider({ management: cluster, labels: { tier: 'control' }, namespace })),
      ],
      controllers: [],
    });
    const stop = new AbortController();
    const running = manager.run(stop.signal);
    try {
      const names = ['everywhere/a', 'files#kubeconfig+workload-1', 'kubeconfig#everywhere/a', 'local#in-cluster'];
      await eventually(() => {
        const engaged = [...fleet.states()].filter(([, { phase }]) => phase === 'engaged').map(([name]) => name);
        expect(engaged.sort()).toEqual(names);
        return Promise.resolve();
      });
      const record = (name: string) => fleet.records.get(clusterName(name));
      expect(record('everywhere/a')).toMatchObject({ provider: 'capi', labels: {} });
      expect(record('kubeconfig#everywhere/a')).toMatchObject({
        provider: 'kubeconfig',
        labels: { tier: 'edge' },
        namespace,
        source: { kind: 'Secret', name: 'a' },
      });
      expect(record('files#kubeconfig+workload-1')?.labels[CONTEXT_LABEL]).toBe('workload-1');
      expect(record('local#in-cluster')).toMatchObject({ provider: 'local', labels: { tier: 'control' }, namespace });

      // A label that changes is told, and the engagement stays.
      const before = fleet.get(clusterName('kubeconfig#everywhere/a'));
      await management.api.patch(`/api/v1/namespaces/${namespace}/secrets/a`, {
        metadata: { labels: { tier: 'core' } },
      });
      await eventually(() => {
        expect(record('kubeconfig#everywhere/a')?.labels['tier']).toBe('core');
        return Promise.resolve();
      });
      expect(fleet.get(clusterName('kubeconfig#everywhere/a'))).toBe(before);
    } finally {
      stop.abort();
      await running;
      await close();
    }
  });
});
