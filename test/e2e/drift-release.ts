import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { Connection, ApiDiscovery, RestClient } from '../../src/kube/index.ts';
import type { KubeClient, KubeObject, Resource } from '../../src/kube/index.ts';
import { correctObject } from '../../src/drift/corrector.ts';
import { buildInventory } from '../../src/drift/inventory.ts';
import { compileRules } from '../../src/drift/rules.ts';
import type {
  ComparisonPolicy,
  Correction,
  ExtraFields,
  Inventory,
  InventoryObject,
  JsonObject,
  Path,
  PathRule,
  Verification,
} from '../../src/drift/types.ts';
import { verifyObject } from '../../src/drift/verifier.ts';
import type { TestCluster } from '../support/index.ts';

export interface PolicyOptions {
  extraFields?: ExtraFields;
  ignore?: PathRule[];
  quantities?: PathRule[];
}

export function policy({ extraFields = 'Ignore', ignore = [], quantities = [] }: PolicyOptions = {}): ComparisonPolicy {
  return {
    extraFields,
    ignore: compileRules(ignore, 'ignore'),
    quantities: compileRules(quantities, 'quantities'),
    helmManagers: new Set(['helm', 'manager']),
  };
}

/** A cluster as the drift room sees it, and Helm as people use it. */
export class DriftLab {
  readonly cluster: TestCluster;
  readonly client: KubeClient;
  readonly discovery: ApiDiscovery;
  readonly #connection: Connection;

  constructor(cluster: TestCluster) {
    this.cluster = cluster;
    this.#connection = Connection.fromKubeconfig(cluster.kubeconfig, { clusterName: cluster.name });
    this.client = new RestClient(this.#connection);
    this.discovery = new ApiDiscovery(this.client, { minRefreshMs: 0 });
  }

  /** Installs a chart of one manifest as release and namespace `name`. */
  async install(name: string, manifest: string, options: { helm?: 3 | 4; args?: string[] } = {}): Promise<LabRelease> {
    const release = new LabRelease(this, name, options.helm ?? 4);
    await release.helm('install', manifest, ['--create-namespace', ...(options.args ?? [])]);
    return release;
  }

  async stop(): Promise<void> {
    await this.#connection.close();
  }
}

/** One installed release and its objects. */
export class LabRelease {
  readonly name: string;
  readonly lab: DriftLab;
  /** Dry runs that verifications and corrections sent. */
  dryRuns = 0;
  readonly #helm: 3 | 4;

  constructor(lab: DriftLab, name: string, helm: 3 | 4) {
    this.lab = lab;
    this.name = name;
    this.#helm = helm;
  }

  /** `helm install` or `helm upgrade` with a chart of this manifest, as a template, so that its text is Helm's to read. */
  async helm(
    command: 'install' | 'upgrade',
    manifest: string,
    args: string[] = [],
    version = this.#helm,
  ): Promise<void> {
    const { cluster } = this.lab;
    const directory = join(cluster.directory, `chart-${this.name}`);
    await mkdir(join(directory, 'templates'), { recursive: true });
    await writeFile(join(directory, 'Chart.yaml'), `apiVersion: v2\nname: ${this.name}\nversion: 1.0.0\n`);
    await writeFile(join(directory, 'templates', 'all.yaml'), manifest);
    const line = [command, this.name, directory, '-n', this.name, '--disable-openapi-validation', ...args];
    await (version === 3 ? cluster.helm3(line) : cluster.helm(line));
  }

  async inventory(): Promise<Inventory> {
    const text = await this.lab.cluster.helm(['get', 'manifest', this.name, '-n', this.name]);
    const documents = parseAllDocuments(text, { version: '1.1' }).map((document) => document.toJS() as JsonObject);
    this.lab.discovery.invalidate();
    return buildInventory(
      { release: { namespace: this.name, name: this.name }, revision: 1, documents, crds: [] },
      this.lab.discovery,
    );
  }

  async object(kind: string, name?: string): Promise<InventoryObject> {
    const { objects } = await this.inventory();
    const found = objects.find(({ id }) => id.kind === kind && (name === undefined || id.name === name));
    if (found === undefined) throw new Error(`the release has no ${kind} ${name ?? ''}`);
    return found;
  }

  async verify(kind: string, options: PolicyOptions & { name?: string } = {}): Promise<Verification> {
    const object = await this.object(kind, options.name);
    return verifyObject(this.lab.client, object, policy(options), { onDryRun: () => (this.dryRuns += 1) });
  }

  /** Verifies and corrects, as one pass does. */
  async correct(kind: string, options: PolicyOptions & { name?: string; skip?: Path[] } = {}): Promise<Correction> {
    const object = await this.object(kind, options.name);
    const compared = policy(options);
    const onDryRun = (): number => (this.dryRuns += 1);
    const { verdict } = await verifyObject(this.lab.client, object, compared, { onDryRun });
    if (verdict.state !== 'Modified' && verdict.state !== 'Missing') throw new Error(`found to be ${verdict.state}`);
    return correctObject(this.lab.client, object, verdict, { policy: compared, skip: options.skip, onDryRun });
  }

  async live(kind: string, name?: string): Promise<KubeObject & JsonObject> {
    const { id, resource } = await this.object(kind, name);
    return this.lab.client.get(resource as Resource, { namespace: id.namespace, name: id.name });
  }

  /** `kubectl patch` by a person: field manager kubectl-patch. */
  async patch(target: string, patch: unknown, type: 'merge' | 'strategic' | 'json' = 'merge'): Promise<void> {
    await this.kubectl('patch', target, `--type=${type}`, '-p', JSON.stringify(patch));
  }

  async kubectl(...args: string[]): Promise<string> {
    return this.lab.cluster.kubectl([...args, '-n', this.name]);
  }

  async apply(manifest: string, ...args: string[]): Promise<string> {
    return this.lab.cluster.kubectl(['apply', '-n', this.name, '-f', '-', ...args], { stdin: manifest });
  }
}
