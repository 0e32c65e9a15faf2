/** What the tests of drift-policy.test.ts install. */
import { configMap, deployment } from './drift-manifests.ts';
import { CANARY } from './drifting.ts';

/** Takes an object out of drift detection. */
export const OPT_OUT = 'helmreleaseproxy.addons.cluster.x-k8s.io/drift-detection';

const BUDGET = `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: budget }
spec: { minAvailable: 1, selector: { matchLabels: { a: b } } }
`;

const POLICY = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: one }
spec: { podSelector: {} }
`;

const SECRET = `apiVersion: v1
kind: Secret
metadata: { name: generated-one, labels: { a: b } }
stringData: { key: empty }
`;

const HOOK = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: { name: drift-hook }
webhooks:
  - name: one.drift.test
    failurePolicy: Ignore
    sideEffects: None
    admissionReviewVersions: [v1]
    clientConfig: { url: "https://hook.test/a" }
    rules: [{ apiGroups: [none.test], apiVersions: [v1], operations: [CREATE], resources: [things] }]
`;

const CACHE = `apiVersion: example.com/v1
kind: Cache
metadata: { name: one }
spec: { cacheSize: 1Gi, shards: [{ memory: 1500m }], cpu: 1000m }
`;

/** A manifest with more in its metadata. */
function extended(manifest: string, metadata: string): string {
  return manifest.replace(/^metadata:$/m, `metadata:\n  ${metadata}`);
}

function optedOut(name: string): string {
  return extended(configMap(name, { mode: 'calm' }), `annotations: { ${OPT_OUT}: disabled }`);
}

const SETTINGS = { 'a.yaml': configMap('a', { mode: 'calm' }), 'canary.yaml': CANARY };

/** By chart, which is release, namespace and HelmChartProxy as well. */
export const CHARTS = {
  base: { 'canary.yaml': CANARY, 'web.yaml': deployment('web') },
  modes: { 'settings.yaml': configMap('settings', { mode: 'calm' }), 'budget.yaml': BUDGET },
  'live-out': SETTINGS,
  'chart-out': { 'a.yaml': optedOut('a'), 'b.yaml': optedOut('b'), 'canary.yaml': CANARY },
  replicas: { 'web.yaml': deployment('web', { spec: 'replicas: 2' }), 'canary.yaml': CANARY },
  scanned: {
    'web.yaml': extended(
      deployment('web', { container: 'env: [{ name: MODE, value: calm }]' }),
      'annotations: { example.com/last-scan: never }',
    ),
    'canary.yaml': CANARY,
  },
  filled: {
    'secret.yaml': SECRET,
    'theirs.yaml': extended(configMap('theirs', { a: '1' }), 'labels: { example.com/written-by: the-app }'),
    'canary.yaml': CANARY,
  },
  hooked: { 'hook.yaml': HOOK, 'canary.yaml': CANARY },
  cached: { 'cache.yaml': CACHE, 'canary.yaml': CANARY },
  ruled: SETTINGS,
  once: { 'one.yaml': POLICY, 'two.yaml': POLICY.replace('one', 'two') },
};
