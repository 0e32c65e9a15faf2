import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { HCP_FINALIZER } from '../../src/api/index.ts';
import type { Environment, RestClient, TestCluster } from '../support/index.ts';
import { ensureNamespace, eventually, installCrds, startEnvironment } from '../support/index.ts';
import type { ChartProxyObject } from './crds-objects.ts';
import { API, chartProxy, CRD_DIRECTORY, CRD_FILES, DEFAULT_OPTIONS, HCPS, HRPS, PLURALS } from './crds-objects.ts';
import { NAMESPACE, refusal, releaseProxy } from './crds-objects.ts';

// One real API server. It first serves the CRDs as CAAPH had them, without our rules and defaults and with a conversion
// webhook that nobody answers; takes in what CAAPH's webhooks let in; and is then given ours.

const CRD_COLLECTION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** What CAAPH v0.6.4's webhook let in (any absolute URI or path) and our rules do not. */
const LEGACY_URLS: Record<string, string> = {
  http: 'http://charts.example/stable',
  ftp: 'ftp://charts.example/stable',
  path: '/charts',
  'upper-case-oci': 'OCI://charts.example/stable',
  'without-host': 'https:///charts',
};

let environment: Environment;
let cluster: TestCluster;
let api: RestClient;

beforeAll(async () => {
  environment = await startEnvironment({ clusters: 1, management: false });
  [cluster] = environment.clusters as [TestCluster];
  api = cluster.api;
  await ensureNamespace(api, NAMESPACE);
  await installLegacyCrds();
  await createLegacyObjects();
  await cluster.kubectl(['apply', ...CRD_FILES.flatMap((file) => ['-f', file])]);
  await eventually(
    async () => {
      expect(await refusal(api.create(HCPS, chartProxy({ repoURL: 'bare' })))).toContain('must be a URL');
      expect(await refusal(api.create(HRPS, releaseProxy({ repoURL: 'bare' })))).toContain('must be a URL');
    },
    { what: 'the API server to go by the new schemas' },
  );
}, 120_000);

afterAll(async () => {
  await environment.stop();
});

/** Our manifests without what CAAPH's CRDs lack. */
async function installLegacyCrds(): Promise<void> {
  for (const plural of PLURALS) {
    const crd = parse(await readFile(join(CRD_DIRECTORY, `${plural}.yaml`), 'utf8')) as { spec: object };
    const service = { name: 'caaph-webhook-service', namespace: 'caaph-system', path: '/convert' };
    const conversion = {
      strategy: 'Webhook',
      webhook: { clientConfig: { service }, conversionReviewVersions: ['v1'] },
    };
    await api.create(CRD_COLLECTION, { ...crd, spec: { ...(withoutOurRules(crd.spec) as object), conversion } });
    await eventually(() => api.list(`${API}/${plural}`), { what: `${plural} are served` });
  }
}

function withoutOurRules(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutOurRules);
  if (typeof node !== 'object' || node === null) return node;
  const ours = new Set(['x-kubernetes-validations', 'default', 'pattern', 'maxLength']);
  const kept = Object.entries(node).filter(([key]) => !ours.has(key));
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutOurRules(value)]));
}

async function createLegacyObjects(): Promise<void> {
  for (const [name, repoURL] of Object.entries(LEGACY_URLS)) {
    await api.create(HCPS, chartProxy({ repoURL }, name));
    await api.create(HRPS, releaseProxy({ repoURL }, name));
  }
  const clusterSelector = { matchExpressions: [{ key: 'env', operator: 'Includes', values: ['prod'] }] };
  await api.create(HCPS, { ...chartProxy({}, 'bad-selector'), spec: { ...chartProxy({}).spec, clusterSelector } });
}

