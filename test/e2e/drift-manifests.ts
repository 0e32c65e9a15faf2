/** Manifests of charts that drift tests install. */

/** A Deployment with whatever else its spec and its container say (YAML flow maps without the braces). */
export function deployment(name: string, options: { spec?: string; container?: string; pod?: string } = {}): string {
  const container = ['name: app', 'image: "registry.test/app:1"', options.container].filter(Boolean).join(', ');
  const pod = [`containers: [{ ${container} }]`, options.pod].filter(Boolean).join(', ');
  return `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
spec: { selector: { matchLabels: { app: ${name} } }, template: { metadata: { labels: { app: ${name} } }, spec: { ${pod} } }${
    options.spec === undefined ? '' : `, ${options.spec}`
  } }
`;
}

export function configMap(name: string, data: Record<string, string>): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata: ${JSON.stringify(data)}\n`;
}

/** A CRD with a default, with pruning, and with an atomic list. */
export function widgetCrd(group: string, extra = ''): string {
  return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.${group}
spec:
  group: ${group}
  scope: Namespaced
  names: { plural: widgets, kind: Widget, listKind: WidgetList, singular: widget, categories: [] }
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size: { type: integer, default: 3 }
                cpu: { type: string }
                fixed: { type: string, x-kubernetes-validations: [{ rule: self == oldSelf, message: field is immutable }] }
                items: { type: array, items: { type: object, properties: { name: { type: string }, value: { type: string } } } }
${extra}`;
}
