/** What the tests of drift-scenarios-1.test.ts install. */
import { deployment, widgetCrd } from './drift-manifests.ts';
import { CANARY } from './drifting.ts';

/** Of a CRD that the cluster has before any release. */
export const CUSTOM_GROUP = 'scenarios.test';

/** The image in every Deployment of `deployment`. */
export const APP = 'registry.test/app:1';

const WIDGET = `apiVersion: ${CUSTOM_GROUP}/v1\nkind: Widget\nmetadata: { name: one }\nspec: { cpu: 500m }\n`;

/** All amounts that a server writes otherwise than they were given, or that people write in several ways. */
const AMOUNTS = `resources: {
  limits: { cpu: 1000m, memory: 3072Mi, ephemeral-storage: 1000M },
  requests: { cpu: 0.1, memory: 3072, ephemeral-storage: 0.5Gi } }`.replaceAll(/\s+/g, ' ');

const SCALER = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: { name: web }
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: web }
  minReplicas: 2
  maxReplicas: 6
  metrics:
    - { type: Resource, resource: { name: memory, target: { type: Utilization, averageUtilization: 70 } } }
    - { type: Resource, resource: { name: cpu, target: { type: Utilization, averageUtilization: 80 } } }
`;

const SECRET = `apiVersion: v1
kind: Secret
metadata: { name: one }
stringData: { user: admin }
data: { key: c2VjcmV0, nothing: null, empty: "" }
`;

/** By order, ports and subsets that the server or a controller sorts. */
const ENDPOINTS = `apiVersion: v1
kind: Endpoints
metadata: { name: outside }
subsets:
  - { addresses: [{ ip: 10.1.0.2 }, { ip: 10.1.0.1 }], ports: [{ name: b, port: 82 }, { name: a, port: 81 }] }
  - { addresses: [{ ip: 10.1.0.3 }], ports: [{ name: c, port: 80 }] }
`;

const ROLES = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: aggregated-empty, labels: { kept: "yes" } }
aggregationRule: { clusterRoleSelectors: [{ matchLabels: { no: one } }] }
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: aggregated-absent, labels: { kept: "yes" } }
aggregationRule: { clusterRoleSelectors: [{ matchLabels: { no: one } }] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: without-rules }
rules: null
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: none }
rules: []
`;

const DATABASE = `apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db, creationTimestamp: null }
spec:
  serviceName: db
  replicas: 1
  selector: { matchLabels: { app: db } }
  template: { metadata: { creationTimestamp: null, labels: { app: db } }, spec: { containers: [{ name: db, image: db }] } }
status: { replicas: 0 }
`;

const CRD_STATUS = 'status: { acceptedNames: { kind: "", plural: "" }, conditions: [], storedVersions: [] }\n';

const CONVERSION = `  conversion:
    strategy: Webhook
    webhook: { conversionReviewVersions: [v1], clientConfig: { service: { name: x, namespace: bundles } } }
`;

function hook(name: string, bundle: string): string {
  return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: { name: ${name} }
webhooks:
  - name: one.drift.test
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Ignore
    rules: [{ apiGroups: [none.test], apiVersions: [v1], operations: [CREATE], resources: [things] }]
    clientConfig: { service: { name: x, namespace: bundles }${bundle} }
`;
}

/** A manifest with more in its metadata. */
function extended(manifest: string, metadata: string): string {
  return manifest.replace(/^metadata:$/m, `metadata:\n  ${metadata}`);
}

/** By chart, which is release, namespace and HelmChartProxy as well. */
export const CHARTS_1 = {
  defaults: {
    'web.yaml': deployment('web', { container: 'ports: [{ containerPort: 80 }]' }),
    'widget.yaml': WIDGET,
    'canary.yaml': CANARY,
  },
  nulled: { 'web.yaml': deployment('web', { container: 'imagePullPolicy: null' }), 'canary.yaml': CANARY },
  amounts: { 'web.yaml': deployment('web', { container: AMOUNTS }), 'widget.yaml': WIDGET, 'canary.yaml': CANARY },
  scaled: { 'web.yaml': deployment('web', { spec: 'replicas: 2' }), 'hpa.yaml': SCALER, 'canary.yaml': CANARY },
  keda: { 'web.yaml': deployment('web', { spec: 'replicas: 2' }), 'canary.yaml': CANARY },
  bundles: {
    'absent.yaml': hook('bundle-absent', ''),
    'placeholder.yaml': hook('bundle-placeholder', ', caBundle: "Cg=="'),
    'set.yaml': hook('bundle-set', ', caBundle: "QQ=="'),
    'crd.yaml': widgetCrd('bundles.test', CONVERSION),
    'canary.yaml': CANARY,
  },
  secrets: { 'secret.yaml': SECRET, 'canary.yaml': CANARY },
  empties: {
    'web.yaml': extended(
      deployment('web', {
        spec: 'strategy: {}, paused: false, minReadySeconds: 0',
        container:
          'resources: {}, env: [{ name: EMPTY, value: "" }], securityContext: null, volumeMounts: [], command: null',
        pod: 'nodeSelector: {}, affinity: null, tolerations: [], imagePullSecrets: []',
      }),
      'annotations: null\n  labels: {}',
    ),
    'crd.yaml': extended(widgetCrd('empties.test'), 'annotations: {}'),
    'canary.yaml': CANARY,
  },
  twice: {
    'web.yaml': deployment('web', {
      container:
        'env: [{ name: A, value: "1" }, { name: B, value: "2" }, { name: A, value: "3" }], ' +
        'ports: [{ containerPort: 80, name: one }, { containerPort: 80, name: two }]',
    }),
    'canary.yaml': CANARY,
  },
  order: {
    'web.yaml': deployment('web', {
      spec: 'replicas: 2',
      container: 'args: [a, b], ports: [{ containerPort: 81, name: other }, { containerPort: 80, name: http }]',
    }),
    'hpa.yaml': SCALER,
    'endpoints.yaml': ENDPOINTS,
    'canary.yaml': CANARY,
  },
  variables: {
    'web.yaml': deployment('web', {
      container:
        'env: [{ name: HOST, value: a }, { name: AT, value: "$(HOST):80" }, { name: URL, value: "http://$(AT)" }]',
    }),
    'canary.yaml': CANARY,
  },
  roles: { 'roles.yaml': ROLES, 'canary.yaml': CANARY },
  statuses: {
    'crd.yaml': extended(widgetCrd('statuses.test', CRD_STATUS), 'creationTimestamp: null\n  labels: { kept: "yes" }'),
    'db.yaml': DATABASE,
    'canary.yaml': CANARY,
  },
} satisfies Record<string, Record<string, string>>;
