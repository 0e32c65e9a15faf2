import { expect } from 'vitest';
import type { Condition, Fleet, KubeObject, Proxy } from '../support/index.ts';
import { condition, eventually } from '../support/index.ts';
import type { HelmRecord } from './release-secrets.ts';
import { newestRecord } from './release-secrets.ts';

/** What tests of single charts do again and again: one HelmChartProxy, of one name throughout, on cluster c1. */
export class Hauling {
  readonly fleet: Fleet;

  constructor(fleet: Fleet) {
    this.fleet = fleet;
  }

  /** Creates a HelmChartProxy whose release, namespace and (unless given) chart have its name. */
  async create(name: string, spec: Record<string, unknown> = {}): Promise<void> {
    const clusterSelector = { matchLabels: { idx: '1' } };
    await this.fleet.createChartProxy(name, {
      chartName: name,
      releaseName: name,
      namespace: name,
      clusterSelector,
      ...spec,
    });
  }

  /** As `create`, and waits until the release is deployed. */
  async install(name: string, spec: Record<string, unknown> = {}): Promise<Proxy> {
    await this.create(name, spec);
    return this.fleet.deployed(name, 1);
  }

  /** Changes the spec, and waits until the release is deployed at that revision. */
  async upgrade(name: string, spec: Record<string, unknown>, revision: number): Promise<Proxy> {
    await this.fleet.patchChartProxy(name, { spec });
    return this.fleet.deployed(name, 1, { revision });
  }

  /** Waits until the release is deployed, at whatever revision: retries may have counted on. */
  async recovered(name: string, timeoutMs = 90_000): Promise<Proxy> {
    return eventually(
      async () => {
        const proxy = await this.fleet.releaseProxy(name, 1);
        const isCurrent = proxy.status?.observedGeneration === proxy.metadata.generation;
        const { values } = proxy.spec;
        const ready = condition(proxy, 'Ready');
        if (ready?.status !== 'True' || !isCurrent || proxy.status?.status !== 'deployed')
          throw new Error(JSON.stringify({ status: proxy.status, values: values?.slice(0, 200) }));
        return proxy;
      },
      { timeoutMs, what: `${name} has recovered` },
    );
  }

  /** Waits until the HelmReleaseProxy says that the release failed, in words that match. */
  async refused(name: string, words: RegExp, reason = 'HelmInstallOrUpgradeFailed'): Promise<Condition> {
    return eventually(
      async () => {
        const proxy = await this.fleet.releaseProxy(name, 1);
        const found = condition(proxy, 'HelmReleaseReady');
        expect([found?.status, found?.reason, found?.message]).toEqual([
          'False',
          reason,
          expect.stringMatching(words) as unknown,
        ]);
        if (!found) throw new Error('no condition');
        return found;
      },
      { timeoutMs: 60_000, what: `${name} is refused` },
    );
  }

  /** The newest record of the release. */
  async record(name: string): Promise<HelmRecord> {
    return newestRecord(this.fleet.cluster(1), name, name);
  }

  /** Numbers of the revisions that Helm keeps. */
  async revisions(name: string): Promise<number[]> {
    const secrets = await this.fleet
      .cluster(1)
      .api.list(`/api/v1/namespaces/${name}/secrets?labelSelector=owner%3Dhelm`);
    return secrets.map((secret) => Number(secret.metadata.labels?.['version'])).sort((a, b) => a - b);
  }

  /** A ConfigMap `<release>-<suffix>` on the cluster. */
  async configMap(
    release: string,
    suffix: string,
  ): Promise<(KubeObject & { data: Record<string, string> }) | undefined> {
    return this.fleet
      .cluster(1)
      .api.find<KubeObject & { data: Record<string, string> }>(
        `/api/v1/namespaces/${release}/configmaps/${release}-${suffix}`,
      );
  }
}
