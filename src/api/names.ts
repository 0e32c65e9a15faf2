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

export const CREDENTIALS_DEFAULT_KEY = 'config.json';
export const CA_SECRET_KEY = 'ca.crt';
