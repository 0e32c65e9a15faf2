import { delimiter, join } from 'node:path';
import type { Environment, KubeObject, Proxy, TestCluster } from '../../test/support/index.ts';
import {
  ChartRepository,
  INSTALLED,
  Manager,
  Mirror,
  createCluster,
  ensureNamespace,
  installCapi,
  installCrds,
  runProgram,
  startEnvironment,
} from '../../test/support/index.ts';
import { FLEET_PROGRAMS, binaries } from '../binaries.ts';
import { CA_SECRET, LABEL, NAMESPACE, demoCharts } from './charts.ts';
import type { DemoFolder } from './folder.ts';
import { LogFollower } from './log-follower.ts';
import type { Programs } from './programs.ts';
import { choosePrograms, missingFolders } from './programs.ts';
import { releaseLine } from './release-line.ts';
import type { Screen } from './screen.ts';

/** A workload cluster under its name in the fleet. */
export interface Member {
  name: string;
  cluster: TestCluster;
}

export interface StageOptions {
  clusters: number;
  /** Run the manager from src/ and not from what `npm ci` built. */
  fromSources: boolean;
  /** The user's PATH. */
  path: string;
  signal: AbortSignal;
}

const ROOT = join(import.meta.dirname, '../..');
const CRDS = ['helmchartproxies', 'helmreleaseproxies'].map((name) => join(ROOT, `src/api/crds/${name}.yaml`));
const ADDONS = `/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/${NAMESPACE}`;
/** Names of the first clusters; more of them are numbered. */
const CITIES = ['amsterdam', 'tokyo', 'nairobi', 'lima', 'oslo', 'quito'];
const REGIONS = ['europe', 'asia', 'africa', 'america', 'europe', 'america'];

/** Everything that the demo runs: clusters, chart repository, manager, and the eyes on them. */
export class Stage {
  readonly environment: Environment;
  readonly charts: ChartRepository;
  readonly folder: DemoFolder;
  readonly programs: Programs;
  readonly members: readonly Member[];
  /** Clusters that the manager has engaged. */
  readonly engaged = new Set<string>();
  readonly #screen: Screen;
  readonly #options: StageOptions;
  readonly #followers: { stop(): Promise<void> }[] = [];
  #manager: Manager | undefined;
  #releases: Mirror<Proxy> | undefined;

  private constructor(parts: {
    environment: Environment;
    charts: ChartRepository;
    programs: Programs;
    folder: DemoFolder;
    screen: Screen;
    options: StageOptions;
  }) {
    this.environment = parts.environment;
    this.charts = parts.charts;
    this.programs = parts.programs;
    this.folder = parts.folder;
    this.#screen = parts.screen;
    this.#options = parts.options;
    this.members = parts.environment.clusters.map((cluster, index) => ({ name: nameOf(index), cluster }));
  }

  /** Starts everything but the manager. What was started is ended again when a part fails or the signal aborts. */
  static async setUp(options: StageOptions, folder: DemoFolder, screen: Screen): Promise<Stage> {
    const { signal } = options;
    const programs = await choosePrograms(await binaries(process.env, FLEET_PROGRAMS), options.path, signal);
    for (const { name, version, onPath } of [programs.helm, programs.kubectl]) {
      screen.fact(name, `${version}, ${onPath ? 'from your PATH' : "the project's own"}`);
    }
    screen.fact('kube-apiserver', `starting ${options.clusters + 1} of them: management and workload clusters`, 'busy');
    const environment = await startEnvironment({ clusters: options.clusters, programs: FLEET_PROGRAMS, signal });
    try {
      const charts = await ChartRepository.start();
      const stage = new Stage({ environment, charts, programs, folder, screen, options });
      await stage.#furnish();
      return stage;
    } catch (error) {
      await environment.stop();
      throw error;
    }
  }

