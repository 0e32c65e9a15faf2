export { LOCAL_TARGET, LocalProvider } from './local-provider.ts';
export type { LocalProviderOptions } from './local-provider.ts';
