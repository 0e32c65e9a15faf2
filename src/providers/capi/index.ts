export { CapiProvider } from './capi-provider.ts';
export type { CapiProviderOptions } from './capi-provider.ts';
export { readKubeconfigSecret } from './kubeconfig-secret.ts';
