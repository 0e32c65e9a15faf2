/** Noticing from metadata on a real API server: which edits stir an object, and that the others cost no request. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { authorOf, foreignWatch } from '../../src/drift/managed-fields.ts';
import { buildInventory, ClusterTracker } from '../../src/drift/index.ts';
import type { Inventory, JsonObject, Stirred } from '../../src/drift/index.ts';
import { ApiDiscovery, Connection, RestClient, SharedWatchSet } from '../../src/kube/index.ts';
import type { KubeObject, Resource } from '../../src/kube/index.ts';
import { createTelemetry } from '../../src/telemetry/index.ts';
import { ensureNamespace, eventually, startEnvironment } from '../support/index.ts';
import type { Environment, TestCluster } from '../support/index.ts';

const HELM_MANAGERS = new Set(['helm', 'manager']);
const { signal } = new AbortController();

let environment: Environment;
let cluster: TestCluster;
let connection: Connection;
let client: RestClient;
let discovery: ApiDiscovery;
let requests: string[];
let namespaces = 0;

beforeAll(async () => {
  environment = await startEnvironment({ clusters: 1, management: false });
  cluster = environment.clusters[0]!;
  const telemetry = createTelemetry();
  connection = Connection.fromKubeconfig(cluster.kubeconfig, { clusterName: 'one', telemetry });
  client = new RestClient(connection);
  discovery = new ApiDiscovery(client, { minRefreshMs: 100 });
});

afterAll(async () => {
  await connection.close();
  await environment.stop();
});

/** One tracker with a watch set of its own, and what it is told. */
class Bed {
  readonly namespace: string;
  readonly told: string[] = [];
  readonly watches: SharedWatchSet;
  readonly tracker: ClusterTracker;
  inventory: Inventory | undefined;

  constructor(namespace: string) {
    this.namespace = namespace;
    const counted = {
      clusterName: 'one',
      telemetry: connection.telemetry,
      features: connection.features,
      requestTimeoutMs: connection.requestTimeoutMs,
      onSwap: connection.onSwap.bind(connection),
      json: ((request) => {
        requests.push(`${request.method} ${request.path}`);
        return connection.json(request);
      }) as Connection['json'],
      open: ((request) => {
        requests.push(`WATCH ${request.path}`);
        return connection.open(request);
      }) as Connection['open'],
    };
    this.watches = new SharedWatchSet(counted);
    this.tracker = new ClusterTracker({
      cluster: 'one',
      watches: this.watches,
      discovery,
      telemetry: connection.telemetry,
      helmManagers: HELM_MANAGERS,
      onStir: (release) => this.told.push(release),
      options: { afterNewsMs: [200, 1_000, 3_000], pollMs: 5_000 },
    });
  }

  async track(documents: JsonObject[], keep = false): Promise<void> {
    const source = { release: { namespace: this.namespace, name: 'app' }, revision: 1, documents, crds: [] };
    this.inventory = await buildInventory(source, discovery);
    this.tracker.track('app', this.inventory, { wide: false, keep });
    await this.tracker.synced('app', signal, 20_000);
  }

  /** Makes what the inventory wants, as Helm does: `helm` by server-side apply, `manager` by a plain create. */
  async install(as: 'helm 4' | 'helm 3' | 'CAAPH' = 'helm 4'): Promise<void> {
    for (const { wanted, resource, id } of this.inventory?.objects ?? []) {
      const object = structuredClone(wanted) as JsonObject & KubeObject;
      if (resource === undefined) throw new Error(`${id.kind} is not served`);
      if (as === 'helm 4') await client.apply(resource, object, { fieldManager: 'helm', force: true });
      else await client.create(resource, object, { fieldManager: as === 'helm 3' ? 'helm' : 'manager' });
    }
  }

