import { setTimeout as sleep } from 'node:timers/promises';
import type { Proxy } from '../../test/support/index.ts';
import { eventually } from '../../test/support/index.ts';
import { LABEL, NAMESPACE, baselineManifest, greetingManifest } from './charts.ts';
import { HandEdits } from './hand-edits.ts';
import { isDeployed } from './release-line.ts';
import type { Screen } from './screen.ts';
import type { Member, Stage } from './stage.ts';

/** One part of the story. `play` rejects with what did not happen. */
export interface Scene {
  title: string;
  play(): Promise<void>;
}

/** Most time (ms) for a change to be everywhere: seconds on two idle cores, more on a busy CI machine. */
const LIMIT_MS = 120_000;
/** How long (ms) the InstallOnce release is given to change although it must not, after the manager has seen the change. */
const LEFT_ALONE_MS = 2_000;

/** What somebody makes of the InstallOnce release's limit by hand. */
const EDITED_MEMORY = '192Mi';

/** What the demo shows. Every scene looks at the workload clusters themselves before it counts as played. */
export class Story {
  readonly #stage: Stage;
  readonly #screen: Screen;
  /** The cluster that loses its label. */
  readonly #leaver: Member;
  /** Memory limits that were edited by hand, by cluster. */
  readonly #memory = new Map<string, string>();

  constructor(stage: Stage, screen: Screen) {
    this.#stage = stage;
    this.#screen = screen;
    const leaver = stage.members.at(-1);
    if (!leaver) throw new Error('the demo needs a workload cluster');
    this.#leaver = leaver;
  }

  scenes(): Scene[] {
    return [
      { title: '1. The manager starts and engages every Cluster that it finds', play: async () => this.#engage() },
      {
        title: '2. A HelmChartProxy puts a chart on every cluster, with values of its own',
        play: async () => this.#install(),
      },
      {
        title: '3. Another one installs once, and then leaves the release to the cluster',
        play: async () => this.#installOnce(),
      },
      { title: '4. New values for both: one rolls out, the other is left alone', play: async () => this.#change() },
      {
        title: '5. Somebody changes things on a cluster by hand: noticed, told, and put back, without a new revision',
        play: async () => this.#drift(),
      },
      {
        title: `6. Cluster ${this.#leaver.name} loses its label, and the chart goes with it`,
        play: async () => this.#unlabel(),
      },
    ];
  }

  async #engage(): Promise<void> {
    await this.#stage.startManager();
    const { engaged, members, signal } = this.#stage;
    await eventually(
      () => {
        const missing = members.filter(({ name }) => !engaged.has(name)).map(({ name }) => name);
        if (missing.length > 0) throw new Error(`not engaged yet: ${missing.join(', ')}`);
      },
      { timeoutMs: LIMIT_MS, what: 'the manager engages all clusters', signal },
    );
  }

  async #install(): Promise<void> {
    await this.#apply('greeting', greetingManifest(this.#stage.charts.url, 'Hello'));
    await this.#deployed('greeting', 1);
    for (const member of this.#stage.members) await this.#greets(member, 'Hello', '1');
  }

  async #installOnce(): Promise<void> {
    await this.#apply('baseline', baselineManifest(this.#stage.charts.url, '128Mi'));
    await this.#deployed('baseline', 1);
    for (const member of this.#stage.members) await this.#limits(member, '128Mi');
  }

  async #change(): Promise<void> {
    const { members, charts } = this.#stage;
    const before = await Promise.all(members.map(async ({ cluster }) => records(cluster, 'baseline')));
    await this.#apply('greeting', greetingManifest(charts.url, 'Good evening'));
    await this.#apply('baseline', baselineManifest(charts.url, '256Mi'));
    await this.#deployed('greeting', 2);
    for (const member of members) await this.#greets(member, 'Good evening', '2');
    await this.#seen('baseline', () => undefined);
    await this.#leftAlone(members, before);
  }

  /** Deletes and edits as a person would; what the InstallOnce release installed belongs to the cluster and stays edited. */
  async #drift(): Promise<void> {
    const [member] = this.#stage.members;
    if (!member) throw new Error('the demo needs a workload cluster');
    const hand = new HandEdits(this.#stage, member);
    const before = await records(member.cluster, 'greeting');
    await hand.editBaseline(EDITED_MEMORY);
    this.#memory.set(member.name, EDITED_MEMORY);
    await hand.deleteDeployment();
    await hand.editPage('Hacked by hand');
    await hand.putBack('Good evening');
    for (const message of await hand.told()) this.#screen.fact(`release greeting on ${member.name}`, message, 'good');
    const after = await records(member.cluster, 'greeting');
    if (after.join() !== before.join())
      throw new Error(`Helm's records changed: ${before.join()} became ${after.join()}`);
    await this.#greets(member, 'Good evening', '2');
    this.#screen.fact(`cluster ${member.name}`, "Helm's records are untouched: no new revision", 'good');
    await this.#limits(member, EDITED_MEMORY, ', as edited by hand: an InstallOnce release belongs to its cluster');
  }

