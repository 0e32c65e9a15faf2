import { setTimeout as sleep } from 'node:timers/promises';
import { FLEET_PROGRAMS } from '../../hack/binaries.ts';
import { LOCAL_CLUSTER } from '../../src/runtime/index.ts';
import type { Proxy } from '../../test/support/index.ts';
import { Fleet, INSTALLED, Mirror, condition } from '../../test/support/index.ts';
import type { Counters } from '../rollout/counters.ts';
import { countersFrom } from '../rollout/counters.ts';
import { cpuTimes, residentBytes } from '../rollout/process-tree.ts';
import { apiRequests, countRequests } from '../../test/e2e/api-requests.ts';
import { driftChart } from './charts.ts';

export interface BedOptions {
  clusters: number;
  /** On each cluster. */
  objects: number;
  charts: number;
  mode: 'Correct' | 'Disabled';
  fromSources: boolean;
  signal: AbortSignal;
}

/** A moment of the manager: what it has used, and what it has asked for. */
export interface Reading {
  cpu: number;
  memory: number;
  counters: Counters;
  corrected: number;
  dryRuns: number;
  tracked: number;
  /** Reads and applies of what a release consists of, as the API servers of all workload clusters count them. */
  asked: number;
}

const ASKING: ReadonlySet<string> = new Set(['GET', 'LIST', 'APPLY', 'PUT', 'POST']);
/** What the charts consist of, and Helm's records; but Services, of which an API server lists its own every three minutes. */
const RESOURCES: ReadonlySet<string> = new Set([
  'configmaps',
  'secrets',
  'deployments',
  'serviceaccounts',
  'roles',
  'rolebindings',
]);

/** Namespace of the releases on every cluster. */
export const RELEASE_NAMESPACE = 'addons';
const VERSION = '1.0.0';
/** Most time (ms) until all is installed and looked at. */
const INSTALL_LIMIT_MS = 10 * 60_000;

/** The fleet that is measured: clusters with releases of many objects, all in sync, and the manager. */
export class Bed {
  readonly fleet: Fleet;
  readonly options: BedOptions;
  readonly #releases: Mirror<Proxy>;

  private constructor(fleet: Fleet, options: BedOptions, releases: Mirror<Proxy>) {
    this.fleet = fleet;
    this.options = options;
    this.#releases = releases;
  }

  /** Starts everything; resolves when every release is deployed and (unless drift detection is off) in sync. */
  static async setUp(options: BedOptions): Promise<Bed> {
    const { clusters, signal } = options;
    const fleet = await Fleet.start({ clusters, manager: false, programs: FLEET_PROGRAMS, signal });
    try {
      const releases = await Mirror.start<Proxy>(fleet.api, fleet.path('helmreleaseproxies'));
      const bed = new Bed(fleet, options, releases);
      await bed.#install();
      return bed;
    } catch (error) {
      await fleet.stop();
      throw error;
    }
  }

  /** Names of the releases of each cluster. */
  names(): string[] {
    return Array.from({ length: this.options.charts }, (_, index) => `drift-${index + 1}`);
  }

  /** ConfigMaps of each release are `<release>-<i>`, i below this. */
  get configMaps(): number {
    return Math.floor(this.options.objects / this.options.charts) - 5;
  }

  async reading(): Promise<Reading> {
    const { manager } = this.fleet;
    const [cpu, memory, samples, asked] = await Promise.all([
      cpuTimes(manager.pid),
      residentBytes(manager.pid),
      manager.metrics(),
      this.#asked(),
    ]);
    const sum = (name: string): number =>
      samples.filter((sample) => sample.name === name).reduce((total, { value }) => total + value, 0);
    return {
      cpu: cpu.own + cpu.children,
      memory: memory.own,
      counters: countersFrom(samples, LOCAL_CLUSTER),
      corrected: sum('capstan_drift_corrected_total'),
      dryRuns: sum('capstan_drift_dry_runs_total'),
      tracked: sum('capstan_drift_tracked_objects'),
      asked,
    };
  }

  /** The bench itself patches and deletes; it reads these only while it edits. */
  async #asked(): Promise<number> {
    const { fleet, options } = this;
    const clusters = Array.from({ length: options.clusters }, (_, index) => fleet.cluster(index + 1));
    const rows = (await Promise.all(clusters.map(apiRequests))).flat();
    return countRequests(rows, ({ verb, resource }) => ASKING.has(verb) && RESOURCES.has(resource));
  }

  async stop(): Promise<void> {
    await this.#releases.stop();
    await this.fleet.stop();
  }

  async #install(): Promise<void> {
    const { fleet, options } = this;
    const perChart = Math.floor(options.objects / options.charts);
    fleet.charts.publish(...this.names().map((name) => driftChart(name, VERSION, perChart)));
    await fleet.startManager({
      command: options.fromSources ? undefined : INSTALLED,
      // At rest nothing but drift detection is to be measured.
      flags: [`--drift-detection=${options.mode}`, '--sync-period=24h'],
      name: 'manager',
      signal: options.signal,
    });
    for (const name of this.names()) {
      await fleet.createChartProxy(name, {
        chartName: name,
        version: VERSION,
        releaseName: name,
        namespace: RELEASE_NAMESPACE,
      });
    }
    const wanted = options.clusters * options.charts;
    await this.#releases.until(
      (all) => {
        const good = all.filter((proxy) => this.#isGood(proxy));
        return good.length === wanted ? undefined : `${good.length} of ${wanted} releases are in sync`;
      },
      { what: 'all is installed and in sync', timeoutMs: INSTALL_LIMIT_MS, signal: options.signal },
    );
    await sleep(2_000, undefined, { signal: options.signal });
  }

  #isGood(proxy: Proxy): boolean {
    const isReady = condition(proxy, 'Ready')?.status === 'True';
    return isReady && (this.options.mode === 'Disabled' || condition(proxy, 'ReleaseInSync')?.status === 'True');
  }
}
