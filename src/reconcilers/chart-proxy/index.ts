/**
 * HelmChartProxy → HelmReleaseProxy. Read decide.ts (what is done), placement.ts (one cluster), chart-proxy.ts (the object),
 * sources.ts (what asks for work).
 */
import { linkAbort } from '../../kube/index.ts';
import { Controller, LOCAL_CLUSTER, whileHeld } from '../../runtime/index.ts';
import type { Runnable } from '../../runtime/index.ts';
import { HCP, apiVersionOf } from '../resources.ts';
import type { Caches, ManagementCaches } from '../shared.ts';
import { StatusWriter } from '../status-writer.ts';
import type { HelmChartProxy, HelmReleaseProxy } from '../../api/index.ts';
import type { ReconcilerDependencies } from '../types.ts';
import { Builtins } from './builtins.ts';
import { ChangeTraces } from './change-traces.ts';
import { ChartProxyReconciler } from './chart-proxy.ts';
import { ContractVersions } from './contracts.ts';
import { FleetView } from './fleet-view.ts';
import { Outcomes } from './outcomes.ts';
import { PlacementReconciler } from './placement.ts';
import { RateGate } from './rate-gate.ts';
import { Resync } from './resync.ts';
import { Sources } from './sources.ts';
import { Values } from './values.ts';

export { chartProxyStatus, PROXIES_READY, SPECS_UP_TO_DATE } from './status.ts';

/** The flag's number counts HelmChartProxies, as CAAPH's does; a placement is a small part of one, and values render best many at a time. */
const PLACEMENTS_PER_WORKER = 10;
/** A pass is a few reads of caches and writes to the management cluster; what takes longer hangs. Milliseconds. */
const PASS_LIMIT_MS = 2 * 60_000;

/** Controllers `helmchartproxy` and `helmchartproxy-placement`, once the management cluster's caches are in. */
export class ChartProxyControllers implements Runnable {
  readonly name = 'chart-proxy';
  readonly #deps: ReconcilerDependencies;
  readonly #shared: ChartProxyShared;
  /** While it runs. */
  #assembly: Assembly | undefined;

  constructor(deps: ReconcilerDependencies, shared: ChartProxyShared) {
    this.#deps = deps;
    this.#shared = shared;
  }

  debug(): unknown {
    return this.#assembly?.runnables.flatMap((runnable) => runnable.debug?.() ?? []) ?? [];
  }

  async run(signal: AbortSignal): Promise<void> {
    let caches: Caches;
    try {
      caches = await this.#shared.caches.ready(signal);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    const { sharding } = this.#deps;
    if (sharding === undefined) await this.#serve(caches, signal);
    // For all clusters on one replica, and there as if the process had just begun: what another one did meanwhile is in no memory here.
    else await whileHeld(sharding.shards, LOCAL_CLUSTER, signal, async (turn) => this.#serve(caches, turn));
  }

  async #serve(caches: Caches, signal: AbortSignal): Promise<void> {
    const assembly = assemble(this.#deps, this.#shared, caches);
    this.#assembly = assembly;
    try {
      await runTogether(assembly.runnables, signal);
    } finally {
      this.#assembly = undefined;
      assembly.close();
    }
  }
}

/** What this half has in common with the release-proxy half. */
export interface ChartProxyShared {
  readonly caches: Pick<ManagementCaches, 'ready'>;
  /** One for both, so that each sees the other's writes at once. */
  readonly writer: StatusWriter<HelmReleaseProxy>;
}

interface Assembly {
  readonly runnables: readonly Runnable[];
  close(): void;
}

function assemble(deps: ReconcilerDependencies, shared: ChartProxyShared, caches: Caches): Assembly {
  const { management, fleet, options, telemetry } = deps;
  const { client } = management;
  const view = new FleetView(caches, options.watchFilter);
  const outcomes = new Outcomes();
  const gate = new RateGate();
  // Controllers and what feeds them name each other; nothing is called before all are there.
  const builtins = new Builtins(management, new ContractVersions(client, management.discovery), (request) =>
    placements.enqueue(request, { priority: 'user' }),
  );
  const sharding = deps.sharding && { ...deps.sharding, shardOf: () => LOCAL_CLUSTER };
  const common = {
    view,
    client,
    outcomes,
    strategies: deps.strategies,
    clusterApiVersion: () => (caches.clusterResource === undefined ? '' : apiVersionOf(caches.clusterResource)),
    chartProxies: new StatusWriter<HelmChartProxy>(client, HCP),
    releaseProxies: shared.writer,
  };
  const placements: Controller = new Controller({
    name: 'helmchartproxy-placement',
    telemetry,
    graceMs: options.graceMs,
    ...(sharding && { sharding }),
    fleet,
    lanes: { default: { concurrency: options.chartProxyConcurrency * PLACEMENTS_PER_WORKER, limitMs: PASS_LIMIT_MS } },
    reconciler: new PlacementReconciler({
      ...common,
      builtins,
      values: new Values(deps.values, builtins),
      fleet,
      ...(sharding && { identify: async (name, signal) => fleet.identify?.(name, signal) }),
      events: deps.events,
      watchFilter: options.watchFilter,
      touch: (key, now) => feeding.touch(key, now),
    }),
  });
  const chartProxies = new Controller({
    name: 'helmchartproxy',
    telemetry,
    graceMs: options.graceMs,
    ...(sharding && { sharding }),
    lanes: {
      default: {
        concurrency: options.chartProxyConcurrency,
        perCluster: options.chartProxyConcurrency,
        limitMs: PASS_LIMIT_MS,
      },
    },
    reconciler: new ChartProxyReconciler({
      ...common,
      passed: ({ namespace, name }) => gate.pass(`${namespace}/${name}`),
    }),
  });
  const traces = new ChangeTraces(telemetry.tracer);
  const feeding = new Sources({ caches, view, chartProxies, placements, gate, outcomes, builtins, traces });
  const removals = [feeding.start(), fleet.register(feeding.aware)];
  return {
    runnables: [placements, chartProxies, new Resync(options.syncPeriodMs, (isDue) => feeding.resync(isDue))],
    close: () => {
      removals.forEach((remove) => remove());
      builtins.close();
    },
  };
}

/** Runs all until `signal` aborts; the first that fails stops the others, and its failure is the result. */
export async function runTogether(runnables: readonly Runnable[], signal: AbortSignal): Promise<void> {
  const linked = linkAbort(signal);
  try {
    const running = runnables.map(async (runnable) => {
      try {
        await runnable.run(linked.signal);
      } catch (error) {
        linked.abort(error instanceof Error ? error : new Error(String(error)));
        throw error;
      }
    });
    const results = await Promise.allSettled(running);
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  } finally {
    linked.unlink();
  }
}
