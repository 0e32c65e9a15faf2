import type { CallOptions, KubeClient } from '../../kube/index.ts';
import { explain } from '../drift/explain.ts';
import type { DoctorOptions } from '../inspect/options.ts';
import { Findings } from './finding.ts';
import type { Finding } from './finding.ts';

/** A right that the manager uses on the management cluster; deploy/base/manager-role.yaml grants them (a test compares). */
export interface Right {
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly verbs: readonly string[];
}

const READ = ['get', 'list', 'watch'];

export const MANAGER_RIGHTS: readonly Right[] = [
  { group: 'addons.cluster.x-k8s.io', resource: 'helmchartproxies', verbs: [...READ, 'patch'] },
  { group: 'addons.cluster.x-k8s.io', resource: 'helmreleaseproxies', verbs: [...READ, 'create', 'patch', 'delete'] },
  { group: 'addons.cluster.x-k8s.io', resource: 'helmchartproxies', subresource: 'status', verbs: ['get', 'patch'] },
  { group: 'addons.cluster.x-k8s.io', resource: 'helmreleaseproxies', subresource: 'status', verbs: ['get', 'patch'] },
  { group: 'addons.cluster.x-k8s.io', resource: 'helmchartproxies', subresource: 'finalizers', verbs: ['update'] },
  { group: 'cluster.x-k8s.io', resource: 'clusters', verbs: READ },
  { group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions', verbs: READ },
  { group: '', resource: 'secrets', verbs: READ },
  { group: '', resource: 'events', verbs: ['create', 'patch'] },
];

interface Review {
  readonly status?: { readonly allowed?: boolean };
}

/** Asks the API server for each right, of the ServiceAccount or of the user. Asks and changes nothing. */
export async function checkPermissions(
  client: KubeClient,
  options: Pick<DoctorOptions, 'serviceAccount'>,
  call: CallOptions,
): Promise<Finding[]> {
  const { serviceAccount } = options;
  const who =
    serviceAccount === undefined ? 'you' : `ServiceAccount ${serviceAccount.namespace}/${serviceAccount.name}`;
  const found = new Findings('permissions');
  const asked = MANAGER_RIGHTS.flatMap((right) => right.verbs.map((verb) => ({ right, verb })));
  try {
    const answers = await Promise.all(
      asked.map(async ({ right, verb }) => ({
        right,
        verb,
        allowed: await isAllowed(client, options, { right, verb, call }),
      })),
    );
    for (const right of MANAGER_RIGHTS) {
      const missing = answers.filter((one) => one.right === right && !one.allowed).map(({ verb }) => verb);
      if (missing.length > 0) {
        const rule = `{ apiGroups: ["${right.group}"], resources: [${nameOf(right)}], verbs: [${missing.join(', ')}] }`;
        found.fail(
          nameOf(right),
          `${who} may not ${missing.join(', ')} ${nameOf(right)}`,
          `add to the ClusterRole: ${rule}`,
        );
      }
    }
    if (found.all.length === 0) found.ok('', `${who} may do all that the manager does (${asked.length} rights)`);
  } catch (error) {
    found.skip('', `rights could not be asked for: ${explain(error)}`, 'this needs create on subjectaccessreviews');
  }
  return found.all;
}

async function isAllowed(
  client: KubeClient,
  { serviceAccount }: Pick<DoctorOptions, 'serviceAccount'>,
  { right, verb, call }: { right: Right; verb: string; call: CallOptions },
): Promise<boolean> {
  const { group, resource, subresource } = right;
  const resourceAttributes = { group, resource, verb, ...(subresource === undefined ? {} : { subresource }) };
  const kind = serviceAccount === undefined ? 'SelfSubjectAccessReview' : 'SubjectAccessReview';
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind,
    spec: { resourceAttributes, ...subjectOf(serviceAccount) },
  };
  const path = `/apis/authorization.k8s.io/v1/${kind.toLowerCase()}s`;
  return (await client.raw<Review>('POST', path, { ...call, body })).status?.allowed === true;
}

function subjectOf(account: DoctorOptions['serviceAccount']): { user?: string; groups?: string[] } {
  if (account === undefined) return {};
  return {
    user: `system:serviceaccount:${account.namespace}:${account.name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`, 'system:authenticated'],
  };
}

export function nameOf({ resource, subresource }: Right): string {
  return subresource === undefined ? resource : `${resource}/${subresource}`;
}
