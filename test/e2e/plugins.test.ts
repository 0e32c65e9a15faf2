import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clusterName } from '../../src/runtime/index.ts';
import { silentLogger } from '../../src/telemetry/index.ts';
import { providerConformance } from '../../src/testing/index.ts';
import type { ConformanceCluster, ConformanceSubject } from '../../src/testing/index.ts';
import { InventoryProvider } from '../../examples/custom-provider/inventory-provider.ts';
import { condition, eventually, Fleet, simpleChart, startEnvironment } from '../support/index.ts';
import type { Environment } from '../support/index.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');
const FACTS = '/api/v1/namespaces/kube-public/configmaps/fleet-facts';

/** What an HTTP inventory of clusters answers. */
class Inventory {
  readonly clusters = new Map<string, { labels: Record<string, string>; kubeconfig: string }>();
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<Inventory> {
    const server = createServer();
    const inventory = new Inventory(server);
    server.on('request', (_, response) => {
      const clusters = [...inventory.clusters].map(([name, about]) => ({ name, ...about }));
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(clusters));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return inventory;
  }

  get url(): string {
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}/clusters`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

describe('a platform engineer with a strategy and a provider of his own', () => {
  let fleet: Fleet;
  let inventory: Inventory;
  let directory: string;

  beforeAll(async () => {
    fleet = await Fleet.start({ clusters: 1, manager: false });
    inventory = await Inventory.start();
    inventory.clusters.set('eu-1', { labels: { site: 'eu' }, kubeconfig: fleet.cluster(1).kubeconfig });
    fleet.charts.publish(simpleChart({ name: 'app', version: '1.0.0', objects: 1 }));
    directory = await mkdtemp(join(tmpdir(), 'capstan-plugins-e2e-'));
  });
  afterAll(async () => {
    await inventory.stop();
    await fleet.stop();
    await rm(directory, { recursive: true, force: true });
  });

  /** A window that is open now, or one that opens tomorrow. */
  function window(open: boolean): string {
    const day = new Date(Date.now() + (open ? 0 : 36 * 3_600_000)).toUTCString().slice(0, 3);
    return `${day} 00:00-00:00`;
  }

  async function start(open: boolean): Promise<void> {
    await fleet.startManager({
      flags: [`--plugin=${EXAMPLES}/custom-strategy/plugin.ts`, `--plugin=${EXAMPLES}/custom-provider/plugin.ts`],
      env: { WINDOW: window(open), INVENTORY_URL: inventory.url, INVENTORY_NAMESPACE: fleet.namespace },
    });
  }

  it('loads both into the manager: the strategy waits for its window and says so, the clusters are engaged', async () => {
    await start(false);
    await fleet.createChartProxy('windowed', { chartName: 'app', reconcileStrategy: 'example.com/maintenance-window' });
    await eventually(async () => {
      const ready = condition(await fleet.releaseProxy('windowed', 1), 'HelmReleaseReady');
      expect(ready?.status).toBe('False');
      expect(ready?.message).toContain(`changes wait for the window ${window(false)} UTC`);
    });
    await eventually(async () => expect(await fleet.manager.metric('capstan_clusters', { phase: 'engaged' })).toBe(2));
    expect(await fleet.manager.metric('capstan_helm_operations_total', { operation: 'install' })).toBe(0);
    expect(fleet.manager.log()).toContain('inventory#eu-1');
  });

  it("selects the provider's clusters by their labels", async () => {
    await fleet.createChartProxy('european', {
      chartName: 'app',
      releaseName: 'european',
      namespace: 'european',
      clusterSelector: { matchLabels: { site: 'eu' } },
    });
    await eventually(async () => {
      const [proxy] = await fleet.releaseProxies('european');
      expect(proxy?.spec.clusterRef?.name).toBe('inventory#eu-1');
      expect(proxy && condition(proxy, 'Ready')?.status).toBe('True');
    });
    await fleet.removeChartProxy('european');
  });

  it('installs what waited when the window is open', async () => {
    await fleet.manager.stop();
    await start(true);
    await eventually(async () => {
      const proxy = await fleet.releaseProxy('windowed', 1);
      expect([condition(proxy, 'HelmReleaseReady')?.status, proxy.status?.revision]).toEqual(['True', 1]);
    });
    await fleet.removeChartProxy('windowed');
  });

  it('may name its own installation of capstan: it is the one that loads it all the same', async () => {
    await fleet.manager.stop();
    const plugin = join(directory, 'keep.mjs');
    await writeFile(
      plugin,
      `import { TOKENS as own, TerminalError } from 'capstan';
       export default ({ container, TOKENS, log }) => {
         log.info('same instance', { same: own === TOKENS });
         container.bind(own.strategy).toConstantValue({
           name: 'example.com/never', handedOff: () => false, uninstallsOnDelete: true, followsSelector: true,
           reconcile: async () => { const { TerminalError: late } = await import('capstan'); throw new late('never, same ' + String(late === TerminalError)); },
         });
       };`,
    );
    await fleet.startManager({ flags: [`--plugin=${plugin}`] });
    expect(fleet.manager.log()).toContain('"same":true');
    await fleet.createChartProxy('never', { chartName: 'app', reconcileStrategy: 'example.com/never' });
    await eventually(async () => {
      const ready = condition(await fleet.releaseProxy('never', 1), 'HelmReleaseReady');
      expect(ready?.message).toContain('never, same true');
    });
    await fleet.removeChartProxy('never');
  });
});

describe("the example's provider keeps the contract of providers", () => {
  let environment: Environment;

  beforeAll(async () => {
    environment = await startEnvironment({ clusters: 2, management: false, credentials: 'certificate' });
  });
  afterAll(async () => {
    await environment.stop();
  });

  async function create(): Promise<ConformanceSubject> {
    const inventory = await Inventory.start();
    return {
      provider: new InventoryProvider({ url: inventory.url, log: silentLogger, namespace: 'fleet', pollMs: 100 }),
      declare: async (label, kubeconfig) => {
        inventory.clusters.set(label, { labels: {}, kubeconfig });
        return Promise.resolve(clusterName(label));
      },
      withdraw: async (label) => {
        inventory.clusters.delete(label);
        return Promise.resolve();
      },
      dispose: async () => inventory.stop(),
    };
  }

  async function startCluster(label: string): Promise<ConformanceCluster> {
    const cluster = environment.clusters[label === 'one' ? 0 : 1]!;
    return Promise.resolve({ kubeconfig: () => cluster.kubeconfig, rotate: async () => cluster.rotateCredentials() });
  }

  for (const { name, run } of providerConformance({ create, startCluster })) it(name, async () => run());
});

describe("the example's controller, run as its README says", () => {
  let environment: Environment;

  beforeAll(async () => {
    environment = await startEnvironment({ clusters: 2, management: false });
  });
  afterAll(async () => {
    await environment.stop();
  });

  it('puts its ConfigMap on every cluster, and back when it is edited or deleted', async () => {
    const [one, two] = environment.clusters;
    const modules = join(import.meta.dirname, '../..');
    const child = environment.processes.start({
      name: 'custom-controller',
      command: join(modules, 'node_modules/node/bin/node'),
      args: [
        '--import',
        registration(modules),
        join(EXAMPLES, 'custom-controller/main.ts'),
        one!.kubeconfigPath,
        two!.kubeconfigPath,
      ],
      directory: environment.directory,
    });
    const facts = async (cluster = one!): Promise<unknown> => (await cluster.api.get(FACTS))['data'];
    const right = expect.objectContaining({ fleet: 'example' }) as unknown;
    await eventually(async () => expect([await facts(one), await facts(two)]).toEqual([right, right]));
    await one!.api.patch(FACTS, { data: { fleet: 'other', more: 'ours' } });
    await eventually(async () => expect(await facts()).toMatchObject({ fleet: 'example', more: 'ours' }));
    await two!.api.delete(FACTS);
    await eventually(async () => expect(await facts(two)).toEqual(right));
    await child.stop();
    expect(child.running).toBe(false);
  });

  /** In the repository there is no installed capstan: the sources stand for it. */
  function registration(root: string): string {
    const hook = `import { registerHooks } from 'node:module';
      registerHooks({ resolve: (specifier, context, next) => specifier === 'capstan'
        ? { url: ${JSON.stringify(`file://${root}/src/index.ts`)}, shortCircuit: true } : next(specifier, context) });`;
    return `data:text/javascript,${encodeURIComponent(hook)}`;
  }
});
