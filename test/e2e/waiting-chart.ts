import { chartFromFiles, eventually } from '../support/index.ts';
import type { Chart, TestCluster } from '../support/index.ts';

/** A release of the chart, as a test addresses it. */
export interface WaitingRelease {
  namespace: string;
  release: string;
  version: string;
}

/**
 * A chart that `wait` waits for until a test lets it: a PersistentVolumeClaim per chart version, which nothing binds on a
 * cluster without controllers. `letReady` does.
 */
export function waitingChart(name: string, version: string): Chart {
  return chartFromFiles(
    { name, version, description: 'becomes ready when a test says so' },
    {
      'values.yaml': 'message: hello\n',
      'templates/claim.yaml': `apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ .Release.Name }}-{{ .Chart.Version | replace "." "-" }}
  namespace: {{ .Release.Namespace }}
  annotations: { helm.sh/resource-policy: keep }
spec:
  accessModes: [ReadWriteOnce]
  resources: { requests: { storage: 1Mi } }
`,
      'templates/settings.yaml': `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-settings
  namespace: {{ .Release.Namespace }}
data:
  message: {{ .Values.message | quote }}
  version: {{ .Chart.Version | quote }}
`,
    },
  );
}

/** Waits until Helm has applied the release's objects: from then on it waits for them. */
export async function applied(cluster: TestCluster, release: WaitingRelease): Promise<void> {
  await eventually(
    async () => {
      if (!(await cluster.api.find(path(release)))) throw new Error('it is not there');
    },
    { timeoutMs: 60_000, what: `the claim of ${release.release} ${release.version}` },
  );
}

/** Makes the release's objects ready. */
export async function letReady(cluster: TestCluster, release: WaitingRelease): Promise<void> {
  await applied(cluster, release);
  await cluster.api.patch(`${path(release)}/status`, { status: { phase: 'Bound' } });
}

function path({ namespace, release, version }: WaitingRelease): string {
  const claim = `${release}-${version.replaceAll('.', '-')}`;
  return `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${claim}`;
}
