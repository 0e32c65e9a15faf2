import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { Connection } from '../../src/kube/index.ts';
import { CapiProvider } from '../../src/providers/capi/index.ts';
import { KubeconfigFileProvider, KubeconfigSecretProvider } from '../../src/providers/kubeconfig/index.ts';
import { LOCAL_TARGET, LocalProvider } from '../../src/providers/local/index.ts';
import { clusterConnection, clusterName, createCluster as clusterOf, LOCAL_CLUSTER } from '../../src/runtime/index.ts';
import type { Cluster, ClusterName, ClusterSink } from '../../src/runtime/index.ts';
import { createTelemetry, silentLogger } from '../../src/telemetry/index.ts';
import type { ConformanceSubject } from '../../src/testing/index.ts';
import { ApiError, createCluster, deleteCluster, ensureNamespace, setKubeconfig } from '../support/index.ts';
import type { RestClient, TestCluster } from '../support/index.ts';

let namespaces = 0;

/** A namespace for one subject: what is left in it concerns nobody else. */
async function freshNamespace(api: RestClient): Promise<string> {
  namespaces += 1;
  const name = `provider-${namespaces}`;
  await ensureNamespace(api, name);
  return name;
}

/** A cluster as the manager holds its management cluster. */
export function managementOf(kubeconfig: string): {
  connection: Connection;
  cluster: Cluster;
  close: () => Promise<void>;
} {
  const connection = Connection.fromKubeconfig(kubeconfig, { clusterName: LOCAL_CLUSTER });
  const made = clusterOf(LOCAL_CLUSTER, clusterConnection(connection));
  return { connection, cluster: made.cluster, close: async () => made.close('the test is over') };
}

export function quiet(): ReturnType<typeof createTelemetry> {
  return createTelemetry({ log: silentLogger });
}

export async function capiSubject(management: TestCluster): Promise<ConformanceSubject> {
  const namespace = await freshNamespace(management.api);
  const { cluster, close } = managementOf(management.kubeconfig);
  const declared = new Set<string>();
  return {
    provider: new CapiProvider({ management: cluster, telemetry: quiet(), namespace }),
    declare: async (label, kubeconfig) => {
      if (declared.has(label)) await setKubeconfig(management.api, { namespace, name: label }, kubeconfig);
      else await createCluster(management.api, { namespace, name: label, kubeconfig });
      declared.add(label);
      return clusterName(`${namespace}/${label}`);
    },
    withdraw: async (label) => {
      await deleteCluster(management.api, { namespace, name: label });
      declared.delete(label);
    },
    dispose: close,
  };
}

export interface SecretSubjectOptions {
  readonly label: string;
  readonly key: string;
  /** Look in all namespaces. */
  readonly everywhere?: boolean;
}

export async function secretSubject(
  management: TestCluster,
  { label: marker, key, everywhere = false }: SecretSubjectOptions,
): Promise<ConformanceSubject> {
  const namespace = await freshNamespace(management.api);
  const { cluster, close } = managementOf(management.kubeconfig);
  const path = `/api/v1/namespaces/${namespace}/secrets`;
  const labels = { [marker]: 'true' };
  const names: string[] = [];
  return {
    provider: new KubeconfigSecretProvider({
      management: cluster,
      telemetry: quiet(),
      ...(everywhere ? {} : { namespaces: [namespace] }),
    }),
    declare: async (name, kubeconfig) => {
      names.push(name);
      const data = { [key]: Buffer.from(kubeconfig).toString('base64') };
      const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name, labels }, data };
      await management.api.apply(`${path}/${name}`, secret, 'test');
      return clusterName(everywhere ? `${namespace}/${name}` : name);
    },
    withdraw: async (name) => management.api.delete(`${path}/${name}`).then(() => undefined),
    dispose: async () => {
      for (const name of names) await management.api.delete(`${path}/${name}`).catch(ignoreMissing);
      await close();
    },
  };
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof ApiError && error.status === 404)) throw error;
}

