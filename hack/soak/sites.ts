import { parse, stringify } from 'yaml';
import { condition, createCluster, deleteCluster, setKubeconfig, setLabels } from '../../test/support/index.ts';
import type { Fleet, Proxy } from '../../test/support/index.ts';
import { Relay } from './relay.ts';
import type { RelayMode } from './relay.ts';

export const CHART = 'soak';
const FLEET_NAMESPACE = 'fleet';

/**
 * One cluster as the management cluster knows it: a Cluster with a way of its own to one of the real API servers, which
 * several sites share, and a chart in a namespace of its own.
 */
export class Site {
  readonly name: string;
  readonly server: number;
  readonly relay: Relay;
  declared = false;
  selected = true;
  revision = 0;
  readonly #fleet: Fleet;

  constructor(fleet: Fleet, index: number, parts: { server: number; relay: Relay }) {
    this.#fleet = fleet;
    this.name = `site-${index}`;
    this.server = parts.server;
    this.relay = parts.relay;
  }

  static async prepare(fleet: Fleet, index: number, servers: number): Promise<Site> {
    const server = 1 + (index % servers);
    const relay = await Relay.start(Number(new URL(fleet.cluster(server).server).port));
    const site = new Site(fleet, index, { server, relay });
    await fleet.createChartProxy(site.name, {
      clusterSelector: { matchLabels: { site: site.name } },
      chartName: CHART,
      releaseName: CHART,
      namespace: site.name,
      driftDetection: { mode: 'Correct' },
      valuesTemplate: site.#values(),
    });
    return site;
  }

  get key(): { name: string; namespace: string } {
    return { name: this.name, namespace: FLEET_NAMESPACE };
  }

  /** A ConfigMap of the chart, for those who edit it by hand. */
  get configMap(): string {
    return `/api/v1/namespaces/${this.name}/configmaps/${CHART}-0`;
  }

  async come(): Promise<void> {
    const labels = { site: this.name };
    await createCluster(this.#fleet.api, { ...this.key, labels, kubeconfig: this.#kubeconfig() });
    this.declared = true;
    this.selected = true;
  }

  async go(): Promise<void> {
    await deleteCluster(this.#fleet.api, this.key);
    this.declared = false;
  }

  async select(selected: boolean): Promise<void> {
    await setLabels(this.#fleet.api, this.key, { site: selected ? this.name : null });
    this.selected = selected;
  }

  async change(): Promise<void> {
    this.revision += 1;
    await this.#fleet.patchChartProxy(this.name, { spec: { valuesTemplate: this.#values() } });
  }

  async renewKubeconfig(): Promise<void> {
    await setKubeconfig(this.#fleet.api, this.key, this.#kubeconfig());
  }

  fail(mode: RelayMode): void {
    this.relay.set(mode);
  }

  async edit(): Promise<void> {
    const { api } = this.#fleet.cluster(this.server);
    if ((await api.find(this.configMap)) !== undefined)
      await api.patch(this.configMap, { data: { message: 'by hand' } });
  }

  async damage(): Promise<void> {
    const { api } = this.#fleet.cluster(this.server);
    if ((await api.find(this.configMap)) !== undefined) await api.delete(this.configMap);
  }

  /** What it should be: throws while the release or the object is another. */
  async expectRight(): Promise<void> {
    const proxies = await this.#fleet.releaseProxies(this.name);
    const wanted = this.declared && this.selected;
    if (!wanted) {
      if (proxies.length > 0) throw new Error(`${this.name}: ${proxies.length} HelmReleaseProxies are left`);
      return;
    }
    this.#expectReady(proxies[0]);
    const object = await this.#fleet.cluster(this.server).api.get(this.configMap);
    const { message } = object['data'] as { message?: string };
    if (message !== this.#message()) throw new Error(`${this.name}: the ConfigMap says ${message ?? 'nothing'}`);
  }

  #expectReady(proxy: Proxy | undefined): void {
    const ready = proxy && condition(proxy, 'Ready');
    const isNewest = proxy?.spec.values?.includes(this.#message()) === true;
    if (ready?.status === 'True' && isNewest) return;
    throw new Error(`${this.name}: ${isNewest ? '' : 'older values, '}${JSON.stringify(ready ?? 'no condition')}`);
  }

  #message(): string {
    return `change ${this.revision} of ${this.name}`;
  }

  #values(): string {
    return `message: ${this.#message()}\ncluster: {{ .Cluster.metadata.name }}\n`;
  }

  #kubeconfig(): string {
    const config = parse(this.#fleet.cluster(this.server).kubeconfig) as {
      clusters: { cluster: { server: string } }[];
    };
    for (const { cluster } of config.clusters) cluster.server = `https://127.0.0.1:${this.relay.port}`;
    return stringify(config);
  }
}
