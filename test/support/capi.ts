import { join } from 'node:path';
import { installCrds } from './crds.ts';
import type { KubeObject, RestClient } from './rest.ts';
import { ApiError } from './rest.ts';
import { eventually } from './wait.ts';

/** Versions of cluster.x-k8s.io. */
export type CapiVersion = 'v1beta2' | 'v1beta1';

/** A Cluster to declare. */
export interface ClusterDeclaration {
  name: string;
  /** Default 'default'; created where it is missing. */
  namespace?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  /** Merged over the references that `controlPlane` and `infraCluster` give. */
  spec?: Record<string, unknown>;
  /** Content of the Secret `<name>-kubeconfig`; no Secret where it is left out. */
  kubeconfig?: string;
  /** Whether the control plane is initialized. Default true. */
  ready?: boolean;
  /** Version through which the Cluster is written, and whose status fields it gets. Default v1beta2. */
  version?: CapiVersion;
  /** Makes such an object under the Cluster's name and refers to it. */
  controlPlane?: ReferencedObject;
  infraCluster?: ReferencedObject;
}

/** What an object behind controlPlaneRef or infrastructureRef says. `kind` defaults to that of the present contract. */
export interface ReferencedObject {
  kind?: string;
  version?: string;
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
}

/** Where a Cluster lies. */
export interface ClusterKey {
  name: string;
  /** Default 'default'. */
  namespace?: string;
  /** Default v1beta2. */
  version?: CapiVersion;
}

const CONTROL_PLANE = { group: 'controlplane.cluster.x-k8s.io', kind: 'TestControlPlane', field: 'controlPlaneRef' };
const INFRA_CLUSTER = { group: 'infrastructure.cluster.x-k8s.io', kind: 'TestCluster', field: 'infrastructureRef' };
const PROVIDER_CRDS = ['test-control-planes', 'test-infra-clusters', 'old-control-planes', 'old-infra-clusters'];

/**
 * Installs the CRDs that stand for Cluster API. `versions` says what the management cluster serves: both, as Cluster
 * API 1.11 and later, or v1beta1 alone, as before.
 */
export async function installCapi(client: RestClient, versions: 'both' | 'v1beta1' = 'both'): Promise<void> {
  const clusters = versions === 'both' ? 'clusters' : 'clusters-v1beta1';
  await installCrds(client, [clusters, ...PROVIDER_CRDS, 'unlabelled-infra-clusters'].map(crdFile));
}

/** Creates the Cluster, what it refers to, its status and its kubeconfig Secret, in this order; resolves with the Cluster. */
export async function createCluster(client: RestClient, declaration: ClusterDeclaration): Promise<KubeObject> {
  const { name, labels, annotations, spec, controlPlane, infraCluster } = declaration;
  const key = { name, namespace: declaration.namespace ?? 'default', version: declaration.version ?? 'v1beta2' };
  await ensureNamespace(client, key.namespace);
  const references = {
    ...(controlPlane && (await createReferenced(client, key, { ...CONTROL_PLANE, ...controlPlane }))),
    ...(infraCluster && (await createReferenced(client, key, { ...INFRA_CLUSTER, ...infraCluster }))),
  };
  await client.create(collection(key), {
    apiVersion: `cluster.x-k8s.io/${key.version}`,
    kind: 'Cluster',
    metadata: { name, labels, annotations },
    spec: { ...references, ...spec },
  });
  if (declaration.kubeconfig !== undefined) await setKubeconfig(client, key, declaration.kubeconfig);
  return setReady(client, key, declaration.ready ?? true);
}

/** Deletes the Cluster and its kubeconfig Secret (unless `keepSecret`), and waits until both are gone. */
export async function deleteCluster(client: RestClient, key: ClusterKey, keepSecret = false): Promise<void> {
  await client.delete(clusterPath(key));
  if (!keepSecret) await deleteKubeconfig(client, key);
  await eventually(
    async () => {
      if (await client.find(clusterPath(key))) throw new Error('the Cluster is still there');
    },
    { what: `Cluster ${key.name} is gone` },
  );
}

