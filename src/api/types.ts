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

/** Which objects of a release a rule is for; absent or '' matches all. All but the selectors are RE2 patterns that match the whole text. */
export interface DriftRuleTarget {
  group?: string;
  version?: string;
  kind?: string;
  name?: string;
  namespace?: string;
  labelSelector?: string;
  annotationSelector?: string;
}

/** JSON pointers (RFC 6901; '' is the whole object, a segment `*` every element or key) of the objects that `target` matches. */
export interface DriftRule {
  paths: string[];
  target?: DriftRuleTarget;
}

export type DriftMode = 'Disabled' | 'Warn' | 'Correct';

/** How a release's objects are kept as the chart has them; docs/drift.md. */
export interface DriftDetectionSpec {
  /** Absent: the manager's --drift-detection. */
  mode?: DriftMode;
  /** `Apply` (default): the objects alone, without a Helm revision. `Upgrade`: one `helm upgrade`. */
  correction?: 'Apply' | 'Upgrade';
  /** Fields that the manifest does not set and somebody added by hand; `Ignore` by default. */
  extraFields?: 'Ignore' | 'Report' | 'Remove';
  /** CRDs from the chart's crds/, too. */
  includeCRDs?: boolean;
  ignore?: DriftRule[];
  /** Fields whose texts are quantities (1000m is 1), beside those that are known. */
  quantities?: DriftRule[];
}

/** One field of an object that differs. Texts, bounded; values of Secrets are masked. */
export interface DriftFieldStatus {
  /** JSON pointer. */
  path: string;
  /** `changed`, `removed` or `added`. */
  change: string;
  wanted?: string;
  live?: string;
  /** Who changed it, where the object's managedFields prove it. */
  manager?: string;
  operation?: string;
  time?: string;
}

export interface DriftObjectStatus {
  apiVersion: string;
  kind: string;
  namespace?: string;
  name: string;
  /** `Modified`, `Missing`, `Foreign`, `NotServed` … */
  state: string;
  /** What becomes of it: `Reported`, `Pending`, `Corrected`, `Stopped`, `NeedsRecreation`, `Refused`, `Waiting`. */
  action?: string;
  message?: string;
  fields?: DriftFieldStatus[];
  /** Fields beyond those. */
  moreFields?: number;
}

export interface DriftStatus {
  /** Revision that the objects were compared with. */
  revision?: number;
  /** Objects of the release that are watched. */
  objects?: number;
  /** How many of them differ now. */
  drifted?: number;
  /** RFC 3339. */
  lastDetectedTime?: string;
  lastCorrectedTime?: string;
  /** Objects put back since this revision. */
  corrections?: number;
  /** At most ten of those that differ. */
  details?: DriftObjectStatus[];
  /** Objects beyond those. */
  more?: number;
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
  driftDetection?: DriftDetectionSpec;
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
  drift?: DriftStatus;
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
