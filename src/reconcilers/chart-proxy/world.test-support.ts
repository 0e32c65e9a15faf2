/** The controllers of this directory on a fake management cluster, under fake timers. */
import { vi } from 'vitest';
import { HRP_FINALIZER, INSTALLED_ANNOTATION } from '../../api/index.ts';
import type { HelmChartProxy, HelmChartProxySpec, HelmReleaseProxy } from '../../api/index.ts';
import type { ChartStore, HelmEngine, TemplateJob, TemplateOutcome } from '../../helm/index.ts';
import type { KubeObject, Resource } from '../../kube/index.ts';
import type { Sharding } from '../../runtime/index.ts';
import { createTelemetry } from '../../telemetry/index.ts';
import { getCondition, setCondition } from '../conditions.ts';
import { FakeEvents, FakeFleet, fakeManagement } from '../fake-fleet.test-support.ts';
import { FakeServer } from '../fakes.test-support.ts';
import { continuousStrategy } from '../install/index.ts';
import { installOnceStrategy } from '../install-once/index.ts';
import { CRDS, HCP, HRP } from '../resources.ts';
import { ManagementCaches } from '../shared.ts';
import type { CapiCluster } from '../shared.ts';
import { StatusWriter } from '../status-writer.ts';
import type { ReconcilerOptions } from '../types.ts';
import { ChartProxyControllers } from './index.ts';
import { chartProxy, cluster } from './objects.test-support.ts';

/** What the other controller adds once a release is deployed. */
export const INSTALLED = { annotations: { [INSTALLED_ANNOTATION]: 'true' } };

export const CLUSTERS: Resource = {
  group: 'cluster.x-k8s.io',
  version: 'v1beta2',
  plural: 'clusters',
  namespaced: true,
};
export const CONTROL_PLANES: Resource = {
  group: 'controlplane.cluster.x-k8s.io',
  version: 'v1beta2',
  plural: 'kubeadmcontrolplanes',
  namespaced: true,
};

/** Long enough for everything that is rate-limited or backed off to happen. */
const SETTLE_MS = 8_000;
const SYNC_PERIOD_MS = 600_000;

export class World {
  readonly server = new FakeServer();
  readonly fleet = new FakeFleet();
  readonly events = new FakeEvents();
  /** Every job that was rendered. */
  readonly rendered: TemplateJob[] = [];
  /** What the template engine makes of a job; by default the template with `{{name}}` filled in. */
  render: (job: TemplateJob) => TemplateOutcome = (job) => ({
    id: job.id,
    ok: true,
    text: job.template.replaceAll('{{.Cluster.metadata.name}}', (job.context.Cluster as KubeObject).metadata.name),
  });
  /** Set: one of several replicas. */
  sharding: Sharding | undefined;
  readonly #options: Partial<ReconcilerOptions>;
  #stop: (() => Promise<void>) | undefined;

  constructor(options: Partial<ReconcilerOptions> = {}) {
    this.#options = options;
    this.server.kinds.set('Cluster', CLUSTERS);
    this.server.kinds.set('KubeadmControlPlane', CONTROL_PLANES);
    this.putCrd('kubeadmcontrolplanes.controlplane.cluster.x-k8s.io', { 'cluster.x-k8s.io/v1beta2': 'v1beta2' });
  }

  putCrd(name: string, labels: Record<string, string>): void {
    this.server.put(CRDS, { metadata: { name, labels } });
  }

  /** Two Clusters that match, one that does not, one in another namespace (as caaph §3.2 has them), and a HelmChartProxy. */
  async startTwo(
    spec: Partial<HelmChartProxySpec> = {},
    metadata: Partial<HelmChartProxy['metadata']> = {},
  ): Promise<void> {
    for (const name of ['w1', 'w2']) this.server.put(CLUSTERS, cluster(name));
    this.server.put(CLUSTERS, cluster('w3', { labels: { addon: 'no' } }));
    this.server.put(CLUSTERS, cluster('w4', { namespace: 'elsewhere' }));
    this.server.put(HCP, chartProxy(spec, { finalizers: [], ...metadata }));
    await this.start();
  }