  async #unlabel(): Promise<void> {
    const { members, releases, signal } = this.#stage;
    const { name, cluster } = this.#leaver;
    const before = await Promise.all(members.map(async (member) => records(member.cluster, 'baseline')));
    await this.#stage.kubectl('label', 'cluster', name, '-n', NAMESPACE, `${LABEL.key}-`);
    await releases.until(
      (all) => (releaseOf(all, 'greeting', name) ? `its HelmReleaseProxy is still there` : undefined),
      { timeoutMs: LIMIT_MS, what: `greeting is uninstalled from ${name}`, signal },
    );
    const left = await records(cluster, 'greeting');
    if (left.length > 0) throw new Error(`Helm's record of greeting is still on ${name}: ${left.join(', ')}`);
    for (const kind of ['configmaps', 'services']) {
      const object = await cluster.api.find(`/api/v1/namespaces/greeting/${kind}/greeting`);
      if (object) throw new Error(`${kind}/greeting is still on ${name}`);
    }
    this.#screen.fact(`cluster ${name}`, 'has neither the release nor its objects any more', 'good');
    for (const member of members.filter((other) => other !== this.#leaver))
      await this.#greets(member, 'Good evening', '2');
    await this.#seen('baseline', (proxy) =>
      proxy.status?.matchingClusters?.some((matching) => matching.name === name) === true
        ? `${name} is still among its matchingClusters`
        : undefined,
    );
    await this.#leftAlone(members, before);
  }

  async #apply(name: string, manifest: string): Promise<void> {
    const file = `${name}.yaml`;
    await this.#stage.folder.write(file, manifest);
    await this.#stage.kubectl('apply', '-f', this.#stage.folder.shown(file));
  }

  /** Every cluster's HelmReleaseProxy is Ready at that revision. */
  async #deployed(name: string, revision: number): Promise<void> {
    const { members, releases, signal } = this.#stage;
    await releases.until(
      (all) => {
        const missing = members.filter((member) => {
          const proxy = releaseOf(all, name, member.name);
          return !proxy || !isDeployed(proxy) || proxy.status?.revision !== revision;
        });
        return missing.length === 0 ? undefined : `not there: ${missing.map((member) => member.name).join(', ')}`;
      },
      { timeoutMs: LIMIT_MS, what: `${name} is deployed everywhere at revision ${revision}`, signal },
    );
  }

  /** The ConfigMap on the cluster itself says what the template makes of that cluster. */
  async #greets({ name, cluster }: Member, salutation: string, revision: string): Promise<void> {
    const page = await cluster.api.find<{ metadata: object; data?: Record<string, string> }>(
      '/api/v1/namespaces/greeting/configmaps/greeting',
    );
    const message = page?.data?.['message'] ?? '(no such ConfigMap)';
    if (!message.startsWith(`${salutation} ${name}, whose pods live in 10.`) || page?.data?.['revision'] !== revision) {
      throw new Error(
        `configmap/greeting on ${name} should be ${salutation} at revision ${revision}: ${JSON.stringify(page?.data)}`,
      );
    }
    this.#screen.fact(`cluster ${name}`, `configmap/greeting: "${message}"`, 'good');
  }

  async #limits({ name, cluster }: Member, memory: string, note = ''): Promise<void> {
    const found = await cluster.api.find<{ metadata: object; spec?: { limits?: { default?: { memory?: string } }[] } }>(
      '/api/v1/namespaces/baseline/limitranges/baseline',
    );
    const limit = found?.spec?.limits?.[0]?.default?.memory;
    if (limit !== memory)
      throw new Error(`limitrange/baseline on ${name} should be ${memory}, is ${limit ?? 'not there'}`);
    this.#screen.fact(`cluster ${name}`, `limitrange/baseline: ${memory}${note}`, 'good');
  }

  /** The manager has handled the HelmChartProxy as it is now. */
  async #seen(name: string, missing: (proxy: Proxy) => string | undefined): Promise<void> {
    await eventually(
      async () => {
        const proxy = await this.#stage.chartProxy(name);
        if (proxy.status?.observedGeneration !== proxy.metadata.generation)
          throw new Error('has not been looked at yet');
        const lack = missing(proxy);
        if (lack !== undefined) throw new Error(lack);
      },
      { timeoutMs: LIMIT_MS, what: `the manager has handled HelmChartProxy ${name}`, signal: this.#stage.signal },
    );
  }

  /** Helm's records of the InstallOnce release are those from before, on every cluster. */
  async #leftAlone(members: readonly Member[], before: string[][]): Promise<void> {
    await sleep(LEFT_ALONE_MS, undefined, { signal: this.#stage.signal });
    for (const [index, member] of members.entries()) {
      const now = await records(member.cluster, 'baseline');
      if (now.join() !== before[index]?.join()) {
        throw new Error(`baseline on ${member.name} was touched: ${before[index]?.join() ?? ''} became ${now.join()}`);
      }
      await this.#limits(member, this.#memory.get(member.name) ?? '128Mi', ', and its release was not touched');
    }
  }
}

function releaseOf(all: readonly Proxy[], name: string, cluster: string): Proxy | undefined {
  return all.find(({ spec }) => spec.releaseName === name && spec.clusterRef?.name === cluster);
}

/** Helm's records of a release, with their versions: equal lists mean that nobody wrote. */
async function records(cluster: Member['cluster'], release: string): Promise<string[]> {
  const secrets = await cluster.api.list(
    `/api/v1/namespaces/${release}/secrets?labelSelector=owner%3Dhelm,name%3D${release}`,
  );
  return secrets.map(({ metadata }) => `${metadata.name ?? ''}@${metadata.resourceVersion ?? ''}`).sort();
}
