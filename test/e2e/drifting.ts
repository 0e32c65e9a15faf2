import { expect } from 'vitest';
import type { Condition, Environment, KubeObject, Proxy, TestCluster } from '../support/index.ts';
import { chartFromFiles, condition, eventually, Fleet } from '../support/index.ts';
import { newestRecord } from './release-secrets.ts';

/** One object of status.drift as tests read it. */
export interface ReportedObject {
  kind: string;
  name: string;
  namespace?: string;
  state: string;
  action?: string;
  message?: string;
  fields?: {
    path: string;
    change: string;
    wanted?: string;
    live?: string;
    manager?: string;
    operation?: string;
    time?: string;
  }[];
}

export interface ReportedDrift {
  revision?: number;
  objects?: number;
  drifted?: number;
  corrections?: number;
  lastDetectedTime?: string;
  lastCorrectedTime?: string;
  details?: ReportedObject[];
}

export interface DriftFleetOptions {
  /** The helm binary, from the environment; helm 4 when absent. */
  helm?: (environment: Environment) => string;
  clusters?: number;
  /** Deployments get pods, namespaces are deleted. */
  controllers?: boolean;
  flags?: string[];
}

/** A fleet whose manager corrects drift unless a HelmChartProxy says otherwise. */
export async function startDriftFleet(options: DriftFleetOptions = {}): Promise<Fleet> {
  const { clusters = 1, controllers = false, flags = [] } = options;
  const fleet = await Fleet.start({ clusters, controllers, manager: false });
  try {
    await fleet.startManager({
      ...(options.helm && { helm: options.helm(fleet.environment) }),
      flags: ['--drift-detection=Correct', ...flags],
    });
    return fleet;
  } catch (error) {
    await fleet.stop();
    throw error;
  }
}

/**
 * What drift tests do again and again: a HelmChartProxy whose chart, release and namespace have its name, on cluster c1,
 * made of manifests as a chart's author writes them.
 */
export class Drifting {
  readonly fleet: Fleet;

  constructor(fleet: Fleet) {
    this.fleet = fleet;
  }

  get cluster(): TestCluster {
    return this.fleet.cluster(1);
  }

  /** Installs a chart of these templates (file name → manifest) and waits until the release is found in sync. */
  async install(
    name: string,
    templates: Record<string, string>,
    spec: Record<string, unknown> = {},
    files: Record<string, string> = {},
  ): Promise<void> {
    this.publish(name, '1.0.0', templates, files);
    await this.fleet.createChartProxy(name, {
      chartName: name,
      version: '1.0.0',
      releaseName: name,
      namespace: name,
      clusterSelector: { matchLabels: { idx: '1' } },
      ...spec,
    });
    await this.fleet.deployed(name, 1);
    await this.inSync(name);
  }

  publish(name: string, version: string, templates: Record<string, string>, files: Record<string, string> = {}): void {
    const named = Object.entries(templates).map(([file, text]): [string, string] => [`templates/${file}`, text]);
    this.fleet.charts.publish(chartFromFiles({ name, version }, { ...Object.fromEntries(named), ...files }));
  }

  async proxy(name: string): Promise<Proxy> {
    return this.fleet.releaseProxy(name, 1);
  }

  async drift(name: string): Promise<ReportedDrift> {
    const proxy = await this.proxy(name);
    return (proxy.status as { drift?: ReportedDrift } | undefined)?.drift ?? {};
  }

  async inSync(name: string, timeoutMs = 60_000): Promise<Condition> {
    return this.fleet.conditionOf({ chartProxy: name, index: 1 }, { type: 'ReleaseInSync', status: 'True' }, timeoutMs);
  }

  /** In sync with that revision: the condition alone may still be about the one before. */
  async inSyncWith(name: string, revision: number): Promise<void> {
    await eventually(
      async () => {
        expect((await this.condition(name))?.status).toBe('True');
        expect(await this.drift(name)).toMatchObject({ revision, drifted: 0 });
      },
      { timeoutMs: 60_000, what: `${name} is in sync with revision ${String(revision)}` },
    );
  }

  async outOfSync(name: string, reason = 'DriftDetected', timeoutMs = 60_000): Promise<Condition> {
    return this.fleet.conditionOf(
      { chartProxy: name, index: 1 },
      { type: 'ReleaseInSync', status: 'False', reason },
      timeoutMs,
    );
  }

  /** The condition as it is now. */
  async condition(name: string, type = 'ReleaseInSync'): Promise<Condition | undefined> {
    return condition(await this.proxy(name), type);
  }

  /** Waits until the object at a path of the workload cluster satisfies a check that throws while it does not. */
  async until<T extends KubeObject>(path: string, check: (object: T) => void, timeoutMs = 30_000): Promise<T> {
    return eventually(
      async () => {
        const object = await this.cluster.api.get<T>(path);
        check(object);
        return object;
      },
      { timeoutMs, what: `${path} is as it should be` },
    );
  }

  /** What was corrected in the release's life, as the status counts. */
  async corrections(name: string): Promise<number> {
    return (await this.drift(name)).corrections ?? 0;
  }

  /** Waits until the status counts at least so many corrections. */
  async corrected(name: string, count = 1, timeoutMs = 30_000): Promise<ReportedDrift> {
    return eventually(
      async () => {
        const drift = await this.drift(name);
        if ((drift.corrections ?? 0) < count) throw new Error(JSON.stringify(drift));
        return drift;
      },
      { timeoutMs, what: `${name} counts ${String(count)} corrections` },
    );
  }

  /**
   * Proves that a change was seen and found to be none: a ConfigMap of the same release, `<name>-canary`, is edited after
   * it and put back by the same tracker in the same order, and nothing else was corrected. The chart must have it
   * (`CANARY`).
   */
  async nothingElseCorrected(name: string): Promise<void> {
    const before = await this.corrections(name);
    const path = `/api/v1/namespaces/${name}/configmaps/${name}-canary`;
    await this.cluster.kubectl([
      'patch',
      'configmap',
      `${name}-canary`,
      '-n',
      name,
      '--type=merge',
      '-p',
      '{"data":{"bird":"silent"}}',
    ]);
    await this.until<KubeObject & { data: Record<string, string> }>(path, ({ data }) => {
      expect(data['bird']).toBe('sings');
    });
    const drift = await this.corrected(name, before + 1);
    expect(drift.corrections).toBe(before + 1);
    await this.inSync(name);
  }

  /** Revision of the newest record of the release. */
  async revision(name: string): Promise<number> {
    return (await newestRecord(this.cluster, name, name)).version;
  }
}

/** A template for `nothingElseCorrected`. */
export const CANARY = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-canary
data:
  bird: sings
`;
