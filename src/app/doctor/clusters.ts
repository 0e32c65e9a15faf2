import PQueue from 'p-queue';
import { X509Certificate } from 'node:crypto';
import { parse } from 'yaml';
import type { HelmReleaseProxy } from '../../api/index.ts';
import { Connection, isKubeError, RestClient } from '../../kube/index.ts';
import type { CallOptions, KubeObject, Resource } from '../../kube/index.ts';
import { readKubeconfigSecret } from '../../providers/capi/index.ts';
import { clusterKeyOf, releaseKeyOf } from '../../reconcilers/release-proxy/proxy.ts';
import { explain } from '../drift/explain.ts';
import { spelledKey } from '../inspect/objects.ts';
import type { ClusterObject, FleetObjects } from '../inspect/objects.ts';
import type { DoctorOptions } from '../inspect/options.ts';
import type { Inspection } from '../inspect/run.ts';
import { Findings } from './finding.ts';
import type { Finding } from './finding.ts';

const SECRETS: Resource = { group: '', version: 'v1', plural: 'secrets', namespaced: true };
const DAY_MS = 24 * 3_600_000;
/** Cluster API renews at half of a year's life; a month is left for whoever renews by hand. */
const SOON_MS = 30 * DAY_MS;
/** As CAAPH generated them: the chart's name and a Unix time. */
const GENERATED = /^(.+)-\d{10}$/;

/** Every Cluster: can it be reached, with what, and is there something on it that nobody owns? */
export async function checkClusters(
  inspection: Inspection,
  fleet: FleetObjects,
  options: Pick<DoctorOptions, 'concurrency' | 'allowExecPlugins' | 'userAgent' | 'timeoutMs'>,
): Promise<Finding[]> {
  const queue = new PQueue({ concurrency: options.concurrency });
  const all = await Promise.all(
    fleet.clusters.map(async (cluster) => queue.add(async () => checkCluster(inspection, { cluster, fleet, options }))),
  );
  const found = all.flat();
  if (fleet.clusters.length > 0) return found;
  const none = new Findings('cluster');
  none.warn('', `there are no Clusters in ${inspection.namespace ?? 'any namespace'}`, '-A looks in all namespaces');
  return none.all;
}

interface Subject {
  readonly cluster: ClusterObject;
  readonly fleet: FleetObjects;
  readonly options: Pick<DoctorOptions, 'allowExecPlugins' | 'userAgent' | 'timeoutMs'>;
}

async function checkCluster({ client, call }: Inspection, subject: Subject): Promise<Finding[]> {
  const name = spelledKey(subject.cluster);
  const found = new Findings('cluster');
  let kubeconfig: string;
  try {
    ({ kubeconfig } = await readKubeconfigSecret(client, subject.cluster.metadata, call));
  } catch (error) {
    found.skip(name, `Secret ${name}-kubeconfig cannot be read: ${explain(error)}`);
    return found.all;
  }
  if (kubeconfig === '') {
    found.fail(
      name,
      `Secret ${name}-kubeconfig is missing or has no key "value"`,
      'the control plane provider makes it once the control plane is there: kubectl describe cluster',
    );
    return found.all;
  }
  return [...checkCertificates(name, kubeconfig), ...(await reach(name, kubeconfig, { ...subject, call }))];
}

async function reach(name: string, kubeconfig: string, subject: Subject & { call: CallOptions }): Promise<Finding[]> {
  const { options, call, fleet } = subject;
  const found = new Findings('cluster');
  let connection: Connection;
  try {
    connection = Connection.fromKubeconfig(kubeconfig, {
      clusterName: name,
      userAgent: options.userAgent,
      allowExec: options.allowExecPlugins,
      requestTimeoutMs: options.timeoutMs,
      connectTimeoutMs: options.timeoutMs,
    });
  } catch (error) {
    found.fail(name, `its kubeconfig cannot be used: ${explain(error)}`, adviceForKubeconfig(error));
    return found.all;
  }
  try {
    const client = new RestClient(connection);
    const { gitVersion = '' } = await client.raw<{ gitVersion?: string }>('GET', '/version', call);
    // What the manager asks first, and whatever needs a right.
    await client.get(
      { group: '', version: 'v1', plural: 'namespaces', namespaced: false },
      { name: 'kube-system' },
      call,
    );
    found.ok(name, `Kubernetes ${gitVersion} at ${connection.server}`);
    return [...found.all, ...(await checkOrphans(name, client, { fleet, call }))];
  } catch (error) {
    found.fail(name, `${connection.server}: ${explain(error)}`, adviceFor(error));
    return found.all;
  } finally {
    await connection.close();
  }
}

