import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { Header } from 'tar';
import { stringify } from 'yaml';

/** What Chart.yaml says; apiVersion v2 and type application are added. */
export interface ChartMetadata {
  name: string;
  version: string;
  appVersion?: string;
  description?: string;
  kubeVersion?: string;
  dependencies?: { name: string; version: string; repository?: string; condition?: string; alias?: string }[];
  [field: string]: unknown;
}

/** A packaged chart. The same metadata and files give the same bytes, hence the same digest. */
export interface Chart {
  readonly metadata: ChartMetadata;
  readonly name: string;
  readonly version: string;
  /** The .tgz. */
  readonly archive: Buffer;
  /** sha256 of the archive, hex. */
  readonly digest: string;
}

/** A chart of ConfigMaps. */
export interface SimpleChartOptions {
  name: string;
  /** Default 1.0.0. */
  version?: string;
  appVersion?: string;
  /** Number of ConfigMaps. Default 1. */
  objects?: number;
  /** Size (bytes) of a constant text in each ConfigMap. Default 0. */
  payloadBytes?: number;
  /** values.yaml. Default { message: 'hello' }. */
  values?: Record<string, unknown>;
  /** Further files, or others in place of the chart's own: templates/, crds/, charts/. */
  files?: Record<string, string>;
}

const BLOCK = 512;
const EPOCH = new Date(0);

/** Packages files, by their path in the chart. Chart.yaml comes from `metadata` unless it is among them. */
export function chartFromFiles(metadata: ChartMetadata, files: Record<string, string | Buffer>): Chart {
  const { name, version } = metadata;
  const chartYaml = stringify({ apiVersion: 'v2', type: 'application', ...metadata });
  const entries = Object.entries({ 'Chart.yaml': chartYaml, ...files });
  const parts = entries.flatMap(([path, content]) => tarEntry(`${name}/${path}`, Buffer.from(content)));
  const archive = gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]));
  return { metadata, name, version, archive, digest: createHash('sha256').update(archive).digest('hex') };
}

/**
 * A chart of N ConfigMaps `<release>-<i>`, i from 0. Each has the keys `message` (.Values.message), `chart`
 * (name-version) and `revision`; the first also has `values` (all values as JSON).
 */
export function simpleChart(options: SimpleChartOptions): Chart {
  const { name, version = '1.0.0', appVersion = version, objects = 1, payloadBytes = 0, values, files } = options;
  const template = `{{- range $i := until ${objects} }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $.Release.Name }}-{{ $i }}
  namespace: {{ $.Release.Namespace }}
data:
  message: {{ $.Values.message | toString | quote }}
  chart: {{ $.Chart.Name }}-{{ $.Chart.Version }}
  revision: {{ $.Release.Revision | quote }}
{{- if eq $i 0 }}
  values: {{ $.Values | toJson | quote }}
{{- end }}
{{- if ${payloadBytes} }}
  payload: "${'x'.repeat(payloadBytes)}"
{{- end }}
{{- end }}
`;
  return chartFromFiles(
    { name, version, appVersion, description: 'ConfigMaps for a test' },
    { 'values.yaml': stringify(values ?? { message: 'hello' }), 'templates/configmaps.yaml': template, ...files },
  );
}

/**
 * The chart of the benchmark: 26 objects, 21 ConfigMaps (20 of about 400 bytes, one of values), a ServiceAccount, Role,
 * RoleBinding, Service and Deployment. Its one value is `message`.
 */
export function benchChart(name: string, version = '1.0.0'): Chart {
  const files: Record<string, string> = {
    'values.yaml': stringify({ message: 'hello' }),
    'templates/access.yaml': ACCESS,
    'templates/workload.yaml': WORKLOAD,
    'templates/settings.yaml': configMap('settings', 'message: {{ .Values.message | quote }}'),
  };
  for (let index = 0; index < 20; index++) {
    const text = `${index} `.repeat(400).slice(0, 400).trim();
    files[`templates/config-${index}.yaml`] = configMap(`config-${index}`, `text: "${text}"`);
  }
  return chartFromFiles({ name, version, appVersion: version, description: 'the benchmark' }, files);
}

function configMap(suffix: string, data: string): string {
  return `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-${suffix}
  labels: { app.kubernetes.io/name: {{ .Chart.Name }} }
data:
  ${data}
`;
}

const ACCESS = `apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Release.Name }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .Release.Name }}
rules:
  - { apiGroups: [""], resources: [configmaps], verbs: [get, list, watch] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .Release.Name }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .Release.Name }} }
subjects:
  - { kind: ServiceAccount, name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }} }
`;

const WORKLOAD = `apiVersion: v1
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
      serviceAccountName: {{ .Release.Name }}
      containers:
        - name: main
          image: example.invalid/main:1
          env: [{ name: MESSAGE, value: {{ .Values.message | quote }} }]
          ports: [{ name: http, containerPort: 8080 }]
`;

function tarEntry(path: string, content: Buffer): Buffer[] {
  const header = new Header({ path, mode: 0o644, size: content.length, type: 'File', mtime: EPOCH, uid: 0, gid: 0 });
  const block = Buffer.alloc(BLOCK);
  if (header.encode(block)) throw new Error(`${path}: too long for a plain tar header`);
  const padding = (BLOCK - (content.length % BLOCK)) % BLOCK;
  return [block, content, Buffer.alloc(padding)];
}
