/**
 * Field managers that are a part of Kubernetes or of how a cluster runs (the first part of their user agent): what they
 * add to an object is nobody's edit by hand. Left out on purpose: names that people's tools share.
 */
const KNOWN: ReadonlySet<string> = new Set([
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'cloud-controller-manager',
  'aws-cloud-controller-manager',
  'azure-cloud-controller-manager',
  'gcp-cloud-controller-manager',
  'openstack-cloud-controller-manager',
  'vsphere-cloud-controller-manager',
  // Distributions that run all of the above in one binary.
  'k3s',
  'rke2',
  'k0s',
  // Scaling: they own replicas and resources of what others declare.
  'horizontal-pod-autoscaler',
  'cluster-autoscaler',
  'vpa-updater',
  'vpa-recommender',
  'keda',
  'keda-operator',
  // They fill in caBundle (drift.md §8, scenario 4).
  'cert-manager-cainjector',
  'cainjector',
  'pilot-discovery',
  'istiod',
  // Storage: PersistentVolumeClaims get annotations from them.
  'csi-provisioner',
  'csi-attacher',
  'csi-resizer',
]);

export function isKnownController(manager: string): boolean {
  return KNOWN.has(manager);
}
