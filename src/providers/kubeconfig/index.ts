export { CONTEXT_LABEL, FILE_LABEL, KubeconfigFileProvider } from './file-provider.ts';
export type { KubeconfigFileProviderOptions } from './file-provider.ts';
export { LABELS_EXTENSION } from './contexts.ts';
export { KUBECONFIG_LABEL, KubeconfigSecretProvider, MULTICLUSTER_RUNTIME_LABEL } from './secret-provider.ts';
export type { KubeconfigSecretProviderOptions } from './secret-provider.ts';
