import { buildInventory, compileRules, verifyObject } from '../../src/drift/index.ts';
import type { ComparisonPolicy, InventoryObject } from '../../src/drift/index.ts';
import { NativeReleaseReader } from '../../src/helm/index.ts';
import { ApiDiscovery, Connection, RestClient, SharedWatchSet } from '../../src/kube/index.ts';
import type { KubeClient } from '../../src/kube/index.ts';
import { createTelemetry } from '../../src/telemetry/index.ts';
import type { Bed } from './bed.ts';
import { RELEASE_NAMESPACE } from './bed.ts';
import type { PollCost } from './report.ts';

/** Times that everything is asked for; the first one is not counted, for what runs for the first time is compiled then. */
const ROUNDS = 2;
/** Most time (ms) for the first list of the release records. */
const SYNC_LIMIT_MS = 30_000;

const POLICY: ComparisonPolicy = {
  extraFields: 'Ignore',
  ignore: compileRules([], 'ignore'),
  quantities: compileRules([], 'quantities'),
  helmManagers: new Set(['helm']),
};

interface Subject {
  readonly client: KubeClient;
  readonly objects: readonly InventoryObject[];
}

/**
 * What it costs to find drift by asking: every object is read and dry-run applied, as detectors without events do (two
 * requests an object and interval), here with Capstan's own comparison after them. Runs in this process; one object after
 * the other on each cluster, all clusters at once.
 */
export async function pollEverything(bed: Bed, intervalSeconds: number): Promise<PollCost> {
  const connections = Array.from({ length: bed.options.clusters }, (_, index) =>
    Connection.fromKubeconfig(bed.fleet.cluster(index + 1).kubeconfig, { clusterName: `c${index + 1}` }),
  );
  try {
    const subjects = await Promise.all(connections.map(async (connection) => subjectOf(bed, connection)));
    let cost: PollCost | undefined;
    for (let round = 0; round < ROUNDS; round++) cost = await askForAll(subjects, intervalSeconds);
    if (cost === undefined) throw new Error('no round was made');
    return cost;
  } finally {
    await Promise.all(connections.map(async (connection) => connection.close()));
  }
}

async function subjectOf(bed: Bed, connection: Connection): Promise<Subject> {
  const client = new RestClient(connection);
  const watches = new SharedWatchSet(connection);
  const telemetry = createTelemetry();
  const reader = new NativeReleaseReader({ cluster: connection.clusterName, client, watches, telemetry });
  const { signal } = bed.options;
  try {
    await reader.synced(signal, SYNC_LIMIT_MS);
    const discovery = new ApiDiscovery(client);
    const objects: InventoryObject[] = [];
    for (const name of bed.names()) {
      const release = { namespace: RELEASE_NAMESPACE, name };
      const [mark] = reader.marks(release);
      const content = mark === undefined ? undefined : await reader.content(mark, { signal });
      if (content === undefined) throw new Error(`there is no release ${name} on ${connection.clusterName}`);
      const { revision, documents } = content;
      objects.push(...(await buildInventory({ release, revision, documents, crds: [] }, discovery)).objects);
    }
    return { client, objects };
  } finally {
    reader.close();
    await watches.close();
  }
}

async function askForAll(subjects: readonly Subject[], intervalSeconds: number): Promise<PollCost> {
  const cpu = process.cpuUsage();
  const from = performance.now();
  let requests = 0;
  const ask = async ({ client, objects }: Subject): Promise<void> => {
    for (const object of objects) {
      const count = await askFor(client, object);
      requests += count;
    }
  };
  await Promise.all(subjects.map(ask));
  const used = process.cpuUsage(cpu);
  return {
    intervalSeconds,
    rounds: ROUNDS,
    requestsPerRound: requests,
    cpuPerRound: (used.user + used.system) / 1e6,
    secondsPerRound: (performance.now() - from) / 1000,
  };
}

/** Resolves with the number of requests that it took. */
async function askFor(client: KubeClient, object: InventoryObject): Promise<number> {
  const { resource, id, wanted } = object;
  if (resource === undefined) return 0;
  const manifest = { ...wanted, metadata: { name: id.name, ...(wanted['metadata'] as object) } };
  await client.apply(resource, manifest, { fieldManager: 'helm', force: true, dryRun: true });
  let dryRuns = 1;
  await verifyObject(client, object, POLICY, { onDryRun: () => (dryRuns += 1) });
  return 1 + dryRuns;
}
