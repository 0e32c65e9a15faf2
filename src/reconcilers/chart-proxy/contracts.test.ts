import { describe, expect, it } from 'vitest';
import type { Resource } from '../../kube/index.ts';
import { FakeServer } from '../fakes.test-support.ts';
import { CRDS } from '../resources.ts';
import { referenceOf } from './builtins.ts';
import { ContractVersions } from './contracts.ts';
import { cluster } from './objects.test-support.ts';

const KIND = { group: 'infrastructure.cluster.x-k8s.io', kind: 'TestCluster' };
const signal = new AbortController().signal;

function versions(labels: Record<string, string>, served: string[]): ContractVersions {
  const server = new FakeServer();
  server.put(CRDS, { metadata: { name: 'testclusters.infrastructure.cluster.x-k8s.io', labels } });
  const resource = (version: string): Resource => ({
    group: KIND.group,
    version,
    plural: 'testclusters',
    namespaced: true,
  });
  const discovery = {
    ...server.discovery,
    find: async ({ version = served[0] }: { version?: string }) =>
      version !== undefined && served.includes(version) ? resource(version) : undefined,
  };
  return new ContractVersions(server.client, discovery);
}

describe('ContractVersions', () => {
  const cases: [string, Record<string, string>, string][] = [
    [
      'the newest of the newest contract',
      { 'cluster.x-k8s.io/v1beta2': 'v1beta1_v1beta2', 'cluster.x-k8s.io/v1beta1': 'v1' },
      'v1beta2',
    ],
    ['of the older contract when there is no other', { 'cluster.x-k8s.io/v1beta1': 'v1beta1' }, 'v1beta1'],
    ['v10 after v9, stable after beta', { 'cluster.x-k8s.io/v1beta2': 'v9_v10_v11beta1' }, 'v10'],
    [
      'an empty label counts as none',
      { 'cluster.x-k8s.io/v1beta2': '', 'cluster.x-k8s.io/v1beta1': 'v1alpha3_v1alpha4' },
      'v1alpha4',
    ],
  ];
  it.each(cases)('%s', async (_name, labels, version) => {
    const served = ['v1beta1', 'v1beta2', 'v9', 'v10', 'v11beta1', 'v1alpha3', 'v1alpha4', 'v1'];
    expect(await versions(labels, served).resource(KIND, signal)).toMatchObject({ version });
  });

  it.each([
    ['no labels', {}, ['v1'], 'has none of the labels'],
    ['a version that is not served', { 'cluster.x-k8s.io/v1beta2': 'v1beta2' }, ['v1'], 'it is not served'],
    ['no such kind', {}, [], 'does not serve kind TestCluster'],
  ])('says clearly: %s', async (_name, labels, served, message) => {
    await expect(versions(labels, served).resource(KIND, signal)).rejects.toThrow(message);
  });
});

describe('referenceOf', () => {
  it('reads v1beta2 and v1beta1 references', () => {
    const v1beta2 = cluster('w1', {}, { infrastructureRef: { apiGroup: 'g', kind: 'K', name: 'n' } });
    const v1beta1 = cluster(
      'w1',
      {},
      { controlPlaneRef: { apiVersion: 'g/v1', kind: 'K', name: 'n', namespace: 'other' } },
    );
    expect(referenceOf(v1beta2, 'InfraCluster')).toEqual({ group: 'g', kind: 'K', namespace: 'fleet', name: 'n' });
    expect(referenceOf(v1beta1, 'ControlPlane')).toEqual({ group: 'g', kind: 'K', namespace: 'other', name: 'n' });
    expect(referenceOf(v1beta2, 'ControlPlane')).toBeUndefined();
  });
});
