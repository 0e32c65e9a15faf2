/** What people do to objects with kubectl: every way that changes one. */
import type { KubeObject, TestCluster } from '../support/index.ts';

/** A field as status.drift is to tell it; without a manager none may be named. */
export interface ExpectedField {
  path: string;
  change: 'changed' | 'removed' | 'added';
  wanted?: string;
  live?: string;
  manager?: string;
  operation?: string;
}

export type EditedKind = 'ConfigMap' | 'Deployment' | 'Secret';

/** One way to change an object. */
export interface Edit {
  /** What a person types. */
  title: string;
  /** The object is `<slug>`. */
  slug: string;
  kind: EditedKind;
  run: (target: Target) => Promise<unknown>;
  /** What status.drift has of it; none: the object is missing. */
  fields: ExpectedField[];
  /** The entry of the scale subresource has no time (seen on 1.35), so neither has its author. */
  timeless?: boolean;
}

const PLURALS: Record<EditedKind, string> = {
  ConfigMap: 'api/v1/namespaces/NS/configmaps',
  Deployment: 'apis/apps/v1/namespaces/NS/deployments',
  Secret: 'api/v1/namespaces/NS/secrets',
};

/** The object that an edit is made to. */
export class Target {
  readonly cluster: TestCluster;
  readonly namespace: string;
  readonly kind: EditedKind;
  readonly name: string;

  constructor(cluster: TestCluster, object: { namespace: string; kind: EditedKind; name: string }) {
    this.cluster = cluster;
    this.namespace = object.namespace;
    this.kind = object.kind;
    this.name = object.name;
  }

  /** `deployment/web` */
  get ref(): string {
    return `${this.kind.toLowerCase()}/${this.name}`;
  }

  get path(): string {
    return `/${PLURALS[this.kind].replace('NS', this.namespace)}/${this.name}`;
  }

  async kubectl(args: string[], options: { stdin?: string; env?: Record<string, string> } = {}): Promise<string> {
    return this.cluster.kubectl([...args, '-n', this.namespace], options);
  }

  async patch(type: 'json' | 'merge' | 'strategic', patch: unknown, ...args: string[]): Promise<string> {
    return this.kubectl(['patch', this.ref, `--type=${type}`, '-p', JSON.stringify(patch), ...args]);
  }

  async live<T extends KubeObject>(): Promise<T> {
    return this.cluster.api.get<T>(this.path);
  }
}

/** As the chart has them; what is edited is named in the edits below. */
export function templateOf(kind: EditedKind, name: string): string {
  const head = `metadata: { name: ${name}, labels: { tier: front }, annotations: { note: hello } }\n`;
  if (kind === 'ConfigMap') return `apiVersion: v1\nkind: ConfigMap\n${head}data: { mode: calm, level: "3" }\n`;
  if (kind === 'Secret') return `apiVersion: v1\nkind: Secret\n${head}stringData: { password: calm }\n`;
  return `apiVersion: apps/v1\nkind: Deployment\n${head}spec:
  replicas: 2
  selector: { matchLabels: { app: ${name} } }
  template:
    metadata: { labels: { app: ${name} } }
    spec: { containers: [{ name: app, image: "registry.test/app:1", env: [{ name: MODE, value: calm }, { name: LEVEL, value: "3" }] }] }
`;
}

/** The chart's manifest with other data, as somebody has it in a file of their own. */
function ownManifest({ name, namespace }: Target): string {
  const metadata = { name, namespace, labels: { tier: 'front' } };
  return JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { mode: 'wild' } });
}

async function replaced(target: Target, ...args: string[]): Promise<void> {
  const live = await target.live<KubeObject & { data: Record<string, string> }>();
  const { name, namespace, labels, annotations } = live.metadata;
  const metadata = { name, namespace, labels, annotations };
  const next = { ...live, apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { ...live.data, mode: 'wild' } };
  await target.kubectl(['replace', ...args, '-f', '-'], { stdin: JSON.stringify(next) });
}

