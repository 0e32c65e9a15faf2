import type { Chart } from '../../test/support/index.ts';
import { chartFromFiles } from '../../test/support/index.ts';

/** Objects of each chart besides its ConfigMaps: Deployment, Service, ServiceAccount, Role, RoleBinding. */
const OTHERS = 5;

/** A chart of so many objects: ConfigMaps `<release>-<i>` with a few keys each, and what an add-on has besides. */
export function driftChart(name: string, version: string, objects: number): Chart {
  const template = `{{- range $i := until ${objects - OTHERS} }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $.Release.Name }}-{{ $i }}
  labels: { app: {{ $.Release.Name }} }
data:
  message: {{ $.Values.message | quote }}
  settings: |
    level: info
    retries: 3
    endpoint: https://{{ $.Release.Name }}.{{ $.Release.Namespace }}.svc:8443/v1
{{- end }}
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: {{ .Release.Name }} }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: {{ .Release.Name }} }
rules: [{ apiGroups: [""], resources: [configmaps], verbs: [get, list, watch] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: {{ .Release.Name }} }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .Release.Name }} }
subjects: [{ kind: ServiceAccount, name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }} }]
---
apiVersion: v1
kind: Service
metadata: { name: {{ .Release.Name }} }
spec:
  selector: { app: {{ .Release.Name }} }
  ports: [{ name: http, port: 80, targetPort: 8080 }]
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: {{ .Release.Name }} }
spec:
  replicas: 2
  selector: { matchLabels: { app: {{ .Release.Name }} } }
  template:
    metadata: { labels: { app: {{ .Release.Name }} } }
    spec:
      serviceAccountName: {{ .Release.Name }}
      containers:
        - name: main
          image: example.invalid/main:1
          ports: [{ name: http, containerPort: 8080 }]
          resources: { requests: { cpu: 100m, memory: 64Mi } }
`;
  return chartFromFiles({ name, version }, { 'values.yaml': 'message: first\n', 'templates/all.yaml': template });
}
