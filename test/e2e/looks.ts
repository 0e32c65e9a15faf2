import type { Fleet } from '../support/index.ts';
import { eventually } from '../support/index.ts';

/** Capstan's controllers, as its metrics name them. */
export type ControllerName = 'helmchartproxy' | 'helmchartproxy-placement' | 'helmreleaseproxy';

/** Passes that a controller has made. */
export async function passes(fleet: Fleet, controller: ControllerName): Promise<number> {
  return fleet.manager.metric('controller_runtime_reconcile_total', { controller });
}

/**
 * Makes the manager look at everything of a HelmChartProxy again, by annotations that mean nothing, and waits until it has:
 * what it did not do then, it will not do. Sound only while nothing else goes on.
 */
export async function lookAgain(fleet: Fleet, chartProxy: string): Promise<void> {
  const proxies = await fleet.releaseProxies(chartProxy);
  const before = {
    placements: await passes(fleet, 'helmchartproxy-placement'),
    releases: await passes(fleet, 'helmreleaseproxy'),
  };
  const metadata = { annotations: { 'test.example/look': String(performance.now()) } };
  await fleet.patchChartProxy(chartProxy, { metadata });
  for (const proxy of proxies)
    await fleet.api.patch(`${fleet.path('helmreleaseproxies')}/${proxy.metadata.name ?? ''}`, { metadata });
  await eventually(
    async () => {
      const placements = (await passes(fleet, 'helmchartproxy-placement')) - before.placements;
      const releases = (await passes(fleet, 'helmreleaseproxy')) - before.releases;
      if (placements < proxies.length || releases < proxies.length)
        throw new Error(`${placements} placements, ${releases} releases of ${proxies.length}`);
    },
    { timeoutMs: 60_000, what: `${chartProxy} is looked at again` },
  );
}

/** Helm processes that the manager has run, by what they did. */
export async function operations(fleet: Fleet, operation?: string): Promise<number> {
  return fleet.manager.metric('capstan_helm_operations_total', operation === undefined ? {} : { operation });
}
