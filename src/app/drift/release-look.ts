import type { DriftDetectionSpec } from '../../api/index.ts';
import { buildInventory, verifyObject } from '../../drift/index.ts';
import type { ComparisonPolicy, Inventory, InventoryObject } from '../../drift/index.ts';
import type { ReleaseMark } from '../../helm/index.ts';
import type { CallOptions, Discovery, KubeClient } from '../../kube/index.ts';
import { policyOf, unmatchedRules } from '../../reconcilers/drift/policy.ts';
import type { DriftPolicy } from '../../reconcilers/drift/policy.ts';
import { explain, explainAbout, isClusterGone } from './explain.ts';
import type { DriftOptions } from './options.ts';
import { isDrift, isRemarkable, objectReport } from './report.ts';
import type { ComparedRelease, Finding, ReleaseReport } from './report.ts';
import { readContent } from './storage.ts';
import type { History } from './storage.ts';

/** What a look at a release needs of its cluster. */
export interface ClusterTools {
  readonly name: string;
  readonly client: KubeClient;
  readonly discovery: Discovery;
  readonly call: CallOptions;
}

/** One release to compare. */
export interface ReleaseQuestion {
  readonly namespace: string;
  readonly name: string;
  /** Its records; undefined where there are none. */
  readonly history: History | undefined;
  readonly drift: DriftDetectionSpec;
  readonly about: Pick<ReleaseReport, 'helmReleaseProxy' | 'helmChartProxy'>;
}

/** Field managers that are Helm: its own name, and CAAPH's, whose binary is called so. */
const HELM_MANAGERS: readonly string[] = ['helm', 'manager'];

/**
 * Compares a release's objects with its deployed revision. What fails about the release is in its report; rejects only
 * when the cluster is not there, or with the signal's reason.
 */
export async function compareRelease(
  tools: ClusterTools,
  question: ReleaseQuestion,
  options: DriftOptions,
): Promise<ComparedRelease> {
  const deployed = question.history?.find(({ status }) => status === 'deployed');
  if (deployed === undefined) return failedRelease(tools.name, question, whyNotDeployed(question));
  try {
    return await compareRevision(tools, question, { deployed, options });
  } catch (error) {
    tools.call.signal?.throwIfAborted();
    if (isClusterGone(error)) throw error;
    return failedRelease(tools.name, question, explain(error));
  }
}

/** The report of a release that could not be compared. */
export function failedRelease(
  cluster: string,
  { namespace, name, about }: Omit<ReleaseQuestion, 'drift' | 'history'>,
  error: string,
): ComparedRelease {
  const counts = { objects: 0, drifted: 0, excluded: 0, details: [], notes: [] };
  return { report: { cluster, namespace, name, ...about, ...counts, error }, findings: [] };
}

function whyNotDeployed({ name, history }: ReleaseQuestion): string {
  const newest = history?.[0];
  if (newest !== undefined) return `no revision is deployed: revision ${newest.revision} is ${newest.status}`;
  return name === '' ? 'it has no release yet' : 'there is no such release on the cluster';
}

async function compareRevision(
  tools: ClusterTools,
  question: ReleaseQuestion,
  of: { readonly deployed: ReleaseMark; readonly options: DriftOptions },
): Promise<ComparedRelease> {
  const { deployed, options } = of;
  const content = await readContent(tools.client, deployed, tools.call);
  if (content === undefined) return failedRelease(tools.name, question, 'its record went while it was read');
  const policy = policyFor(question.drift, options);
  const { namespace, name } = question;
  const inventory = await buildInventory(
    {
      release: { namespace, name },
      revision: deployed.revision,
      documents: content.documents,
      crds: policy.includeCRDs ? content.crds() : [],
    },
    tools.discovery,
    tools.call,
  );
  const findings = await Promise.all(inventory.objects.map(async (object) => verify(tools, object, policy.comparison)));
  const remarkable = findings.filter(isRemarkable);
  const report: ReleaseReport = {
    cluster: tools.name,
    namespace,
    name,
    revision: deployed.revision,
    ...question.about,
    objects: findings.length,
    drifted: findings.filter(isDrift).length,
    excluded: findings.filter(({ verification }) => verification?.verdict.state === 'Excluded').length,
    details: remarkable.map(objectReport),
    notes: [...notesOn(question, deployed), ...notesFrom(inventory, policy)],
  };
  return { report, findings: remarkable };
}

/** As the HelmReleaseProxy says, flags before it. Whether drift is to be corrected is no matter here. */
function policyFor(drift: DriftDetectionSpec, options: DriftOptions): DriftPolicy {
  return policyOf(
    {
      ...drift,
      ...(options.extraFields !== undefined && { extraFields: options.extraFields }),
      ...(options.includeCRDs && { includeCRDs: true }),
    },
    { mode: 'Warn', helmManagers: HELM_MANAGERS },
  );
}

async function verify(tools: ClusterTools, object: InventoryObject, policy: ComparisonPolicy): Promise<Finding> {
  try {
    return { object, verification: await verifyObject(tools.client, object, policy, tools.call) };
  } catch (error) {
    tools.call.signal?.throwIfAborted();
    if (isClusterGone(error)) throw error;
    return { object, error: explainAbout(error, object.id.group === '' && object.id.kind === 'Secret') };
  }
}

function notesOn({ history = [] }: ReleaseQuestion, deployed: ReleaseMark): string[] {
  const [newest = deployed] = history;
  if (newest.revision === deployed.revision) return [];
  return [
    `revision ${newest.revision} is ${newest.status}: compared with revision ${deployed.revision}, which is deployed`,
  ];
}

function notesFrom(inventory: Inventory, policy: DriftPolicy): string[] {
  return [...inventory.problems, ...policy.problems, ...unmatchedRules(policy, inventory.objects)];
}
