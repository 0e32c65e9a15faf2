import PQueue from 'p-queue';
import { ApiDiscovery, isKubeError, linkAbort, RestClient } from '../../kube/index.ts';
import type { Connection, KubeClient } from '../../kube/index.ts';
import { asError } from '../../kube/index.ts';
import { explain, isClusterGone } from './explain.ts';
import type { DriftOptions } from './options.ts';
import { ReadOnlyClient } from './read-only-client.ts';
import type { Gate } from './read-only-client.ts';
import { compareRelease, failedRelease } from './release-look.ts';
import type { ClusterTools, ReleaseQuestion } from './release-look.ts';
import type { ClusterReport, ComparedRelease } from './report.ts';
import { readHistories } from './storage.ts';
import type { History } from './storage.ts';
import type { ReleaseTarget } from './targets.ts';

/** Which releases of a cluster. */
export type Wanted =
  /** Those of HelmReleaseProxies. */
  | { readonly kind: 'targets'; readonly targets: readonly ReleaseTarget[] }
  /** What Helm's storage holds, of one namespace or all; only those of these names when there are any. */
  | { readonly kind: 'stored'; readonly namespace: string | undefined; readonly names: readonly string[] };

export interface ClusterLook {
  readonly cluster: ClusterReport;
  readonly releases: readonly ComparedRelease[];
  /** Names that no release has. */
  readonly unknown: readonly string[];
}

/** What all looks of one command share. */
export interface Looking {
  readonly options: DriftOptions;
  readonly gate: Gate;
  readonly signal: AbortSignal;
}

/** Releases of one cluster under way at a time: each holds its manifest, of megabytes perhaps. */
const RELEASES_AT_A_TIME = 4;

/** Looks at a cluster's releases. What fails is in the reports; rejects only with the signal's reason. Closes nothing. */
export async function lookAtCluster(
  name: string,
  connection: Connection,
  wanted: Wanted,
  looking: Looking,
): Promise<ClusterLook> {
  const linked = linkAbort(looking.signal);
  const rest = new RestClient(connection);
  const { options, gate } = looking;
  const tools: ClusterTools = {
    name,
    client: new ReadOnlyClient(rest, { dryRuns: options.dryRun, gate }),
    discovery: new ApiDiscovery(rest, { minRefreshMs: NEVER_AGAIN_MS }),
    call: { signal: linked.signal, timeoutMs: options.timeoutMs },
  };
  try {
    const questions = await questionsOf(tools, wanted);
    const unknown = wanted.kind === 'stored' ? missingOf(wanted.names, questions) : [];
    const gone = (error: unknown): void => linked.abort(asError(error));
    return { ...(await compareAll(tools, questions, options, gone)), unknown };
  } catch (error) {
    looking.signal.throwIfAborted();
    return failedCluster(name, wanted, explain(error));
  } finally {
    linked.unlink();
  }
}

/** What a server serves is read once: a kind that it does not serve is not asked for again. */
const NEVER_AGAIN_MS = 3_600_000;

/** The look at a cluster that cannot be looked at. */
export function failedCluster(name: string, wanted: Wanted, error: string): ClusterLook {
  const targets = wanted.kind === 'targets' ? wanted.targets : [];
  return {
    cluster: { name, error },
    releases: targets.map((target) => failedRelease(name, questionFor(target, undefined), NOT_REACHED)),
    unknown: [],
  };
}

/** Of a release whose cluster's own report says more. */
export const NOT_REACHED = 'its cluster could not be read';

async function compareAll(
  tools: ClusterTools,
  questions: readonly ReleaseQuestion[],
  options: DriftOptions,
  gone: (error: unknown) => void,
): Promise<Omit<ClusterLook, 'unknown'>> {
  const queue = new PQueue({ concurrency: RELEASES_AT_A_TIME });
  /** Why the cluster was lost: what failed first, then what that ended. */
  const losses: string[] = [];
  const compare = async (question: ReleaseQuestion): Promise<ComparedRelease> => {
    if (losses.length > 0) return failedRelease(tools.name, question, NOT_REACHED);
    try {
      return await compareRelease(tools, question, options);
    } catch (error) {
      if (losses.length === 0 && !isClusterGone(error)) throw error;
      losses.push(explain(error));
      // What else is asked of this cluster would fail as well, each after its time limit.
      gone(error);
      return failedRelease(tools.name, question, NOT_REACHED);
    }
  };
  const releases = await Promise.all(questions.map(async (question) => queue.add(async () => compare(question))));
  const [error] = losses;
  return { cluster: { name: tools.name, ...(error !== undefined && { error }) }, releases };
}

async function questionsOf(tools: ClusterTools, wanted: Wanted): Promise<readonly ReleaseQuestion[]> {
  if (wanted.kind === 'stored') return storedQuestions(tools, wanted);
  const namespaces = [...new Set(wanted.targets.map(({ namespace }) => namespace))];
  const read = await Promise.all(
    namespaces.map(async (namespace) => readNamespace(tools.client, namespace, tools.call)),
  );
  const histories = new Map(read.flat().map((history) => [keyOf(history), history]));
  return wanted.targets.map((target) => questionFor(target, histories.get(`${target.namespace}/${target.name}`)));
}

/** A HelmReleaseProxy may name what can be no namespace; the server answers 400. Then there is no release in it. */
async function readNamespace(
  client: KubeClient,
  namespace: string,
  call: ClusterTools['call'],
): Promise<readonly History[]> {
  try {
    return await readHistories(client, namespace, call);
  } catch (error) {
    if (isKubeError(error, 'Invalid', 'NotFound')) return [];
    throw error;
  }
}

async function storedQuestions(
  tools: ClusterTools,
  wanted: Extract<Wanted, { kind: 'stored' }>,
): Promise<readonly ReleaseQuestion[]> {
  const histories = await readHistories(tools.client, wanted.namespace, tools.call);
  return histories.flatMap((history) => {
    const [newest] = history;
    if (newest === undefined) return [];
    const named = wanted.names.includes(newest.name);
    // A history that was kept (helm uninstall --keep-history) is no release, unless somebody asks for it.
    if (!named && (wanted.names.length > 0 || newest.status === 'uninstalled')) return [];
    return [{ namespace: newest.namespace, name: newest.name, history, drift: {}, about: {} }];
  });
}

function missingOf(names: readonly string[], questions: readonly ReleaseQuestion[]): string[] {
  return names.filter((name) => !questions.some((question) => question.name === name));
}

function questionFor(target: ReleaseTarget, history: History | undefined): ReleaseQuestion {
  const { namespace, name, proxy, chartProxy, drift } = target;
  const about = { helmReleaseProxy: proxy, ...(chartProxy !== undefined && { helmChartProxy: chartProxy }) };
  return { namespace, name, history, drift, about };
}

function keyOf([newest]: History): string {
  return `${newest?.namespace ?? ''}/${newest?.name ?? ''}`;
}