  /** Verifies whatever is stirred by reading it, and takes it for what is wanted. */
  async settleAll(options: { wide?: boolean } = {}): Promise<readonly Stirred[]> {
    const taken = this.tracker.take('app');
    for (const { index, id } of taken) {
      const object = this.inventory?.objects[index];
      const live =
        object?.resource === undefined
          ? undefined
          : await client.find<KubeObject>(object.resource, { namespace: id.namespace, name: id.name });
      const paths = [['data', 'a'], ['spec', 'replicas']]; // prettier-ignore
      const watch = live === undefined ? [] : foreignWatch(live, paths, HELM_MANAGERS);
      this.tracker.settle('app', id, { ...(live !== undefined && { live }), watch, ...options });
    }
    return taken;
  }

  /** Waits until `name` is stirred, then what is stirred at all. */
  async stirred(name: string): Promise<string[]> {
    return eventually(
      async () => {
        const taken = this.tracker.take('app');
        if (!taken.some(({ id }) => id.name === name) || this.told.length === 0) throw new Error('not stirred');
        return Promise.resolve(taken.map(({ id, kind }) => `${id.name} ${kind}`));
      },
      { timeoutMs: 10_000, intervalMs: 20, what: `${name} is stirred` },
    );
  }

  /** Edits the object `canary` after something that is no drift: when the canary is seen, the other was, too. */
  async onlyCanary(): Promise<void> {
    await this.edit('configmaps/canary', { data: { a: String(performance.now()) } }, 'kubectl-patch');
    expect(await this.stirred('canary')).toEqual(['canary changed']);
    await this.settleAll();
    this.told.length = 0;
  }

  /** Patches `plural/name` as a manager, or as `manager/status`. */
  async edit(path: string, body: unknown, as: string): Promise<KubeObject> {
    const [plural = '', name = ''] = path.split('/');
    const [fieldManager, subresource] = as.split('/');
    const options = { fieldManager, subresource: subresource === 'status' ? ('status' as const) : undefined };
    return client.patch(PATHS[plural]!, { namespace: this.namespace, name }, { type: 'merge', body }, options);
  }

  async close(): Promise<void> {
    this.tracker.close();
    await this.watches.close();
  }
}

function configMap(name: string): JsonObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { a: '1', b: '2' } };
}

function deployment(name: string): JsonObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: [{ name: 'main', image: 'registry.example.com/app:1' }] },
      },
    },
  };
}

const PATHS: Record<string, Resource> = {
  configmaps: { group: '', version: 'v1', plural: 'configmaps', namespaced: true },
  deployments: { group: 'apps', version: 'v1', plural: 'deployments', namespaced: true },
  widgets: { group: 'drift.example.com', version: 'v1', plural: 'widgets', namespaced: true },
};

/** Times in managedFields have whole seconds. */
async function nextSecond(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 1_050 - (Date.now() % 1_000)));
}

let bed: Bed;
let namespace: string;

beforeEach(async () => {
  requests = [];
  namespaces += 1;
  namespace = `notice-${String(namespaces)}`;
  await ensureNamespace(cluster.api, namespace);
  bed = new Bed(namespace);
});

afterEach(async () => {
  await bed.close();
});

