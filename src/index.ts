/**
 * Capstan, as a library. Start at `runtime/types.ts`, the contract of the multicluster runtime: providers declare
 * clusters, the fleet supervises them, controllers reconcile requests that carry the cluster's name. What Helm needs is
 * in `helm/types.ts`, a strategy's contract in `reconcilers/types.ts`, and `app/container.ts` puts it together.
 */
export * from './runtime/index.ts';
export * as kube from './kube/index.ts';
export * as helm from './helm/index.ts';
export * as api from './api/index.ts';
export * as reconcilers from './reconcilers/index.ts';
export * as capi from './providers/capi/index.ts';
export * as kubeconfig from './providers/kubeconfig/index.ts';
export * as local from './providers/local/index.ts';
export { createLogger, createTelemetry, silentLogger } from './telemetry/index.ts';
export type { Logger, LoggerOptions, Telemetry } from './telemetry/index.ts';
export {
  AppError,
  createContainer,
  definePlugin,
  readCommandLine,
  readEnvironment,
  runManager,
  TOKENS,
} from './app/index.ts';
export type { Environment, ManagerOptions, Plugin, PluginContext } from './app/index.ts';
