import { API_GROUP, API_VERSION } from '../../api/index.ts';
import type { KubeObject, Resource } from '../../kube/index.ts';
import { explain } from '../drift/explain.ts';
import { servedVersion } from '../inspect/objects.ts';
import type { Inspection } from '../inspect/run.ts';
import { Findings } from './finding.ts';
import type { Finding } from './finding.ts';

interface Crd extends KubeObject {
  spec?: { conversion?: { strategy?: string }; versions?: { name: string; served: boolean; storage: boolean }[] };
  status?: { storedVersions?: string[] };
}

interface Lease extends KubeObject {
  spec?: { holderIdentity?: string; renewTime?: string; leaseDurationSeconds?: number };
}

interface Deployment extends KubeObject {
  spec?: { replicas?: number; template?: { spec?: { containers?: { image?: string }[] } } };
}

const CRDS: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  namespaced: false,
};
const LEASES: Resource = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', namespaced: true };
const DEPLOYMENTS: Resource = { group: 'apps', version: 'v1', plural: 'deployments', namespaced: true };
const OURS = ['helmchartproxies', 'helmreleaseproxies'] as const;
/** The oldest Kubernetes whose CRD rules (CEL) ours need. */
const OLDEST_MINOR = 30;
/** CAAPH's image, whatever registry it comes from. */
const CAAPH_IMAGE = /cluster-api-helm-controller/;
/** A renewal that is missing for so much longer than the Lease lasts is no hiccup. */
const STALE_DURATIONS = 4;

/** Is the server there, and new enough? Rejects when it is not there: nothing else can be looked at then. */
export async function checkApiServer({ client, user, call }: Inspection): Promise<Finding[]> {
  const found = new Findings('api-server');
  const { gitVersion = '', minor = '' } = await client.raw<{ gitVersion?: string; minor?: string }>(
    'GET',
    '/version',
    call,
  );
  const name = `${user.name} (${user.connection.server})`;
  if (Number.parseInt(minor, 10) < OLDEST_MINOR)
    found.fail(
      name,
      `Kubernetes ${gitVersion} is too old`,
      `Capstan's CRDs need Kubernetes 1.${OLDEST_MINOR} or later`,
    );
  else found.ok(name, `Kubernetes ${gitVersion}`);
  return found.all;
}

export async function checkCrds({ client, call }: Inspection): Promise<Finding[]> {
  const found = new Findings('crds');
  for (const plural of OURS) {
    const name = `${plural}.${API_GROUP}`;
    try {
      const crd = await client.find<Crd>(CRDS, { name }, call);
      if (crd === undefined) found.fail(name, 'the CRD is not there', 'kubectl apply -k deploy/crds');
      else lookAtCrd(found, name, crd);
    } catch (error) {
      found.skip(name, explain(error));
    }
  }
  return found.all;
}

function lookAtCrd(found: Findings, name: string, crd: Crd): void {
  const served = crd.spec?.versions?.some((version) => version.name === API_VERSION && version.served) === true;
  const strange = (crd.status?.storedVersions ?? []).filter((version) => version !== API_VERSION);
  if (!served) found.fail(name, `${API_VERSION} is not served`, 'kubectl apply -k deploy/crds');
  else if (crd.spec?.conversion?.strategy === 'Webhook')
    found.fail(
      name,
      "it converts through a webhook, as CAAPH's did: when that is gone, nothing can be read",
      'kubectl apply -k deploy/crds',
    );
  else if (strange.length > 0)
    found.warn(name, `objects may be stored as ${strange.join(', ')}`, 'see docs/migration.md');
  else found.ok(name, `${API_VERSION} is served`);
}

export async function checkClusterApi({ client, call }: Inspection): Promise<Finding[]> {
  const found = new Findings('cluster-api');
  try {
    const version = await servedVersion(client, 'cluster.x-k8s.io', call);
    if (version === undefined) found.fail('', 'Cluster API is not installed: there are no Clusters', 'clusterctl init');
    else found.ok('', `cluster.x-k8s.io/${version}`);
  } catch (error) {
    found.skip('', explain(error));
  }
  return found.all;
}

/** Who leads: nobody, somebody who no longer renews, or whom. */
export async function checkLeader({ client, call }: Inspection, leaseName: string): Promise<Finding[]> {
  const found = new Findings('leader');
  try {
    const { items } = await client.list<Lease>(LEASES, { fieldSelector: `metadata.name=${leaseName}` }, call);
    for (const lease of items) lookAtLease(found, lease);
    if (items.length === 0)
      found.warn(
        '',
        `there is no Lease ${leaseName}`,
        'no manager with --leader-elect has run here; --lease names another one',
      );
  } catch (error) {
    found.skip('', explain(error));
  }
  return found.all;
}

function lookAtLease(found: Findings, { metadata, spec = {} }: Lease): void {
  const name = `${metadata.namespace ?? ''}/${metadata.name}`;
  const holder = spec.holderIdentity ?? '';
  const ageMs = Date.now() - Date.parse(spec.renewTime ?? '');
  const staleMs = STALE_DURATIONS * (spec.leaseDurationSeconds ?? 15) * 1_000;
  if (holder === '')
    found.warn(
      name,
      'nobody leads',
      'is the manager running? kubectl get pods -A -l control-plane=capstan-controller-manager',
    );
  else if (ageMs > staleMs)
    found.warn(
      name,
      `${holder} leads no more: not renewed for ${Math.round(ageMs / 1_000)} s`,
      'is the manager running?',
    );
  else found.ok(name, `${holder} leads`);
}

/** CAAPH beside Capstan: whichever holds the Lease acts, and the other waits for it without a word. */
export async function checkOtherController({ client, call }: Inspection): Promise<Finding[]> {
  const found = new Findings('other-controller');
  try {
    const { items } = await client.list<Deployment>(DEPLOYMENTS, {}, call);
    const caaph = items.filter(isRunningCaaph);
    for (const { metadata } of caaph) {
      const name = `${metadata.namespace ?? ''}/${metadata.name}`;
      found.fail(
        name,
        'this is CAAPH, and it is not scaled to 0',
        `kubectl scale deployment -n ${metadata.namespace ?? ''} ${metadata.name} --replicas 0 (docs/migration.md)`,
      );
    }
    if (caaph.length === 0) found.ok('', 'CAAPH does not run here');
  } catch (error) {
    found.skip('', explain(error));
  }
  return found.all;
}

function isRunningCaaph({ spec }: Deployment): boolean {
  const images = spec?.template?.spec?.containers?.map(({ image = '' }) => image) ?? [];
  return spec?.replicas !== 0 && images.some((image) => CAAPH_IMAGE.test(image));
}
