import { API_GROUP, API_VERSION, HCP_KIND, HRP_KIND } from '../api/index.ts';
import type { HelmEngine } from '../helm/index.ts';
import { isKubeError } from '../kube/index.ts';
import type { Discovery, KubeClient } from '../kube/index.ts';
import { errorText } from '../telemetry/index.ts';
import { AppError } from './errors.ts';

/** A first answer takes milliseconds; a management cluster that needs more than this is not there. */
const FIRST_ANSWER_LIMIT_MS = 10_000;
/** `helm version` takes 0.06 s; a loaded machine may need a hundred times that. */
const HELM_VERSION_LIMIT_MS = 15_000;

/** Rejects with AppError (API_SERVER) that says why the management cluster cannot be used and what to do. */
export async function checkApiServer(client: KubeClient, server: string, signal: AbortSignal): Promise<void> {
  try {
    await client.raw('GET', '/version', { signal, timeoutMs: FIRST_ANSWER_LIMIT_MS });
  } catch (error) {
    signal.throwIfAborted();
    throw new AppError('API_SERVER', `the management cluster at ${server} does not answer: ${errorText(error)}`, {
      advice: adviceFor(error),
      cause: error,
    });
  }
}

function adviceFor(error: unknown): string {
  if (isKubeError(error, 'Unauthorized'))
    return 'its credentials are refused: get a fresh kubeconfig, or check the ServiceAccount';
  if (isKubeError(error, 'Forbidden')) return 'the user may not read /version: check RBAC (deploy/ holds the roles)';
  if (/certificate|self.signed|issuer/i.test(errorText(error))) {
    return "its certificate is not trusted: check certificate-authority-data and the server's address in the kubeconfig";
  }
  return 'check --kubeconfig (or $KUBECONFIG), its current-context, and that the API server runs';
}

/** Rejects with AppError (MISSING_CRDS) when HelmChartProxy or HelmReleaseProxy is not served. */
export async function checkCrds(discovery: Discovery, signal: AbortSignal): Promise<void> {
  const missing: string[] = [];
  for (const kind of [HCP_KIND, HRP_KIND]) {
    const found = await discovery.find(
      { group: API_GROUP, version: API_VERSION, kind },
      { signal, timeoutMs: FIRST_ANSWER_LIMIT_MS },
    );
    if (found === undefined) missing.push(kind);
  }
  if (missing.length === 0) return;
  throw new AppError(
    'MISSING_CRDS',
    `the management cluster does not serve ${missing.join(' and ')} (${API_GROUP}/${API_VERSION})`,
    { advice: 'install the CRDs: kubectl apply -k deploy/crds' },
  );
}

/** The helm that was found. Rejects with AppError (HELM) when it is missing or too old. */
export async function checkHelm(engine: HelmEngine, flag: string, signal: AbortSignal): Promise<string> {
  try {
    const { full } = await engine.version({ signal, limitMs: HELM_VERSION_LIMIT_MS });
    return full;
  } catch (error) {
    signal.throwIfAborted();
    throw new AppError('HELM', `helm cannot be used (--helm ${flag}): ${errorText(error)}`, {
      advice: 'install Helm 3.17 or later (4 is best), or name its path with --helm',
      cause: error,
    });
  }
}
