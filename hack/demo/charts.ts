import { stringify } from 'yaml';
import type { Chart } from '../../test/support/index.ts';
import { chartFromFiles } from '../../test/support/index.ts';

/** Namespace of Clusters and HelmChartProxies on the management cluster. */
export const NAMESPACE = 'fleet';
/** Clusters with this label get both charts. */
export const LABEL = { key: 'charts', value: 'enabled' };
/** Secret with the chart repository's certificate authority. */
export const CA_SECRET = 'chart-repository-ca';

/** Version 1.1.0 is for the user to upgrade to. */
export function demoCharts(): Chart[] {
  return [greetingChart('1.0.0'), greetingChart('1.1.0'), baselineChart()];
}

/** A page, a Service and a Deployment: what an add-on looks like. */
function greetingChart(version: string): Chart {
  const page = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  message: {{ .Values.message | quote }}
  region: {{ .Values.region | quote }}
  chart: {{ .Chart.Name }}-{{ .Chart.Version }}
  revision: {{ .Release.Revision | quote }}
`;
  const workload = `apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  selector: { app: {{ .Release.Name }} }
  ports: [{ name: http, port: 80, targetPort: 8080 }]
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: 1
  selector: { matchLabels: { app: {{ .Release.Name }} } }
  template:
    metadata: { labels: { app: {{ .Release.Name }} } }
    spec:
      containers:
        - name: page
          image: example.invalid/page:1
          ports: [{ name: http, containerPort: 8080 }]
`;
  return chartFromFiles(
    { name: 'greeting', version, appVersion: version, description: 'greets whoever asks' },
    {
      'values.yaml': 'message: hello\nregion: unknown\n',
      'templates/page.yaml': page,
      'templates/workload.yaml': workload,
    },
  );
}

/** What a cluster gets once and then owns: limits for its namespaces. */
function baselineChart(): Chart {
  const limits = `apiVersion: v1
kind: LimitRange
metadata:
  name: {{ .Release.Name }}
spec:
  limits:
    - type: Container
      default: { memory: {{ .Values.memory }} }
`;
  return chartFromFiles(
    { name: 'baseline', version: '1.0.0', appVersion: '1.0.0', description: 'limits that a new cluster starts with' },
    { 'values.yaml': 'memory: 128Mi\n', 'templates/limits.yaml': limits },
  );
}

/** A HelmChartProxy of the demo as YAML. */
export function greetingManifest(repoURL: string, salutation: string): string {
  return manifest('greeting', repoURL, {
    reconcileStrategy: 'Continuous',
    driftDetection: { mode: 'Correct' },
    valuesTemplate: [
      `message: ${salutation} {{ .Cluster.metadata.name }}, whose pods live in {{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}`,
      'region: {{ .Cluster.metadata.labels.region | upper }}',
      '',
    ].join('\n'),
  });
}

/** As greetingManifest; its chart is installed once. */
export function baselineManifest(repoURL: string, memory: string): string {
  return manifest('baseline', repoURL, { reconcileStrategy: 'InstallOnce', valuesTemplate: `memory: ${memory}\n` });
}

function manifest(name: string, repoURL: string, spec: Record<string, unknown>): string {
  return stringify(
    {
      apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
      kind: 'HelmChartProxy',
      metadata: { name, namespace: NAMESPACE },
      spec: {
        clusterSelector: { matchLabels: { [LABEL.key]: LABEL.value } },
        repoURL,
        tlsConfig: { caSecret: { name: CA_SECRET } },
        chartName: name,
        version: '1.0.0',
        releaseName: name,
        namespace: name,
        ...spec,
      },
    },
    // kubectl reads YAML 1.1, where a bare yes is a boolean.
    { lineWidth: 0, version: '1.1' },
  );
}
