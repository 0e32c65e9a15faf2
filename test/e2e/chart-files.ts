import type { Chart } from '../support/index.ts';
import { chartFromFiles } from '../support/index.ts';

/** A ConfigMap template; `name` is what follows the release's name. */
export function configMap(
  name: string,
  data: Record<string, string>,
  annotations: Record<string, string> = {},
): string {
  const map = (entries: Record<string, string>): string =>
    `{ ${Object.entries(entries)
      .map(([key, value]) => `${JSON.stringify(key)}: ${value}`)
      .join(', ')} }`;
  return [
    'apiVersion: v1',
    'kind: ConfigMap',
    'metadata:',
    `  name: {{ .Release.Name }}-${name}`,
    `  annotations: ${map(annotations)}`,
    `data: ${map(data)}`,
    '',
  ].join('\n');
}

/** A hook that is a ConfigMap: it is done once it is there. */
export function hook(name: string, when: string, more: Record<string, string> = {}): string {
  const annotations = Object.fromEntries(
    Object.entries({ 'helm.sh/hook': when, ...more }).map(([key, value]) => [key, JSON.stringify(value)]),
  );
  return configMap(name, { revision: '{{ .Release.Revision | quote }}' }, annotations);
}

/** A Service that is ready only when somebody gives it an address: nobody does unless the test. */
export const NEVER_READY = `apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}-lb
spec:
  type: LoadBalancer
  selector: { app: none }
  ports: [{ port: 80 }]
`;

/** A Job that ends well, where kwok runs its pod. */
export function job(name: string, annotations = '{}'): string {
  return `apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-${name}
  annotations: ${annotations}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{ name: main, image: example.invalid/main:1 }]
`;
}

/** A Job that fails after a second: it has no pods, and a deadline. */
export function failingJob(name: string, annotations = '{}'): string {
  return job(name, annotations).replace(
    'spec:\n  backoffLimit: 0',
    'spec:\n  parallelism: 0\n  activeDeadlineSeconds: 1',
  );
}

/** A CRD of group widgets.example.com. */
export function widgetCrd(kind: string): string {
  const name = kind.toLowerCase();
  return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ${name}s.widgets.example.com
spec:
  group: widgets.example.com
  scope: Namespaced
  names: { kind: ${kind}, listKind: ${kind}List, plural: ${name}s, singular: ${name} }
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object, properties: { spec: { type: object, x-kubernetes-preserve-unknown-fields: true } } } }
`;
}

/** An object of such a CRD. */
export function widget(kind: string): string {
  return `apiVersion: widgets.example.com/v1
kind: ${kind}
metadata:
  name: {{ .Release.Name }}
spec: { size: {{ .Values.size | default 1 }} }
`;
}

/** A chart of the given templates; values.yaml is empty unless given. */
export function chartOf(name: string, files: Record<string, string>, metadata: Record<string, unknown> = {}): Chart {
  return chartFromFiles({ name, version: '1.0.0', ...metadata }, { 'values.yaml': '{}\n', ...files });
}
