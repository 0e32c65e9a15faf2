import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ForbiddenError } from '../../kube/index.ts';
import type { KubeClient } from '../../kube/index.ts';
import { checkPermissions, MANAGER_RIGHTS, nameOf } from './permissions.ts';

const ROLE = join(import.meta.dirname, '../../../deploy/base/manager-role.yaml');

interface Review {
  kind: string;
  spec: { user?: string; resourceAttributes: { resource: string; verb: string } };
}

/** An API server that allows all but `denied`. */
function server(denied: (verb: string, resource: string) => boolean): { client: KubeClient; asked: Review[] } {
  const asked: Review[] = [];
  const raw = async (_: string, __: string, { body }: { body: Review }) => {
    asked.push(body);
    const { verb, resource } = body.spec.resourceAttributes;
    return Promise.resolve({ status: { allowed: !denied(verb, resource) } });
  };
  return { client: { raw } as unknown as KubeClient, asked };
}

describe('the rights that doctor asks for', () => {
  it("are those that deploy/ grants, but for Cluster API's providers, whose kinds nobody knows beforehand", () => {
    const role = readFileSync(ROLE, 'utf8').split(/^---$/m)[0] ?? '';
    const { rules } = parse(role) as { rules: { apiGroups: string[]; resources: string[]; verbs: string[] }[] };
    const granted = rules
      .filter(({ resources }) => !resources.includes('*'))
      .flatMap(({ apiGroups, resources, verbs }) =>
        apiGroups.flatMap((group) =>
          resources.map((resource) => `${group} ${resource}: ${verbs.toSorted().join(',')}`),
        ),
      );
    const asked = MANAGER_RIGHTS.map((right) => `${right.group} ${nameOf(right)}: ${right.verbs.toSorted().join(',')}`);
    expect(asked.toSorted()).toEqual(granted.toSorted());
  });

  it('are told when they are all there', async () => {
    const { client } = server(() => false);
    expect(await checkPermissions(client, { serviceAccount: undefined }, {})).toMatchObject([{ level: 'ok' }]);
  });

  it('are told one by one when they are missing, with the rule to add', async () => {
    const { client } = server((verb, resource) => resource === 'secrets' && verb !== 'get');
    expect(await checkPermissions(client, { serviceAccount: undefined }, {})).toEqual([
      {
        check: 'permissions',
        level: 'fail',
        subject: 'secrets',
        message: 'you may not list, watch secrets',
        advice: 'add to the ClusterRole: { apiGroups: [""], resources: [secrets], verbs: [list, watch] }',
      },
    ]);
  });

  it("may be a ServiceAccount's", async () => {
    const { client, asked } = server(() => false);
    await checkPermissions(client, { serviceAccount: { namespace: 'capstan-system', name: 'manager' } }, {});
    expect(new Set(asked.map(({ kind, spec }) => `${kind} ${spec.user ?? ''}`))).toEqual(
      new Set(['SubjectAccessReview system:serviceaccount:capstan-system:manager']),
    );
  });

  it('are left out, and said so, where one may not even ask', async () => {
    const client = { raw: async () => Promise.reject(new ForbiddenError('forbidden')) } as unknown as KubeClient;
    expect(await checkPermissions(client, { serviceAccount: undefined }, {})).toMatchObject([{ level: 'skip' }]);
  });
});
