import { setTimeout as sleep } from 'node:timers/promises';
import { FLEET_PROGRAMS } from '../../hack/binaries.ts';
import { LOCAL_CLUSTER } from '../../src/runtime/index.ts';
import type { Chart, Proxy, RestClient } from '../../test/support/index.ts';
import { Fleet, INSTALLED, Mirror, OtlpCollector, benchChart, condition } from '../../test/support/index.ts';
import type { Counters } from './counters.ts';
import { countersFrom, difference } from './counters.ts';
import type { CpuTimes } from './process-tree.ts';
import { cpuTimes } from './process-tree.ts';
import type { MemoryPeaks } from './sampler.ts';
import { MemorySampler } from './sampler.ts';

export interface BedOptions {
  clusters: number;
  charts: number;
  fromSources: boolean;
  /** Let the manager trace everything, to a collector of this process. */
  traces: boolean;
  /** As the manager's --sync-period. */
  syncPeriod: string;
  /** Folder for the manager's CPU profile; none without it. */
  profile?: string;
  /** NODE_OPTIONS for the manager. */
  nodeOptions?: string;
  signal: AbortSignal;
}

/** What one phase cost. Times are seconds, memory is bytes. */
export interface Measurement {
  /** The phase's begin and end on the machine's monotonic clock (µs), which V8's profiles use as well. */
  span: { from: number; to: number };
  /** From the start of the command to the state that it asked for. */
  wall: number;
  /** Until all is quiet again: a phase is not cheaper for leaving work to the next one. */
  cpu: CpuTimes;
  memory: MemoryPeaks;
  counters: Counters;
  repository: { index: number; downloads: number; mostPerChart: number };
  /** Changes of HelmReleaseProxies that a watcher saw. */
  changes: number;
}

/** Namespace of the releases on every cluster. */
const RELEASE_NAMESPACE = 'addons';
const VERSION = '1.0.0';
/** Status writes are bunched at about a second; this long (ms) without a change is the end. */
const QUIET_MS = 2_000;
/** Most time (ms) for a phase; a manager that needs longer is broken, not slow. */
const PHASE_LIMIT_MS = 15 * 60_000;

/** The fleet that is measured: clusters, charts, the manager, and what looks at them. */
export class Bed {
  readonly fleet: Fleet;
  readonly charts: readonly Chart[];
  readonly #releases: Mirror<Proxy>;
  readonly #proxies: Mirror<Proxy>;
  readonly #options: BedOptions;
  readonly #collector: OtlpCollector | undefined;
  /** What the watcher of the HelmReleaseProxies saw: how many changes, and when the last one. */
  readonly #activity: { changes: number; at: number };

  private constructor(parts: {
    fleet: Fleet;
    charts: Chart[];
    releases: Mirror<Proxy>;
    proxies: Mirror<Proxy>;
    activity: { changes: number; at: number };
    options: BedOptions;
    collector: OtlpCollector | undefined;
  }) {
    this.fleet = parts.fleet;
    this.charts = parts.charts;
    this.#releases = parts.releases;
    this.#proxies = parts.proxies;
    this.#activity = parts.activity;
    this.#options = parts.options;
    this.#collector = parts.collector;
  }

  /** Starts the clusters and the watchers; not the manager. */
  static async setUp(options: BedOptions): Promise<Bed> {
    const fleet = await Fleet.start({
      clusters: options.clusters,
      manager: false,
      programs: FLEET_PROGRAMS,
      signal: options.signal,
    });
    try {
      const charts = Array.from({ length: options.charts }, (_, index) => benchChart(`bench-${index + 1}`, VERSION));
      fleet.charts.publish(...charts);
      const activity = { changes: 0, at: 0 };
      const releases = await Mirror.start<Proxy>(fleet.api, fleet.path('helmreleaseproxies'), () => {
        activity.changes += 1;
        activity.at = performance.now();
      });
      const proxies = await Mirror.start<Proxy>(fleet.api, fleet.path('helmchartproxies'));
      const collector = options.traces ? await OtlpCollector.start() : undefined;
      return new Bed({ fleet, charts, releases, proxies, activity, options, collector });
    } catch (error) {
      await fleet.stop();
      throw error;
    }
  }

