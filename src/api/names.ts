/** Names that the API fixes: groups, finalizers, labels, annotations (caaph §1.5). */
export const API_GROUP = 'addons.cluster.x-k8s.io';
export const API_VERSION = 'v1alpha1';
export const HCP_KIND = 'HelmChartProxy';
export const HRP_KIND = 'HelmReleaseProxy';

export const HCP_FINALIZER = 'helmchartproxy.addons.cluster.x-k8s.io';
export const HRP_FINALIZER = 'helmreleaseproxy.addons.cluster.x-k8s.io';

export const CLUSTER_NAME_LABEL = 'cluster.x-k8s.io/cluster-name';
export const HCP_NAME_LABEL = 'helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name';
export const WATCH_FILTER_LABEL = 'cluster.x-k8s.io/watch-filter';

export const PAUSED_ANNOTATION = 'cluster.x-k8s.io/paused';
export const RELEASE_NAME_GENERATED_ANNOTATION = 'helmreleaseproxy.addons.cluster.x-k8s.io/is-release-name-generated';
/** Only its presence counts. */
export const INSTALLED_ANNOTATION = 'helmreleaseproxy.addons.cluster.x-k8s.io/release-successfully-installed';

/** UID of the workload cluster's kube-system namespace that the release was installed on. Unlike status it outlives `clusterctl move`. */
export const WORKLOAD_CLUSTER_UID_ANNOTATION = 'helmreleaseproxy.addons.cluster.x-k8s.io/workload-cluster-uid';
/** Digests of what spec.values was rendered from and of spec.values itself: both equal, and nothing is rendered again. */
export const VALUES_INPUTS_ANNOTATION = 'helmreleaseproxy.addons.cluster.x-k8s.io/values-inputs';
/** "true": deleting the HelmReleaseProxy gives its release up without asking the cluster. For clusters that never come back. */
export const FORCE_DELETE_ANNOTATION = 'helmreleaseproxy.addons.cluster.x-k8s.io/force-delete';
/** Full names where a label value (63 characters) holds a hash of it. */
export const HCP_NAME_ANNOTATION = 'helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-full-name';
export const CLUSTER_NAME_ANNOTATION = 'helmreleaseproxy.addons.cluster.x-k8s.io/cluster-full-name';
/** Set by clusterctl move on what it is about to delete because it lives elsewhere from now on: nothing is cleaned up. */
export const DELETE_FOR_MOVE_ANNOTATION = 'clusterctl.cluster.x-k8s.io/delete-for-move';
/** `disabled`, on a workload object (in the manifest or live): drift detection leaves it out. */
export const DRIFT_DETECTION_ANNOTATION = 'helmreleaseproxy.addons.cluster.x-k8s.io/drift-detection';
/** On a HelmReleaseProxy: any new text starts corrections anew that had stopped because they did not hold. */
export const DRIFT_RETRY_ANNOTATION = 'helmreleaseproxy.addons.cluster.x-k8s.io/drift-retry';
/** The trace in which the HelmReleaseProxy was last written (W3C Trace Context). A note that asks for nothing; only written along with a change, while tracing is on. */
export const TRACEPARENT_ANNOTATION = 'helmreleaseproxy.addons.cluster.x-k8s.io/traceparent';

export const CREDENTIALS_DEFAULT_KEY = 'config.json';
export const CA_SECRET_KEY = 'ca.crt';