function adviceForKubeconfig(error: unknown): string {
  if (isKubeError(error, 'ExecPluginRefused'))
    return 'use a kubeconfig with a token or certificate, or start the manager with --allow-exec-plugins';
  if (isKubeError(error, 'FileReferenceRefused'))
    return 'put certificates and tokens into the kubeconfig: a Secret may name no files';
  return 'put a kubeconfig into the Secret under the key "value"';
}

function adviceFor(error: unknown): string {
  if (isKubeError(error, 'Unauthorized'))
    return 'its credentials are refused: have the control plane provider renew the Secret';
  if (isKubeError(error, 'Forbidden')) return 'its user may not read namespaces: give it the rights of cluster-admin';
  if (/certificate|self.signed|issuer/i.test(explain(error)))
    return 'the CA in the kubeconfig is not that of the server: renew the Secret';
  return "is the API server up, and may the management cluster's network reach it?";
}

/** The certificate that it shows to the server, and the CA that it believes. */
export function checkCertificates(name: string, kubeconfig: string, nowMs = Date.now()): Finding[] {
  const found = new Findings('certificate');
  for (const [what, pem] of certificatesIn(kubeconfig)) {
    const leftMs = Date.parse(pem.validTo) - nowMs;
    const until = new Date(pem.validTo).toISOString();
    if (leftMs < 0) found.fail(name, `${what} has expired at ${until}`, 'renew the kubeconfig Secret');
    else if (leftMs < SOON_MS)
      found.warn(
        name,
        `${what} expires in ${Math.floor(leftMs / DAY_MS)} days, at ${until}`,
        'renew the kubeconfig Secret',
      );
  }
  return found.all;
}

function certificatesIn(kubeconfig: string): [what: string, certificate: X509Certificate][] {
  const found: [string, X509Certificate][] = [];
  try {
    const { clusters = [], users = [] } = parse(kubeconfig, { logLevel: 'error' }) as {
      clusters?: { cluster?: Record<string, unknown> }[];
      users?: { user?: Record<string, unknown> }[];
    };
    for (const { user } of users) push(found, 'its client certificate', user?.['client-certificate-data']);
    for (const { cluster } of clusters) push(found, 'its CA', cluster?.['certificate-authority-data']);
  } catch {
    // What is wrong with it is told where it is used; the parser's words would quote it.
  }
  return found;
}

function push(found: [string, X509Certificate][], what: string, data: unknown): void {
  if (typeof data === 'string' && data !== '') found.push([what, new X509Certificate(Buffer.from(data, 'base64'))]);
}

/** Releases with a name as CAAPH generated them that no object has any more: it made a second one, and forgot the first (W17). */
async function checkOrphans(
  name: string,
  client: RestClient,
  { fleet, call }: { fleet: FleetObjects; call: CallOptions },
): Promise<Finding[]> {
  const found = new Findings('orphan');
  const here = fleet.releaseProxies.filter((proxy) => spelledCluster(proxy) === name);
  const owned = new Set(here.map((proxy) => releaseOf(releaseKeyOf(proxy))));
  const charts = new Set(here.map(({ spec }) => spec.chartName));
  try {
    const scope = { labelSelector: 'owner=helm' };
    const { items } = await client.list<KubeObject>(SECRETS, scope, { ...call, form: 'metadata' });
    const releases = new Set(
      items.map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.labels?.['name'] ?? ''}`),
    );
    for (const release of [...releases].sort()) {
      const chart = GENERATED.exec(release.slice(release.indexOf('/') + 1))?.[1];
      if (chart === undefined || !charts.has(chart) || owned.has(release)) continue;
      const [namespace = '', own = ''] = release.split('/');
      found.warn(
        name,
        `release ${release} has a generated name, and no HelmReleaseProxy has it`,
        `perhaps left by CAAPH; if nobody needs it: helm uninstall ${own} -n ${namespace}`,
      );
    }
  } catch (error) {
    found.skip(name, `releases could not be listed: ${explain(error)}`);
  }
  return found.all;
}

function spelledCluster(proxy: HelmReleaseProxy): string {
  const { namespace, name } = clusterKeyOf(proxy);
  return `${namespace}/${name}`;
}

function releaseOf(key: { namespace: string; name: string } | undefined): string {
  return key === undefined ? '' : `${key.namespace}/${key.name}`;
}