/** One file per label in a watched directory, put in place by a rename, with one context named `main`. */
export async function fileSubject(directory: string, as: 'directory' | 'glob'): Promise<ConformanceSubject> {
  const folder = await mkdtemp(join(directory, 'kubeconfigs-'));
  const paths = [as === 'glob' ? join(folder, '*.yaml') : folder];
  return {
    provider: new KubeconfigFileProvider({ paths, telemetry: quiet() }),
    declare: async (label, kubeconfig) => {
      const file = join(folder, `${label}.yaml`);
      await writeFile(`${file}.tmp`, withContext(kubeconfig, 'main'), { mode: 0o600 });
      await rename(`${file}.tmp`, file);
      return clusterName(`${label}+main`);
    },
    withdraw: async (label) => rm(join(folder, `${label}.yaml`)),
    dispose: async () => rm(folder, { recursive: true }),
  };
}

interface Kubeconfig {
  contexts: { name: string; context: object }[];
  'current-context': string;
}

/** The kubeconfig with its one context renamed; what is no kubeconfig as it is. */
function withContext(text: string, name: string): string {
  let root: Kubeconfig;
  try {
    root = parse(text) as Kubeconfig;
  } catch {
    return text;
  }
  const contexts = root.contexts.map(({ context }) => ({ name, context }));
  return JSON.stringify({ ...root, contexts, 'current-context': name });
}

/** The management cluster itself; a declaration is a change of the manager's own credentials. */
export function localSubject(target: TestCluster): ConformanceSubject {
  const { connection, cluster, close } = managementOf(target.kubeconfig);
  return {
    provider: new LocalProvider({ management: cluster, pollMs: 1_000 }),
    declare: async (_label, kubeconfig) => {
      connection.swap(kubeconfig);
      return clusterName(LOCAL_TARGET);
    },
    withdraw: async () => Promise.reject(new Error('the management cluster stays')),
    dispose: close,
  };
}

/** What a provider can do wrong. */
export type Fault =
  | 'heeds no signal'
  | 'disengages at the end'
  | 'throws in refresh'
  | 'drops what is broken'
  | 'declares after its end'
  | 'forgets what went meanwhile'
  | 'renames'
  | 'rejects';

/** A provider whose clusters are a map of the test's own, with one fault; none: it keeps the contract. */
export function handSubject(fault?: Fault): ConformanceSubject {
  const clusters = new Map<ClusterName, string>();
  let told = new Set<ClusterName>();
  let sink: ClusterSink | undefined;
  let generation = 0;
  const tell = (name: ClusterName): void => {
    const kubeconfig = clusters.get(name);
    if (kubeconfig === undefined) sink?.disengage(name, 'withdrawn');
    else if (fault === 'drops what is broken' && kubeconfig.startsWith('clusters: [')) sink?.disengage(name, 'broken');
    else sink?.engage(name, { kubeconfig });
    if (sink !== undefined) told[kubeconfig === undefined ? 'delete' : 'add'](name);
  };
  const nameOf = (label: string): ClusterName => clusterName(fault === 'renames' ? `${label}-${generation++}` : label);
  return {
    provider: {
      name: 'hand',
      run: async (to, signal) => {
        sink = to;
        if (fault === 'forgets what went meanwhile') told = new Set();
        for (const name of new Set([...told, ...clusters.keys()])) tell(name);
        if (fault === 'rejects') throw new Error('the inventory has no such page');
        await new Promise<void>((resolve) => {
          if (signal.aborted) resolve();
          signal.addEventListener('abort', () => resolve(), { once: true });
        });
        if (fault === 'heeds no signal') await new Promise((resolve) => setTimeout(resolve, 2_000));
        if (fault === 'disengages at the end') for (const name of told) sink.disengage(name, 'the run ends');
        if (fault !== 'declares after its end') sink = undefined;
      },
      refresh: (name) => {
        if (fault === 'throws in refresh') throw new Error('not now');
        if (clusters.has(name)) tell(name);
      },
    },
    declare: async (label, kubeconfig) => {
      const name = nameOf(label);
      clusters.set(name, kubeconfig);
      tell(name);
      return Promise.resolve(name);
    },
    withdraw: async (label) => {
      for (const name of [...clusters.keys()].filter((known) => known === label || known.startsWith(`${label}-`))) {
        clusters.delete(name);
        tell(name);
      }
      return Promise.resolve();
    },
    dispose: async () => Promise.resolve(),
  };
}