  get manager(): Manager {
    if (!this.#manager) throw new Error('the manager was not started');
    return this.#manager;
  }

  /** The HelmReleaseProxies as they are now. */
  get releases(): Mirror<Proxy> {
    if (!this.#releases) throw new Error('nobody watches the releases yet');
    return this.#releases;
  }

  /** Aborts on Ctrl-C, and when the manager dies. */
  get signal(): AbortSignal {
    return this.#manager ? AbortSignal.any([this.#options.signal, this.#manager.ended]) : this.#options.signal;
  }

  member(name: string): Member {
    const found = this.members.find((member) => member.name === name);
    if (!found) throw new Error(`there is no cluster ${name}`);
    return found;
  }

  /** Starts the manager and shows what it says of clusters and releases from then on. */
  async startManager(): Promise<void> {
    this.#manager = await Manager.start(this.environment, {
      command: this.#options.fromSources ? undefined : INSTALLED,
      directory: this.folder.path,
      name: 'manager',
      kubeconfig: this.folder.file('management.kubeconfig'),
      helm: this.programs.helm.path,
      env: { TMPDIR: this.environment.directory, HOME: this.environment.directory },
      signal: this.#options.signal,
    });
    this.#followers.push(
      new LogFollower(this.#manager.logFile, ({ msg, cluster = '', reason }) => {
        if (!cluster.startsWith(`${NAMESPACE}/`) || msg?.startsWith('cluster ') !== true) return;
        const name = cluster.slice(NAMESPACE.length + 1);
        const isEngaged = msg === 'cluster engaged';
        if (isEngaged) this.engaged.add(name);
        const text = msg.slice('cluster '.length);
        this.#screen.fact(
          `cluster ${name}`,
          reason === undefined ? text : `${text}: ${reason}`,
          isEngaged ? 'good' : 'busy',
        );
      }),
    );
    this.#releases = await this.#watchReleases();
    this.#followers.push(this.#releases);
  }

  /** Runs kubectl on the management cluster, and shows the command. */
  async kubectl(...args: string[]): Promise<string> {
    this.#screen.command(['kubectl', ...args.map(quoted)].join(' '));
    const { workingDirectory } = this.folder;
    const env = this.#commandEnvironment();
    return runProgram(this.programs.kubectl.path, args, { cwd: workingDirectory, env, signal: this.signal });
  }

  /** Runs a line in a shell, as the user would after the exports that the demo prints. */
  async shell(line: string): Promise<string> {
    const path = [...missingFolders(this.programs), this.#options.path].join(delimiter);
    const env = { ...this.#commandEnvironment(), PATH: path };
    return runProgram('sh', ['-c', line], { cwd: this.folder.workingDirectory, env, signal: this.signal });
  }

  /** A HelmChartProxy as it is now. */
  async chartProxy(name: string): Promise<Proxy> {
    return this.environment.management.api.get<Proxy>(`${ADDONS}/helmchartproxies/${name}`);
  }

  /** Ends the manager as a Deployment would, then everything else, and removes what lies in the temporary directory. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.#followers.map(async (follower) => follower.stop()));
    await this.#manager?.stop();
    await this.charts.stop();
    await this.environment.stop();
  }

  #commandEnvironment(): Record<string, string> {
    return { KUBECONFIG: this.folder.file('management.kubeconfig'), HOME: this.environment.directory };
  }

  async #furnish(): Promise<void> {
    const { environment, charts, folder } = this;
    const { api, server } = environment.management;
    await folder.write('management.kubeconfig', environment.management.kubeconfig);
    this.#screen.fact('management cluster', server, 'good');
    await installCapi(api);
    await installCrds(api, CRDS);
    await environment.management.restartControllers();
    this.#screen.fact('management cluster', "has Cluster API's and Capstan's CRDs");
    charts.publish(...demoCharts());
    await ensureNamespace(api, NAMESPACE);
    await api.create(`/api/v1/namespaces/${NAMESPACE}/secrets`, {
      metadata: { name: CA_SECRET },
      data: { 'ca.crt': Buffer.from(charts.ca).toString('base64') },
    });
    this.#screen.fact('chart repository', `${charts.url}, its CA in Secret ${CA_SECRET}`, 'good');
    for (const [index, member] of this.members.entries()) await this.#declare(index, member);
  }

  async #declare(index: number, { name, cluster }: Member): Promise<void> {
    const labels = { [LABEL.key]: LABEL.value, region: REGIONS[index % REGIONS.length] ?? '' };
    await createCluster(this.environment.management.api, {
      name,
      namespace: NAMESPACE,
      labels,
      kubeconfig: cluster.kubeconfig,
      spec: { clusterNetwork: { pods: { cidrBlocks: [`10.${index + 1}.0.0/16`] } } },
    });
    await this.folder.write(`${name}.kubeconfig`, cluster.kubeconfig);
    this.#screen.fact(`cluster ${name}`, `${cluster.server}, declared as Cluster with its kubeconfig Secret`, 'good');
  }

  /** A line whenever what is to be said of a release changes. */
  async #watchReleases(): Promise<Mirror<Proxy>> {
    const said = new Map<string, string>();
    return Mirror.start<Proxy>(this.environment.management.api, `${ADDONS}/helmreleaseproxies`, (change) => {
      const { object } = change;
      const uid = object.metadata.uid ?? '';
      const { text, tone } = change.type === 'removed' ? { text: 'gone', tone: 'quiet' as const } : releaseLine(object);
      if (said.get(uid) === text) return;
      said.set(uid, text);
      this.#screen.fact(`release ${subjectOf(object)}`, text, tone);
    });
  }
}

/** "greeting on tokyo". */
function subjectOf(proxy: Proxy & KubeObject): string {
  return `${proxy.spec.releaseName ?? proxy.metadata.name ?? ''} on ${proxy.spec.clusterRef?.name ?? ''}`;
}

function nameOf(index: number): string {
  return CITIES[index] ?? `cluster-${index + 1}`;
}

function quoted(arg: string): string {
  return /^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`;
}