describe('an administrator puts the CRDs over those of CAAPH', () => {
  it('with kubectl apply (done above), again without a change, and by server-side apply', async () => {
    const files = CRD_FILES.flatMap((file) => ['-f', file]);
    expect((await cluster.kubectl(['apply', ...files])).match(/unchanged/g)).toHaveLength(2);
    await cluster.kubectl(['apply', '--server-side', '--force-conflicts', ...files]);
    await installCrds(api, CRD_FILES);
  });

  it('with kubectl apply -k, from the directory and as part of deploy/', async () => {
    const crds = await cluster.kubectl(['kustomize', CRD_DIRECTORY]);
    expect(crds.match(/^kind: CustomResourceDefinition$/gm)).toHaveLength(2);
    const all = await cluster.kubectl(['apply', '--dry-run=server', '-k', CRD_DIRECTORY]);
    expect(all).toContain('helmchartproxies.addons.cluster.x-k8s.io');
  });

  it('and may take the conversion webhook out, which nothing calls', async () => {
    const crd = `${CRD_COLLECTION}/helmchartproxies.addons.cluster.x-k8s.io`;
    await api.jsonPatch(crd, [{ op: 'remove', path: '/spec/conversion' }]);
    expect(await api.get(crd)).toMatchObject({ spec: { conversion: { strategy: 'None' } } });
    // For a moment after a change of its CRD a resource answers 429.
    await eventually(async () => {
      expect(await api.list(HCPS)).not.toHaveLength(0);
    });
  });
});

describe.each([
  { kind: 'HelmChartProxy', path: HCPS, make: chartProxy },
  { kind: 'HelmReleaseProxy', path: HRPS, make: releaseProxy },
])('W15: a $kind that was valid under CAAPH v0.6.4', ({ path, make }) => {
  it.each(Object.entries(LEGACY_URLS))(
    'with the repoURL %s (%s) stays updatable and deletable',
    async (name, repoURL) => {
      const object = `${path}/${name}`;
      await api.patch(object, { spec: { version: '2.0.0' } });
      await api.patch(object, { spec: { driftDetection: { mode: 'Warn', ignore: [{ paths: ['/data'] }] } } });
      const wrong = { driftDetection: { mode: 'Warn', ignore: [{ paths: ['data'] }] } };
      expect(await refusal(api.patch(object, { spec: wrong }))).toContain('must be a JSON pointer');
      await api.patch(object, { spec: { driftDetection: null } });
      await api.apply(object, make({ repoURL, version: '3.0.0' }, name));
      const { metadata, ...rest } = await api.get(object);
      await api.replace(object, { ...rest, metadata: { ...metadata, labels: { touched: 'yes' } } });
      await api.patch(`${object}/status`, { status: { observedGeneration: 1 } });
      await api.delete(object);
      expect((await api.get(object)).metadata.deletionTimestamp).toBeDefined();
      await api.patch(object, { metadata: { finalizers: null } });
      expect(await api.find(object)).toBeUndefined();
    },
  );
});

describe('what CAAPH stored', () => {
  it('without options reads with the defaults, and has not changed by that', async () => {
    const before = await api.get<ChartProxyObject>(`${HCPS}/bad-selector`);
    expect(before.spec.options).toEqual(DEFAULT_OPTIONS);
    const after = await api.patch(`${HCPS}/bad-selector`, { metadata: { labels: { touched: 'yes' } } });
    expect(after.metadata.generation).toBe(before.metadata.generation);
  });

  it('W9: with an unusable selector can be kept, mended and deleted', async () => {
    const object = `${HCPS}/bad-selector`;
    await api.patch(object, { spec: { version: '2' } });
    await api.patch(object, { metadata: { finalizers: [HCP_FINALIZER, 'example.com/other'] } });
    const worse = { clusterSelector: { matchExpressions: [{ key: 'env', operator: 'Worse' }] } };
    expect(await refusal(api.patch(object, { spec: worse }))).toContain('operator must be');
    await api.patch(object, { metadata: { finalizers: null } });
    await api.patch(object, { spec: { clusterSelector: { matchExpressions: null, matchLabels: { env: 'prod' } } } });
    await api.delete(object);
    expect(await api.find(object)).toBeUndefined();
  });
});