const MODE = { path: '/data/mode', change: 'changed', wanted: '"calm"', live: '"wild"' } as const;
const IMAGE = {
  path: '/spec/template/spec/containers/0/image',
  change: 'changed',
  wanted: '"registry.test/app:1"',
  live: '"registry.test/app:2"',
} as const;
const REPLICAS = { path: '/spec/replicas', change: 'changed', wanted: '2', live: '5' } as const;

export const EDITS: readonly Edit[] = [
  {
    title: 'kubectl edit',
    slug: 'edit',
    kind: 'ConfigMap',
    run: async (target) => target.kubectl(['edit', target.ref], { env: { KUBE_EDITOR: 'sed -i s/calm/wild/' } }),
    fields: [{ ...MODE, manager: 'kubectl-edit', operation: 'Update' }],
  },
  {
    title: 'kubectl apply',
    slug: 'apply',
    kind: 'ConfigMap',
    run: async (target) => target.kubectl(['apply', '-f', '-'], { stdin: ownManifest(target) }),
    fields: [{ ...MODE, manager: 'kubectl-client-side-apply', operation: 'Update' }],
  },
  {
    title: 'kubectl apply --server-side --force-conflicts',
    slug: 'server-side',
    kind: 'ConfigMap',
    run: async (target) =>
      target.kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], { stdin: ownManifest(target) }),
    fields: [{ ...MODE, manager: 'kubectl', operation: 'Apply' }],
  },
  {
    title: 'kubectl scale',
    slug: 'scale',
    kind: 'Deployment',
    run: async (target) => target.kubectl(['scale', target.ref, '--replicas=5']),
    fields: [{ ...REPLICAS, manager: 'kubectl', operation: 'Update' }],
    timeless: true,
  },
  {
    title: 'kubectl patch --type=json',
    slug: 'json',
    kind: 'Deployment',
    run: async (target) => target.patch('json', [{ op: 'replace', path: '/spec/replicas', value: 5 }]),
    fields: [{ ...REPLICAS, manager: 'kubectl-patch', operation: 'Update' }],
  },
  {
    title: 'kubectl patch --type=json that removes',
    slug: 'json-remove',
    kind: 'ConfigMap',
    run: async (target) => target.patch('json', [{ op: 'remove', path: '/data/level' }]),
    fields: [{ path: '/data/level', change: 'removed', wanted: '"3"' }],
  },
  {
    title: 'kubectl patch --type=merge',
    slug: 'merge',
    kind: 'ConfigMap',
    run: async (target) => target.patch('merge', { data: { mode: 'wild', level: null } }),
    fields: [
      { path: '/data/level', change: 'removed', wanted: '"3"' },
      { ...MODE, manager: 'kubectl-patch', operation: 'Update' },
    ],
  },
  {
    title: 'kubectl patch --type=strategic',
    slug: 'strategic',
    kind: 'Deployment',
    run: async (target) =>
      target.patch('strategic', {
        spec: { template: { spec: { containers: [{ name: 'app', image: 'registry.test/app:2' }] } } },
      }),
    fields: [{ ...IMAGE, manager: 'kubectl-patch', operation: 'Update' }],
  },
  {
    title: 'kubectl label',
    slug: 'label',
    kind: 'ConfigMap',
    run: async (target) => target.kubectl(['label', target.ref, 'tier=back', '--overwrite']),
    fields: [
      {
        path: '/metadata/labels/tier',
        change: 'changed',
        wanted: '"front"',
        live: '"back"',
        manager: 'kubectl-label',
        operation: 'Update',
      },
    ],
  },
  {
    title: "kubectl label that removes the chart's label",
    slug: 'unlabel',
    kind: 'Deployment',
    run: async (target) => target.kubectl(['label', target.ref, 'tier-']),
    fields: [{ path: '/metadata/labels/tier', change: 'removed', wanted: '"front"' }],
  },
  {
    title: "kubectl label that removes Helm's label",
    slug: 'unlabel-helm',
    kind: 'ConfigMap',
    run: async (target) => target.kubectl(['label', target.ref, 'app.kubernetes.io/managed-by-']),
    fields: [{ path: '/metadata/labels/app.kubernetes.io~1managed-by', change: 'removed', wanted: '"Helm"' }],
  },
  {
    title: 'kubectl annotate',
    slug: 'annotate',
    kind: 'Deployment',
    run: async (target) => target.kubectl(['annotate', target.ref, 'note=bye', '--overwrite']),
    fields: [
      {
        path: '/metadata/annotations/note',
        change: 'changed',
        wanted: '"hello"',
        live: '"bye"',
        manager: 'kubectl-annotate',
        operation: 'Update',
      },
    ],
  },
  {
    title: 'kubectl set image',
    slug: 'set-image',
    kind: 'Deployment',
    run: async (target) => target.kubectl(['set', 'image', target.ref, 'app=registry.test/app:2']),
    fields: [{ ...IMAGE, manager: 'kubectl-set', operation: 'Update' }],
  },
  {
    title: 'kubectl set env',
    slug: 'set-env',
    kind: 'Deployment',
    run: async (target) => target.kubectl(['set', 'env', target.ref, 'MODE=wild']),
    fields: [
      {
        path: '/spec/template/spec/containers/0/env/0/value',
        change: 'changed',
        wanted: '"calm"',
        live: '"wild"',
        manager: 'kubectl-set',
        operation: 'Update',
      },
    ],
  },
  {
    title: 'kubectl set env that removes',
    slug: 'unset-env',
    kind: 'Deployment',
    run: async (target) => target.kubectl(['set', 'env', target.ref, 'LEVEL-']),
    fields: [
      {
        path: '/spec/template/spec/containers/0/env/1',
        change: 'removed',
        wanted: '{"name":"LEVEL","value":"3"}',
      },
    ],
  },
  {
    title: 'kubectl replace',
    slug: 'replace',
    kind: 'ConfigMap',
    run: async (target) => replaced(target),
    fields: [{ ...MODE, manager: 'kubectl-replace', operation: 'Update' }],
  },
  {
    // Helm 4 owns `stringData` by name, and nobody `data`.
    title: "kubectl patch of a Secret's data",
    slug: 'secret',
    kind: 'Secret',
    run: async (target) => target.patch('merge', { data: { password: btoa('wild') } }),
    fields: [
      {
        path: '/data/password',
        change: 'changed',
        wanted: '***',
        live: '***',
        manager: 'kubectl-patch',
        operation: 'Update',
      },
    ],
  },
  {
    title: 'kubectl delete',
    slug: 'delete',
    kind: 'Deployment',
    run: async (target) => target.kubectl(['delete', target.ref]),
    fields: [],
  },
];

