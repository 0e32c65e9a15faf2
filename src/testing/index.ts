/** The room `testing`, exported as `capstan/testing`: for tests of what others build on the runtime. It needs no test framework. */
export * from './errors.ts';
export { providerConformance } from './provider-conformance.ts';
export type {
  ConformanceCheck,
  ConformanceCluster,
  ConformanceSubject,
  ProviderConformanceOptions,
} from './provider-conformance.ts';