/** Says in the Cluster's status that its control plane is, or is not, initialized. */
export async function setReady(client: RestClient, key: ClusterKey, ready: boolean): Promise<KubeObject> {
  const condition = {
    type: 'ControlPlaneInitialized',
    status: ready ? 'True' : 'False',
    reason: ready ? 'Initialized' : 'NotInitialized',
    message: '',
    lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
  };
  const modern = { initialization: { controlPlaneInitialized: ready, infrastructureProvisioned: true } };
  const old = { controlPlaneReady: ready, infrastructureReady: true };
  const status = { phase: ready ? 'Provisioned' : 'Provisioning', conditions: [condition] };
  const fields = key.version === 'v1beta1' ? old : modern;
  return client.patch(`${clusterPath(key)}/status`, { status: { ...status, ...fields } });
}

/** Sets or clears spec.paused. */
export async function setPaused(client: RestClient, key: ClusterKey, paused: boolean): Promise<void> {
  await client.patch(clusterPath(key), { spec: { paused: paused || null } });
}

/** Changes labels of the Cluster; null removes one. */
export async function setLabels(
  client: RestClient,
  key: ClusterKey,
  labels: Record<string, string | null>,
): Promise<void> {
  await client.patch(clusterPath(key), { metadata: { labels } });
}

/** Creates or replaces the Secret `<name>-kubeconfig`; this is how a rotated credential arrives. */
export async function setKubeconfig(client: RestClient, key: ClusterKey, kubeconfig: string): Promise<void> {
  const owner = await client.find(clusterPath(key));
  const body = {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'cluster.x-k8s.io/secret',
    metadata: {
      name: secretName(key),
      labels: { 'cluster.x-k8s.io/cluster-name': key.name },
      ownerReferences: owner && [
        {
          apiVersion: `cluster.x-k8s.io/${key.version ?? 'v1beta2'}`,
          kind: 'Cluster',
          name: key.name,
          uid: owner.metadata.uid,
        },
      ],
    },
    data: { value: Buffer.from(kubeconfig).toString('base64') },
  };
  await client.apply(secretPath(key), body, 'cluster-api');
}

/** Deletes the Secret `<name>-kubeconfig`. */
export async function deleteKubeconfig(client: RestClient, key: ClusterKey): Promise<void> {
  await client.delete(secretPath(key));
}

/** Creates the namespace unless it exists. */
export async function ensureNamespace(client: RestClient, name: string): Promise<void> {
  try {
    await client.create('/api/v1/namespaces', { metadata: { name } });
  } catch (error) {
    if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error;
  }
}

/** The REST path of a Cluster. */
export function clusterPath(key: ClusterKey): string {
  return `${collection(key)}/${key.name}`;
}

type ReferencedKind = ReferencedObject & { group: string; kind: string; field: string };

async function createReferenced(
  client: RestClient,
  key: Required<ClusterKey>,
  object: ReferencedKind,
): Promise<Record<string, unknown>> {
  const { group, kind, field, spec, status } = object;
  const version = object.version ?? (kind.startsWith('Old') ? 'v1beta1' : 'v1beta2');
  const path = `/apis/${group}/${version}/namespaces/${key.namespace}/${kind.toLowerCase()}s`;
  await client.create(path, {
    apiVersion: `${group}/${version}`,
    kind,
    metadata: { name: key.name },
    spec: spec ?? {},
  });
  if (status) await client.patch(`${path}/${key.name}/status`, { status });
  const modern = { apiGroup: group, kind, name: key.name };
  const old = { apiVersion: `${group}/${version}`, kind, name: key.name, namespace: key.namespace };
  return { [field]: key.version === 'v1beta1' ? old : modern };
}

function collection(key: ClusterKey): string {
  return `/apis/cluster.x-k8s.io/${key.version ?? 'v1beta2'}/namespaces/${key.namespace ?? 'default'}/clusters`;
}

function secretName(key: ClusterKey): string {
  return `${key.name}-kubeconfig`;
}

function secretPath(key: ClusterKey): string {
  return `/api/v1/namespaces/${key.namespace ?? 'default'}/secrets/${secretName(key)}`;
}

function crdFile(name: string): string {
  return join(import.meta.dirname, 'crds', `${name}.yaml`);
}