/**
 * What only a manager that leaves things alone can be shown: whoever corrects is faster than the second half of it. In a
 * release of the name and namespace `warned`.
 */
export const REMADE: readonly Edit[] = [
  {
    title: 'kubectl replace --force',
    slug: 'replace-force',
    kind: 'ConfigMap',
    run: async (target) => replaced(target, '--force'),
    fields: [{ ...MODE, manager: 'kubectl-replace', operation: 'Update' }],
  },
  {
    title: 'kubectl delete and kubectl create by somebody else',
    slug: 'create',
    kind: 'ConfigMap',
    run: async (target) => {
      await target.kubectl(['delete', target.ref]);
      await target.kubectl(['create', '-f', '-'], { stdin: ownManifest(target) });
    },
    fields: [
      { path: '/data/level', change: 'removed', wanted: '"3"' },
      { ...MODE, manager: 'kubectl-create', operation: 'Update' },
      {
        path: '/metadata/annotations',
        change: 'removed',
        // Helm's own are gone as well.
        wanted: '{"note":"hello","meta.helm.sh/release-name":"warned","meta.helm.sh/release-namespace":"warned"}',
      },
      { path: '/metadata/labels/app.kubernetes.io~1managed-by', change: 'removed', wanted: '"Helm"' },
    ],
  },
];
