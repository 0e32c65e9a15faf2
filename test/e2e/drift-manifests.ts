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

/** One of each of the kinds that charts are made of, written as people do: defaults spelled out, quantities, names for ports. */
export const ONE_OF_EACH = `apiVersion: v1
kind: Service
metadata: { name: s }
spec: { type: NodePort, selector: { a: b }, ports: [{ name: http, port: 80, targetPort: http }, { name: dns, port: 53, protocol: UDP }], sessionAffinity: None }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: p }
spec: { minAvailable: 1, selector: { matchLabels: { a: b } } }
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: i }
spec: { rules: [{ host: a.test, http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: s, port: { number: 80 } } } }] } }] }
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: { name: h }
spec: { scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: d }, maxReplicas: 3, metrics: [{ type: Resource, resource: { name: memory, target: { type: AverageValue, averageValue: 1024Mi } } }, { type: Resource, resource: { name: cpu, target: { type: Utilization, averageUtilization: 80 } } }] }
---
apiVersion: batch/v1
kind: CronJob
metadata: { name: c }
spec: { schedule: "* * * * *", suspend: false, jobTemplate: { spec: { template: { spec: { restartPolicy: Never, containers: [{ name: c, image: i, resources: { limits: { cpu: 1 } } }] } } } } }
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: np }
spec: { podSelector: {}, policyTypes: [Ingress], ingress: [{}] }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: sa }
automountServiceAccountToken: false
imagePullSecrets: [{ name: x }]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: pvc }
spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1024Mi } }, storageClassName: "" }
---
apiVersion: apps/v1
kind: DaemonSet
metadata: { name: ds }
spec: { selector: { matchLabels: { a: b } }, template: { metadata: { labels: { a: b }, annotations: {} }, spec: { hostNetwork: false, volumes: [{ name: v, configMap: { name: x, defaultMode: 0644 } }, { name: e, emptyDir: {} }], tolerations: [{ operator: Exists }], containers: [{ name: c, image: i, volumeMounts: [{ name: v, mountPath: /v }], securityContext: { privileged: false } }] } } }
`;
