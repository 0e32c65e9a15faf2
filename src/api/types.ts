/**
 * Types of addons.cluster.x-k8s.io/v1alpha1; the schema is in crds/, docs/api.md describes it. The API server fills in the
 * defaults, on read as well, so an object read from it always has `namespace` and the defaulted `options`.
 */
import type { Condition } from './conditions.ts';

export interface SecretReference {
  name: string;
  namespace?: string;
}

/** Name of a strategy: `Continuous`, `InstallOnce` or a third party's. Unset and '' mean Continuous. */
export type ReconcileStrategy = string;

export interface HelmOptionsSpec {
  disableHooks?: boolean;
  wait?: boolean;
  waitForJobs?: boolean;
  dependencyUpdate?: boolean;
  /** Go duration, 10m0s by default. */
  timeout?: string;
  skipCRDs?: boolean;
  /** Renders sub-chart notes; CAAPH's JSON name for it is `options`. */
  options?: boolean;
  disableOpenAPIValidation?: boolean;
  /** Implies `wait`. CAAPH's webhook wrote that into the object; CEL cannot, so whoever reads the options does. */
  atomic?: boolean;
  enableClientCache?: boolean;
  takeOwnership?: boolean;
  install?: { createNamespace?: boolean; includeCRDs?: boolean };
  upgrade?: {
    force?: boolean;
    resetValues?: boolean;
    reuseValues?: boolean;
    resetThenReuseValues?: boolean;
    recreate?: boolean;
    maxHistory?: number;
    cleanupOnFail?: boolean;
  };
  uninstall?: { keepHistory?: boolean; description?: string };
}

export interface CredentialsSpec {
  secret: SecretReference;
  /** The schema wants it to be there, and it may be ''; empty means CREDENTIALS_DEFAULT_KEY. */
  key?: string;
}

export interface TlsConfigSpec {
  caSecret?: SecretReference;
  insecureSkipTLSVerify?: boolean;
}

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'; values?: string[] }[];
}

/** What both kinds share. */
export interface ChartSpec {
  chartName: string;
  repoURL: string;
  /** Empty: a name is generated. */
  releaseName?: string;
  /** Defaulted by the server; '' (which it lets in, as CAAPH did) means `default` too. */
  namespace?: string;
  version?: string;
  reconcileStrategy?: ReconcileStrategy;
  options?: HelmOptionsSpec;
  credentials?: CredentialsSpec;
  tlsConfig?: TlsConfigSpec;
}

export interface HelmChartProxySpec extends ChartSpec {
  clusterSelector: LabelSelector;
  valuesTemplate?: string;
}

export interface ObjectReference {
  apiVersion?: string;
  kind?: string;
  namespace?: string;
  name?: string;
  uid?: string;
  resourceVersion?: string;
  fieldPath?: string;
}

export interface HelmReleaseProxySpec extends ChartSpec {
  clusterRef: ObjectReference;
  /** Rendered YAML. May hold secrets: never logged. */
  values?: string;
}

export interface HelmChartProxyStatus {
  conditions?: Condition[];
  matchingClusters?: ObjectReference[];
  observedGeneration?: number;
}

/** A Helm operation in progress, persisted before Helm starts and removed when it ends; one found at start-up was interrupted. */
export interface ReleaseOperation {
  /** `install`, `upgrade`, `rollback` or `uninstall`; a string in the schema, so that a later version may add to them. */
  type: string;
  /** Revision that the operation makes. */
  revision?: number;
  /** RFC 3339. */
  startedAt?: string;
  timeoutSeconds?: number;
}

/** From `chartVersion` on: Capstan's own, all optional, absent from objects that CAAPH left. */
export interface HelmReleaseProxyStatus {
  conditions?: Condition[];
  /** Helm's own word, e.g. `deployed`. */
  status?: string;
  revision?: number;
  observedGeneration?: number;
  /** Chart that the release was last made from. */
  chartVersion?: string;
  chartDigest?: string;
  /** Digest of the object's values (canonical) that the revision was made from. */
  valuesDigest?: string;
  /** UID of the workload cluster's namespace kube-system. */
  clusterUID?: string;
  operation?: ReleaseOperation;
}

interface Meta {
  name: string;
  namespace?: string;
  generateName?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: {
    apiVersion: string;
    kind: string;
    name: string;
    uid: string;
    controller?: boolean;
    blockOwnerDeletion?: boolean;
  }[];
}

export interface HelmChartProxy {
  apiVersion: string;
  kind: string;
  metadata: Meta;
  spec: HelmChartProxySpec;
  status?: HelmChartProxyStatus;
}

export interface HelmReleaseProxy {
  apiVersion: string;
  kind: string;
  metadata: Meta;
  spec: HelmReleaseProxySpec;
  status?: HelmReleaseProxyStatus;
}
