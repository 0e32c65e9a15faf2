import { join } from 'node:path';
import type { OwnedProcess, Processes } from './process.ts';
import type { KubeObject, RestClient } from './rest.ts';
import { eventually } from './wait.ts';

/** What kube-controller-manager and kwok need from their cluster. */
export interface ControllerOptions {
  command: string;
  directory: string;
  kubeconfigPath: string;
  processes: Processes;
}

/** What every cluster with controllers has: garbage collection, namespace deletion, service accounts, aggregated roles. */
const BASIC = [
  'garbage-collector-controller',
  'namespace-controller',
  'serviceaccount-controller',
  'clusterrole-aggregation-controller',
];

/** What makes pods of Deployments, Jobs and the like; only of use where kwok runs the pods. */
const WORKLOADS = [
  'deployment-controller',
  'replicaset-controller',
  'statefulset-controller',
  'daemonset-controller',
  'job-controller',
  'cronjob-controller',
  'endpointslice-controller',
  'endpoints-controller',
];

/** The one node of a cluster that kwok serves. */
const NODE_NAME = 'kwok-node';

/** Starts kube-controller-manager with few workers and without leader election or a port. */
export function startControllerManager(options: ControllerOptions & { workloads: boolean }): OwnedProcess {
  const controllers = options.workloads ? [...BASIC, ...WORKLOADS] : BASIC;
  return options.processes.start({
    name: 'kube-controller-manager',
    command: options.command,
    directory: options.directory,
    args: [
      `--kubeconfig=${options.kubeconfigPath}`,
      `--controllers=${controllers.join(',')}`,
      '--leader-elect=false',
      '--secure-port=0',
      '--profiling=false',
      `--service-account-private-key-file=${join(options.directory, 'service-account.key')}`,
      '--concurrent-gc-syncs=5',
      '--kube-api-qps=100',
      '--kube-api-burst=200',
    ],
  });
}

/**
 * Starts kwok, which plays a node on which pods become Ready, and Jobs' pods end. There is no scheduler: an admission
 * policy puts every pod on that node when it is created.
 */
export async function startKwok(options: ControllerOptions & { client: RestClient }): Promise<OwnedProcess> {
  await createBindingPolicy(options.client);
  await options.client.apply(`/api/v1/nodes/${NODE_NAME}`, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: NODE_NAME, labels: { 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': NODE_NAME } },
  });
  const kwok = options.processes.start({
    name: 'kwok',
    command: options.command,
    directory: options.directory,
    args: [
      `--kubeconfig=${options.kubeconfigPath}`,
      '--manage-all-nodes=true',
      '--node-ip=127.0.0.1',
      '--node-lease-duration-seconds=0',
    ],
  });
  await kwok.ready(async () => {
    const node = await options.client.get<KubeObject & { status: { conditions?: { type: string; status: string }[] } }>(
      `/api/v1/nodes/${NODE_NAME}`,
    );
    const isReady = node.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
    if (!isReady) throw new Error('the node is not Ready');
  });
  await untilPodsAreBound(options.client);
  return kwok;
}

/** Flags that the API server needs for the binding policy. */
export const KWOK_API_SERVER_ARGS: readonly string[] = [
  '--feature-gates=MutatingAdmissionPolicy=true',
  '--runtime-config=admissionregistration.k8s.io/v1beta1=true',
];

async function createBindingPolicy(client: RestClient): Promise<void> {
  const name = 'bind-pods-to-kwok';
  const group = '/apis/admissionregistration.k8s.io/v1beta1';
  await client.apply(`${group}/mutatingadmissionpolicies/${name}`, {
    apiVersion: 'admissionregistration.k8s.io/v1beta1',
    kind: 'MutatingAdmissionPolicy',
    metadata: { name },
    spec: {
      failurePolicy: 'Fail',
      reinvocationPolicy: 'Never',
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
      },
      matchConditions: [{ name: 'unbound', expression: '!has(object.spec.nodeName)' }],
      mutations: [
        {
          patchType: 'JSONPatch',
          jsonPatch: { expression: `[JSONPatch{op: "add", path: "/spec/nodeName", value: "${NODE_NAME}"}]` },
        },
      ],
    },
  });
  await client.apply(`${group}/mutatingadmissionpolicybindings/${name}`, {
    apiVersion: 'admissionregistration.k8s.io/v1beta1',
    kind: 'MutatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name },
  });
}

async function untilPodsAreBound(client: RestClient): Promise<void> {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'is-bound' },
    spec: { containers: [{ name: 'main', image: 'none' }] },
  };
  await eventually(
    async () => {
      const made = await client.create<KubeObject & { spec: { nodeName?: string } }>(
        '/api/v1/namespaces/default/pods?dryRun=All',
        pod,
      );
      if (made.spec.nodeName !== NODE_NAME) throw new Error('pods are not bound to the node yet');
    },
    { what: 'the admission policy binds pods' },
  );
}