  async start(): Promise<void> {
    const telemetry = createTelemetry();
    const management = fakeManagement(this.server);
    const caches = new ManagementCaches(management, { log: telemetry.log });
    const controllers = new ChartProxyControllers(
      {
        management,
        fleet: this.fleet,
        engine: {} as HelmEngine,
        charts: {} as ChartStore,
        values: {
          render: async (job) => {
            this.rendered.push(job);
            return this.render(job);
          },
        },
        strategies: [continuousStrategy, installOnceStrategy],
        events: this.events,
        telemetry,
        ...(this.sharding && { sharding: this.sharding }),
        options: {
          chartProxyConcurrency: 10,
          releaseProxyConcurrency: 10,
          waitConcurrency: 50,
          syncPeriodMs: SYNC_PERIOD_MS,
          allowCrossNamespaceSecrets: false,
          driftDefault: 'Disabled',
          driftConcurrency: 10,
          driftRetryDelaysMs: [0, 2_000],
          helmManagers: ['helm', 'manager'],
          ...this.#options,
        },
      },
      { caches, writer: new StatusWriter<HelmReleaseProxy>(management.client, HRP) },
    );
    const stop = new AbortController();
    const running = Promise.all([caches.run(stop.signal), controllers.run(stop.signal)]);
    this.#stop = async () => {
      stop.abort(new Error('test is over'));
      await vi.advanceTimersByTimeAsync(100);
      await running;
    };
    await this.settle();
  }

  async stop(): Promise<void> {
    await this.#stop?.();
    this.#stop = undefined;
  }

  async settle(ms = SETTLE_MS): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms);
  }

  async resync(): Promise<void> {
    await vi.advanceTimersByTimeAsync(SYNC_PERIOD_MS + SETTLE_MS);
  }

  chartProxy(name = 'hcp'): HelmChartProxy | undefined {
    return this.server.peek(HCP, 'fleet', name) as HelmChartProxy | undefined;
  }

  edit(change: (object: HelmChartProxy) => void, name = 'hcp'): void {
    this.server.edit<HelmChartProxy>(HCP, { namespace: 'fleet', name }, change);
  }

  async editChartProxy(change: (object: HelmChartProxy) => void, name = 'hcp'): Promise<void> {
    this.edit(change, name);
    await this.settle();
  }

  async editCluster(name: string, change: (object: CapiCluster) => void): Promise<void> {
    this.server.edit<CapiCluster>(CLUSTERS, { namespace: 'fleet', name }, change);
    await this.settle();
  }

  proxies(): HelmReleaseProxy[] {
    return this.server.all<HelmReleaseProxy>(HRP).sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  proxyOn(cluster: string): HelmReleaseProxy | undefined {
    return this.proxies().find(({ spec }) => spec.clusterRef.name === cluster);
  }

  /** "status/reason: message" of a condition of the HelmChartProxy. */
  condition(type: string, name = 'hcp'): string | undefined {
    const found = getCondition(this.chartProxy(name)?.status?.conditions, type);
    return found === undefined ? undefined : `${found.status}/${found.reason}: ${found.message}`;
  }

  writesOf(plural: string): string[] {
    return this.server.writes.filter(({ what }) => what.startsWith(plural)).map(({ verb, what }) => `${verb} ${what}`);
  }

  /** What the other controller does when all goes well; its finalizer stays on. */
  async install(cluster: string, changes: Partial<HelmReleaseProxy['metadata']> = {}): Promise<void> {
    this.#report(cluster, { status: 'True', message: '' }, changes);
    await this.settle();
  }

  /** As `install`, on both clusters. */
  async installed(changes: Partial<HelmReleaseProxy['metadata']> = {}): Promise<void> {
    for (const name of ['w1', 'w2']) await this.install(name, changes);
  }

  onClusters(): (string | undefined)[] {
    return this.proxies().map(({ spec }) => spec.clusterRef.name);
  }

  async report(cluster: string, message: string, settleMs = SETTLE_MS): Promise<void> {
    this.#report(cluster, { status: 'False', message }, {});
    await this.settle(settleMs);
  }

  /** The other controller is done with the deletion. */
  async uninstalled(cluster: string): Promise<void> {
    const proxy = this.proxyOn(cluster);
    if (proxy !== undefined) this.server.remove(HRP, 'fleet', proxy.metadata.name);
    await this.settle();
  }

  #report(
    cluster: string,
    ready: { status: 'True' | 'False'; message: string },
    changes: Partial<HelmReleaseProxy['metadata']>,
  ): void {
    const name = this.proxyOn(cluster)?.metadata.name ?? '';
    this.server.edit<HelmReleaseProxy>(HRP, { namespace: 'fleet', name }, (proxy) => {
      Object.assign(proxy.metadata, {
        ...changes,
        finalizers: [HRP_FINALIZER],
        annotations: { ...proxy.metadata.annotations, ...changes.annotations },
      });
      proxy.status = {
        ...proxy.status,
        observedGeneration: proxy.metadata.generation,
        conditions: setCondition(
          proxy.status?.conditions,
          { type: 'Ready', reason: 'R', ...ready },
          proxy.metadata.generation,
        ),
      };
    });
  }
}