  get releases(): number {
    return this.#options.clusters * this.#options.charts;
  }

  /** Requests in which spans came, and their bytes. */
  get traces(): { requests: number; bytes: number } {
    const bodies = this.#collector?.bodies ?? [];
    return { requests: bodies.length, bytes: bodies.reduce((sum, { body }) => sum + body.length, 0) };
  }

  /** Starts the manager and waits until it has engaged every cluster. */
  async startManager(): Promise<void> {
    const { fromSources, profile, nodeOptions, syncPeriod, signal } = this.#options;
    const forNode = [nodeOptions, profile && `--cpu-prof --cpu-prof-dir=${profile}`].filter(Boolean).join(' ');
    await this.fleet.startManager({
      command: fromSources ? undefined : INSTALLED,
      flags: [`--sync-period=${syncPeriod}`],
      name: 'manager',
      env: {
        ...(forNode === '' ? {} : { NODE_OPTIONS: forNode }),
        // The exporter's defaults for the rest, as in production.
        ...(this.#collector && { OTEL_EXPORTER_OTLP_ENDPOINT: this.#collector.url }),
      },
      signal,
    });
    const { manager } = this.fleet;
    for (const cluster of this.#names()) {
      while (!manager.log().includes(`"cluster":"${this.fleet.namespace}/${cluster}","msg":"cluster engaged"`)) {
        this.#mustRun();
        await sleep(50, undefined, { signal });
      }
    }
  }

  /** Applies the HelmChartProxies with a message and waits until every release is Ready at that revision. */
  async roll(message: string, revision: number): Promise<Measurement> {
    const items = this.charts.map((chart) => this.#proxy(chart, message));
    const manifest = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
    return this.#measured(
      async () => {
        await this.fleet.environment.management.kubectl(['apply', '-f', '-'], {
          stdin: manifest,
          signal: this.#options.signal,
        });
        await this.#until(this.#releases, `${this.releases} releases at revision ${revision}`, (all) => {
          const ready = all.filter((proxy) => isReady(proxy) && proxy.status?.revision === revision);
          return ready.length === this.releases ? undefined : `${ready.length} of ${this.releases} ready`;
        });
      },
      async () => {
        await this.#until(this.#proxies, 'every HelmChartProxy is Ready', (all) =>
          all.every(isReady) ? undefined : JSON.stringify(all.find((proxy) => !isReady(proxy))?.status?.conditions),
        );
        await this.#quiet();
        await this.#verify(message);
      },
    );
  }

  /** Does nothing for so long (s). */
  async rest(seconds: number): Promise<Measurement> {
    return this.#measured(
      async () => {
        for (const end = performance.now() + seconds * 1000; performance.now() < end;) {
          this.#mustRun();
          await sleep(Math.min(1000, Math.max(0, end - performance.now())), undefined, {
            signal: this.#options.signal,
          });
        }
      },
      async () => undefined,
    );
  }

  /** Deletes the HelmChartProxies and waits until they and their releases are gone. */
  async remove(): Promise<Measurement> {
    return this.#measured(
      async () => {
        const names = this.charts.map(({ name }) => name);
        const { namespace } = this.fleet;
        await this.fleet.environment.management.kubectl([
          'delete',
          'helmchartproxy',
          '-n',
          namespace,
          '--wait=false',
          ...names,
        ]);
        for (const mirror of [this.#releases, this.#proxies]) {
          await this.#until(mirror, 'all is uninstalled', (all) =>
            all.length === 0 ? undefined : `${all.length} left`,
          );
        }
      },
      async () => {
        await this.#quiet();
        await this.#verify(undefined);
      },
    );
  }

  /** Ends everything. The manager goes first and orderly, which writes its profile. */
  async stop(): Promise<void> {
    await this.#releases.stop();
    await this.#proxies.stop();
    await this.fleet.stop();
    await this.#collector?.stop();
  }

  async #measured(work: () => Promise<void>, finish: () => Promise<void>): Promise<Measurement> {
    const { manager, charts } = this.fleet;
    charts.resetRequests();
    const counters = await this.#counters();
    const { changes } = this.#activity;
    const sampler = new MemorySampler(manager.pid);
    const before = await cpuTimes(manager.pid);
    const from = monotonicMicroseconds();
    let wall = 0;
    let memory: MemoryPeaks;
    try {
      await work();
      wall = (monotonicMicroseconds() - from) / 1e6;
      await finish();
    } finally {
      memory = await sampler.stop();
    }
    const after = await cpuTimes(manager.pid);
    const downloads = this.charts.map(({ name, version }) => charts.downloads(name, version));
    return {
      span: { from, to: monotonicMicroseconds() },
      wall,
      cpu: { own: after.own - before.own, children: after.children - before.children },
      memory,
      counters: difference(counters, await this.#counters()),
      repository: {
        index: charts.indexRequests(),
        downloads: downloads.reduce((sum, count) => sum + count, 0),
        mostPerChart: Math.max(0, ...downloads),
      },
      changes: this.#activity.changes - changes,
    };
  }

  async #counters(): Promise<Counters> {
    return countersFrom(await this.fleet.manager.metrics(), LOCAL_CLUSTER);
  }

  async #quiet(): Promise<void> {
    do {
      await sleep(QUIET_MS, undefined, { signal: this.#options.signal });
    } while (performance.now() - this.#activity.at < QUIET_MS);
  }

  async #until(mirror: Mirror<Proxy>, what: string, missing: (all: Proxy[]) => string | undefined): Promise<void> {
    const signal = AbortSignal.any([this.#options.signal, this.fleet.manager.ended]);
    await mirror.until(missing, { what, timeoutMs: PHASE_LIMIT_MS, signal });
  }

  /** Looks at the clusters: Ready is the manager's word. Without a message nothing may be left. */
  async #verify(message: string | undefined): Promise<void> {
    for (const name of this.#names()) {
      const { api } = this.fleet.cluster(Number(name.slice(1)));
      for (const chart of this.charts) {
        const found = await settings(api, chart.name);
        const wanted = message === undefined ? undefined : `${message} ${name}`;
        if (found !== wanted)
          throw new Error(`${chart.name} on ${name} says ${found ?? 'nothing'}, not ${wanted ?? 'nothing'}`);
      }
    }
  }

  #mustRun(): void {
    this.fleet.manager.ended.throwIfAborted();
    this.#options.signal.throwIfAborted();
  }

  #names(): string[] {
    return Array.from({ length: this.#options.clusters }, (_, index) => `c${index + 1}`);
  }

  #proxy(chart: Chart, message: string): object {
    return {
      apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
      kind: 'HelmChartProxy',
      metadata: { name: chart.name, namespace: this.fleet.namespace },
      spec: {
        clusterSelector: { matchLabels: { fleet: 'yes' } },
        repoURL: this.fleet.charts.url,
        tlsConfig: { caSecret: { name: 'repo-ca' } },
        chartName: chart.name,
        version: chart.version,
        releaseName: chart.name,
        namespace: RELEASE_NAMESPACE,
        valuesTemplate: `message: ${message} {{ .Cluster.metadata.name }}\n`,
      },
    };
  }
}

function monotonicMicroseconds(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

function isReady(proxy: Proxy): boolean {
  const current = proxy.status?.observedGeneration === proxy.metadata.generation;
  return current && condition(proxy, 'Ready')?.status === 'True';
}

async function settings(api: RestClient, release: string): Promise<string | undefined> {
  const found = await api.find<{ metadata: object; data?: Record<string, string> }>(
    `/api/v1/namespaces/${RELEASE_NAMESPACE}/configmaps/${release}-settings`,
  );
  return found?.data?.['message'];
}