describe.each(['helm 4', 'helm 3', 'CAAPH'] as const)('objects that %s made', (maker) => {
  beforeEach(async () => {
    await bed.track([configMap('canary'), configMap('web'), deployment('app')]);
    await bed.install(maker);
    await bed.settleAll();
    await bed.onlyCanary();
  });

  it('are stirred by edits of wanted fields, whoever makes them and however', async () => {
    const edits: [string, () => Promise<unknown>][] = [
      ['update', () => bed.edit('configmaps/web', { data: { a: 'x' } }, 'kubectl-edit')],
      ['removal', () => bed.edit('configmaps/web', { data: { b: null } }, 'kubectl-edit')],
      [
        'server-side apply',
        () =>
          client.apply<KubeObject>(
            PATHS['configmaps']!,
            {
              apiVersion: 'v1',
              kind: 'ConfigMap',
              metadata: { name: 'web', namespace },
              data: { a: 'y' },
            } as KubeObject,
            { fieldManager: 'gitops', force: true },
          ),
      ],
      ['a second edit of the same field', () => bed.edit('configmaps/web', { data: { a: 'z' } }, 'other')],
      [
        'replace',
        async () => {
          const { metadata } = await client.get(PATHS['configmaps']!, { namespace, name: 'web' });
          const { uid, resourceVersion } = metadata;
          await client.replace(
            PATHS['configmaps']!,
            { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web', namespace, uid, resourceVersion } },
            { fieldManager: 'kubectl-replace' },
          );
        },
      ],
    ];
    for (const [what, make] of edits) {
      await make();
      // `replace` takes the label away, too: the watch tells of that as of a delete.
      const how = what === 'replace' ? 'gone' : 'changed';
      expect([what, await bed.stirred('web')]).toEqual([what, [`web ${how}`]]);
      await bed.settleAll();
      bed.told.length = 0;
    }
  });

  it('are stirred by Helm’s own manager that writes another value a second later', async () => {
    const manager = maker === 'CAAPH' ? 'manager' : 'helm';
    await nextSecond();
    await bed.edit('configmaps/web', { data: { a: 'same manager' } }, manager);
    expect(await bed.stirred('web')).toEqual(['web changed']);
    const live = await client.get(PATHS['configmaps']!, { namespace, name: 'web' });
    expect(authorOf(live, ['data', 'a'], HELM_MANAGERS)).toBeUndefined();
  });

  it('are stirred by each of one manager’s edits, though times have whole seconds', async () => {
    for (const value of ['x', 'y', 'z', 'x']) {
      await bed.edit('configmaps/web', { data: { a: value } }, 'kubectl-edit');
      expect([value, await bed.stirred('web')]).toEqual([value, ['web changed']]);
      await bed.settleAll({ wide: true });
      bed.told.length = 0;
    }
  });

  it('are stirred by scaling, with its author, and by whoever scales next', async () => {
    await cluster.kubectl(['scale', 'deployment', 'app', '-n', namespace, '--replicas=3']);
    expect(await bed.stirred('app')).toEqual(['app changed']);
    const live = await client.get(PATHS['deployments']!, { namespace, name: 'app' });
    expect(authorOf(live, ['spec', 'replicas'], HELM_MANAGERS)).toMatchObject({
      manager: 'kubectl',
      subresource: 'scale',
    });
    await bed.settleAll();
    bed.told.length = 0;
    await nextSecond();
    await cluster.kubectl(['scale', 'deployment', 'app', '-n', namespace, '--replicas=4']);
    expect(await bed.stirred('app')).toEqual(['app changed']);
  });

  it('are not stirred by status, by annotations and labels of others, by an apply of the same values, and no request is made', async () => {
    requests.length = 0;
    await bed.edit(
      'deployments/app',
      { status: { replicas: 1, observedGeneration: 1, unavailableReplicas: 1 } },
      'kube-controller-manager/status',
    );
    await cluster.kubectl(['annotate', 'deployment', 'app', '-n', namespace, 'deployment.kubernetes.io/revision=7']);
    await cluster.kubectl(['label', 'configmap', 'web', '-n', namespace, 'team=blue']);
    await bed.edit('configmaps/web', { data: { a: '1' } }, 'writes-what-is-there');
    await client.apply(
      PATHS['configmaps']!,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web', namespace }, data: { b: '2' } } as KubeObject,
      { fieldManager: 'co-owner' },
    );
    await bed.onlyCanary();
    expect(requests).toEqual([]);
  });

  it('are stirred by delete, by delete and create, and by losing the label', async () => {
    await client.delete(PATHS['configmaps']!, { namespace, name: 'web' });
    expect(await bed.stirred('web')).toEqual(['web gone']);
    await bed.settleAll();
    bed.told.length = 0;
    const { wanted } = bed.inventory!.objects.find(({ id }) => id.name === 'web')!;
    await client.create(PATHS['configmaps']!, structuredClone(wanted) as JsonObject & KubeObject, {
      fieldManager: 'kubectl-create',
    });
    expect(await bed.stirred('web')).toEqual(['web changed']);
    await bed.settleAll();
    bed.told.length = 0;
    // The fields are another manager's now: its edits are noticed all the same.
    await nextSecond();
    await bed.edit('configmaps/web', { data: { a: 'x' } }, 'kubectl-create');
    expect(await bed.stirred('web')).toEqual(['web changed']);
    await bed.settleAll();
    bed.told.length = 0;
    await cluster.kubectl(['label', 'configmap', 'web', '-n', namespace, 'app.kubernetes.io/managed-by-']);
    expect(await bed.stirred('web')).toEqual(['web gone']);
    await bed.settleAll({ wide: true });
    expect(bed.tracker.take('app')).toEqual([]);
    bed.told.length = 0;
    await cluster.kubectl(['label', 'configmap', 'web', '-n', namespace, 'app.kubernetes.io/managed-by=Helm']);
    expect(await bed.stirred('web')).toEqual(['web changed']);
  });

  it('are not stirred by a correction of ours that was settled with the server’s answer', async () => {
    await bed.edit('configmaps/web', { data: { a: 'x' } }, 'kubectl-edit');
    await bed.stirred('web');
    const { wanted, id } = bed.inventory!.objects.find((object) => object.id.name === 'web')!;
    const live = await client.apply(PATHS['configmaps']!, structuredClone(wanted) as JsonObject & KubeObject, {
      fieldManager: 'helm',
      force: true,
    });
    bed.tracker.settle('app', id, { live, watch: foreignWatch(live, [['data', 'a']], HELM_MANAGERS) });
    bed.told.length = 0;
    await bed.onlyCanary();
  });
});

describe('a restart of the watch', () => {
  it('stirs what changed while nobody watched, and nothing else', async () => {
    await bed.track([configMap('canary'), configMap('web'), configMap('lost')]);
    await bed.install();
    await bed.settleAll();
    await bed.onlyCanary();
    await cluster.restart();
    await bed.edit('configmaps/web', { data: { a: 'x' } }, 'kubectl-edit');
    await client.delete(PATHS['configmaps']!, { namespace, name: 'lost' });
    await bed.stirred('web');
    expect((await bed.stirred('lost')).toSorted()).toEqual(['lost gone', 'web changed']);
  });
});

describe('a kind that comes, goes and comes back', () => {
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.drift.example.com' },
    spec: {
      group: 'drift.example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  };
  const widget: JsonObject = {
    apiVersion: 'drift.example.com/v1',
    kind: 'Widget',
    metadata: { name: 'gear' },
    spec: { size: 1 },
  };
  const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

  async function served(): Promise<void> {
    await eventually(
      async () => {
        expect(bed.tracker.isOutdated('app')).toBe(true);
        return Promise.resolve();
      },
      { timeoutMs: 20_000, intervalMs: 50, what: 'the release is told that the kind is served' },
    );
  }

  it('is noticed each time', async () => {
    await bed.track([configMap('canary'), widget]);
    expect(bed.tracker.unserved('app').map(({ name }) => name)).toEqual(['gear']);
    await bed.settleAll();
    expect(bed.tracker.take('app')).toEqual([]);
    await cluster.api.create(crds, crd);
    await served();
    await bed.track([configMap('canary'), widget], true);
    expect(bed.tracker.isOutdated('app')).toBe(false);
    await bed.install();
    await eventually(() => {
      expect(bed.tracker.take('app').map(({ id }) => id.name)).toContain('gear');
      return Promise.resolve();
    });
    await bed.settleAll();
    bed.told.length = 0;
    await bed.edit('widgets/gear', { spec: { size: 2 } }, 'kubectl-edit');
    expect(await bed.stirred('gear')).toEqual(['gear changed']);
    await bed.settleAll();
    bed.told.length = 0;

    await cluster.api.delete(`${crds}/widgets.drift.example.com`);
    await eventually(
      () => {
        expect(bed.tracker.unserved('app').map(({ name }) => name)).toEqual(['gear']);
        return Promise.resolve();
      },
      { timeoutMs: 30_000, what: 'the kind is known not to be served' },
    );
    expect(await bed.stirred('gear')).toEqual(['gear gone']);
    await bed.settleAll();
    await cluster.api.create(crds, crd);
    await served();
    await bed.track([configMap('canary'), widget], true);
    expect(await bed.stirred('gear')).toEqual(['gear unverified']);
  });
});
